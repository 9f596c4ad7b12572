"""AttentionStack: every head of every layer, as a model computed them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attnflow import artifacts
from attnflow.arrays import ROW_SUM_TOLERANCE, ReadOnly, as_floats, frozen, row_sums
from attnflow.errors import InvalidArgument, InvalidAttention
from attnflow.tokens import UNSET, Tokens, checked_index, checked_mask

_BLOCK_GRAPH = (
    "With a cache of past keys, run the whole text at once (use_cache=False). Cross-attention, between two sequences, is not a stack: put both sequences on one axis and build an "
    "AttentionGraph, as attnflow.capture does for encoder-decoder models."
)

_NOT_FINITE = (
    "A fully masked row gives NaN: mark its position as padding; otherwise look for overflow in half precision."
)


@dataclass(frozen=True, eq=False)
class AttentionStack(ReadOnly):
    """Attention weights [layer, head, query, key], one input; each row sums to 1 over the keys.

    `weights` may come from numpy, torch (any device, with gradient, half precision) or JAX. `gradients`, of the same
    shape, are those of a chosen output by the weights, for the edge rules that use them. `padding` (True: padding, that
    is `attention_mask == 0`) crops the padded positions; None takes it from `tokens`. What is left has no padding, and
    `cropped` remembers which positions of the input are gone.
    """

    weights: NDArray[Any]
    tokens: Tokens = UNSET
    gradients: NDArray[Any] | None = None
    padding: NDArray[np.bool_] = UNSET
    cropped: NDArray[np.bool_] = field(init=False)

    if TYPE_CHECKING:  # what may be passed is wider than what is kept

        def __init__(
            self,
            weights: Any,
            tokens: Tokens | Sequence[str] | None = None,
            gradients: Any = None,
            padding: Any = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        weights = _as_stack(self.weights, "attention weights")
        count = weights.shape[-1]
        tokens = Tokens.of(self.tokens, count)
        padding = tokens.padding if self.padding is None else checked_mask(self.padding, count, "padding")
        if (tokens.padding & ~padding).any():
            raise InvalidArgument(
                "the tokens mark positions as padding that padding= does not. Give one mask, in one place."
            )
        gradients = None if self.gradients is None else _as_stack(self.gradients, "attention gradients")
        if gradients is not None and gradients.shape != weights.shape:
            raise InvalidAttention(
                f"gradients have shape {gradients.shape}, weights {weights.shape}: record both in the same run."
            )
        if padding.all():
            raise InvalidAttention(
                f"all {count} positions are marked as padding. True means padding: padding = attention_mask == 0."
            )
        if padding.any():
            weights, tokens = _crop(weights, ~padding), tokens.select(~padding)
            gradients = None if gradients is None else _crop(gradients, ~padding)
        _check_rows(weights, padding)
        if gradients is not None and not np.isfinite(gradients).all():
            raise InvalidAttention(
                "attention gradients hold NaN or infinity. Record them in float32, from a finite output."
            )
        keep = object.__setattr__  # the way to fill a frozen dataclass
        keep(self, "weights", frozen(weights))
        keep(self, "tokens", tokens)
        keep(self, "gradients", None if gradients is None else frozen(gradients))
        keep(self, "padding", frozen(np.zeros(len(tokens), dtype=np.bool_)))
        keep(self, "cropped", padding)

    @classmethod
    def from_outputs(
        cls, outputs: Any, tokens: Tokens | Sequence[str] | None = None, index: int = 0, padding: Any = None
    ) -> AttentionStack:
        """Item `index` of the batch of a transformers output, or of its attentions: a tuple of (batch, heads, n, n), or one array of them.

        `padding` is that item's mask (True: padding), that is `attention_mask[index] == 0`.
        """
        layers = _attentions_of(outputs)
        items = []
        for number, layer in enumerate(layers):
            shape = tuple(getattr(layer, "shape", ()))
            if len(shape) != 4:
                raise InvalidAttention(
                    f"layer {number} of the attentions must have 4 dimensions (batch, heads, queries, keys), got shape {shape}."
                )
            items.append(layer[checked_index(index, shape[0], "batch item")])
        return cls(items, tokens, padding=padding)

    @property
    def layers(self) -> int:
        """How many layers were recorded."""
        return int(self.weights.shape[0])

    @property
    def heads(self) -> int:
        """How many heads each layer has."""
        return int(self.weights.shape[1])

    def __len__(self) -> int:
        return self.layers

    def __repr__(self) -> str:
        gradients = ", with gradients" if self.gradients is not None else ""
        return f"AttentionStack({self.layers} layers × {self.heads} heads × {len(self.tokens)} tokens, {self.weights.dtype}{gradients})"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an npz file (no pickle) with a JSON header. An existing file is replaced only by a complete one."""
        arrays = {"weights": self.weights, "gradients": self.gradients, "cropped": self.cropped}
        arrays |= self.tokens.pictures()
        artifacts.save(path, "stack", arrays, {"tokens": self.tokens.to_json()})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AttentionStack:
        """Open a saved stack."""
        return artifacts.load(path, "stack", cls._restore)

    @classmethod
    def _restore(cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> AttentionStack:
        stack = cls(arrays["weights"], Tokens.from_json(header["tokens"], arrays), arrays.get("gradients"))
        cropped = checked_mask(arrays["cropped"], len(arrays["cropped"]), "cropped")
        if len(cropped) - cropped.sum() != len(stack.tokens):
            raise InvalidAttention(f"the mask of cropped positions does not leave {len(stack.tokens)} of them")
        object.__setattr__(stack, "cropped", cropped)
        return stack


def _attentions_of(outputs: Any) -> Any:
    """The tuple of layers inside a model output, or a sentence about why there is none."""
    if type(outputs) is dict:
        outputs = SimpleNamespace(**outputs)
    if len(getattr(outputs, "shape", ())) == 5:  # the layers in one array
        outputs = list(outputs)
    both = hasattr(outputs, "encoder_attentions") or getattr(outputs, "cross_attentions", None) is not None
    if isinstance(outputs, list | tuple):
        layers: Any = outputs
    elif both:
        raise InvalidAttention(
            f"this output comes from an encoder-decoder model or has cross-attention. {_BLOCK_GRAPH}"
        )
    elif hasattr(outputs, "attentions"):
        layers = outputs.attentions
    else:
        raise InvalidAttention(
            f"expected a transformers output or its attentions, got a {type(outputs).__name__} without attentions."
        )
    if layers is None or len(layers) == 0 or any(layer is None for layer in layers):
        raise InvalidAttention(
            "the output holds no attentions. Run the model with output_attentions=True and attn_implementation='eager' "
            "(sdpa and flash attention never form the weights), or use attnflow.capture, which reads them from any of these."
        )
    if any(isinstance(layer, list | tuple) for layer in layers):
        raise InvalidAttention(
            "expected one array for each layer, got tuples. If these are the attentions of generate(), one tuple for each step: "
            "run the model once over the whole text. If this is a model's output with return_dict=False: give its attentions."
        )
    return layers


def _as_stack(value: Any, what: str) -> NDArray[Any]:
    """One array (layers, heads, n, n), from an array or a sequence of layers."""
    if isinstance(value, list | tuple):
        layers = [as_floats(layer, f"layer {number} of the {what}") for number, layer in enumerate(value)]
        shapes = {layer.shape for layer in layers}
        if len(shapes) > 1:
            listed = ", ".join(f"layer {number} {layer.shape}" for number, layer in enumerate(layers))
            raise InvalidAttention(f"all layers of the {what} must have the same shape, got {listed}.")
        array = np.stack(layers) if layers else np.zeros((0, 0, 0, 0))
        array.flags.writeable = False  # made here, so nobody else holds it: no copy needed
    else:
        array = as_floats(value, what)
    if array.ndim != 4:
        hint = (
            " Pick one item of the batch: AttentionStack.from_outputs(attentions, index=…)." if array.ndim == 5 else ""
        )
        raise InvalidAttention(
            f"{what} must have 4 dimensions (layers, heads, queries, keys), got {array.ndim}: shape {array.shape}.{hint}"
        )
    if array.shape[2] != array.shape[3]:
        raise InvalidAttention(
            f"{what} must be square, got {array.shape[2]} queries by {array.shape[3]} keys. {_BLOCK_GRAPH}"
        )
    if 0 in array.shape:
        raise InvalidAttention(f"{what} are empty: shape {array.shape} (layers, heads, queries, keys).")
    return array


def _crop(array: NDArray[Any], kept: NDArray[np.bool_]) -> NDArray[Any]:
    cropped: NDArray[Any] = array[:, :, kept][:, :, :, kept]
    cropped.flags.writeable = False  # a fresh copy
    return cropped


def checked_stack(value: Any) -> AttentionStack:
    """`value`, if it is a stack."""
    if not isinstance(value, AttentionStack):
        raise InvalidAttention(
            f"expected an AttentionStack, got a {type(value).__name__}. Wrap arrays in AttentionStack(weights)."
        )
    return value


def _check_rows(weights: NDArray[Any], cropped: NDArray[np.bool_]) -> None:
    """Finite, not negative, rows that sum to 1; layer by layer, to need no second copy of the stack.

    `cropped` are the positions that are gone already: a message names what the caller gave.
    """
    for layer, matrices in enumerate(weights):
        sums = row_sums(matrices)
        wrong = ~(np.abs(sums - 1) <= ROW_SUM_TOLERANCE)  # NaN and infinity are wrong as well
        if wrong.any() or matrices.min() < 0:
            _raise_for(layer, matrices, sums, wrong, cropped)


def _raise_for(
    layer: int, matrices: NDArray[Any], sums: NDArray[np.float64], wrong: NDArray[np.bool_], cropped: NDArray[np.bool_]
) -> None:
    positions = np.flatnonzero(~cropped)
    for bad, must, advice in (
        (~np.isfinite(matrices), "be finite", _NOT_FINITE),
        (matrices < 0, "not be negative", "Give the weights after the softmax, not the scores before it."),
    ):
        if bad.any():
            head, query, key = np.argwhere(bad)[0]
            raise InvalidAttention(
                f"attention weights must {must}; layer {layer}, head {head}, query {positions[query]}, key {positions[key]} "
                f"is {matrices[head, query, key]:.4g}. {advice}"
            )
    head, query = np.argwhere(wrong)[0]
    total = sums[head, query]
    row = f"row {positions[query]} of layer {layer}, head {head}"
    if total == 0 and not cropped.any():
        raise InvalidAttention(
            f"{row} is all zero. If this position is padding, say so with padding=; otherwise no row may be empty."
        )
    hint = (
        "The missing part went to positions marked as padding: check the mask (True means padding, attention_mask == 0)."
        if cropped.any() and total < 1
        else "If a mask was applied after softmax, renormalise first; dropout must be off (model.eval())."
    )
    raise InvalidAttention(
        f"attention rows must sum to 1 over the last axis (key); {row} sums to {total:.4g} ({total - 1:+.2g}; "
        f"rounding up to {ROW_SUM_TOLERANCE} is accepted). {hint}"
    )
