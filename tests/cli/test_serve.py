"""attnflow serve as a process: where it listens, what it refuses, how it stops."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.cli.command import ATTNFLOW, bad, environment

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals are sent the POSIX way")


@contextmanager
def served(*arguments: str | Path, **variables: str) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """The server as a shell starts it, and a client that knows the address it printed."""
    command = [str(part) for part in (ATTNFLOW, "serve", "--port", "0", *arguments)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(**variables)
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://"), process.communicate()
        with httpx.Client(base_url=address, timeout=60) as client:
            yield process, client
    finally:
        process.kill()
        process.communicate()


def test_it_serves_the_models_that_were_named_and_stops_in_order(model: Path) -> None:
    given = ("--max-tokens", "20", "--max-seconds", "7", "--max-body", "300")
    with served("-M", f"mine={model}", *given) as (process, client):
        limits = client.get("/api/choices").json()["limits"]
        assert (limits["tokens"], limits["seconds"], limits["body"]) == (20, 7.0, 300)
        [found] = client.get("/api/choices").json()["models"]
        assert (found["name"], found["layers"]) == ("mine", 4)
        answer = client.post("/api/explain", json={"text": "the key to the cabinets", "methods": ["raw", "flow"]})
        assert answer.status_code == 200
        assert str(model.parent) not in answer.text
        for name in (str(model), "bert-base-uncased", "../tiny", "tiny"):
            assert client.post("/api/explain", json={"text": "the key", "model": name}).status_code == 400
        process.send_signal(signal.SIGTERM)
        out, log = process.communicate(timeout=30)
        assert (process.returncode, out) == (0, ""), log
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert [line["event"] for line in lines if line["event"] != "request"] == ["listening", "stopping", "stopped"]
    assert "key" not in log.replace(str(model), "")


def test_a_run_under_way_may_finish(model: Path) -> None:
    question = {"text": "the old " * 19, "methods": ["flow"], "rows": "all"}
    with served("-M", model) as (process, client):
        with client.stream("POST", "/api/explain", json=question, headers={"Accept": "text/event-stream"}) as answer:
            lines = answer.iter_lines()
            next(lines)
            process.send_signal(signal.SIGINT)
            assert any(line == "event: answer" for line in lines)
        assert process.wait(30) == 0


def test_another_host_with_a_token(model: Path) -> None:
    assert "needs a token" in bad(1, "serve", "--host", "0.0.0.0")
    assert "at least 16" in bad(1, "serve", "--host", "0.0.0.0", "--token", "short")
    with served("-M", model, "--host", "0.0.0.0", ATTNFLOW_TOKEN="a token that is long enough") as (_, client):
        local = f"http://127.0.0.1:{client.base_url.port}"
        assert httpx.get(f"{local}/api/choices").status_code == 401
        headers = {"Authorization": "Bearer a token that is long enough"}
        assert httpx.get(f"{local}/api/choices", headers=headers).status_code == 200


def test_what_cannot_be_served_is_said_in_a_line(model: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "cannot listen on 127.0.0.1" in bad(1, "serve", "--port", str(taken.getsockname()[1]))
    assert "there is no folder" in bad(1, "serve", "-M", str(tmp_path / "nothing"))
    assert "two models are called 'a'" in bad(1, "serve", "-M", f"a={model}", "-M", f"a={model}")
    assert "cannot listen" in bad(1, "serve", "--host", "no.such.host.invalid", "--token", "x" * 20)
