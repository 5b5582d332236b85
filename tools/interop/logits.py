#!/usr/bin/env python3
"""Compares the logits of checkpoints in transformers + compressed-tensors (float32) with those of `octavo logits`.

A symmetric dynamic int8 activation has a tie at every token whose largest element is negative (scale amax / 127.5), which the last bit
of the input decides. So such checkpoints are held to a root mean square, the others to the largest element.
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

SHARP = 1e-4  # of the largest logit
TIED = 0.1  # root mean square, of the logits' own


def has_ties(folder: pathlib.Path) -> bool:
    groups = json.loads((folder / "config.json").read_text())["quantization_config"]["config_groups"].values()
    inputs = [group["input_activations"] for group in groups if group.get("input_activations")]
    return any(args["dynamic"] is True and args["symmetric"] for args in inputs)


def compare(folder: pathlib.Path, octavo: str, ids: np.ndarray) -> bool:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
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
    good = rms <= TIED if has_ties(folder) else largest <= SHARP
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
