"""Every edge rule, residual rule and method on the command line, in one process: `attnflow explain … --edges alti --method flow …`."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnflow as af
from attnflow.capture import rules
from attnflow.cli._group import attnflow
from attnflow.cli._say import Voice
from tests.cli.command import bad, good

TEXT = "the key to the cabinets"
EDGES = ["attention", "gradient", "chefer", *rules.variants()]
RESIDUALS = ["own", "measured", "w_res", "0.3", "none"]


def asked(capsys: pytest.CaptureFixture[str], *arguments: Any) -> Any:
    """The JSON of an answer, without a process of its own."""
    attnflow.main(
        [str(one) for one in (*arguments, "--json", "--quiet")], "attnflow", standalone_mode=False, obj=Voice()
    )
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("method", ["raw", "rollout", "flow"])
@pytest.mark.parametrize("edges", EDGES)
def test_every_combination_is_that_of_the_library(
    model: Path, edges: str, method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for residual in RESIDUALS:
        arguments = (
            "explain",
            TEXT,
            "--model",
            model,
            "--edges",
            edges,
            "--residual",
            residual,
            "-m",
            method,
            "--level",
            "-1",
        )
        given = {"0.3": 0.3, "none": None}.get(residual, residual)
        if edges == "effective" and method == "flow":
            with pytest.raises(af.errors.InvalidAttention, match="signed"):
                asked(capsys, *arguments)
            continue
        [result] = asked(capsys, *arguments)["results"]
        expected = af.explain(TEXT, str(model), method, edges=edges, residual=given)
        np.testing.assert_allclose(result["scores"], expected.scores, atol=1e-9)
        assert result["options"]["edges"] == edges


def test_the_answer_says_which_edges_and_residual(model: Path) -> None:
    said = good("explain", TEXT, "--model", model, "--edges", "alti", "--method", "flow", "--residual", "measured")
    assert "flow: what “[CLS]” draws on" in said
    assert "alti edges" in said
    assert "residual measured" in said
    error = bad(1, "explain", TEXT, "--model", model, "--edges", "effective", "--method", "flow")
    assert "this graph is signed, and a negative number is no capacity" in error


def test_relevance_brings_its_mixing_and_takes_a_target(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [result] = asked(
        capsys, "explain", TEXT, "--model", model, "-m", "relevance", "--target", "plural", "--level", "-1"
    )["results"]
    expected = af.explain(TEXT, str(model), "relevance", target="plural")
    np.testing.assert_allclose(result["scores"], expected.scores, atol=1e-9)
    assert (result["options"]["edges"], result["options"]["residual"]) == ("chefer", None)
    with pytest.raises(af.errors.InvalidArgument, match="relevance adds the identity itself"):
        asked(capsys, "explain", TEXT, "--model", model, "-m", "relevance", "-m", "rollout")


def test_what_decoders_need(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options, expected in (
        (("--receptive-field",), {"receptive_field": True}),
        (("--distance-discount",), {"distance_discount": True}),
        (("--set-aside", "sinks"), {"set_aside": "sinks"}),
        (("--set-aside", "0,key"), {"set_aside": [0, "key"]}),
        (("--edges", "norm:both", "--no-renormalise"), {"edges": "norm:both", "renormalise": False}),
    ):
        [result] = asked(capsys, "explain", TEXT, "--model", model, "--level", "-1", *options)["results"]
        np.testing.assert_allclose(result["scores"], af.explain(TEXT, str(model), **expected).scores, rtol=1e-6)


def test_a_stack_in_a_file_is_mixed_for_relevance(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = af.capture.stack(str(model), TEXT, record=("attention", "gradients"), target="plural")
    stack.save(tmp_path / "heads.npz")
    [result] = asked(capsys, "attribute", tmp_path / "heads.npz", "-m", "relevance", "--level", "-1")["results"]
    np.testing.assert_allclose(result["scores"], af.attribute(stack, "relevance", levels=[-1]).scores, atol=1e-9)


def test_names_are_guessed() -> None:
    for (option, wrong), guess in zip(
        itertools.chain([("--edges", "alti:l3"), ("--edges", "vlaue_zeroing")], [("--residual", "mesured")]),
        ("alti:l", "value_zeroing", "measured"),
        strict=True,
    ):
        assert guess in bad(2, "explain", "x", option, wrong)
