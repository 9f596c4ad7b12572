"""A layer's attention worked out by hand, in float64, from the model's own weights and equations: the twin of a LayerRecord."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import transformers

from tests.capture import zoo

tf: Any = transformers  # whose classes are not typed


@dataclass
class Hand:
    """One attention of one input. `values` (heads, keys, width) are v W_O; `norms` are those that the sum passes."""

    weights: torch.Tensor
    values: torch.Tensor
    raw_values: torch.Tensor
    bias: torch.Tensor
    x: torch.Tensor
    norms: list[Any]
    cross: bool = False
    end: tuple[Any, torch.Tensor] | None = None  # the norm at the layer's end, and what it reads

    @property
    def written(self) -> torch.Tensor:
        return torch.einsum("hqk,hkd->qd", self.weights, self.values) + self.bias

    def vector(self, i: int, j: int) -> torch.Tensor:
        """Σ_h A[h, i, j] v_j^h W_O^h."""
        return sum((self.weights[h, i, j] * self.values[h, j] for h in range(len(self.weights))), torch.zeros(()))


def linear_part(norm: Any, rows: torch.Tensor, vector: torch.Tensor, i: int) -> torch.Tensor:
    """LayerNorm's or RMSNorm's linear part, with the statistics of row i."""
    if type(norm).__name__ == "LayerNorm":
        centred, size = vector - vector.mean(), torch.sqrt(rows[i].var(unbiased=False) + norm.eps)
    else:
        centred, size = vector, torch.sqrt(rows[i].pow(2).mean() + norm.variance_epsilon)
    weight: torch.Tensor = norm.weight
    return weight * centred / size


def split(
    values: torch.Tensor, heads: int, matrix: torch.Tensor, query_heads: int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Values (n, heads · width) and W_O (in, out) as v (heads, n, width) and v W_O (heads, n, out)."""
    each = values.reshape(len(values), heads, -1).transpose(0, 1)
    if query_heads is not None:
        each = each.repeat_interleave(query_heads // heads, 0)
    width = each.shape[-1]
    return each, torch.stack([v @ matrix[h * width : (h + 1) * width] for h, v in enumerate(each)])


def _bert(layer: Any, x: torch.Tensor, weights: torch.Tensor) -> Hand:
    raw, values = split(layer.attention.self.value(x), zoo.HEADS, layer.attention.output.dense.weight.T)
    hand = Hand(weights, values, raw, layer.attention.output.dense.bias, x, [layer.attention.output.LayerNorm])
    middle = layer.attention.output.LayerNorm(x + hand.written)
    hand.end = layer.output.LayerNorm, layer.output.dense(layer.intermediate(middle)) + middle
    return hand


def _prenorm(layer: Any, x: torch.Tensor, weights: torch.Tensor) -> Hand:
    raw, values = split(
        layer.attention.self.value(layer.attention.LayerNorm(x)), zoo.HEADS, layer.attention.output.dense.weight.T
    )
    return Hand(weights, values, raw, layer.attention.output.dense.bias, x, [])


def _gpt2(layer: Any, x: torch.Tensor, weights: torch.Tensor) -> Hand:
    value = layer.attn.c_attn(layer.ln_1(x))[:, 2 * zoo.WIDTH :]
    raw, values = split(value, zoo.HEADS, layer.attn.c_proj.weight)
    return Hand(weights, values, raw, layer.attn.c_proj.bias, x, [])


def _llama(layer: Any, x: torch.Tensor, weights: torch.Tensor) -> Hand:
    value = layer.self_attn.v_proj(layer.input_layernorm(x))
    raw, values = split(value, 2, layer.self_attn.o_proj.weight.T, zoo.HEADS)
    return Hand(weights, values, raw, torch.zeros(zoo.WIDTH, dtype=torch.float64), x, [])


def _vit(layer: Any, x: torch.Tensor, weights: torch.Tensor) -> Hand:
    raw, values = split(layer.attention.v_proj(layer.layernorm_before(x)), zoo.HEADS, layer.attention.o_proj.weight.T)
    return Hand(weights, values, raw, layer.attention.o_proj.bias, x, [])


def _bart_part(
    attention: Any, norm: Any, x: torch.Tensor, read: torch.Tensor, weights: torch.Tensor, *, cross: bool
) -> Hand:
    raw, values = split(attention.v_proj(read), zoo.HEADS, attention.out_proj.weight.T)
    return Hand(weights, values, raw, attention.out_proj.bias, x, [norm], cross)


def _bart_end(layer: Any, hand: Hand) -> None:
    middle = hand.norms[0](hand.x + hand.written)
    hand.end = layer.final_layer_norm, layer.fc2(layer.activation_fn(layer.fc1(middle))) + middle


SINGLE: dict[str, Callable[[Any, torch.Tensor, torch.Tensor], Hand]] = {
    "BERT": _bert, "RoBERTa-PreLayerNorm": _prenorm, "GPT-2": _gpt2, "Llama": _llama, "ViT": _vit,
}  # fmt: skip
MODELS = [*SINGLE, "BART"]


def build(name: str) -> tuple[Any, dict[str, torch.Tensor]]:
    """A tiny random model and one input."""
    if name != "ViT":
        return zoo.build(name), zoo.one_of(zoo.keywords(name), 0)
    torch.manual_seed(0)
    config = tf.ViTConfig(
        hidden_size=zoo.WIDTH,
        num_hidden_layers=zoo.LAYERS,
        num_attention_heads=zoo.HEADS,
        intermediate_size=48,
        image_size=12,
        patch_size=4,
    )
    model = tf.ViTModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(10)
    return model, {"pixel_values": torch.randn(1, 3, 12, 12)}


def layers_of(model: Any, name: str) -> Any:
    base = model.base_model
    if name == "Llama":
        return base.layers
    if name == "GPT-2":
        return base.h
    if name == "ViT":
        return base.layers if hasattr(base, "layers") else base.encoder.layer
    return base.encoder.layer


def hands(model: Any, name: str, arguments: dict[str, torch.Tensor]) -> list[Hand]:
    """Every attention of the model on this input, in the order of the levels, worked out in float64."""
    twin = doubled(model)
    wide = {key: value.double() if value.is_floating_point() else value for key, value in arguments.items()}
    with torch.no_grad():
        outputs = (
            twin(**wide, output_attentions=True, output_hidden_states=True, use_cache=False)
            if name not in ("BERT", "ViT", "RoBERTa-PreLayerNorm")
            else twin(**wide, output_attentions=True, output_hidden_states=True)
        )
        if name == "BART":
            return list(_bart(twin, outputs))
        each = zip(layers_of(twin, name), outputs.hidden_states, outputs.attentions, strict=False)
        return [SINGLE[name](layer, x[0], weights[0]) for layer, x, weights in each]


def _bart(twin: Any, outputs: Any) -> Iterator[Hand]:
    for layer, x, weights in zip(
        twin.model.encoder.layers, outputs.encoder_hidden_states, outputs.encoder_attentions, strict=False
    ):
        hand = _bart_part(layer.self_attn, layer.self_attn_layer_norm, x[0], x[0], weights[0], cross=False)
        _bart_end(layer, hand)
        yield hand
    read = outputs.encoder_last_hidden_state[0]
    decoder = zip(
        twin.model.decoder.layers,
        outputs.decoder_hidden_states,
        outputs.decoder_attentions,
        outputs.cross_attentions,
        strict=False,
    )
    for layer, x, weights, cross in decoder:
        hand = _bart_part(layer.self_attn, layer.self_attn_layer_norm, x[0], x[0], weights[0], cross=False)
        yield hand
        middle = layer.self_attn_layer_norm(x[0] + hand.written)
        hand = _bart_part(layer.encoder_attn, layer.encoder_attn_layer_norm, middle, read, cross[0], cross=True)
        _bart_end(layer, hand)
        yield hand


def doubled(model: Any) -> Any:
    """The same model in float64, with eager attention."""
    twin = zoo.eager_twin(model)
    return copy.deepcopy(twin).double().requires_grad_(False)
