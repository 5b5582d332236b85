#!/usr/bin/env python3
"""Writes tiny models as GGUF with the gguf package, imports them with octavo, and compares weights, config and tokenizer.

Usage: gguf_import.py OCTAVO SHARED [CASE ...]     (SHARED: the folder that has data/ and goldens/)

    python3 -m venv venv && venv/bin/pip install gguf==0.19.0 numpy tokenizers==0.23.3

The writer follows llama.cpp's converter where that matters: names of tensors and keys, q and k of Llama with their rows interleaved,
norms and biases in F32. Each case has the weights and the config of a model of goldens/arch, its embedding enlarged to the tokenizer.
"""

import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

import gguf
import numpy as np
import tokenizers

TENSORS = {
    "model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight", "lm_head.weight": "output.weight",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}
TYPES = {"F32": gguf.GGMLQuantizationType.F32, "F16": gguf.GGMLQuantizationType.F16, "BF16": gguf.GGMLQuantizationType.BF16,
         "Q8_0": gguf.GGMLQuantizationType.Q8_0}

# Model of goldens/arch, architecture in GGUF, tokenizer, type of the matrices.
CASES = {
    "llama": ("llama", "llama", "phi3", "BF16"),
    "llama-bias": ("llama_mha_bias", "llama", "smollm2", "F32"),
    "llama-linear": ("llama_rope_linear", "llama", "gpt2", "BF16"),
    "llama-yarn": ("llama_rope_yarn", "llama", "gpt2", "F16"),
    "llama-3": ("llama_rope_llama3", "llama", "gpt2", "BF16"),
    "mistral": ("mistral_head_dim", "llama", "phi3", "BF16"),
    "qwen2": ("qwen2", "qwen2", "qwen3", "BF16"),
    "qwen3": ("qwen3", "qwen3", "qwen3", "Q8_0"),
}


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        raw = data[8 + size + begin : 8 + size + end]
        if entry["dtype"] == "BF16":
            values = (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            values = np.frombuffer(raw, {"F32": "<f4", "F16": "<f2"}[entry["dtype"]]).astype(np.float32)
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def interleave(rows, heads):
    """Rows of each head: i and i + d/2 become 2i and 2i + 1."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def gguf_name(name):
    if name in TENSORS:
        return TENSORS[name]
    _, _, layer, rest = name.split(".", 3)
    module, kind = rest.rsplit(".", 1)
    return f"blk.{layer}.{TENSORS[module]}.{kind}"


def llama3_divisors(config):
    """As llama.cpp's converter computes rope_freqs.weight."""
    rope, dim = config["rope_scaling"], config["head_dim"]
    original = rope["original_max_position_embeddings"]
    divisors = []
    for i in range(0, dim, 2):
        wavelength = 2 * math.pi * config["rope_theta"] ** (i / dim)
        if wavelength < original / rope["high_freq_factor"]:
            divisors.append(1.0)
        elif wavelength > original / rope["low_freq_factor"]:
            divisors.append(rope["factor"])
        else:
            smooth = (original / wavelength - rope["low_freq_factor"]) / (rope["high_freq_factor"] - rope["low_freq_factor"])
            divisors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return np.array(divisors, np.float32)


def add_vocabulary_of(writer, path):
    """The tokenizer of a GGUF file of llama.cpp's, as it is."""
    for key, field in gguf.GGUFReader(path).fields.items():
        if not key.startswith("tokenizer."):
            continue
        if field.types[0] == gguf.GGUFValueType.ARRAY:
            writer.add_array(key, field.contents())
        else:
            writer.add_key_value(key, field.contents(), field.types[0])


def add_tokenizer_json(writer, path, pre):
    """As llama.cpp's converter does for byte-level BPE."""
    pipeline = json.loads(path.read_text(encoding="utf-8"))
    kinds = {token["id"]: (token["content"], 3 if token["special"] else 4) for token in pipeline["added_tokens"]}
    kinds.update({number: (token, 1) for token, number in pipeline["model"]["vocab"].items() if number not in kinds})
    size = max(kinds) + 1
    tokens = [kinds.get(number, (f"[PAD{number}]", 5)) for number in range(size)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([token for token, _ in tokens])
    writer.add_token_types([kind for _, kind in tokens])
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in pipeline["model"]["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_add_bos_token(False)
    return size


class Sources:
    def __init__(self, shared):
        self.shared = shared
        self.tokenizers = shared / "data" / "tokenizers"

    def add(self, writer, name):
        """Writes the tokenizer; returns its size and the tokenizers library's pipeline that must give the same ids."""
        vectors = self.tokenizers / "llamacpp-vectors"
        if name == "phi3":
            add_vocabulary_of(writer, vectors / "ggml-vocab-phi-3.gguf")
            return 32064, tokenizers.Tokenizer.from_file(str(self.tokenizers / "phi3" / "tokenizer.json"))
        if name == "gpt2":
            add_vocabulary_of(writer, vectors / "ggml-vocab-gpt-2.gguf")
            folder = self.tokenizers / "gpt2"
            model = tokenizers.models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt"))
            pipeline = tokenizers.Tokenizer(model)
            pipeline.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
            pipeline.add_special_tokens(["<|endoftext|>"])
            return 50257, pipeline
        path = {"qwen3": self.tokenizers / "qwen3", "smollm2": self.shared / "goldens" / "text" / "smollm2"}[name] / "tokenizer.json"
        size = add_tokenizer_json(writer, path, {"qwen3": "qwen2", "smollm2": "smollm"}[name])
        return size, tokenizers.Tokenizer.from_file(str(path))

    def texts(self):
        rows = (self.shared / "goldens" / "text" / "tokenizers" / "qwen3.jsonl").read_text(encoding="utf-8").split("\n")
        return [json.loads(row)["text"] for row in rows if row]


def write_gguf(path, case, sources):
    model, architecture, tokenizer, kind = CASES[case]
    folder = sources.shared / "goldens" / "arch" / model
    config = json.loads((folder / "config.json").read_text())
    tensors = {}
    for file in sorted(folder.glob("model*.safetensors")):
        tensors.update(read_safetensors(file))
    if case == "llama-3":  # the file has only the divisors, from which the original context of Llama 3 is recognized
        config["rope_scaling"]["original_max_position_embeddings"] = 8192
        config["rope_theta"] = 500000.0
    writer = gguf.GGUFWriter(path, architecture)
    size, pipeline = sources.add(writer, tokenizer)
    config["vocab_size"] = size
    rng = np.random.default_rng(1)
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        if name in tensors:
            tensors[name] = rng.standard_normal((size, config["hidden_size"]), np.float32)
    if config.get("tie_word_embeddings"):
        tensors.pop("lm_head.weight", None)
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    head_dim = config.get("head_dim", config["hidden_size"] // heads)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    rope = config.get("rope_scaling") or {}
    if "type" in rope:  # the old spelling
        rope["rope_type"] = rope.pop("type")
    if rope.get("rope_type") in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(rope["rope_type"]))
        writer.add_rope_scaling_factor(rope["factor"])
        if rope["rope_type"] == "yarn":
            writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if rope.get("rope_type") == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_divisors(config))
    for name, values in tensors.items():
        stored = values
        if architecture == "llama" and ".q_proj." in name:
            stored = interleave(values, heads)
        if architecture == "llama" and ".k_proj." in name:
            stored = interleave(values, kv_heads)
        stored_type = TYPES[kind] if values.ndim == 2 else TYPES["F32"]
        blocks = gguf.quants.quantize(np.ascontiguousarray(stored), stored_type)
        writer.add_tensor(gguf_name(name), blocks, raw_dtype=stored_type)
        tensors[name] = gguf.quants.dequantize(gguf.quants.quantize(values, stored_type), stored_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return config, tensors, pipeline


def to_dtype(values, dtype):
    if dtype == "float16":
        return values.astype(np.float16).astype(np.float32)
    if dtype == "float32":
        return values
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def compare(case, octavo, sources, folder):
    path, out = folder / f"{case}.gguf", folder / case
    config, tensors, pipeline = write_gguf(path, case, sources)
    subprocess.run([octavo, "import", path, "-o", out], check=True, capture_output=True)
    imported = json.loads((out / "config.json").read_text())
    found = {}
    for file in out.glob("*.safetensors"):
        found.update(read_safetensors(file))
    faults = []
    if found.keys() != tensors.keys():
        faults.append(f"tensors: {sorted(found.keys() ^ tensors.keys())}")
    for name in found.keys() & tensors.keys():
        if not np.array_equal(found[name], to_dtype(np.ascontiguousarray(tensors[name]), imported["torch_dtype"])):
            faults.append(f"values of {name}")
    # Mistral computes as Llama without a window; the tokens' ids are the tokenizer's; the dtype is that of the file's matrices.
    for key, value in config.items():
        if key in ("architectures", "model_type") and case == "mistral":
            continue
        if key in ("bos_token_id", "eos_token_id", "torch_dtype", "sliding_window", "max_window_layers"):
            continue
        if imported.get(key) != value:
            faults.append(f"config: {key} is {imported.get(key)}, expected {value}")
    ours = tokenizers.Tokenizer.from_file(str(out / "tokenizer.json"))
    texts = sources.texts()
    differing = [text for text in texts
                 if ours.encode(text, add_special_tokens=False).ids != pipeline.encode(text, add_special_tokens=False).ids]
    print(f"{case:14} {imported['architectures'][0]:20} {imported['torch_dtype']:9} {len(found)} tensors, "
          f"tokenizer {len(texts) - len(differing)}/{len(texts)} texts, {len(faults)} faults")
    for fault in faults:
        print("    " + fault)
    for text in differing[:5]:
        print(f"    ids of {text!r:.120}")
    return faults, differing


def main():
    octavo, shared = sys.argv[1], pathlib.Path(sys.argv[2])
    sources = Sources(shared)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for case in sys.argv[3:] or CASES:
            faults, differing = compare(case, octavo, sources, pathlib.Path(folder))
            failed = failed or bool(faults or differing)
    sys.exit(1 if failed else 0)


main()
