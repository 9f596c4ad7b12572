"""What a rule found, made ready for the common steps of `mix`: the residual at its place, signs kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnflow.artifacts import jsonable
from attnflow.capture._blocks import Axis
from attnflow.capture._edges import OWN, Choice
from attnflow.capture._levels import Level
from attnflow.errors import InvalidArgument
from attnflow.mixing import Recipe


def before_residual(matrix: NDArray[Any], choice: Choice, *, cross: bool) -> NDArray[Any]:
    """What a residual from elsewhere is mixed with: proportions, and for w_res only what came from others.

    W-Res is r_i · (row i without its diagonal, divided by its sum) + (1 − r_i) · I; N-FixedRes divides rows of norms by their
    sums before the residual (GlobEnc). Attention's rows sum to 1 already; gradient-weighted ones keep their size, as `mix` has it.
    """
    if choice.residual == "w_res" and not cross:
        matrix = matrix - np.diag(np.diagonal(matrix))
    elif choice.rule is None or choice.residual == OWN or choice.residual is None or choice.signed:
        return matrix
    sums = matrix.sum(axis=-1, keepdims=True)
    shares: NDArray[Any] = np.divide(matrix, sums, out=np.zeros_like(matrix), where=sums != 0)
    return shares


def add_own(matrix: NDArray[Any], level: Level, item: int, axis: Axis) -> None:
    """What queries keep of themselves beside the matrix, onto the diagonal of their rows."""
    if level.seen is None or level.seen.own is None:
        return
    rows, real = axis.rows(level)
    np.einsum("ii->i", matrix)[rows] += level.seen.own[item].numpy()[real].astype(matrix.dtype)


def placed_shares(found: Sequence[Level], item: int, axis: Axis) -> NDArray[np.float64]:
    """The measured residual [level, position]; positions that a level does not act on have none to mix."""
    alpha = np.zeros((len(found), len(axis.tokens)))
    for number, level in enumerate(found):
        if level.seen is not None and level.seen.alpha is not None:
            rows, real = axis.rows(level)
            alpha[number, rows] = level.seen.alpha[item].numpy()[real]
    return np.clip(alpha, 0, 1)


def is_signed(choice: Choice, found: Sequence[Level], item: int) -> bool:
    """Whether the levels hold negative numbers: the rule says so, or a function returned some."""
    if choice.signed or choice.rule is None:
        return choice.signed
    return any(level.seen is not None and bool((level.seen.weights[item] < 0).any()) for level in found)


def signed_options(choice: Choice, mixing: dict[str, Any]) -> dict[str, Any]:
    """Options that have a meaning where entries may be negative: rows are not made proportions."""
    for name in ("top_k", "threshold", "discard", "receptive_field", "distance_discount", "set_aside"):
        if mixing.get(name) is not None and mixing[name] is not False:
            raise InvalidArgument(
                f"{name} weighs entries as amounts, and edges={choice.name!r} gives negative ones: it cannot apply."
            )
    if mixing.get("renormalise"):
        raise InvalidArgument(
            f"rows of edges={choice.name!r} hold negative numbers and cannot be made proportions: leave renormalise out."
        )
    return {**mixing, "renormalise": False}


def said_about(choice: Choice, made: Recipe) -> dict[str, Any]:
    """The rule, the heads and the residual, for the record; what was measured as numbers too."""
    said = {"edges": choice.name, "heads": jsonable(choice.heads), "residual": jsonable(choice.residual)}
    if choice.measured:
        said["residual_shares"] = jsonable(made.alpha)
    return said
