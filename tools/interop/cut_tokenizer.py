#!/usr/bin/env python3
"""Cuts a BPE tokenizer.json down to what some of its test vectors need, for tests/data/tokenizers.

Usage: cut_tokenizer.py TOKENIZER_JSON VECTORS OUT      (VECTORS: a prefix, as goldens/text/tokenizers/qwen3)

Keeps every fourth row of PREFIX.jsonl and PREFIX.pairs.jsonl and all of PREFIX.stream.jsonl; of the model the tokens of those rows,
the merges that build them, single characters and bytes. What is kept is numbered anew, in the same order. Nothing else about
the rows changes: a merge that is applied is the best one of all, so it is the best one of those that are left.
"""

import json
import pathlib
import re
import sys


def read_rows(path: pathlib.Path) -> list:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def ids_of(node) -> set:
    """All the ids in a row, at any depth."""
    if isinstance(node, dict):
        found = set(node.get("ids", []))
        return found.union(*map(ids_of, node.values()))
    if isinstance(node, list):
        return set().union(*map(ids_of, node))
    return set()


def renumber(node, numbers: dict):
    """A copy with every id of a row or of tokenizer.json's post-processor replaced."""
    if isinstance(node, dict):
        return {k: [numbers[i] for i in v] if k == "ids" else renumber(v, numbers) for k, v in node.items()}
    return [renumber(item, numbers) for item in node] if isinstance(node, list) else node


def build(token: str, ranks: dict) -> tuple[set, set]:
    """The merges that make a token of its characters, and the tokens on the way."""
    parts, merges, tokens = list(token), set(), set(token)
    while len(parts) > 1:
        rank, at = min((ranks.get((a, b), len(ranks)), i) for i, (a, b) in enumerate(zip(parts, parts[1:])))
        if rank == len(ranks):
            break  # an added token, or a byte
        merges.add((parts[at], parts[at + 1]))
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
        tokens.add(parts[at])
    return merges, tokens


def main() -> None:
    tokenizer_path, prefix, out = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    out.mkdir(parents=True, exist_ok=True)
    kinds = {"vectors": ("", 4), "pairs": (".pairs", 4), "stream": (".stream", 1)}
    rows = {name: read_rows(pathlib.Path(f"{prefix}{suffix}.jsonl"))[::step] for name, (suffix, step) in kinds.items()}
    needed = ids_of(list(rows.values()))

    tokenizer = json.loads(pathlib.Path(tokenizer_path).read_text(encoding="utf-8"))
    model = tokenizer["model"]
    pairs = [tuple(m.split(" ", 1)) if isinstance(m, str) else tuple(m) for m in model["merges"]]
    ranks = {pair: rank for rank, pair in enumerate(pairs)}
    by_id = {number: token for token, number in model["vocab"].items()}
    kept = {token for token in model["vocab"] if re.fullmatch(r"<0x[0-9A-F]{2}>", token)}
    kept |= {token["content"] for token in tokenizer["added_tokens"]}
    if not model["byte_fallback"]:  # the letters of the bytes
        kept |= {token for token in model["vocab"] if len(token) == 1}
    merges = set()
    for number in needed:
        if number in by_id:
            used, tokens = build(by_id[number], ranks)
            merges |= used
            kept |= tokens | {by_id[number]}
    added = {token["id"] for token in tokenizer["added_tokens"]}
    old = sorted({number for token, number in model["vocab"].items() if token in kept} | added)
    numbers = {number: new for new, number in enumerate(old)}
    model["vocab"] = {t: numbers[n] for t, n in model["vocab"].items() if t in kept}
    for token in tokenizer["added_tokens"]:
        token["id"] = numbers[token["id"]]
    tokenizer["post_processor"] = renumber(tokenizer["post_processor"], numbers)
    model["merges"] = [list(pair) for pair in pairs if pair in merges]
    (out / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
    for name in kinds:
        text = "".join(json.dumps(renumber(row, numbers)) + "\n" for row in rows[name])
        (out / f"{name}.jsonl").write_text(text, encoding="utf-8")


main()
