#!/usr/bin/env python3
"""What every preset costs on one model, as a table in Markdown: docs/results.md has it for SmolLM2.

Quantizes the model by each preset (groups of --group-size where the preset has groups of integers), compares the result with the original,
and deletes it. Runs of octavo quantize and octavo compare follow one another; nothing else should run meanwhile.

  tools/preset_table.py smollm2 --text data/text/wikitext2_head.txt --calibration data/chat/oasst_messages.jsonl
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

GROUPED = ("W8A16", "W4A16", "W4A16_ASYM", "W4A8", "W4AFP8")
# Preset, method, and other flags.
ROWS = [
    ("W8A8", "rtn", []), ("W8A8", "gptq", []), ("W8A8", "gptq", ["--smoothquant", "0.8"]),
    ("FP8", "rtn", []), ("FP8_DYNAMIC", "rtn", []), ("FP8_BLOCK", "rtn", []),
    ("W8A16", "rtn", []),
    ("W4A16", "rtn", []), ("W4A16", "gptq", []), ("W4A16", "awq", []),
    ("W4A16_ASYM", "rtn", []), ("W4A16_ASYM", "gptq", []), ("W4A16_ASYM", "awq", []),
    ("W4A8", "rtn", []), ("W4A8", "gptq", []), ("W4AFP8", "rtn", []), ("W4AFP8", "gptq", []),
    ("NVFP4", "rtn", []), ("NVFP4", "gptq", []), ("NVFP4A16", "rtn", []),
    ("MXFP4", "rtn", []), ("MXFP4", "gptq", []), ("MXFP4A16", "rtn", []), ("MXFP8", "rtn", []), ("MXFP8A16", "rtn", []),
]


def run(*arguments):
    done = subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}\n{done.stderr}")
    return done


def bits_per_weight(octavo, folder):
    """Mean over the quantized layers, scales and zero points counted."""
    rows = json.loads(run(octavo, "inspect", folder, "--layers", "--json").stdout)["layers"]["rows"]
    quantized = [row for row in rows if row["scheme"] not in ("dense", "") and row.get("bits_per_weight")]
    return sum(row["bytes"] for row in quantized) * 8 / sum(row["bytes"] * 8 / row["bits_per_weight"] for row in quantized)


def measure(args, preset, method, flags, work):
    out = pathlib.Path(work) / "out"
    grouped = ["--group-size", args.group_size] if preset in GROUPED else []
    made = run(args.octavo, "quantize", args.model, "-o", out, "--scheme", preset, "--method", method, *grouped, *flags, "--calibration",
               args.calibration, "--num-samples", args.num_samples, "--max-length", args.max_length, "--no-shuffle")
    wall, cpu, peak = re.search(r"([\d.]+) s, ([\d.]+) CPU s, peak memory (\d+) MiB", made.stderr + made.stdout).groups()
    # The original's perplexity is the same every time: only the windows of the divergence are compared.
    text = ["--text", args.text, "--json", "--max-windows"]
    report = json.loads(run(args.octavo, "compare", args.model, out, *text, args.kl_windows).stdout)
    perplexity = json.loads(run(args.octavo, "perplexity", out, *text, args.windows).stdout)["perplexity"]
    bits = bits_per_weight(args.octavo, out)
    shutil.rmtree(out)
    after = report["models"][0]
    how = " ".join([{"rtn": "to nearest", "gptq": "GPTQ", "awq": "AWQ"}[method]] + (["after SmoothQuant 0.8"] if flags else []))
    name = f"{preset}, groups of {args.group_size}" if grouped else preset
    return (f"| {name} | {how} | {after['bytes'] / 1e6:.1f} | {bits:.2f} | {perplexity:.3f} | {after['kl']:.4f} | "
            f"{100 * after['same_top1']:.1f} % | {float(wall):.0f} | {float(cpu):.0f} | {peak} | {after['prefill_tokens_per_second']:.0f} | "
            f"{after['decode_tokens_per_second']:.0f} |"), report["base"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--text", required=True)
    parser.add_argument("--calibration", required=True)
    parser.add_argument("--octavo", default="build/release/src/apps/octavo")
    parser.add_argument("--group-size", type=int, default=64)
    parser.add_argument("--num-samples", type=int, default=64)
    parser.add_argument("--max-length", type=int, default=512)
    parser.add_argument("--windows", type=int, default=40)
    parser.add_argument("--kl-windows", type=int, default=8)
    parser.add_argument("--only", default="", help="a regular expression on \"PRESET method\"")
    args = parser.parse_args()
    print("| preset | weights | MB | bits a weight | perplexity | KL | same top token | seconds | CPU s | peak MiB | prefill 512, tokens/s | decode, tokens/s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    before = None
    with tempfile.TemporaryDirectory() as work:
        for preset, method, flags in ROWS:
            if not re.search(args.only, " ".join([preset, method, *flags])):
                continue
            line, before = measure(args, preset, method, flags, work)
            print(line, flush=True)
    if before:
        print(f"\nThe original: {before['bytes'] / 1e6:.1f} MB, prefill {before['prefill_tokens_per_second']:.0f}, decode {before['decode_tokens_per_second']:.0f} tokens/s.")


if __name__ == "__main__":
    main()
