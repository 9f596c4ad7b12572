"""Answers are those of the library; what cannot be answered says why."""

from __future__ import annotations

import json
from typing import Any

import httpx
import numpy as np
import pytest

import attnflow as af
from attnflow import render, web
from tests.web.conftest import TEXT, Serving, until


def asked(client: httpx.Client, **question: Any) -> dict[str, Any]:
    """The answer to a question that must have one."""
    answer = client.post("/api/explain", json={"text": TEXT, **question})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def own_graph(model: web.Served, text: str = TEXT, **options: Any) -> af.AttentionGraph:
    """The same graph without a server."""
    graph = af.capture.graph(model.model, text, model.tokenizer, **options)
    assert isinstance(graph, af.AttentionGraph)
    return graph


@pytest.mark.parametrize("method", list(af.METHODS))
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"edges": "chefer", "residual": 0.2},
        {"edges": "norm:both"},
        {"edges": "alti", "residual": "measured"},
        {"heads": 3, "residual": None, "top_k": 3},
    ],
)
def test_the_document_is_that_of_the_library(
    client: httpx.Client, model: web.Served, method: str, options: dict[str, Any]
) -> None:
    if method == "relevance" and options.get("residual"):
        refused = client.post("/api/explain", json={"text": TEXT, "methods": [method], **options})
        assert (refused.status_code, refused.json()["error"]) == (422, "cannot_answer")
        return
    answer = asked(client, methods=[method], **options)
    if method == "relevance":  # which adds its own residual
        options = {"edges": "chefer", "residual": None, "renormalise": False, **options}
    graph = own_graph(model, **options)
    query = graph.options["query"]
    found = af.attribute(
        af.AttentionGraph(graph.levels, graph.tokens, graph.names, options={**graph.options, "model": "verb_number"}),
        method,
    )
    wanted = json.loads(json.dumps(render.document(found, query=query, level=len(graph) - 1, title="verb_number")))
    assert answer["document"] == wanted
    assert (answer["query"], answer["levels"], answer["tokens"]) == (query, list(graph.names), len(graph.tokens))


def test_the_flow_of_a_pair_is_that_of_the_library(client: httpx.Client, model: web.Served) -> None:
    found = client.post("/api/bottleneck", json={"text": TEXT, "query": -1, "input": "key", "level": 3}).json()
    wanted = af.bottleneck(own_graph(model), -1, "key", level=3)
    assert found["value"] == pytest.approx(wanted.value, rel=1e-4)
    assert (found["query"], found["input"], len(found["levels"])) == (wanted.query, wanted.input, 4)
    assert sum(amount for amount, _ in found["paths"]) == pytest.approx(wanted.value, rel=1e-3)
    assert sum(edge[3] for edge in found["edges"] if edge[5]) == pytest.approx(wanted.value, rel=1e-3)


def test_a_query_may_be_a_token_and_numbers_may_be_written_as_floats(client: httpx.Client) -> None:
    answer = asked(client, query="key", level=2.0)
    assert (answer["query"], answer["document"]["level"]) == (2, 2)
    assert asked(client, query=2.0, heads=1.0)["query"] == 2


def test_two_methods_and_their_difference(client: httpx.Client) -> None:
    [text] = asked(client, methods=["rollout", "raw"], difference=True)["document"]["texts"]
    assert [view["method"] for view in text["views"]] == ["rollout", "raw", "rollout − raw"]


def test_a_dear_flow_has_the_row_of_the_query_unless_all_are_asked_for(serving: Serving) -> None:
    with serving(limits=web.Limits(pairs=10)) as client:
        answer = asked(client, methods=["rollout", "flow"], query="key")
        rollout, flow = answer["document"]["texts"][0]["views"]
        assert (rollout["queries"], flow["queries"]) == (None, [2])
        assert "flow" in answer["notes"][0]
        assert asked(client, methods=["flow"], rows="all")["document"]["texts"][0]["views"][0]["queries"] is None


