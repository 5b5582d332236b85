#!/usr/bin/env python3
"""Compares the logits of checkpoints in transformers + compressed-tensors (float32) with those of `octavo logits`.

What rounds no input, or rounds it to integers by a static scale, is held to the largest element. The last bit of an input, which the order
of a float sum decides, can move it to the next code of a dynamic scale or of a float8 format; and a symmetric dynamic one has a tie at every
token whose largest element is negative (its scale is amax / 127.5). These are held to a root mean square. So is NVFP4, whose weights
transformers rounds to bfloat16 once more.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from transformers import AutoModelForCausalLM

SHARP = 1e-5  # largest difference, as a share of the largest logit
ROUNDED = 1e-3  # root mean square, as a share of the logits' own
ROUNDED_TO_FLOAT8 = 5e-3  # likewise
TIED = 0.1  # likewise
NVFP4 = 0.2  # likewise


def bound_of_rms(folder: pathlib.Path) -> float | None:
    """None: the checkpoint is held to SHARP."""
    groups = json.loads((folder / "config.json").read_text())["quantization_config"]["config_groups"].values()
    if any(group["weights"]["strategy"] == "tensor_group" for group in groups):
        return NVFP4
    inputs = [group["input_activations"] for group in groups if group.get("input_activations")]
    dynamic = [args for args in inputs if args["dynamic"] is True]
    if any(args["symmetric"] for args in dynamic):
        return TIED
    if any(args["type"] == "float" for args in inputs):
        return ROUNDED_TO_FLOAT8
    return ROUNDED if dynamic else None


def to_float(module: torch.nn.Module) -> None:
    for parameter in module.parameters():
        if parameter.dtype == torch.bfloat16:
            parameter.data = parameter.data.float()


def compare(folder: pathlib.Path, octavo: str, ids: np.ndarray) -> bool:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    # The first forward unpacks the weights, some as bfloat16, which it then refuses to multiply with float32.
    model.get_decoder().register_forward_pre_hook(lambda module, _: to_float(module))
    with torch.no_grad():
        theirs = model(torch.from_numpy(ids).long()).logits.float().numpy()
    with tempfile.TemporaryDirectory() as work:
        save_file({"input_ids": ids}, f"{work}/in.safetensors")
        subprocess.run(
            [octavo, "logits", folder, "--input", f"{work}/in.safetensors", "--output", f"{work}/out.safetensors",
             "--activation-rule", "library", "-q"], check=True)
        ours = load_file(f"{work}/out.safetensors")["logits"]
    largest = np.abs(ours - theirs).max() / np.abs(theirs).max()
    rms = np.sqrt(np.square(ours - theirs).mean() / np.square(theirs).mean())
    bound = bound_of_rms(folder)
    good = largest <= SHARP if bound is None else rms <= bound
    print(f"{folder.name:24} largest difference {largest:.2e} of the largest logit, rms {rms:.2e}  {'ok' if good else 'DIFFERS'}")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--octavo", required=True)
    parser.add_argument("checkpoints", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    torch.manual_seed(0)
    results = []
    for folder in args.checkpoints:
        vocab = json.loads((folder / "config.json").read_text())["vocab_size"]
        ids = np.random.default_rng(3).integers(0, vocab, (2, 24), dtype=np.int32)
        results.append(compare(folder, args.octavo, ids))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
