"""What the server costs beside the model: requests per second and latency, for 8 and 64 clients on the bundled model.

The server is a process of its own; the clients are threads of this one, on connections that are kept open, over loopback.
Every request asks about another sentence, so that no graph is found in memory. Three rivals stand behind the same HTTP,
guard, log and queue: GET /health (no work at all), the model's forward pass alone, and /api/explain.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from benchmarks._measure import Table, machine

CLIENTS = (8, 64)
SECONDS = 5.0
WARM = 0.5  # share of the time before anything is counted

RIVALS: dict[str, dict[str, object] | None] = {
    "GET /health": None,
    "the model's forward pass": {"path": "/forward"},
    "rollout, every query and level": {"methods": ["rollout"]},
    "rollout and flow": {"methods": ["rollout", "flow"]},
    "bottleneck of one pair": {"path": "/api/bottleneck", "query": 0, "input": 1},
}

SUBJECTS = ("key", "author", "farmer", "teacher", "picture", "senator", "guard", "book", "boy", "clerk")
PLACES = ("cabinet", "house", "garden", "school", "office", "village", "museum", "bridge", "station", "theatre")


def sentences() -> Iterator[str]:
    """Sentences of 11 to 14 tokens, no two alike."""
    for number in itertools.count():
        first, second, third = (SUBJECTS[number // 10**i % 10] for i in range(3))
        place = PLACES[number // 1000 % 10]
        yield f"The {first} near the {second} of the {third} {place} {number}"


def serve() -> None:
    """The server, with one more endpoint behind the same walls: the forward pass and nothing else."""
    import torch
    import uvicorn
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    from attnflow import web
    from attnflow.web._body import read_json
    from attnflow.web._events import while_connected
    from attnflow.web._log import to_stderr
    from attnflow.web._models import bundled
    from attnflow.web._serve import configured
    from attnflow.web._watch import Watch

    limits, served = web.Limits(waiting=200), bundled()
    app = web.app({served.name: served}, limits=limits)
    turn = threading.Lock()  # as captures of one model take turns

    def run(text: str) -> list[float]:
        arguments = served.tokenizer(text, return_tensors="pt", verbose=False)
        with turn, torch.no_grad():
            found: list[float] = served.model(**arguments).logits[0].tolist()
        return found

    async def forward(request: Request) -> JSONResponse:
        asked = await read_json(request, limits)
        work = app.state.runs.run(lambda _: run(asked["text"]), Watch(limits.seconds))
        return JSONResponse(await while_connected(request.receive, work))

    app.router.routes.append(Route("/forward", forward, methods=["POST"]))
    to_stderr()
    config = configured(app, limits)
    config.port = 0
    server = uvicorn.Server(config)

    def say() -> None:
        while not server.started:
            time.sleep(0.05)
        print(server.servers[0].sockets[0].getsockname()[1], flush=True)

    threading.Thread(target=say).start()
    server.run()


@contextmanager
def serving() -> Iterator[int]:
    """The port of a server."""
    command = [sys.executable, "-m", "benchmarks.server", "--serve"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait()


def client(
    port: int, body: dict[str, object] | None, texts: Iterator[str], until: float, count_from: float
) -> list[float]:
    """Ask, wait, ask again: the seconds that each answer took."""
    wire = http.client.HTTPConnection("127.0.0.1", port)
    path = "/health" if body is None else str(body.get("path", "/api/explain"))
    rest = {} if body is None else {name: value for name, value in body.items() if name != "path"}
    taken = []
    while (start := time.perf_counter()) < until:
        if body is None:
            wire.request("GET", path)
        else:
            wire.request("POST", path, json.dumps({"text": next(texts), **rest}), {"Content-Type": "application/json"})
        answer = wire.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        if start > count_from:
            taken.append(time.perf_counter() - start)
    wire.close()
    return taken


class Shared:
    """One iterator for many threads."""

    def __init__(self, items: Iterator[str]) -> None:
        self._items, self._lock = items, threading.Lock()

    def __iter__(self) -> Shared:
        return self

    def __next__(self) -> str:
        with self._lock:
            return next(self._items)


def load(port: int, clients: int, body: dict[str, object] | None, texts: Iterator[str]) -> tuple[float, float, float]:
    """Requests per second, and the median and 95th percentile of their milliseconds."""
    start = time.perf_counter()
    begin, end = start + WARM * SECONDS, start + (1 + WARM) * SECONDS
    with ThreadPoolExecutor(clients) as pool:
        found = [pool.submit(client, port, body, texts, end, begin) for _ in range(clients)]
        taken = np.concatenate([one.result() for one in found])
    half, most = 1000 * np.percentile(taken, [50, 95])
    return len(taken) / (time.perf_counter() - begin), float(half), float(most)


def main() -> None:
    print(machine())
    texts = Shared(sentences())
    table = Table("request", "clients", "requests / s", "p50, ms", "p95, ms", "÷ forward pass")
    with serving() as port:
        for clients in CLIENTS:
            found = {name: load(port, clients, body, texts) for name, body in RIVALS.items()}
            bare = found["the model's forward pass"][0]
            for name, (rate, half, most) in found.items():
                table.row(name, clients, rate, half, most, rate / bare)
    table.print("The server on the bundled model: 6 layers × 8 heads, 11 to 14 tokens")
    print(
        f"{os.cpu_count()} cores are shared by the server and its clients. ÷ forward pass: of its requests per second."
    )


if __name__ == "__main__":
    serve() if "--serve" in sys.argv else main()
