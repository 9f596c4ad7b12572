"""Tiny models of every architecture that must work, made from configs: nothing is downloaded."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import transformers

tf: Any = transformers  # whose classes are not typed

VOCABULARY = 290
LAYERS, HEADS, WIDTH = 3, 4, 32

_ENCODER: dict[str, Any] = {
    "vocab_size": VOCABULARY, "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
    "intermediate_size": 48, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
_DECODER: dict[str, Any] = {**_ENCODER, "num_key_value_heads": 2}
_BOTH: dict[str, Any] = {
    "vocab_size": VOCABULARY, "d_model": WIDTH, "encoder_layers": 3, "decoder_layers": 2, "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2, "decoder_start_token_id": 2,
}  # fmt: skip
_OTHER: dict[str, Any] = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "vocab_size": VOCABULARY}

Maker = Callable[[], tuple[Any, Any]]

# name → (model class, config), made when asked for
TEXT: dict[str, Maker] = {
    "BERT": lambda: (tf.BertForSequenceClassification, tf.BertConfig(**_ENCODER)),
    "DistilBERT": lambda: (
        tf.DistilBertForMaskedLM,
        tf.DistilBertConfig(**_OTHER, dim=WIDTH, n_layers=LAYERS, n_heads=HEADS, hidden_dim=48, max_position_embeddings=64),
    ),
    "RoBERTa": lambda: (tf.RobertaForMaskedLM, tf.RobertaConfig(**_ENCODER)),
    "RoBERTa-PreLayerNorm": lambda: (tf.RobertaPreLayerNormModel, tf.RobertaPreLayerNormConfig(**_ENCODER)),
    "ALBERT": lambda: (tf.AlbertModel, tf.AlbertConfig(**_ENCODER, embedding_size=16)),
    "ELECTRA": lambda: (tf.ElectraModel, tf.ElectraConfig(**_ENCODER, embedding_size=16)),
    "ModernBERT": lambda: (
        tf.ModernBertForMaskedLM,
        tf.ModernBertConfig(**_ENCODER, cls_token_id=1, sep_token_id=2, local_attention=8, global_attn_every_n_layers=2),
    ),
    "DeBERTa-v2": lambda: (
        tf.DebertaV2ForSequenceClassification,
        tf.DebertaV2Config(
            **_ENCODER, relative_attention=True, pos_att_type=["p2c", "c2p"], position_biased_input=False,
            norm_rel_ebd="layer_norm", share_att_key=True, position_buckets=8,
        ),
    ),
    "XLNet": lambda: (tf.XLNetForSequenceClassification, tf.XLNetConfig(**_OTHER, d_model=WIDTH, n_layer=LAYERS, n_head=HEADS, d_inner=48)),
    "GPT-2": lambda: (tf.GPT2LMHeadModel, tf.GPT2Config(**_OTHER, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, n_positions=64)),
    "GPT-2 (scaled by layer)": lambda: (
        tf.GPT2LMHeadModel,
        tf.GPT2Config(**_OTHER, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, n_positions=64, scale_attn_by_inverse_layer_idx=True),
    ),
    "GPT-NeoX": lambda: (tf.GPTNeoXForCausalLM, tf.GPTNeoXConfig(**_ENCODER)),
    "OPT": lambda: (
        tf.OPTForCausalLM,
        tf.OPTConfig(
            **_OTHER, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, ffn_dim=48,
            max_position_embeddings=64, word_embed_proj_dim=WIDTH,
        ),
    ),
    "BLOOM": lambda: (tf.BloomForCausalLM, tf.BloomConfig(**_OTHER, hidden_size=WIDTH, n_layer=LAYERS, n_head=HEADS)),
    "Falcon": lambda: (
        tf.FalconForCausalLM,
        tf.FalconConfig(**_OTHER, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS),
    ),
    "Falcon (ALiBi)": lambda: (
        tf.FalconForCausalLM,
        tf.FalconConfig(**_OTHER, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, alibi=True),
    ),
    "Llama": lambda: (tf.LlamaForCausalLM, tf.LlamaConfig(**_DECODER)),
    "Mistral": lambda: (tf.MistralForCausalLM, tf.MistralConfig(**_DECODER, sliding_window=5)),
    "Qwen3": lambda: (tf.Qwen3ForCausalLM, tf.Qwen3Config(**_DECODER, head_dim=8)),
    "Gemma 2": lambda: (tf.Gemma2ForCausalLM, tf.Gemma2Config(**_DECODER, head_dim=8, sliding_window=5, attn_logit_softcapping=2.0)),
    "Mixtral": lambda: (tf.MixtralForCausalLM, tf.MixtralConfig(**_DECODER, num_local_experts=4)),
    "gpt-oss": lambda: (
        tf.GptOssForCausalLM,
        tf.GptOssConfig(**_DECODER, head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=5),
    ),
}  # fmt: skip

TWO_SIDED: dict[str, Maker] = {
    "T5": lambda: (
        tf.T5ForConditionalGeneration,
        tf.T5Config(
            vocab_size=VOCABULARY, d_model=WIDTH, d_kv=8, d_ff=48, num_layers=3, num_heads=HEADS, decoder_start_token_id=0, pad_token_id=0,
            eos_token_id=2,
        ),
    ),
    "BART": lambda: (tf.BartForConditionalGeneration, tf.BartConfig(**_BOTH, max_position_embeddings=64)),
    "Marian": lambda: (tf.MarianMTModel, tf.MarianConfig(**_BOTH, max_position_embeddings=64)),
    "Whisper": lambda: (
        tf.WhisperForConditionalGeneration,
        tf.WhisperConfig(**_BOTH, max_source_positions=20, max_target_positions=16, num_mel_bins=8),
    ),
}  # fmt: skip

OTHERS: dict[str, Maker] = {
    "Jamba": lambda: (
        tf.JambaForCausalLM,
        tf.JambaConfig(
            **_DECODER, attn_layer_period=2, attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1, num_experts=2,
            mamba_d_state=4, mamba_expand=2, mamba_dt_rank=4,
        ),
    ),
    "Mamba": lambda: (tf.MambaModel, tf.MambaConfig(**_OTHER, hidden_size=WIDTH, num_hidden_layers=2, state_size=4)),
    "Longformer": lambda: (tf.LongformerModel, tf.LongformerConfig(**_ENCODER, attention_window=4)),
    "RWKV": lambda: (tf.RwkvModel, tf.RwkvConfig(vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=2)),
    "SqueezeBERT": lambda: (tf.SqueezeBertModel, tf.SqueezeBertConfig(**_ENCODER, embedding_size=WIDTH)),
    "Funnel": lambda: (
        tf.FunnelModel,
        tf.FunnelConfig(vocab_size=VOCABULARY, d_model=WIDTH, n_head=HEADS, d_head=8, d_inner=48, block_sizes=[1, 1]),
    ),
    "BERT encoder and decoder": lambda: (
        tf.EncoderDecoderModel,
        tf.EncoderDecoderConfig.from_encoder_decoder_configs(tf.BertConfig(**_ENCODER), tf.BertConfig(**_ENCODER), decoder_start_token_id=1),
    ),
}  # fmt: skip

EVERY = {**TEXT, **TWO_SIDED}


def build(name: str, *, seed: int = 0, training: bool = False) -> Any:
    """A model as a user has it: loaded with its default attention."""
    made, config = {**EVERY, **OTHERS}[name]()
    torch.manual_seed(seed)
    model = made(config)
    # Larger weights than a fresh model has, or every row of attention would be nearly uniform and prove little. (T5's are large:
    # its attention is not scaled, and larger ones would only magnify rounding.)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1 and name != "T5":
                parameter.mul_(4)
    return model.train(training)


def eager_twin(model: Any) -> Any:
    """The same weights in a model that was made with eager attention, which returns its attentions."""
    config = copy.deepcopy(model.config)
    config._attn_implementation = "eager"
    twin = type(model)(config)
    twin.load_state_dict(model.state_dict())
    return twin.eval()


def keywords(name: str, lengths: tuple[int, ...] = (12, 8), second: int = 5) -> dict[str, torch.Tensor]:
    """Arguments for a padded batch of inputs of these lengths."""
    generator = torch.Generator().manual_seed(1)
    draw = partial(torch.randint, 3, VOCABULARY, generator=generator)
    if name == "Whisper":
        return {
            "input_features": torch.randn(len(lengths), 8, 40, generator=generator),
            "decoder_input_ids": draw((len(lengths), second)),
        }
    ids = draw((len(lengths), max(lengths)))
    mask = torch.tensor([[int(i < n) for i in range(max(lengths))] for n in lengths])
    found = {"input_ids": ids * mask, "attention_mask": mask}
    if name in TWO_SIDED or name == "BERT encoder and decoder":
        found["decoder_input_ids"] = draw((len(lengths), second))
    return found


def one_of(arguments: dict[str, torch.Tensor], item: int) -> dict[str, torch.Tensor]:
    """One input of a batch by itself, its padding gone."""
    mask = arguments.get("attention_mask")
    length = None if mask is None else int(mask[item].sum())
    return {
        name: value[item : item + 1, :length] if name in ("input_ids", "attention_mask") else value[item : item + 1]
        for name, value in arguments.items()
    }
