"""On the wire: bytes that no well-behaved client sends, many clients at once, clients that leave, models that raise."""

from __future__ import annotations

import contextlib
import copy
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest
import torch

import attnflow as af
from attnflow import web
from attnflow.web import _protocol
from tests.web.conftest import TEXT, Serving, until
from tests.web.test_api import asked, decode, own_graph


def talk(client: httpx.Client, *pieces: bytes, pause: float = 0.0) -> bytes:
    """Send bytes as they are; everything that comes back until the server closes or falls silent."""
    with socket.create_connection(("127.0.0.1", client.base_url.port or 0), timeout=5) as wire:
        with contextlib.suppress(ConnectionError):  # it need not hear all of it
            for piece in pieces:
                wire.sendall(piece)
                time.sleep(pause)
        return heard(wire)


def heard(wire: socket.socket) -> bytes:
    found = b""
    try:
        while chunk := wire.recv(65_536):
            found += chunk
    except (TimeoutError, ConnectionError):
        pass
    return found


def post(body: bytes, length: int | None = None, close: bool = True) -> bytes:
    """A request for /api/explain."""
    ending = b"Connection: close\r\n" if close else b""
    return (
        b"POST /api/explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + ending
        + b"Content-Length: %d\r\n\r\n" % (len(body) if length is None else length) + body
    )  # fmt: skip


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../web/_app.py", "/assets/..%2f..%2f..%2fetc/passwd", "/assets/%2e%2e/%2e%2e/errors.py", "/..", "//etc/passwd",
        "/assets//etc/passwd", "/assets/viewer.js/../../__init__.py", "/assets/", "/assets/..\\..\\errors.py", "/assets/verb_number/config.json",
        "/assets/%00viewer.js", "/%c0%ae%c0%ae/etc/passwd", "/.env", "/static/../../", "file:///etc/passwd", "/assets/viewer.js%00.css",
    ],
)  # fmt: skip
def test_no_path_leads_to_the_disk(client: httpx.Client, path: str) -> None:
    found = talk(client, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    status = found.split(b" ", 2)[1]
    assert status in (b"404", b"400"), found[:300]
    for secret in (b"root:", b"import annotations", b"architectures"):
        assert secret not in found


def test_a_slow_body_is_given_up(client: httpx.Client) -> None:
    start = time.monotonic()
    found = talk(client, post(b'{"text"', length=500))  # the server of these tests gives a body one second
    assert b"408" in found.splitlines()[0]
    assert b"too_slow" in found
    assert time.monotonic() - start < 5
    dripping = talk(client, post(b"{", length=500), *[b" "] * 15, pause=0.1)
    assert b"408" in dripping.splitlines()[0]


def test_a_half_sent_body_and_a_client_that_leaves_hurt_nobody(client: httpx.Client) -> None:
    for body in (b"", b'{"text": "The'):
        with socket.create_connection(("127.0.0.1", client.base_url.port or 0)) as wire:
            wire.sendall(post(body, length=500))
    assert asked(client)["tokens"] == 7


def test_a_promise_of_too_much_is_refused_before_it_comes(client: httpx.Client) -> None:
    found = talk(client, post(b"{", length=9_000_000_000))
    assert b"413" in found.splitlines()[0]


def test_what_is_left_of_a_refused_body_is_no_second_request(client: httpx.Client) -> None:
    smuggled = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    found = talk(client, post(smuggled + b" " * 8_000_001, close=False)[:200_000])
    assert found.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000,
        b"POST /api/explain HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /api/explain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=range(8),
)  # fmt: skip
def test_nonsense_is_refused_or_dropped(client: httpx.Client, nonsense: bytes) -> None:
    try:
        found = talk(client, nonsense + b"\r\n")
    except ConnectionError:
        found = b""
    assert not found or found.split(b" ", 2)[1][:1] == b"4", found[:200]
    assert client.get("/health").status_code == 200


def test_who_connects_and_says_nothing_is_shown_out(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_protocol, "PATIENCE", 0.3)
    with serving() as client:
        for opening in (b"", b"GET / HTTP/1.1\r\nHost: loc"):
            with socket.create_connection(("127.0.0.1", client.base_url.port or 0), timeout=10) as wire:
                wire.sendall(opening)
                assert wire.recv(100) == b""
        assert client.get("/health").status_code == 200


def test_fifty_clients_at_once_get_right_answers(client: httpx.Client, model: web.Served) -> None:
    subjects = ["key", "author", "farmer", "keys", "authors"]
    texts = [
        f"The {subject} near the {other} {'old ' * i}cabinet"
        for subject in subjects
        for other in ("cabinet", "clerks")
        for i in range(5)
    ]
    assert len(set(texts)) == 50
    options = [{"methods": ["raw", "rollout"], "residual": 0.1 * (i % 9)} for i in range(50)]
    ready = threading.Barrier(50)

    def one(i: int) -> Any:
        with httpx.Client(base_url=client.base_url, timeout=120) as own:
            ready.wait()
            return asked(own, text=texts[i], **options[i])

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(one, range(50)))
    for text, option, answer in zip(texts, options, answers, strict=True):
        graph = own_graph(model, text, residual=option["residual"])
        [shown] = answer["document"]["texts"]
        assert len(shown["labels"]) == len(graph.tokens)
        for view, method in zip(shown["views"], (af.raw, af.rollout), strict=True):
            found = decode(view["cube"], len(graph.tokens), shown["special"])
            np.testing.assert_allclose(found, method(graph).scores, atol=2e-4)


