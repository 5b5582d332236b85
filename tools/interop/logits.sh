#!/usr/bin/env bash
# Loads checkpoints that Octavo made with transformers and compressed-tensors, and compares their logits with ours.
#   tools/interop/logits.sh CHECKPOINT...          (default: one of every preset and INT8 variant, quantized here from a test model)
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
  quantize "$1" --recipe "$WORK/$1.yaml"
}

# quantize NAME ARGUMENT...
quantize() {
  "$OCTAVO" quantize "$BASE" -o "$WORK/$1" "${@:2}" --calibration "$WORK/calibration.jsonl" --force --restart -q >/dev/null
  checkpoints+=("$WORK/$1")
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
  for preset in W8A8 W8A16 W4A16 W4A16_ASYM W4A8 W4AFP8 FP8 FP8_DYNAMIC FP8_BLOCK NVFP4 NVFP4A16 MXFP4 MXFP4A16 MXFP8 MXFP8A16; do
    quantize "$preset" --scheme "$preset" --method rtn
  done
fi
TQDM_DISABLE=1 "$WORK/venv/bin/python" tools/interop/logits.py --octavo "$OCTAVO" "${checkpoints[@]}"