def events(client: httpx.Client, **question: Any) -> list[tuple[str, Any]]:
    """Everything that a stream says."""
    with client.stream(
        "POST", "/api/explain", json={"text": TEXT, **question}, headers={"Accept": "text/event-stream"}
    ) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        blocks = answer.read().decode().split("\n\n")
    return [
        (block.splitlines()[0].removeprefix("event: "), json.loads(block.splitlines()[1].removeprefix("data: ")))
        for block in blocks
        if block.startswith("event")
    ]


def test_a_stream_tells_how_far_it_is_and_ends_with_the_same_answer(client: httpx.Client) -> None:
    heard = events(client, methods=["flow"], text="The keys to the old cabinets")
    names = [name for name, _ in heard]
    assert names[-1] == "answer"
    assert set(names[:-1]) == {"progress"}
    assert heard[0][1]["what"] == "capture"
    assert any("flow at" in said["what"] for _, said in heard[:-1])
    plain = asked(client, methods=["flow"], text="The keys to the old cabinets")
    assert heard[-1][1]["document"] == plain["document"]


def test_a_stream_that_fails_ends_with_an_error(client: httpx.Client) -> None:
    [*_, (name, said)] = events(client, query="dog")
    assert name == "error"
    assert (said["error"], said["status"]) == ("cannot_answer", 422)
    assert "no token is 'dog'" in said["message"]


@pytest.mark.parametrize(
    ("question", "status", "words"),
    [
        ({}, 400, "'text' is missing"),
        ({"text": " \n"}, 400, "not blank"),
        ({"text": 5}, 400, "text must be a text"),
        ({"text": TEXT, "methods": ["rolout"]}, 400, "Did you mean 'rollout'"),
        ({"text": TEXT, "methods": []}, 400, "methods"),
        ({"text": TEXT, "residual": 1.5}, 400, "residual must be a number from 0 to 1, or one of own, measured, w_res, or null"),
        ({"text": TEXT, "residul": 0.5}, 400, "Did you mean 'residual'"),
        ({"text": TEXT, "level": True}, 400, "level must be a whole number"),
        ({"text": TEXT, "model": "gpt2"}, 400, "model must be one of verb_number"),
        ({"text": "\ud800"}, 400, "text"),
        ({"text": TEXT, "level": 6}, 422, "there is no level 6"),
        ({"text": TEXT, "query": 70}, 422, "there is no position 70"),
        ({"text": TEXT, "heads": 8}, 422, "there is no head 8"),
        ({"text": TEXT, "query": "the"}, 422, "the"),
        ({"text": TEXT, "top_k": 99}, 422, "top_k"),
        ({"text": TEXT, "edges": "gradient", "target": "dual"}, 422, "dual"),
        ({"text": TEXT, "difference": True}, 422, "exactly two"),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_says_why(client: httpx.Client, question: Any, status: int, words: str) -> None:
    answer = client.post("/api/explain", content=json.dumps(question), headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    assert words in answer.json()["message"]


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b'{"text": NaN}', "application/json", 400),
        (b'{"text": "a", "residual": 1e999}', "application/json", 400),
        (b'{"text": "a", "level": 1e30}', "application/json", 422),
        ('{"text": "a"}'.encode("utf-16"), "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'{"text": "a", "level": ' + b"9" * 10_000 + b"}", "application/json", 400),
        (b'{"text": "a"}', "text/plain", 415),
        (b"text=a", "application/x-www-form-urlencoded", 415),
    ],
)
def test_foreign_bodies(client: httpx.Client, content: bytes, kind: str, status: int) -> None:
    answer = client.post("/api/explain", content=content, headers={"Content-Type": kind})
    assert (answer.status_code, set(answer.json())) == (status, {"error", "message"})


