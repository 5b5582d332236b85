"""Octavo beside llama.cpp on one machine: takes turns, keeps the best of each, prints ratios. See run.sh."""
import argparse
import ctypes
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent


def make_q8_0(source: pathlib.Path, target: pathlib.Path):
    import llama_cpp

    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0
    params.allow_requantize = True
    unfinished = target.with_suffix(".unfinished")
    status = llama_cpp.llama_model_quantize(str(source).encode(), str(unfinished).encode(), ctypes.byref(params))
    if status != 0:
        raise SystemExit(f"llama.cpp cannot make a Q8_0 file of {source}")
    unfinished.rename(target)


def run(command: list[str]) -> dict:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def rates(result: dict) -> dict[str, float]:
    named = {f"decode, {row['sequences']} together": row["tokens_per_second"] for row in result["decode"]}
    return {"prefill": result["prefill_tokens_per_second"], **named}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gguf", type=pathlib.Path)
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("--octavo", required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="where the Q8_0 file goes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prefill", type=int, default=512)
    parser.add_argument("--context", type=int, default=16)
    parser.add_argument("--decode", type=int, default=128)
    parser.add_argument("--batch", default="1,8,32")
    parser.add_argument("--seconds", type=float, default=2, help="a row and round")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()

    q8_0 = options.folder / (options.gguf.stem + ".Q8_0.gguf")
    if not q8_0.exists():
        make_q8_0(options.gguf, q8_0)
    flags = [f"--{name}={getattr(options, name)}" for name in ("prefill", "context", "decode", "batch", "seconds")]
    ours, theirs, shares = {}, {}, {}
    for number in range(options.rounds):
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
        result = run([options.octavo, "bench", "model", str(options.checkpoint), "--json", "-q", *flags])
        rival = run([sys.executable, str(HERE / "llama_cpp_speed.py"), str(q8_0), *flags])
        for best, found in ((ours, rates(result)), (theirs, rates(rival))):
            for name, rate in found.items():
                best[name] = max(best.get(name, 0), rate)
        found = {"prefill": result["prefill_share_of_roof"]}
        found |= {f"decode, {row['sequences']} together": row["share_of_bandwidth"] for row in result["decode"]}
        for name, share in found.items():
            shares[name] = max(shares.get(name, 0), share)

    first = next(name for name in ours if name.startswith("decode"))
    print(f"{'tokens per second':<24} {'Octavo':>9} {'llama.cpp':>10} {'ratio':>7} {'of roof':>8} {'to first':>9}")
    rows = []
    for name, rate in ours.items():
        row = {"name": name, "octavo": rate, "llama_cpp": theirs[name], "ratio": rate / theirs[name], "share_of_roof": shares[name]}
        together = f"{rate / ours[first]:.2f} x" if name.startswith("decode") else ""
        print(f"{name:<24} {rate:>9.1f} {theirs[name]:>10.1f} {row['ratio']:>6.2f}x {100 * shares[name]:>7.1f}% {together:>9}")
        rows.append(row)
    if options.json:
        options.json.write_text(json.dumps({"model": str(options.gguf), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