def test_when_too_many_wait_the_next_is_told_so(serving: Serving, slow: web.Served) -> None:
    with serving({"slow": slow}, limits=web.Limits(runs=1, waiting=1)) as client:

        def one(i: int) -> int:
            with httpx.Client(base_url=client.base_url, timeout=60) as own:
                answer = own.post("/api/explain", json={"text": f"The key {i}", "methods": ["raw"]})
                assert answer.status_code == 200 or (answer.json()["error"] == "busy" and answer.headers["retry-after"])
                return answer.status_code

        with ThreadPoolExecutor(6) as pool:
            statuses = sorted(pool.map(one, range(6)))
        assert statuses[0] == 200
        assert statuses[-1] == 429
        assert asked(client)["tokens"] == 7


@pytest.fixture
def slow(model: web.Served) -> web.Served:
    """The same model, which takes half a second in every layer once it is asked in earnest; a copy, since hooks stay."""
    own = copy.deepcopy(model.model)
    warm = threading.Event()

    def tarry(layer: Any, *_: Any) -> None:
        time.sleep(0.5 if warm.is_set() else 0)

    layers = next(part for part in own.modules() if isinstance(part, torch.nn.ModuleList))
    for layer in layers:
        layer.register_forward_hook(tarry)
    layers[-1].register_forward_hook(lambda *_: warm.set())
    return web.Served("slow", own, model.tokenizer)


def test_a_run_that_takes_too_long_is_stopped_and_the_next_is_answered(
    serving: Serving, slow: web.Served, model: web.Served
) -> None:
    models = {"slow": slow, "fast": web.Served("fast", model.model, model.tokenizer)}
    with serving(models, limits=web.Limits(seconds=1.0, runs=1)) as client:
        start = time.monotonic()
        answer = client.post("/api/explain", json={"text": TEXT, "model": "slow"})
        assert (answer.status_code, answer.json()["error"]) == (422, "too_long")
        assert time.monotonic() - start < 20
        until(lambda: client.get("/health").json()["running"] == 0)
        assert asked(client, model="fast")["tokens"] == 7


def test_a_flow_ends_when_its_client_leaves(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    question = {"text": "the old " * 60, "methods": ["flow"], "rows": "all"}
    caplog.set_level("INFO", "attnflow.web")
    with client.stream("POST", "/api/explain", json=question, headers={"Accept": "text/event-stream"}) as answer:
        lines = (line for line in answer.iter_lines() if "flow at" in line)
        told = json.loads(next(lines).removeprefix("data: "))
    assert told["done"] < told["total"] == 121**2
    until(lambda: client.get("/health").json()["running"] == 0, 15)
    until(lambda: any(getattr(record, "fields", {}).get("outcome") == "the client left" for record in caplog.records))


def test_a_plain_question_ends_when_its_client_leaves(serving: Serving, slow: web.Served) -> None:
    with serving({"slow": slow}, limits=web.Limits(runs=1)) as client:
        with socket.create_connection(("127.0.0.1", client.base_url.port or 0)) as wire:
            wire.sendall(post(json.dumps({"text": TEXT}).encode()))
            until(lambda: client.get("/health").json()["running"] == 1)
        until(lambda: client.get("/health").json()["running"] == 0, 25)


class Broken(torch.nn.Module):
    """A layer's part that raises, with a text in its message."""

    def forward(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("secret words of a user")


def test_it_survives_a_model_that_raises(serving: Serving, model: web.Served, caplog: pytest.LogCaptureFixture) -> None:
    own = copy.deepcopy(model.model)
    layers = next(part for part in own.modules() if isinstance(part, torch.nn.ModuleList))
    layers[2].intermediate = Broken()
    models = {
        "broken": web.Served("broken", own, model.tokenizer),
        "whole": web.Served("whole", model.model, model.tokenizer),
    }
    with caplog.at_level("INFO", "attnflow.web"), serving(models) as client:
        for _ in range(3):
            answer = client.post("/api/explain", json={"text": TEXT, "model": "broken"})
            assert (answer.status_code, answer.json()["error"]) == (500, "failed")
            assert "secret" not in answer.text
        stream = client.post(
            "/api/explain", json={"text": TEXT, "model": "broken"}, headers={"Accept": "text/event-stream"}
        )
        assert "event: error" in stream.text
        assert "secret" not in stream.text
        assert asked(client, model="whole")["tokens"] == 7
    every = [getattr(record, "fields", {}) for record in caplog.records]
    said = [fields for fields in every if fields.get("error") == "failed"]
    assert len(said) == 4
    assert said[0]["exception"]["type"] == "RuntimeError"
    assert any("forward" in place for place in said[0]["exception"]["at"])
    assert "secret" not in str(said)
