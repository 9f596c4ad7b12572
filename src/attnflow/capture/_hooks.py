"""Hooks on the layers of known families: what their modules read and gave in the run that is under way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from attnflow.capture.rules._families import Sublayer, sublayers_of

Done = Callable[[torch.nn.Module], None]


class Watch:
    """Remembers, for each module that a family's line names, its last input and output, until its layer is done."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.sublayers = sublayers_of(model)
        self.came: dict[torch.nn.Module, torch.Tensor] = {}
        self.gave: dict[torch.nn.Module, torch.Tensor] = {}
        self.called: dict[torch.nn.Module, tuple[tuple[Any, ...], Mapping[str, Any]]] = {}
        self.paused = False

    @contextmanager
    def watching(self, done: Done) -> Iterator[None]:
        """While the block lasts; `done` is told of each layer that has run."""
        known = [one for one in self.sublayers.values() if isinstance(one, Sublayer)]
        layers = {one.layer for one in known}
        with ExitStack() as hooks:
            for module in {module for one in known for module in one.watched} - layers:
                hooks.callback(module.register_forward_hook(self._note).remove)
            for layer in layers:
                hooks.callback(layer.register_forward_pre_hook(self._starts, with_kwargs=True).remove)
                hooks.callback(layer.register_forward_hook(self._ends(done)).remove)
            yield

    @contextmanager
    def silent(self) -> Iterator[None]:
        """While a layer is run once more, nothing is noted."""
        self.paused = True
        try:
            yield
        finally:
            self.paused = False

    def _note(self, module: torch.nn.Module, arguments: tuple[Any, ...], result: Any) -> None:
        if not self.paused and arguments and isinstance(result, torch.Tensor):
            self.came[module], self.gave[module] = arguments[0], result

    def _starts(self, layer: torch.nn.Module, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
        if not self.paused:
            self.called[layer] = arguments, keywords
            given = (*arguments, *keywords.values())
            self.came[layer] = next(one for one in given if isinstance(one, torch.Tensor))

    def _ends(self, done: Done) -> Callable[[torch.nn.Module, Any, Any], None]:
        def ends(layer: torch.nn.Module, arguments: Any, result: Any) -> None:
            if self.paused:
                return
            self.gave[layer] = first_of(result)
            done(layer)
            for module in (layer, *layer.modules()):
                self.came.pop(module, None)
                self.gave.pop(module, None)
            self.called.pop(layer, None)

        return ends


def first_of(result: Any) -> torch.Tensor:
    """The hidden states in what a layer returns."""
    found: torch.Tensor = result[0] if isinstance(result, tuple | list) else result
    return found
