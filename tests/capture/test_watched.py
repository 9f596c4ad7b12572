"""A capture that is watched can be stopped between two layers and while it waits, and leaves no trace."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from attnflow import capture
from attnflow.capture import _session
from tests.capture.fingerprint import fingerprint
from tests.capture.zoo import build, keywords


class Enough(Exception):
    """Raised by the tests' checks."""


@pytest.mark.parametrize("name", ["BERT", "DeBERTa-v2", "BART"])
@pytest.mark.parametrize("edges", ["attention", "gradient"])
def test_it_is_asked_before_each_layer_and_may_stop(name: str, edges: str) -> None:
    model, arguments = build(name), keywords(name)
    whole = np.asarray(capture.graph(model, arguments, edges=edges)[0].levels)
    before = fingerprint(model)
    asked = 0

    def check() -> None:
        nonlocal asked
        asked += 1
        if asked == 2:
            raise Enough

    with pytest.raises(Enough), capture.watched(check):
        capture.graph(model, arguments, edges=edges)
    assert fingerprint(model) == before
    with capture.watched(lambda: None):
        again = capture.graph(model, arguments, edges=edges)[0].levels
    np.testing.assert_array_equal(again, whole)
    assert asked == 2  # and nobody asks it any more


def test_whoever_waits_for_the_model_can_leave() -> None:
    model, arguments = build("BERT"), keywords("BERT")
    gone = threading.Event()
    left: list[BaseException] = []

    def check() -> None:
        if gone.is_set():
            raise Enough

    def wait() -> None:
        try:
            with capture.watched(check):
                capture.graph(model, arguments)
        except Enough as error:
            left.append(error)

    with _session.borrowed(model):
        thread = threading.Thread(target=wait)
        thread.start()
        gone.set()
        thread.join(20)
        assert not thread.is_alive()
    assert len(left) == 1


def test_other_threads_are_not_watched() -> None:
    model, arguments = build("BERT"), keywords("BERT")
    found: list[object] = []

    def check() -> None:
        raise Enough

    with capture.watched(check):
        thread = threading.Thread(target=lambda: found.append(capture.graph(model, arguments)))
        thread.start()
        thread.join(60)
    assert len(found) == 1
