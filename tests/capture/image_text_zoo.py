"""Tiny models that see and read, made from configs, and processors for them."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

tf: Any = transformers  # whose classes are not typed

WORDS = ["<pad>", "<s>", "</s>", "<unk>", "<image>", "a", "cat", "on", "the", "mat", "dog", "what", "is", "this"]
VISION: dict[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "image_size": 32, "patch_size": 8,
}  # fmt: skip
TEXT: dict[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": len(WORDS),
    "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
LLAMA: dict[str, Any] = {**TEXT, "num_key_value_heads": 2}
BLIP: dict[str, Any] = {**TEXT, "encoder_hidden_size": 32, "sep_token_id": 2, "is_decoder": True}


def tokenizer() -> Any:
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    words.add_special_tokens(["<image>"])
    fast: Any = transformers.PreTrainedTokenizerFast
    names = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    return fast(tokenizer_object=words, model_max_length=60, **names)


def eye() -> Any:
    """Shortest side to 32 pixels, the middle 32 × 32."""
    return tf.CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})


def build(name: str, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    model = MODELS[name]()
    with torch.no_grad():
        for path, parameter in model.named_parameters():
            if parameter.ndim > 1:
                parameter.mul_(4)
            if path.endswith("logit_scale"):
                parameter.fill_(1.0)
    return model.eval()


MODELS: dict[str, Any] = {
    "CLIP": lambda: tf.CLIPModel(tf.CLIPConfig(text_config=TEXT, vision_config=VISION, projection_dim=16)),
    "SigLIP": lambda: tf.SiglipModel(tf.SiglipConfig(text_config={**TEXT, "projection_size": 32}, vision_config=VISION)),
    "BLIP captions": lambda: tf.BlipForConditionalGeneration(tf.BlipConfig(text_config=BLIP, vision_config=VISION, projection_dim=16)),
    "BLIP matches": lambda: tf.BlipForImageTextRetrieval(
        tf.BlipConfig(text_config=BLIP, vision_config=VISION, projection_dim=16, image_text_hidden_size=16)
    ),
    "LLaVA": lambda: tf.LlavaForConditionalGeneration(
        tf.LlavaConfig(
            vision_config=tf.CLIPVisionConfig(**VISION), text_config=tf.LlamaConfig(**LLAMA), image_token_index=4,
            vision_feature_layer=-1, vision_feature_select_strategy="default", image_seq_length=16,
        )
    ),
    "LLaVA with the class token": lambda: tf.LlavaForConditionalGeneration(
        tf.LlavaConfig(
            vision_config=tf.CLIPVisionConfig(**VISION), text_config=tf.LlamaConfig(**LLAMA), image_token_index=4,
            vision_feature_layer=-1, vision_feature_select_strategy="full", image_seq_length=17,
        )
    ),
    "Qwen2-VL": lambda: tf.Qwen2VLForConditionalGeneration(
        tf.Qwen2VLConfig(
            text_config={**LLAMA, "rope_parameters": {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}},
            vision_config={"depth": 2, "embed_dim": 32, "hidden_size": 32, "num_heads": 4, "mlp_ratio": 2, "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2},
            image_token_id=4, video_token_id=3, vision_start_token_id=5, vision_end_token_id=6,
        )
    ),
}  # fmt: skip


def processor(name: str) -> Any:
    if name == "LLaVA":
        return tf.LlavaProcessor(
            eye(), tokenizer(), patch_size=8, vision_feature_select_strategy="default", num_additional_image_tokens=1
        )
    if name.startswith("BLIP"):
        return tf.BlipProcessor(tf.BlipImageProcessorPil(size={"height": 32, "width": 32}), tokenizer())
    if name == "SigLIP":
        return tf.SiglipProcessor(tf.SiglipImageProcessorPil(size={"height": 32, "width": 32}), tokenizer())
    return tf.CLIPProcessor(eye(), tokenizer())


def seen(count: int = 1) -> torch.Tensor:
    return torch.randn(count, 3, 32, 32, generator=torch.Generator().manual_seed(2))
