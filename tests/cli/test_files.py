"""The way step by step: capture, attribute, render, bottleneck, each from the file of the one before."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import attnflow as af
from tests.cli.command import good, run

TEXT = "the key to the cabinets"


def test_from_a_text_to_a_graph_to_an_answer(model: Path, tmp_path: Path) -> None:
    said = json.loads(
        good("capture", TEXT, "--model", model, "-o", "graph.npz", "--json", "--top-k", "3", cwd=tmp_path)
    )
    assert said["kind"] == "graph"
    assert said["levels"] == [f"layer {i}" for i in range(4)]
    assert said["options"]["top_k"] == 3
    graph = af.AttentionGraph.load(tmp_path / "graph.npz")
    np.testing.assert_array_equal(graph.levels, af.capture.graph(str(model), TEXT, top_k=3).levels)
    assert "rollout: what “[CLS]”" in good("attribute", "graph.npz", cwd=tmp_path)


def test_every_head_is_mixed_later(model: Path, tmp_path: Path) -> None:
    done = run("capture", TEXT, "--model", model, "-o", "heads.npz", "--every-head", "--gradients", cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == b""
    assert "4 layers × 4 heads × 8 tokens" in done.stderr.decode()
    stack = af.AttentionStack.load(tmp_path / "heads.npz")
    options = {"heads": 1, "edges": "chefer", "residual": [0.1, 0.2, 0.3, 0.4]}
    answer = json.loads(
        good(
            "attribute",
            "heads.npz",
            "--heads",
            "1",
            "--edges",
            "chefer",
            "--residual",
            "0.1,0.2,0.3,0.4",
            "--json",
            cwd=tmp_path,
        )
    )
    np.testing.assert_allclose(answer["results"][0]["scores"], af.attribute(stack, "rollout", **options).scores)


def test_attribute_writes_everything_unless_told_otherwise(files: Path, tmp_path: Path) -> None:
    good("attribute", files / "graph.npz", "-m", "flow", "-o", "all.npz", "--threads", "1", cwd=tmp_path)
    expected = af.flow(af.AttentionGraph.load(files / "graph.npz"))
    np.testing.assert_array_equal(af.Attribution.load(tmp_path / "all.npz").scores, expected.scores)
    good(
        "attribute", files / "graph.npz", "-m", "flow", "-o", "some.npz", "--normalise",
        *("--query", "key", "--query", "-1", "--level", "-1"), cwd=tmp_path,
    )  # fmt: skip
    some = af.Attribution.load(tmp_path / "some.npz")
    assert (some.queries, some.levels) == ((2, 7), (2,))
    np.testing.assert_allclose(some.scores.sum(axis=-1), 1)


def test_attribute_to_a_page_of_words(files: Path, tmp_path: Path) -> None:
    good(
        "attribute",
        files / "graph.npz",
        "-m",
        "raw",
        "-m",
        "flow",
        "--words",
        "-o",
        "a.html",
        "-o",
        "a.svg",
        cwd=tmp_path,
    )
    assert ">cabinets<" in (tmp_path / "a.svg").read_text("utf-8")
    assert '"cabinets"' in (tmp_path / "a.html").read_text("utf-8")


def test_render_in_the_terminal(files: Path) -> None:
    shown = good("render", files / "rollout.npz", "--kind", "levels", "--query", "key", "--top", "3")
    assert "what “key” draws on, level by level" in shown
    assert "5 more inputs" in shown
    assert "cabinets" in good("render", files / "rollout.npz", "--words", "--special", "hidden", "--level", "0")


@pytest.mark.parametrize("kind", ["strip", "matrix", "graph", "bars"])
def test_render_every_kind_of_figure(files: Path, tmp_path: Path, kind: str) -> None:
    good("render", files / "rollout.npz", "-o", tmp_path / "a.svg", "--kind", kind, "--theme", "dark")
    assert "<svg" in (tmp_path / "a.svg").read_text("utf-8")


def test_render_a_page_with_the_paths_of_a_graph(files: Path, tmp_path: Path) -> None:
    page: list[str | Path] = [
        "render",
        files / "rollout.npz",
        files / "flow.npz",
        files / "graph.npz",
        "--title",
        "Two methods",
        "--difference",
    ]
    good(*page, "-o", tmp_path / "a.html")
    assert "<title>Two methods</title>" in (tmp_path / "a.html").read_text("utf-8")
    document = json.loads(good(*page, "--json"))
    [text] = document["texts"]
    assert [view["method"] for view in text["views"]] == ["rollout", "flow", "rollout − flow"]
    assert text["flows"], "the graph's paths are missing"


def test_bottleneck(files: Path, tmp_path: Path) -> None:
    shown = good("bottleneck", files / "graph.npz", "--input", "key")
    assert "flows from “key” up to “[CLS]”" in shown
    answer = json.loads(
        good("bottleneck", files / "graph.npz", "--input", "key", "--query", "-1", "--level", "1", "--json")
    )
    expected = af.bottleneck(af.AttentionGraph.load(files / "graph.npz"), -1, "key", level=1)
    assert answer == json.loads(json.dumps(expected.to_json()))
    good(
        "bottleneck",
        files / "stack.npz",
        "--input",
        "2",
        "--query",
        "0",
        "--heads",
        "max",
        "-o",
        "b.svg",
        "-o",
        "b.html",
        cwd=tmp_path,
    )
    assert "<svg" in (tmp_path / "b.svg").read_text("utf-8")
    assert "attnflow-data" in (tmp_path / "b.html").read_text("utf-8")


def test_methods_are_all_in_the_table() -> None:
    listed = json.loads(good("methods", "--json"))
    assert {row["name"] for row in listed["methods"]} == set(af.METHODS)
    assert {row["name"] for row in listed["edges"]} == {*af.mixing.EDGES, *af.capture.rules.RULES}
    assert {row["name"] for row in listed["residuals"]} == {"own", *af.capture.rules.RESIDUAL_NAMES}
    for row in [*listed["methods"], *listed["edges"], *listed["residuals"]]:
        assert row["gives"], row
        assert row["needs"], row
        assert row["use_when"], row
    table = good("methods", variables={"COLUMNS": "80"})
    assert all(name in table for name in af.METHODS)
    assert max(len(line) for line in table.splitlines()) <= 80
