"""attnflow explain, from a text to every form of answer. Each process loads a model, so each shows several things."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np

import attnflow as af
from tests.cli.command import run

TEXT = "the key to the cabinets"


def test_several_methods_in_the_terminal_and_in_every_picture(model: Path, tmp_path: Path) -> None:
    names = [f"answer.{form}" for form in ("html", "png", "svg", "pdf", "csv", "json")]
    done = run(
        "explain", TEXT, "--model", model, *(part for name in names for part in ("-o", name)),
        *("-m", "raw", "-m", "rollout", "-m", "flow"), cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    shown, notes = done.stdout.decode(), done.stderr.decode()
    for method in ("raw", "rollout", "flow"):
        assert f"{method}: what “[CLS]” draws on, at layer 3" in shown
    assert "asked about position 0, the class token" in notes
    assert all(f"wrote {name}" in notes for name in names)

    answer = json.loads((tmp_path / "answer.json").read_text("utf-8"))
    assert answer["tokens"]["labels"] == ["[CLS]", "the", "key", "to", "the", "cabinet", "##s", "[SEP]"]
    expected = af.explain(TEXT, str(model), "flow", level=None)
    assert [result["method"] for result in answer["results"]] == ["raw", "rollout", "flow"]
    assert answer["results"][2]["level_names"] == [f"layer {i}" for i in range(4)]
    np.testing.assert_allclose(answer["results"][2]["scores"], expected.scores, atol=1e-9)

    rows = list(csv.DictReader(io.StringIO((tmp_path / "answer.csv").read_text("utf-8"))))
    flows = [float(row["score"]) for row in rows if row["method"] == "flow"]
    np.testing.assert_allclose(flows, expected.scores.ravel(), atol=1e-9)
    assert len(rows) == 3 * expected.scores.size

    assert (tmp_path / "answer.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "answer.pdf").read_bytes().startswith(b"%PDF")
    assert ">cabinet" in (tmp_path / "answer.svg").read_text("utf-8")
    page = (tmp_path / "answer.html").read_text("utf-8")
    data = json.loads(page.split('id="attnflow-data">')[1].split("</script>")[0])
    [text] = data["texts"]
    assert [view["method"] for view in text["views"]] == ["raw", "rollout", "flow"]
    assert all(view["queries"] is None for view in text["views"])  # a page holds every query
    assert text["query"] == 0


def test_a_pipe_gets_data_alone(model: Path) -> None:
    done = run(
        "explain", "-", "--model", model, "--json", "--quiet", "--words", "--query", "key", "--level", "1", "--level", "-1",
        "--heads", "max", "--residual", "none", text=f"{TEXT}\n",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    answer = json.loads(done.stdout)
    [result] = answer["results"]
    assert answer["tokens"]["labels"] == ["[CLS]", "the", "key", "to", "the", "cabinets", "[SEP]"]
    assert (result["queries"], result["levels"]) == ([2], [1, 3])
    assert (result["options"]["heads"], result["options"]["residual"]) == ("max", 0.0)
    expected = af.explain(TEXT, str(model), heads="max", residual=None, query="key", level=[1, -1]).words()
    np.testing.assert_allclose(result["scores"], expected.scores, atol=1e-6)


def test_a_text_in_a_file_and_an_npz_on_stdout(model: Path, files: Path, tmp_path: Path) -> None:
    done = run(
        "explain", files / "text.txt", "--model", model, "-o", "-", "--format", "npz", "--edges", "gradient", "--target",
        "plural", "-m", "rollout", "--query", "3", "--second", "the old key " * 40, "--truncate",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    (tmp_path / "answer.npz").write_bytes(done.stdout)
    found = af.Attribution.load(tmp_path / "answer.npz")
    assert found.queries == (3,)
    assert found.levels == (0, 1, 2, 3)
    assert len(found.tokens) == 40
    assert found.options["edges"] == "gradient"
