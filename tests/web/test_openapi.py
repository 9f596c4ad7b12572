"""The server keeps what its OpenAPI document promises, under everything that schemathesis makes of it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

from attnflow.web import _schema
from attnflow.web._refused import Refused
from tests.web.conftest import TEXT


@pytest.fixture(scope="session")
def described(client: httpx.Client) -> Any:
    """The document, as schemathesis reads it from the server."""
    # A well-formed question may still ask for a token that the text does not have.
    statuses = {"positive_data_acceptance": {"expected-statuses": ["2xx", "422"]}}
    config = schemathesis.Config.from_dict({"checks": statuses})
    return schemathesis.openapi.from_url(f"{client.base_url}/openapi.json", config=config)


OPERATIONS = (("/api/explain", "POST"), ("/api/bottleneck", "POST"), ("/api/choices", "GET"), ("/health", "GET"))
GOOD, BAD = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE
CASES = [(path, verb, GOOD) for path, verb in OPERATIONS] + [
    (path, verb, BAD) for path, verb in OPERATIONS if verb == "POST"
]


@pytest.mark.parametrize(("path", "verb", "mode"), CASES, ids=lambda one: getattr(one, "value", one))
def test_it_keeps_its_promises(described: Any, path: str, verb: str, mode: Any) -> None:
    @given(case=described[path][verb].as_strategy(generation_mode=mode))
    @settings(max_examples=40 if verb == "POST" else 3, deadline=None, suppress_health_check=list(HealthCheck))
    def promise(case: Any) -> None:
        case.call_and_validate()

    promise()


def test_these_are_all_operations(described: Any) -> None:
    found = {(path, verb.upper()) for path, verbs in described.raw_schema["paths"].items() for verb in verbs}
    assert found == set(OPERATIONS)


def test_the_document_is_one(client: httpx.Client) -> None:
    import jsonschema_rs

    found = client.get("/openapi.json").json()
    assert found["openapi"].startswith("3.1")
    for name, schema in found["components"]["schemas"].items():
        jsonschema_rs.validator_for({**schema, "$schema": "https://json-schema.org/draft/2020-12/schema"})
        assert schema["properties"], name


def test_the_examples_are_answered(client: httpx.Client) -> None:
    for path, verbs in client.get("/openapi.json").json()["paths"].items():
        for verb, operation in verbs.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
            assert client.request(verb, path, json=body).status_code == 200, path


def test_the_check_of_a_body_is_json_schema(client: httpx.Client) -> None:
    """Our few lines against an independent validator."""
    import jsonschema_rs

    schema = client.get("/openapi.json").json()["components"]["schemas"]["Question"]
    theirs = jsonschema_rs.validator_for(schema)
    values: list[Any] = [
        None,
        True,
        0,
        1,
        -1,
        2.0,
        0.5,
        1.5,
        "",
        " ",
        "a",
        "mean",
        "rollout",
        [],
        ["flow"],
        ["flow", "flow"],
        ["x"],
        {},
    ]
    for name in schema["properties"]:
        for value in values:
            question: Any = {"text": TEXT, name: value}
            assert passes(question, schema) == theirs.is_valid(question), question
    others: list[Any] = [None, [], "a", {}, {"model": "verb_number"}, {"text": "a", "other": 1}]
    for question in others:
        assert passes(question, schema) == theirs.is_valid(question), question


def passes(value: Any, schema: Any) -> bool:
    try:
        _schema.check(value, schema)
    except Refused:
        return False
    return True
