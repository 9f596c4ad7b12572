"""The log: JSON lines that say everything but the texts."""

from __future__ import annotations

import json
import logging

import httpx
import pytest

from attnflow.web._log import JsonLines

SECRET = "unmistakable"


def test_no_text_is_ever_logged(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "attnflow.web"):
        client.post("/api/explain", json={"text": f"The {SECRET} key", "query": SECRET})
        client.post(
            "/api/explain",
            json={"text": f"The {SECRET} key", "methods": ["raw"]},
            headers={"Accept": "text/event-stream"},
        )
        client.post("/api/bottleneck", json={"text": SECRET, "query": SECRET, "input": 0})
        client.post("/api/explain", json={"text": SECRET, SECRET: 1})
        client.post("/api/explain", content=SECRET.encode(), headers={"Content-Type": SECRET})
        client.get(f"/{SECRET}?text={SECRET}")
        client.get("/", headers={"Host": SECRET})
    ours = [record for record in caplog.records if record.name == "attnflow.web"]
    lines = [JsonLines().format(record) for record in ours]
    assert len(lines) == 7
    for line in lines:
        assert SECRET not in line
        said = json.loads(line)
        assert {"time", "level", "event", "id", "method", "path", "status", "ms"} <= set(said)
    first = json.loads(lines[0])
    assert (first["path"], first["status"], first["error"], first["letters"]) == (
        "/api/explain",
        422,
        "cannot_answer",
        20,
    )
    assert (first["model"], first["methods"]) == ("verb_number", ["rollout"])
    assert json.loads(lines[5])["path"] == "(other)"


def test_the_id_is_in_the_answer_and_in_the_log(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "attnflow.web"):
        answer = client.get("/health")
    assert [record.fields["id"] for record in caplog.records if hasattr(record, "fields")] == [
        answer.headers["x-request-id"]
    ]


def test_an_exception_is_logged_by_type_and_place() -> None:
    try:
        raise ValueError(SECRET)
    except ValueError as error:
        record = logging.LogRecord(
            "uvicorn.error", logging.ERROR, __file__, 1, "it failed", (), (ValueError, error, error.__traceback__)
        )
    line = JsonLines().format(record)
    assert SECRET not in line
    assert json.loads(line)["exception"]["type"] == "ValueError"
    assert "test_log.py" in json.loads(line)["exception"]["at"][0]
