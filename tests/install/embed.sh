#!/usr/bin/env bash
# Installs Octavo, builds examples/ against what was installed, and lets the example quantize a model and continue a text.
#   embed.sh SOURCE BUILD COMPILER
set -euo pipefail
source=$1 build=$2 compiler=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >/dev/null
cmake -S "$source/examples" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" >/dev/null
cmake --build "$work/build"

answer=$("$work/build/quantize_and_ask" "$source/data/stories260k" "$work/w8a8" "Once upon a time" 2>"$work/progress") ||
  { cat "$work/progress"; exit 1; }
printf '%s\n' "$answer"
grep -q '^quantize 5 of 5$' "$work/progress" || { echo "no progress was told: $(cat "$work/progress")"; exit 1; }
grep -q '^35 layers, 1.[0-9]* MB -> 0.[0-9]* MB$' <<<"$answer" || { echo "no report"; exit 1; }
# The library continues as the installed program does.
expected=$("$work/prefix/bin/octavo" generate "$work/w8a8" -p "Once upon a time" -n 40 -q)
grep -qF -- "$(head -n 1 <<<"$expected")" <<<"$answer" || { echo "octavo generate says: $expected"; exit 1; }
if "$work/build/quantize_and_ask" "$work/absent" "$work/out" x 2>"$work/error"; then echo "an absent model is no error"; exit 1; fi
grep -q 'absent' "$work/error" || { echo "the error does not name the folder: $(cat "$work/error")"; exit 1; }
