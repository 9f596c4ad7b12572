"""LayerRecord: one attention of one input, as the model computed it. What an edge rule reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import torch

from attnflow.capture.rules._diagonal import Diagonal, diagonal_of
from attnflow.capture.rules._families import Sublayer
from attnflow.errors import CaptureError

# Numbers in a block of vectors (queries, keys, width) that is made at once: 2 MB, which the processor's cache holds.
_BLOCK = 1 << 19


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What the layer around an attention did with one input: rows are the real positions of the queries."""

    sublayer: Sublayer
    carried: torch.Tensor  # what the residual connection carries past the attention
    projected: torch.Tensor  # the output projection's result
    written: torch.Tensor  # what is added to what is carried: the same, or what the branch made of it
    summed: torch.Tensor | None  # what the norm after the sum reads
    ended: torch.Tensor | None  # what the norm at the end of the layer reads
    output: torch.Tensor  # of the layer
    again: Callable[[torch.Tensor], torch.Tensor]  # heads' outputs (many, queries, heads, width) → outputs of the layer


@dataclass(frozen=True, eq=False)
class LayerRecord:
    """One attention of one input, without padding.

    `query`, `key`, `value` (heads, positions, width of a head), with grouped key heads repeated, and `weights` (heads,
    queries, keys) are those of the call. `cross` says that keys are positions of another sequence. `factors` has one number
    for each head, from 0 to 1: how much of it counts (`heads=`).

    What lies around the call is known for families in `FAMILIES`: `carried` (what the residual connection holds), `written`
    (what attention adds to it), `contributions()` (who wrote what), `output` (of the layer). For others these raise a
    CaptureError.
    """

    path: str
    number: int
    cross: bool
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    weights: torch.Tensor
    factors: torch.Tensor
    around: Surroundings | str = field(repr=False)
    advance: Callable[[int], None] = field(
        default=lambda count: None, repr=False
    )  # for rules that take long: so much is done

    @property
    def counted(self) -> torch.Tensor:
        """The weights of the heads that count, by how much they do."""
        return self.weights * self.factors.to(self.weights)[:, None, None]

    @property
    def known(self) -> Surroundings:
        """What lies around the call, or an error that says what could not be found."""
        if isinstance(self.around, str):
            raise CaptureError(
                f"{self.around}. Rules that need only the attention call (attention, gradient, chefer, effective) work without; for "
                "others add a line to capture.rules.FAMILIES."
            )
        return self.around

    @property
    def carried(self) -> torch.Tensor:
        """x (queries, width): what the residual connection carries past the attention."""
        return self.known.carried

    @property
    def written(self) -> torch.Tensor:
        """What attention adds to that (queries, width), its bias included."""
        return self.known.written

    @property
    def output(self) -> torch.Tensor:
        """The layer's output (queries, width)."""
        return self.known.output

    @cached_property
    def vectors(self) -> torch.Tensor:
        """v W_O of each head and key (heads, keys, width): what a head adds to a query that gives this key all its weight."""
        known = self.known
        matrix, _ = linear_of(known.sublayer.projection, self.value.shape[0] * self.value.shape[2], self.value)
        heads = matrix.to(self.value).reshape(self.value.shape[0], self.value.shape[2], -1)
        made = torch.bmm(self.value, heads)
        self._check(made, known)
        return made

    @cached_property
    def bias(self) -> torch.Tensor:
        """What the output projection adds by itself (width)."""
        return linear_of(self.known.sublayer.projection, self.value.shape[0] * self.value.shape[2], self.value)[1]

    def contributions(self, rows: slice = slice(None)) -> torch.Tensor:
        """What each key added to each of these queries (queries, keys, width), before any norm, the residual left out.

        Σ_j contributions[i, j] is `written[i]` without the bias, where nothing lies between the projection and the sum.
        """
        return weighted(self.counted[:, rows], self.vectors)

    def rows(self) -> Iterator[slice]:
        """Blocks of queries, so that `contributions(rows)` stays small."""
        queries, keys = self.weights.shape[1:]
        size = max(1, _BLOCK // (keys * self.written.shape[-1]))
        return (slice(start, min(start + size, queries)) for start in range(0, queries, size))

    def diagonals(self, with_layernorm: str) -> tuple[list[Diagonal], list[Diagonal]]:
        """The norms and scales that what attention wrote passes, and those that what is carried passes.

        `with_layernorm`: "none" of those after the sum, the "first", or "both" (also the one at the layer's end; the
        feed-forward part between them is left out, as GlobEnc does).
        """
        known, path = self.known, self.path
        layer = known.sublayer
        branch = [] if layer.branch is None else [diagonal_of(layer.branch, known.projected, f"{path}: branch")]
        after = []
        if layer.after is not None and known.summed is not None and with_layernorm != "none":
            after.append(diagonal_of(layer.after, known.summed, f"{path}: norm after the sum"))
        if layer.end is not None and known.ended is not None and with_layernorm == "both":
            after.append(diagonal_of(layer.end, known.ended, f"{path}: norm at the layer's end"))
        real = [one for one in after if one is not None]
        return [one for one in branch if one is not None] + real, real

    def _check(self, vectors: torch.Tensor, known: Surroundings) -> None:
        """Whether the heads' vectors add up to what the projection gave: else something lies between that nobody told."""
        made = torch.einsum("hqk,hkd->qd", self.weights.to(vectors), vectors) + self.bias.to(vectors)
        own = next(
            (one.dtype for one in known.sublayer.projection.parameters() if one.is_floating_point()), self.value.dtype
        )
        room = 1e-3 + 16 * torch.finfo(own).eps
        if not torch.allclose(
            made, known.projected.to(made), rtol=room, atol=room * float(known.projected.abs().max())
        ):
            raise CaptureError(
                f"{self.path}: the heads' values do not add up to what the output projection gave. Something lies between the two "
                f"in {type(known.sublayer.layer).__name__} (a gate, a norm), so single contributions are not known."
            )


def weighted(weights: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """Σ_h weights[h, i, j] · vectors[h, j]: (heads, queries, keys), (heads, keys, width) → (queries, keys, width)."""
    return torch.bmm(weights.permute(2, 1, 0), vectors.permute(1, 0, 2)).transpose(0, 1)


def linear_of(module: torch.nn.Module, width: int, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The matrix (in, out) and the bias of a linear module; what is no plain one (quantised, LoRA) is asked by example."""
    weight, name = getattr(module, "weight", None), type(module).__name__
    if isinstance(weight, torch.Tensor) and weight.is_floating_point() and name in ("Linear", "Conv1D"):
        bias = getattr(module, "bias", None)
        matrix = weight.detach().T if name == "Linear" else weight.detach()
        return matrix, torch.zeros(matrix.shape[1]).to(matrix) if bias is None else bias.detach()
    zero = module.forward(torch.zeros(1, width).to(like))[0]
    return module.forward(torch.eye(width).to(like)) - zero, zero
