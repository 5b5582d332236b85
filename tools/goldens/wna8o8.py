#!/usr/bin/env python3
"""Makes tests/data/checkpoints/made-wna8o8: int4 weights whose inputs and outputs are rounded to int8.

No library computes WNA8O8 on a CPU, so this file states what it means (shared/spec/inference-schemes.md 2.5), in numpy and float64:
the weights of llama-w4a16-channel, which the library made, an input_scale and an output_scale for every layer, and the logits.
A scale of zero says that there was no data: layer 1 has one input and one output like that.

  tools/goldens/wna8o8.py tests/data/checkpoints
"""

import json
import pathlib
import struct
import sys

import numpy as np

DTYPES = {"BF16": np.uint16, "F32": np.float32, "I32": np.int32, "I64": np.int64, "I8": np.int8}
LINEARS = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
PROBED = ("model.layers.0.self_attn.q_proj", "model.layers.0.mlp.down_proj")
NO_INPUT_SCALE = ("model.layers.1.self_attn.o_proj",)
NO_OUTPUT_SCALE = ("model.layers.1.mlp.down_proj",)
ROUNDED = {"actorder": None, "block_structure": None, "dynamic": False, "group_size": None, "num_bits": 8, "observer": "static_minmax",
           "observer_kwargs": {}, "scale_dtype": None, "strategy": "tensor", "symmetric": True, "type": "int", "zp_dtype": None}


def read(path):
    """Name -> (dtype, array); BF16 as its bits."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            values = np.frombuffer(data[begin:end], DTYPES[entry["dtype"]])
            tensors[name] = (entry["dtype"], values.reshape(entry["shape"]))
    return tensors


def write(path, tensors):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, (dtype, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": [offset, offset + values.nbytes]}
        offset += values.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(values.tobytes() for _, values in tensors.values()))


def to_bf16(value):
    """Bits, to nearest, ties to even."""
    bits = np.asarray(value, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def unpack_int4(packed, k):
    shifts = np.arange(0, 32, 4, dtype=np.uint32)
    codes = (packed.view(np.uint32)[:, :, None] >> shifts) & 15
    return codes.reshape(packed.shape[0], -1)[:, :k].astype(np.float64) - 8


def fake_quantize(values, scale):
    return np.clip(np.rint(values / scale), -128, 127) * scale if scale > 0 else values


class Llama:
    """The checkpoint in float64. `scales` maps a layer to its (input, output) scale; None observes ranges in `seen` instead."""

    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text())
        self.tensors = read(folder / "model.safetensors")
        self.scales, self.seen = None, {}

    def weight(self, name):
        packed = self.tensors.get(name + ".weight_packed")
        if packed is None:
            return from_bf16(self.tensors[name + ".weight"][1])
        return unpack_int4(packed[1], self.tensors[name + ".weight_shape"][1][1]) * from_bf16(self.tensors[name + ".weight_scale"][1])

    def linear(self, name, x):
        if self.scales is None:
            y = x @ self.weight(name).T
            old = self.seen.get(name, (0, 0))
            self.seen[name] = (max(old[0], np.abs(x).max()), max(old[1], np.abs(y).max()))
            return y
        input_scale, output_scale = self.scales[name]
        return fake_quantize(fake_quantize(x, input_scale) @ self.weight(name).T, output_scale)

    def norm(self, name, x):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.config["rms_norm_eps"]) * self.weight(name)

    def attention(self, block, x):
        heads, kv_heads, size = (self.config[key] for key in ("num_attention_heads", "num_key_value_heads", "head_dim"))
        length = len(x)
        angles = np.arange(length)[:, None] * self.config["rope_theta"] ** (-np.arange(0, size, 2) / size)[None]
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]

        def rotate(values):
            low, high = values[..., :size // 2], values[..., size // 2:]
            return np.concatenate([low * cos - high * sin, high * cos + low * sin], -1)

        q = rotate(self.linear(block + "self_attn.q_proj", x).reshape(length, heads, size))
        k = rotate(self.linear(block + "self_attn.k_proj", x).reshape(length, kv_heads, size)).repeat(heads // kv_heads, 1)
        v = self.linear(block + "self_attn.v_proj", x).reshape(length, kv_heads, size).repeat(heads // kv_heads, 1)
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(size) + np.triu(np.full((length, length), -np.inf), 1)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = np.einsum("hij,jhd->ihd", scores / scores.sum(-1, keepdims=True), v)
        return self.linear(block + "self_attn.o_proj", mixed.reshape(length, -1))

    def logits(self, ids, disturbance=0.0):
        x = self.weight("model.embed_tokens")[ids] * (1 + disturbance)
        for index in range(self.config["num_hidden_layers"]):
            block = f"model.layers.{index}."
            x = x + self.attention(block, self.norm(block + "input_layernorm", x))
            h = self.norm(block + "post_attention_layernorm", x)
            gate, up = self.linear(block + "mlp.gate_proj", h), self.linear(block + "mlp.up_proj", h)
            x = x + self.linear(block + "mlp.down_proj", gate / (1 + np.exp(-gate)) * up)
        return self.norm("model.norm", x) @ self.weight("lm_head").T


def main(checkpoints):
    source = checkpoints / "llama-w4a16-channel"
    target = checkpoints / "made-wna8o8"
    golden = read(source / "golden.safetensors")
    model = Llama(source)
    ids = golden["input_ids"][1]
    for row in ids:
        model.logits(row)

    model.scales = {}
    tensors = dict(model.tensors)
    for name, (input_amax, output_amax) in model.seen.items():
        bits = [to_bf16(0 if name in without else amax / 127)
                for amax, without in ((input_amax, NO_INPUT_SCALE), (output_amax, NO_OUTPUT_SCALE))]
        model.scales[name] = tuple(float(from_bf16(b)) for b in bits)
        tensors[name + ".input_scale"] = ("BF16", bits[0].reshape(1))
        tensors[name + ".output_scale"] = ("BF16", bits[1].reshape(1))

    results = {name: golden[name] for name in golden if name.startswith(("input_ids", "dequant.", "logits_weight_only"))}
    results["logits"] = ("F32", np.stack([model.logits(row) for row in ids]).astype(np.float32))
    # What no two programs agree on: the codes that a rounding error tips over.
    difference = np.stack([model.logits(row, 1e-6) for row in ids]) - results["logits"][1]
    print(f"an embedding off by 1e-6 moves the logits by {np.abs(difference).max():.3g}, root mean square {np.sqrt((difference ** 2).mean()):.3g}")
    random = np.random.default_rng(1)
    for name in PROBED:
        x = random.standard_normal((8, model.weight(name).shape[1])).astype(np.float32)
        scale = model.scales[name][0]
        codes = np.clip(np.rint(x.astype(np.float64) / scale), -128, 127)
        results[f"probe.{name}.input"] = ("F32", x)
        results[f"probe.{name}.scale"] = ("F32", np.full((1, 1), scale, np.float32))
        results[f"probe.{name}.codes"] = ("I8", codes.astype(np.int8))
        results[f"probe.{name}.output"] = ("F32", model.linear(name, x.astype(np.float64)).astype(np.float32))

    config = model.config
    for group in config["quantization_config"]["config_groups"].values():
        group["input_activations"] = group["output_activations"] = ROUNDED
    target.mkdir(exist_ok=True)
    (target / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    write(target / "model.safetensors", tensors)
    write(target / "golden.safetensors", results)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
