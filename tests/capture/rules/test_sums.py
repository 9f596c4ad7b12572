"""Parts add up: what the rules call contributions, for every family of layers, against what the layer truly computed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers

from attnflow import capture
from attnflow.capture import rules
from attnflow.capture.rules import LayerRecord
from attnflow.capture.rules._parts import Parts
from attnflow.errors import CaptureError
from tests.capture import zoo

tf: Any = transformers  # whose classes are not typed

CLOSE = 1e-5

# Where the sum that attention and residual make can be seen: a module, and its input or its output. One for each attention of a layer.
SUMS: dict[str, list[tuple[str, str]]] = {
    "BERT": [("attention.output", "output")],
    "RoBERTa": [("attention.output", "output")],
    "ELECTRA": [("attention.output", "output")],
    "RoBERTa-PreLayerNorm": [("attention.output", "output")],
    "DistilBERT": [("sa_layer_norm", "output")],
    "ALBERT": [("attention.LayerNorm", "output")],
    "ModernBERT": [("mlp_norm", "input")],
    "GPT-2": [("ln_2", "input")],
    "GPT-2 (scaled by layer)": [("ln_2", "input")],
    "OPT": [("final_layer_norm", "input")],
    "Llama": [("post_attention_layernorm", "input")],
    "Mistral": [("post_attention_layernorm", "input")],
    "Qwen3": [("post_attention_layernorm", "input")],
    "Mixtral": [("post_attention_layernorm", "input")],
    "gpt-oss": [("post_attention_layernorm", "input")],
    "Gemma 2": [("pre_feedforward_layernorm", "input")],
    "T5 encoder": [("layer.1.layer_norm", "input")],
    "T5 decoder": [("layer.1.layer_norm", "input"), ("layer.2.layer_norm", "input")],
    "BART": [("self_attn_layer_norm", "output"), ("encoder_attn_layer_norm", "output")],
    "Marian": [("self_attn_layer_norm", "output"), ("encoder_attn_layer_norm", "output")],
    "Whisper encoder": [("final_layer_norm", "input")],
    "Whisper decoder": [("encoder_attn_layer_norm", "input"), ("final_layer_norm", "input")],
}
EXTRA: dict[str, tuple[Any, list[tuple[str, str]]]] = {
    "DINOv2": (
        lambda: tf.Dinov2Model(
            tf.Dinov2Config(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, image_size=12, patch_size=4, layerscale_value=0.3)
        ),
        [("norm2", "input")],
    ),
    "ViT": (
        lambda: tf.ViTModel(tf.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=12, patch_size=4)),
        [("layernorm_after", "input")],
    ),
    "OPT (post-norm)": (
        lambda: tf.OPTModel(
            tf.OPTConfig(
                vocab_size=zoo.VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48, do_layer_norm_before=False,
                max_position_embeddings=64, word_embed_proj_dim=32,
            )
        ),
        [("self_attn_layer_norm", "output")],
    ),
    "OLMo 2": (
        lambda: tf.Olmo2ForCausalLM(
            tf.Olmo2Config(vocab_size=zoo.VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, pad_token_id=0)
        ),
        [("mlp", "input")],
    ),
    "BERT with cross-attention": (
        lambda: zoo.build("BERT encoder and decoder"),
        [("attention.output", "output"), ("crossattention.output", "output")],
    ),
}  # fmt: skip


_LLAMA = [("post_attention_layernorm", "input")]
_SIDES = [("final_layer_norm", "input")], [("encoder_attn_layer_norm", "input"), ("final_layer_norm", "input")]
_SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": 12,
    "patch_size": 4,
}
# What shares a line of the table with a model above: classes of transformers, by the start of their names.
KIN: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    **{name: (zoo._ENCODER, [("attention.output", "output")]) for name in ("XLMRoberta", "Camembert", "Ernie", "Data2VecText")},
    **{
        name: ({**zoo._DECODER, "head_dim": 8}, _LLAMA)
        for name in ("Gemma", "Ministral", "Mixtral", "Olmo", "Olmoe", "Phi3", "Qwen2", "Qwen2Moe", "Qwen3Moe", "SeedOss", "SmolLM3", "StableLm", "Starcoder2")
    },
    "Olmo3": (zoo._DECODER, [("mlp", "input")]),
    "Gemma3Text": ({**zoo._DECODER, "head_dim": 8, "sliding_window": 5}, [("pre_feedforward_layernorm", "input")]),
    "CLIPVision": (_SMALL, [("layer_norm2", "input")]),
    "SiglipVision": (_SMALL, [("layer_norm2", "input")]),
    "DeiT": (_SMALL, [("layernorm_after", "input")]),
    "IJepa": (_SMALL, [("layernorm_after", "input")]),
    "DINOv3ViT": (_SMALL, [("norm2", "input")]),
    "Yolos": ({**_SMALL, "image_size": [12, 12], "num_detection_tokens": 3}, [("layernorm_after", "input")]),
    "ViTMSN": (_SMALL, [("layernorm_after", "input")]),
    "Dinov2WithRegisters": (_SMALL, [("norm2", "input")]),
}  # fmt: skip


def sums_of(record: LayerRecord) -> torch.Tensor:
    """All parts of each query, added up one by one, with what no key contributed."""
    parts = Parts.of(record, "first", residual=True)
    added = parts.block().sum(1) + parts.constant
    return added + parts.own if record.cross and parts.own is not None else added


def check(
    model: Any, arguments: dict[str, Any], places: list[tuple[str, str]], side: str = "", tolerance: float = CLOSE
) -> int:
    """Every attention's parts against the sum that the layer made; how many were seen. `side`: the part of the model meant."""
    true: dict[str, list[torch.Tensor]] = {}
    seen: list[LayerRecord] = []
    hooks = []
    for path, layer in model.named_modules():
        for name, end in places if side in path else []:
            try:
                module = layer.get_submodule(name)
            except AttributeError:
                continue

            def note(module: Any, given: Any, output: Any, path: str = path, end: str = end) -> None:
                true.setdefault(path, []).append(given[0] if end == "input" else output)

            hooks.append(module.register_forward_hook(note))

    def rule(record: LayerRecord) -> torch.Tensor:
        if side not in record.path:
            return record.weights.mean(0)
        seen.append(record)
        [layer] = [path for path in true if record.path.startswith(f"{path}.")]
        whole = true[layer].pop(0).reshape(-1, record.written.shape[-1])
        made = sums_of(record)
        torch.testing.assert_close(made, whole.to(made), rtol=tolerance, atol=tolerance * float(whole.abs().max()))
        return record.weights.mean(0)

    try:
        capture.graph(model, arguments, edges=rule)
    finally:
        for hook in hooks:
            hook.remove()
    return len(seen)