def test_limits_say_what_to_do(serving: Serving) -> None:
    with serving(limits=web.Limits(tokens=6, body=400)) as client:
        long = client.post("/api/explain", json={"text": "one two three four five six seven"})
        assert (long.status_code, long.json()["error"]) == (422, "too_many_tokens")
        assert "8 tokens" in long.json()["message"]
        large = client.post("/api/explain", json={"text": "a" * 500})
        assert (large.status_code, large.json()["error"]) == (413, "too_large")
        chunked = client.post(
            "/api/explain",
            content=iter([b'{"text": "', b"a" * 500, b'"}']),
            headers={"Content-Type": "application/json"},
        )
        assert chunked.status_code == 413
        assert asked(client, text="one two three")["tokens"] == 4


def test_no_answer_names_a_place_on_the_disk(client: httpx.Client, model: web.Served) -> None:
    folder = model.model.name_or_path
    assert "/" in folder
    for answer in (
        client.post("/api/explain", json={"text": TEXT, "methods": ["raw", "flow"]}),
        client.post("/api/bottleneck", json={"text": TEXT, "query": 0, "input": 1}),
        client.get("/api/choices"), client.get("/openapi.json"), client.get("/docs"), client.get("/health"),
    ):  # fmt: skip
        assert answer.status_code == 200
        assert folder not in answer.text
        assert "site-packages" not in answer.text


def test_choices_are_those_of_the_library(client: httpx.Client) -> None:
    found = client.get("/api/choices").json()
    assert found["methods"] == list(af.METHODS)
    assert [one["name"] for one in found["edges"]] == [*af.mixing.EDGES, *af.capture.rules.variants()]
    assert [(one["name"], one["layers"], one["heads"]) for one in found["models"]] == [("verb_number", 6, 8)]


def test_health(client: httpx.Client) -> None:
    found = client.get("/health").json()
    assert (found["status"], found["version"]) == ("ok", af.__version__)
    until(lambda: client.get("/health").json()["running"] == 0)


def test_the_scores_on_the_page_are_those_of_explain(client: httpx.Client, model: web.Served) -> None:
    wanted = af.explain(TEXT, model.model, "rollout", tokenizer=model.tokenizer, level=None, query=range(7))
    answer = asked(client)
    cube = answer["document"]["texts"][0]["views"][0]["cube"]
    decoded = decode(cube, 7, special=answer["document"]["texts"][0]["special"])
    np.testing.assert_allclose(decoded, wanted.scores, atol=1e-4)


def decode(cube: dict[str, Any], n: int, special: list[int]) -> np.ndarray[Any, Any]:
    """What the viewer makes of a document's values, written again from the format's description."""
    import base64
    import zlib

    found = np.zeros((len(cube["levels"]), n, n))
    for number, level in enumerate(cube["levels"]):
        raw = np.frombuffer(zlib.decompress(base64.b64decode(level["codes"]), -15), np.uint8)
        codes = (raw.reshape(cube["bytes"], -1).T.astype(np.int64) @ [1, 256][: cube["bytes"]]).reshape(n, n)
        if level["above"]:
            codes = np.cumsum(codes, axis=0) % 256 ** cube["bytes"]
        scale = np.frombuffer(base64.b64decode(level["scale"]), "<f4").astype(float)
        values = (codes - cube["offset"]) * scale[:, None] / cube["steps"]
        apart = np.isin(np.arange(n), special)[None] | np.eye(n, dtype=bool)
        values[apart] = np.frombuffer(base64.b64decode(level["apart"]), "<f4")
        found[number] = values
    return found


def test_each_method_stands_on_its_own_graph(client: httpx.Client, model: web.Served) -> None:
    """Relevance adds its own residual to gradient-weighted attention; beside it rollout stays what it is."""
    [text] = asked(client, methods=["rollout", "relevance"])["document"]["texts"]
    [alone] = asked(client, methods=["rollout"])["document"]["texts"]
    [other] = asked(client, methods=["relevance"])["document"]["texts"]
    assert text["views"] == [alone["views"][0], other["views"][0]]
    assert "chefer" in other["views"][0]["caption"]
