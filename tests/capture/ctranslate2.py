"""Whisper's weights out of a CTranslate2 file: a small reader, enough for the float16 models of that format's version 6."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
import transformers

tf: Any = transformers  # whose classes are not typed

TYPES = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}


def read(path: Path) -> dict[str, np.ndarray]:
    """name → array: a header, then for each array its name, shape, type and bytes."""
    with open(path, "rb") as file:
        version = number(file, "I")
        assert version == 6, version
        assert string(file) == "WhisperSpec"
        number(file, "I")  # revision
        arrays = {}
        for _ in range(number(file, "I")):
            name = string(file)
            shape = [number(file, "I") for _ in range(number(file, "B"))]
            kind = TYPES[number(file, "B")]
            arrays[name] = np.frombuffer(file.read(number(file, "I")), dtype=kind).reshape(shape)
    return arrays


def number(file: BinaryIO, form: str) -> int:
    value: int = struct.unpack(form, file.read(struct.calcsize(form)))[0]
    return value


def string(file: BinaryIO) -> str:
    return file.read(number(file, "H")).rstrip(b"\0").decode()


RENAMED = [
    (r"layer_(\d+)", r"layers.\1"),
    (r"self_attention/layer_norm", "self_attn_layer_norm"),
    (r"attention/layer_norm", "encoder_attn_layer_norm"),
    (r"self_attention", "self_attn"),
    (r"(?<!_)attention", "encoder_attn"),
    (r"ffn/layer_norm", "final_layer_norm"),
    (r"ffn/linear_0", "fc1"),
    (r"ffn/linear_1", "fc2"),
    (r"layer_norm/beta", "layer_norm/bias"),
    (r"layer_norm/gamma", "layer_norm/weight"),
    (r"embeddings/weight", "embed_tokens/weight"),
    (r"position_encodings/encodings", "embed_positions/weight"),
]


def whisper_tiny(folder: Path) -> Any:
    """The model, in float32."""
    state: dict[str, torch.Tensor] = {}
    for name, array in read(folder / "model.bin").items():
        if array.dtype != np.float16:
            continue
        weight = torch.from_numpy(array.astype(np.float32))
        for pattern, new in RENAMED:
            name = re.sub(pattern, new, name)
        name = name.replace("/", ".")
        joined = re.search(r"(self|encoder)_attn\.linear_(\d)", name)
        if not joined:
            state[f"model.{name}"] = weight
            continue
        parts = {"self0": "qkv", "self1": ["out"], "encoder0": "q", "encoder1": "kv", "encoder2": ["out"]}[
            joined[1] + joined[2]
        ]
        for part, piece in zip(parts, weight.chunk(len(parts)), strict=True):
            if part == "k" and name.endswith("bias"):  # Whisper has none; the file holds zeros
                assert not piece.any()
                continue
            state[f"model.{name.replace('linear_' + joined[2], part + '_proj')}"] = piece.contiguous()
    config = tf.WhisperConfig(
        vocab_size=51864, d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6, decoder_attention_heads=6,
        encoder_ffn_dim=1536, decoder_ffn_dim=1536, decoder_start_token_id=50257, pad_token_id=50256, bos_token_id=50256,
        eos_token_id=50256,
    )  # fmt: skip
    model = tf.WhisperForConditionalGeneration(config)
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert unexpected == [], unexpected[:9]
    assert all(name == "proj_out.weight" for name in missing), missing
    return model.eval()