@pytest.mark.parametrize("name", SUMS)
def test_contributions_add_up_to_what_the_block_computed(name: str) -> None:
    known, side = (name.split()[0], f"{name.split()[1]}.") if name.endswith("coder") else (name, "")
    model = zoo.build(known)
    assert check(model, zoo.one_of(zoo.keywords(known), 0), SUMS[name], side) >= 2


@pytest.mark.parametrize("name", EXTRA)
def test_contributions_add_up_in_other_families(name: str) -> None:
    make, places = EXTRA[name]
    torch.manual_seed(0)
    model = make().eval()
    if hasattr(model.config, "image_size"):
        arguments: dict[str, Any] = {"pixel_values": torch.randn(1, 3, 12, 12)}
    else:
        arguments = zoo.one_of(zoo.keywords("BERT encoder and decoder" if "cross" in name else "BERT"), 0)
    assert check(model, arguments, places) >= 2


@pytest.mark.parametrize("name", KIN)
def test_contributions_add_up_in_their_kin(name: str) -> None:
    settings, places = KIN[name]
    torch.manual_seed(0)
    config = getattr(tf, f"{name}Config")(**settings)
    if name == "Ministral":
        config.layer_types = ["full_attention"] * config.num_hidden_layers
    model = getattr(tf, f"{name}Model")(config).eval()
    images = {"pixel_values": torch.randn(1, 3, 12, 12)}
    assert check(model, images if "image_size" in settings else zoo.one_of(zoo.keywords("BERT"), 0), places) >= 2


@pytest.mark.parametrize("name", ["MBart", "Pegasus", "Blenderbot", "M2M100", "PLBart"])
def test_contributions_add_up_in_other_encoders_with_decoders(name: str) -> None:
    torch.manual_seed(0)
    model = getattr(tf, f"{name}Model")(getattr(tf, f"{name}Config")(**zoo._BOTH, max_position_embeddings=64)).eval()
    arguments = zoo.one_of(zoo.keywords("BART"), 0)
    sides = _SIDES
    if name == "PLBart":  # post-norm
        sides = (
            [("self_attn_layer_norm", "output")],
            [("self_attn_layer_norm", "output"), ("encoder_attn_layer_norm", "output")],
        )
    assert check(model, arguments, sides[0], "encoder.") == 3
    assert check(model, arguments, sides[1], "decoder.") == 4


def test_jambas_attention_layers_add_up() -> None:
    assert check(zoo.build("Jamba"), zoo.one_of(zoo.keywords("BERT"), 0), [("pre_ff_layernorm", "input")]) == 1


def test_the_feed_forward_share_is_its_proximity() -> None:
    model = zoo.build("Llama")
    middle: list[torch.Tensor] = []
    hooks = [
        layer.post_attention_layernorm.register_forward_hook(lambda module, came, gave: middle.append(came[0][0]))
        for layer in model.model.layers
    ]

    def rule(record: LayerRecord) -> torch.Tensor:
        for i, share in enumerate(rules.feed_forward(record).tolist()):
            whole, kept = record.output[i].double(), middle[-1][i].double()
            length = whole.abs().sum()
            near = [max(float(length - (whole - part).abs().sum()), 1e-5) for part in (whole - kept, kept)]
            assert share == pytest.approx(near[0] / sum(near), abs=1e-5)
        return record.weights.mean(0)

    capture.graph(model, zoo.one_of(zoo.keywords("Llama"), 0), edges=rule)
    for hook in hooks:
        hook.remove()
    with pytest.raises(CaptureError, match="post-norm layer"):
        capture.graph(zoo.build("BERT"), [5, 6, 7], edges=rules.feed_forward)


def test_in_parallel_layers_attention_adds_to_what_the_layer_came_with() -> None:
    """GPT-NeoX: the output is x + attention + feed-forward part, side by side."""
    model = zoo.build("GPT-NeoX")
    fed: list[torch.Tensor] = []
    hooks = [
        layer.mlp.register_forward_hook(lambda module, came, gave: fed.append(gave[0]))
        for layer in model.gpt_neox.layers
    ]

    def rule(record: LayerRecord) -> torch.Tensor:
        torch.testing.assert_close(sums_of(record) + fed[-1], record.output, rtol=1e-5, atol=1e-4)
        return record.weights.mean(0)

    assert len(capture.graph(model, zoo.one_of(zoo.keywords("GPT-NeoX"), 0), edges=rule)) == len(fed)
    for hook in hooks:
        hook.remove()
