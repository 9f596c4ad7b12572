"""ByRule: a reader that gives each attention, with what lies around it, to an edge rule, and keeps the matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch

from attnflow.capture._attend import attend, repeated, weigh
from attnflow.capture._batch import Batch
from attnflow.capture._call import Call
from attnflow.capture._hooks import Watch, first_of
from attnflow.capture._levels import Seen, place_of
from attnflow.capture._watched import current
from attnflow.capture.rules._families import Sublayer, why_unknown
from attnflow.capture.rules._record import LayerRecord, Surroundings
from attnflow.capture.rules._residual import RESIDUALS
from attnflow.capture.rules._rule import RuleFunction, checked_edges
from attnflow.errors import InvalidArgument
from attnflow.mixing import Recipe
from attnflow.tokens import Tokens

Real = torch.Tensor  # positions that are no padding


class ByRule:
    """One layer's heads are held at a time, until the layer is done and the rule has read them.

    `rule` None keeps no matrix; `residual` names what is measured beside it.
    """

    def __init__(self, rule: RuleFunction | None, name: str, heads: Any, residual: str | None) -> None:
        self.rule, self.name, self.heads, self.residual = rule, name, heads, residual
        self.seen: list[Seen] = []
        self._pending: list[tuple[Call, torch.Tensor, Seen]] = []
        self._again: Callable[[Call], torch.Tensor | None] | None = None
        self._model: torch.nn.Module
        self._batch: Batch | None
        self._crossing: Sequence[str]
        self._watch: Watch
        self._bar: Any = None

    @property
    def what(self) -> str:
        """What this reader is for, as an error would say it."""
        return f'edges="{self.name}"' + (f' with residual="{self.residual}"' if self.residual else "")

    @contextmanager
    def reading(self, model: torch.nn.Module, batch: Batch | None, crossing: Sequence[str] = ()) -> Iterator[None]:
        """While the block lasts, the model's layers are watched.

        Without a batch (modules from outside transformers) nothing is padding, and `crossing` are parts of the names of the
        modules that attend from one sequence to another.
        """
        from tqdm.auto import tqdm

        self._model, self._batch, self._watch, self._crossing = model, batch, Watch(model), crossing
        # Only rules that take long say so, and only a terminal or a notebook shows it.
        self._bar = tqdm(desc=self.name, unit="run", delay=2, leave=False, disable=None)
        try:
            with self._watch.watching(self._layer_done):
                yield
        finally:
            self._bar.close()
            self._pending.clear()

    def __call__(self, call: Call) -> torch.Tensor:
        """Answer one attention call; what the rule makes of it waits for the end of the layer."""
        if self._again is not None:
            answer = self._again(call)
            return attend(call) if answer is None else answer
        output, weights = weigh(call)
        weights = weights[..., : call.key.shape[2]]
        # The shape is known now, the matrix later.
        seen = Seen(call.path, torch.empty(len(weights), *weights.shape[2:]))
        self.seen.append(seen)
        self._pending.append((call, weights, seen))
        if not isinstance(self._watch.sublayers.get(call.module), Sublayer):
            self._finish(self._pending.pop(), around=None)
        return output

    def _layer_done(self, layer: torch.nn.Module) -> None:
        pending, self._pending = self._pending, []
        for one in pending:
            around = self._sublayer(one[0])
            if around.layer is layer:
                self._finish(one, around)
            else:
                self._pending.append(one)

    def _sublayer(self, call: Call) -> Sublayer:
        found = self._watch.sublayers[call.module]
        assert isinstance(found, Sublayer)
        return found

    def _finish(self, waiting: tuple[Call, torch.Tensor, Seen], around: Sublayer | None) -> None:
        call, weights, seen = waiting
        seen.side, seen.cross = place_of(self._model, call.path, seen.queries != seen.keys)
        if self._batch is None:
            seen.cross = any(part in call.path for part in self._crossing)
        made = torch.zeros(seen.weights.shape, dtype=torch.float64)
        own, alpha = (torch.zeros(seen.weights.shape[:2], dtype=torch.float64) for _ in range(2))
        keeps = False
        for item in range(len(weights)):
            rows, columns = self._real(seen, item)
            record = self._record(call, weights, item, rows, columns, around, seen)
            if self.rule is not None:
                found = checked_edges(self.rule(record), record, self.name)
                made[item, rows[:, None], columns] = found.matrix
                if found.own is not None:
                    own[item, rows], keeps = found.own, True
            if self.residual is not None:
                alpha[item, rows] = RESIDUALS[self.residual](record).double().cpu()
        seen.weights = made.to(torch.float64 if weights.dtype == torch.float64 else torch.float32)
        seen.own = own if keeps else None
        seen.alpha = alpha if self.residual is not None else None

    def _record(
        self,
        call: Call,
        weights: torch.Tensor,
        item: int,
        rows: Real,
        columns: Real,
        around: Sublayer | None,
        seen: Seen,
    ) -> LayerRecord:
        query, key, value = (wide(one[item : item + 1]) for one in (call.query, call.key, call.value))
        number = next(i for i, one in enumerate(self.seen) if one is seen)
        known: Surroundings | str
        if around is None:
            found = self._watch.sublayers.get(call.module)
            known = found if isinstance(found, str) else why_unknown(self._model, call.path)
        else:
            known = self._surroundings(around, call, item, rows)
        return LayerRecord(
            call.path, number, seen.cross, query[0][:, rows], repeated(key, call.query)[0][:, columns],
            repeated(value, call.query)[0][:, columns], weights[item][:, rows[:, None], columns],
            self._factors(number, weights.shape[1]), known, self._bar.update,
        )  # fmt: skip

    def _factors(self, number: int, count: int) -> torch.Tensor:
        """How much of each head counts: weights divided by the largest, so that equal ones are the layer as it is."""
        layers = np.shape(self.heads)[0] if not isinstance(self.heads, str) and np.ndim(self.heads) == 2 else number + 1
        if isinstance(self.heads, str) or callable(self.heads):
            return torch.ones(count)
        shares = Recipe(Tokens.of(None, 1), layers, count, heads=self.heads).shares
        assert shares is not None
        return torch.from_numpy(shares[number] / shares[number].max())

    def _surroundings(self, around: Sublayer, call: Call, item: int, rows: Real) -> Surroundings:
        watch, size = self._watch, len(call.query)

        def of(tensor: torch.Tensor) -> torch.Tensor:
            return wide(tensor.reshape(size, -1, tensor.shape[-1])[item, rows])

        projected = of(watch.gave[around.projection])
        written = projected if around.branch is None else of(watch.gave[around.branch])
        summed = None if around.after is None else of(watch.came[around.after])
        if summed is not None:
            carried = summed - written
        else:
            carried = of(watch.came[around.before or around.layer])
        ended = None if around.end is None else of(watch.came[around.end])
        again = partial(self._run_again, around, call, item, rows, *watch.called[around.layer])
        return Surroundings(around, carried, projected, written, summed, ended, of(watch.gave[around.layer]), again)

    def _run_again(
        self, around: Sublayer, call: Call, item: int, rows: Real, arguments: Any, keywords: Any, heads: torch.Tensor
    ) -> torch.Tensor:
        """The layer's output for other results of this attention (many, queries, heads, width), all else as it was."""
        from transformers import Cache

        many, size = len(heads), len(call.query)
        full = call.value.new_zeros(many, call.query.shape[2], *heads.shape[2:])
        full[:, rows] = heads.to(full)

        def answer(other: Call) -> torch.Tensor | None:
            return full if other.module is call.module else None

        def repeat(value: Any) -> Any:
            if isinstance(value, Cache):  # which holds this layer's keys and values already
                return None
            if isinstance(value, tuple | list):
                return type(value)(repeat(one) for one in value)
            if not isinstance(value, torch.Tensor) or value.ndim < 2 or value.shape[0] not in (1, size):
                return value
            one = value[item : item + 1] if value.shape[0] == size else value
            return one.expand(many, *one.shape[1:])

        if check := current():  # the layer runs without the hooks that would ask
            check()
        self._again = answer
        try:
            with self._watch.silent():
                result = around.layer.forward(
                    *repeat(arguments), **{name: repeat(one) for name, one in keywords.items()}
                )
        finally:
            self._again = None
        return first_of(result)[:, rows]

    def _real(self, seen: Seen, item: int) -> tuple[Real, Real]:
        """The positions of queries and keys that are no padding."""

        def of(side: str, count: int) -> Real:
            if self._batch is None:
                return torch.arange(count)
            block = self._batch.target if side == "decoder" and self._batch.target is not None else self._batch.source
            real = block.real(item, count)
            # Where the model counts positions in its own way, `place` says so later.
            return torch.from_numpy(np.flatnonzero(real) if len(real) == count else np.arange(count))

        return of(seen.side, seen.queries), of("encoder" if seen.cross else seen.side, seen.keys)


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """Half precision as float32: differences of what a model computed are taken, and should not be rounded once more."""
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()


def check_heads(heads: Any, name: str) -> None:
    """Rules over vectors add heads up; there is no largest or smallest of them."""
    if callable(heads) or (isinstance(heads, str) and heads != "mean"):
        raise InvalidArgument(
            f'edges="{name}" adds up what the heads write, so heads={heads!r} cannot apply. Give "mean" (all of them), a head\'s number or weights.'
        )
