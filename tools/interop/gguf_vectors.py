#!/usr/bin/env python3
"""Writes tests/data/gguf/*.bin: blocks of every ggml type and the float32 values that the gguf package makes of them.

Usage: gguf_vectors.py SLICES OUT     (SLICES: the .bin files of data/quant-blocks/gguf; needs gguf and numpy)

A file is uint32 ggml_type, n_elements, raw_len, golden_len, the blocks, then the values (float32), little-endian. Each slice's own
values (BF16, made by another project) are compared first: all of them, not only those that are kept.
"""

import pathlib
import struct
import sys

import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

ELEMENTS = 2048  # that are kept of each type


def bf16(values: np.ndarray) -> np.ndarray:
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def write(path: pathlib.Path, qtype: GGMLQuantizationType, raw: bytes) -> None:
    values = quants.dequantize(np.frombuffer(raw, np.uint8), qtype).astype("<f4")
    path.write_bytes(struct.pack("<4I", qtype, values.size, len(raw), values.nbytes) + raw + values.tobytes())


def from_slices(folder: pathlib.Path, out: pathlib.Path) -> None:
    for path in sorted(folder.glob("*.bin")):
        data = path.read_bytes()
        number, count, raw_len, _ = struct.unpack_from("<4I", data)
        qtype = GGMLQuantizationType(number)
        raw = data[16 : 16 + raw_len]
        values = quants.dequantize(np.frombuffer(raw, np.uint8), qtype)
        assert values.size == count
        assert (bf16(values) == np.frombuffer(data, "<u2", offset=16 + raw_len)).all(), path
        block, size = GGML_QUANT_SIZES[qtype]
        write(out / f"{qtype.name.lower()}.bin", qtype, raw[: ELEMENTS // block * size])


def synthetic(out: pathlib.Path) -> None:
    """What no slice has: random blocks, whose scales are any byte."""
    rng = np.random.default_rng(20)
    nvfp4 = rng.integers(0, 256, (ELEMENTS // 64, 36), dtype=np.uint8)
    nvfp4[:, :4] &= 0x7F  # the scale is unsigned
    nvfp4[0, :4] = [0, 1, 0x7E, 0x7F]
    write(out / "nvfp4.bin", GGMLQuantizationType.NVFP4, nvfp4.tobytes())
    mxfp4 = rng.integers(0, 256, (ELEMENTS // 32, 17), dtype=np.uint8)
    mxfp4[:, 0] = np.linspace(0, 254, len(mxfp4)).astype(np.uint8)
    mxfp4[1, 0] = 1
    write(out / "mxfp4.bin", GGMLQuantizationType.MXFP4, mxfp4.tobytes())
    numbers = np.concatenate([
        np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 65504.0, 6e-8, -6e-5, 1e-7], np.float32),
        rng.standard_normal(54).astype(np.float32)])
    write(out / "f32.bin", GGMLQuantizationType.F32, numbers.astype("<f4").tobytes())
    write(out / "f16.bin", GGMLQuantizationType.F16, numbers.astype("<f2").tobytes())
    write(out / "bf16.bin", GGMLQuantizationType.BF16, bf16(numbers).astype("<u2").tobytes())


def main() -> None:
    slices, out = map(pathlib.Path, sys.argv[1:])
    from_slices(slices, out)
    synthetic(out)


main()
