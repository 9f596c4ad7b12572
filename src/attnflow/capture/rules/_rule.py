"""What an edge rule is: a function from the record of one attention to a matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import torch

from attnflow.capture.rules._record import LayerRecord
from attnflow.errors import InvalidArgument, suggest


class Edges(NamedTuple):
    """What a rule found: `matrix` (queries, keys), and `own` (queries), what each query keeps of itself beside it.

    Among its own sequence a query's own share may as well stand on the diagonal; where keys are another sequence's
    (cross-attention) it can only stand here.
    """

    matrix: Any
    own: Any = None


class Rule(Protocol):
    """A rule with a name.

    `residual`, where there is one, says whether it counts the residual connection itself; as a field of a dataclass it can be
    set to False, which is done where a residual is given.
    """

    @property
    def name(self) -> str: ...
    @property
    def signed(self) -> bool: ...
    def __call__(self, record: LayerRecord) -> Any: ...


RuleFunction = Callable[[LayerRecord], Any]


def check_choice(what: str, given: object, known: Sequence[str]) -> None:
    """Refuse a value that is none of these."""
    if given not in known:
        raise InvalidArgument(f"unknown value for {what}, {given!r}." + suggest(given, known))


def checked_edges(found: Any, record: LayerRecord, name: str) -> Edges:
    """What a rule returned, as finite float64 on the CPU."""
    edges = found if isinstance(found, Edges) else Edges(*found) if isinstance(found, tuple) else Edges(found)
    shape = tuple(record.weights.shape[1:])
    matrix = _numbers(edges.matrix, shape, name)
    return Edges(matrix, None if edges.own is None else _numbers(edges.own, shape[:1], name))


def _numbers(value: Any, shape: tuple[int, ...], name: str) -> torch.Tensor:
    try:
        numbers = torch.as_tensor(value).detach().to("cpu", torch.float64)
    except (TypeError, ValueError, RuntimeError):
        numbers = torch.empty(0)
    if tuple(numbers.shape) != shape or not numbers.isfinite().all():
        came = f"shape {tuple(numbers.shape)}" if numbers.shape != (0,) else f"a {type(value).__name__}"
        came = "NaN or infinity" if tuple(numbers.shape) == shape else came
        raise InvalidArgument(
            f"the edge rule {name} must return finite numbers of shape {shape} (queries, keys); got {came}."
        )
    return numbers
