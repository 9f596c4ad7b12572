"""Tiny vision models of every kind that must work, made from configs, and what their positions are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import transformers

tf: Any = transformers  # whose classes are not typed

LAYERS, HEADS, SIDE, PATCH = 3, 4, 32, 8
_SHAPE: dict[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": 48, "image_size": SIDE,
    "patch_size": PATCH,
}  # fmt: skip
_TEXT: dict[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": HEADS, "intermediate_size": 48, "vocab_size": 60,
    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip

CLS, MEAN = "the class token", "the mean of the patches"


class Kind(NamedTuple):
    """How a model is made, the tokens before its patches and after them, and where it is read."""

    make: Callable[[], tuple[Any, Any]]
    before: tuple[str, ...]
    read: str = CLS
    after: tuple[str, ...] = ()


SEEING: dict[str, Kind] = {
    "ViT": Kind(lambda: (tf.ViTForImageClassification, tf.ViTConfig(**_SHAPE)), ("[CLS]",)),
    "DeiT": Kind(lambda: (tf.DeiTForImageClassificationWithTeacher, tf.DeiTConfig(**_SHAPE)), ("[CLS]", "[DIST]")),
    "DINOv2": Kind(lambda: (tf.Dinov2ForImageClassification, tf.Dinov2Config(**_SHAPE)), ("[CLS]",)),
    "DINOv2 with registers": Kind(
        lambda: (tf.Dinov2WithRegistersModel, tf.Dinov2WithRegistersConfig(**_SHAPE, num_register_tokens=2)),
        ("[CLS]", "[REG 0]", "[REG 1]"),
    ),
    "DINOv3": Kind(
        lambda: (tf.DINOv3ViTModel, tf.DINOv3ViTConfig(**_SHAPE, num_register_tokens=4)),
        ("[CLS]", "[REG 0]", "[REG 1]", "[REG 2]", "[REG 3]"),
    ),
    "BEiT": Kind(lambda: (tf.BeitForImageClassification, tf.BeitConfig(**_SHAPE)), ("[CLS]",), MEAN),
    "BEiT read at CLS": Kind(
        lambda: (tf.BeitForImageClassification, tf.BeitConfig(**_SHAPE, use_mean_pooling=False)), ("[CLS]",)
    ),
    "SigLIP": Kind(lambda: (tf.SiglipVisionModel, tf.SiglipVisionConfig(**_SHAPE)), (), MEAN),
    "SigLIP classifier": Kind(
        lambda: (tf.SiglipForImageClassification, tf.SiglipConfig(vision_config=_SHAPE, text_config=_TEXT)), (), MEAN
    ),
    "CLIP": Kind(lambda: (tf.CLIPVisionModelWithProjection, tf.CLIPVisionConfig(**_SHAPE)), ("[CLS]",)),
    "I-JEPA": Kind(lambda: (tf.IJepaModel, tf.IJepaConfig(**_SHAPE)), (), MEAN),
    "BLIP's eye": Kind(lambda: (tf.BlipVisionModel, tf.BlipVisionConfig(**_SHAPE)), ("[CLS]",)),
    "YOLOS": Kind(
        lambda: (tf.YolosModel, tf.YolosConfig(**{**_SHAPE, "image_size": [SIDE, SIDE]}, num_detection_tokens=3)),
        ("[CLS]",), CLS, ("[DET 0]", "[DET 1]", "[DET 2]"),
    ),
}  # fmt: skip

REFUSED: dict[str, tuple[Callable[[], tuple[Any, Any]], str]] = {
    "Swin": (
        lambda: (tf.SwinModel, tf.SwinConfig(image_size=32, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4)),
        "windows.* merges positions between its stages, so there is no single n × n graph",
    ),
    "Swin in one window": (
        lambda: (tf.SwinModel, tf.SwinConfig(image_size=32, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=8)),
        "merged",
    ),
    "ViTMAE": (lambda: (tf.ViTMAEModel, tf.ViTMAEConfig(**_SHAPE)), "leaves patches out"),
    "TimeSformer": (
        lambda: (tf.TimesformerModel, tf.TimesformerConfig(**_SHAPE, num_frames=2)),
        "computes attention in parts",
    ),
}  # fmt: skip


def build(name: str, *, seed: int = 0, training: bool = False) -> Any:
    """A model as a user has it, with weights large enough that attention is far from uniform."""
    made, config = SEEING[name].make() if name in SEEING else REFUSED[name][0]()
    torch.manual_seed(seed)
    model = made(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(4)
    return model.train(training)


def pixels(count: int = 2, rows: int = SIDE, columns: int = SIDE) -> torch.Tensor:
    return torch.randn(count, 3, rows, columns, generator=torch.Generator().manual_seed(3))
