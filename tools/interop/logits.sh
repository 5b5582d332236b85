#!/usr/bin/env bash
# Loads checkpoints that Octavo made with transformers and compressed-tensors, and compares their logits with ours.
#   tools/interop/logits.sh CHECKPOINT...          (default: one of every INT8 variant, quantized here from the test models)
# Everything it needs goes to build/interop: a virtual environment with PyTorch (several GB), and the checkpoints.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly WORK=build/interop OCTAVO=build/release/src/apps/octavo
readonly BASE=tests/data/checkpoints/base-llama
[[ -x $OCTAVO ]] || ./dev build
if [[ ! -x $WORK/venv/bin/python ]]; then
  python3 -m venv "$WORK/venv"
  "$WORK/venv/bin/pip" install -q -r tools/interop/requirements.txt
fi

# make NAME WEIGHTS ACTIVATIONS: a recipe of one group, quantized. Both are the fields of a scheme as YAML.
make() {
  local out=$WORK/$1
  cat >"$WORK/$1.yaml" <<END
quant_stage:
  quant_modifiers:
    QuantizationModifier:
      ignore: [lm_head]
      config_groups:
        group_0:
          targets: [Linear]
          weights: {num_bits: 8, type: int, symmetric: true, $2}
          input_activations: {num_bits: 8, type: int, $3}
END
  "$OCTAVO" quantize "$BASE" -o "$out" --recipe "$WORK/$1.yaml" --calibration "$WORK/calibration.jsonl" --force --restart -q \
    >/dev/null
  checkpoints+=("$out")
}

checkpoints=("$@")
if ((${#checkpoints[@]} == 0)); then
  # 16 samples of 64 random tokens, the same every time.
  awk 'BEGIN { srand(7); for (i = 0; i < 16; i++) { row = ""; for (j = 0; j < 64; j++) row = row (j ? ", " : "") int(rand() * 128)
       print "{\"input_ids\": [" row "]}" } }' >"$WORK/calibration.jsonl"
  make channel-token "strategy: channel" "strategy: token, dynamic: true, symmetric: true"
  make tensor-token "strategy: tensor" "strategy: token, dynamic: true, symmetric: true"
  make channel-token-asym "strategy: channel" "strategy: token, dynamic: true, symmetric: false"
  make channel-static "strategy: channel" "strategy: tensor, dynamic: false, symmetric: true"
  make channel-static-asym "strategy: channel" "strategy: tensor, dynamic: false, symmetric: false"
  make tensor-static-asym "strategy: tensor" "strategy: tensor, dynamic: false, symmetric: false"
fi
TQDM_DISABLE=1 "$WORK/venv/bin/python" tools/interop/logits.py --octavo "$OCTAVO" "${checkpoints[@]}"
