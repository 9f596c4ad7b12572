"""attnflow evaluate and attnflow audit: from a file and a model to a report."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from attnflow import study
from attnflow.cli._data import read_data
from attnflow.errors import InvalidArgument
from tests.cli.command import bad, good

LINES = ["the old key to the cabinet", "the key", "cabinets are old", "old old key is the cabinets"]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join([*LINES[:2], "", *LINES[2:]]) + "\n")
    return path


def test_evaluate_is_the_study_and_its_report(model: Path, texts: Path, tmp_path: Path) -> None:
    asked = (
        "-m",
        "rollout",
        "--edges",
        "attention",
        "--edges",
        "norm",
        "--baseline",
        "random",
        "--baseline",
        "occlusion",
        "--steps",
        "4",
    )
    good("evaluate", texts, "--model", model, *asked, "-o", "report.html", "-o", "report.json", "-q", cwd=tmp_path)
    found = json.loads((tmp_path / "report.json").read_text())
    expected = study.faithfulness(
        str(model),
        LINES,
        study.ways("rollout", edges=["attention", "norm"]),
        baselines=["random", "occlusion"],
        steps=4,
    )
    for result in found["results"]:
        [own] = [one for one in expected.of(result["measure"], result["replace"]) if one.way == result["way"]]
        assert result["mean"] == pytest.approx(own.mean, abs=1e-5, nan_ok=True) or result["mean"] is None
    page = (tmp_path / "report.html").read_text()
    assert "rollout, edges norm" in page
    assert "--method rollout --edges norm" in page


def test_evaluate_shows_its_tables(model: Path, texts: Path) -> None:
    asked = (
        "-m",
        "raw",
        "--baseline",
        "random",
        "--replace",
        "unk",
        "--special",
        "drop",
        "--target",
        "plural",
        "--limit",
        "3",
    )
    said = good("evaluate", texts, "--model", model, *asked)
    assert "raw, residual none, special drop" in said
    assert "no difference shown" in said


def test_labels_of_a_table_are_watched(model: Path, tmp_path: Path) -> None:
    rows = [f"{line}\t{label}" for line, label in zip(LINES, ("plural", "singular", "plural", "plural"), strict=True)]
    (tmp_path / "data.tsv").write_text("\n".join(["sentence\tlabel", *rows]) + "\n")
    asked = ("-m", "raw", "--baseline", "random", "--replace", "unk", "--labels")
    rows_out = good("evaluate", tmp_path / "data.tsv", "--model", model, *asked, "-o", "-", "--format", "csv")
    [own] = [r for r in csv.DictReader(io.StringIO(rows_out)) if (r["measure"], r["way"]) == ("sufficiency", "random")]
    options = {"baselines": ["random"], "replace": "unk", "target": ["plural", "singular", "plural", "plural"]}
    expected = study.faithfulness(str(model), LINES, ["raw"], **options)  # type: ignore[arg-type]
    assert float(own["mean"]) == pytest.approx(
        next(o for o in expected.of("sufficiency") if o.way == "random").mean, abs=1e-5
    )


def test_audit_of_two_models_and_of_two_domains(model: Path, texts: Path, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("the key is old\nold cabinets\nthe cabinets are the key\n")
    asked = ("--model", model, "--words", "nouns=key,cabinet", "--least", "2", "-q")
    good("audit", texts, *asked, "--other", model, "-o", "audit.html", "-o", "audit.csv", cwd=tmp_path)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "audit.csv").read_text())))
    assert {row["verdict"] for row in rows} == {"no move shown"}  # a model against itself
    assert ("word list", "nouns") in {(row["kind"], row["group"]) for row in rows}
    assert "No move was shown" in (tmp_path / "audit.html").read_text()
    said = good("audit", texts, *asked, "--other-data", tmp_path / "other.txt", "--by", "rollout", "--edges", "norm")
    assert "on 4 and 3 inputs" in said


def test_what_is_wrong_is_one_line(model: Path, texts: Path, tmp_path: Path) -> None:
    assert "there is no file nowhere.txt" in bad(1, "evaluate", "nowhere.txt", "--model", model, cwd=tmp_path)
    assert "two sides are compared" in bad(2, "audit", texts, "--model", model)
    assert "--edges and --residual are for a method" in bad(2, "audit", texts, "--other", model, "--edges", "norm")
    assert "--labels" in bad(2, "evaluate", texts, "--model", model, "--labels")
    assert "Did you mean 'occlusion'" in bad(2, "evaluate", texts, "--baseline", "oclusion")


def test_data_in_every_form(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "one", "label": 1}\n\n{"text": "two", "label": "x"}\n')
    assert read_data(str(tmp_path / "a.jsonl")) == (["one", "two"], [1, "x"])
    (tmp_path / "b.csv").write_text('review,target\n"a, b",0\nc,1\n')
    assert read_data(str(tmp_path / "b.csv"), "review") == (["a, b", "c"], [0, 1])
    drawn = read_data(str(tmp_path / "b.csv"), "review", limit=1, seed=3)
    assert len(drawn.texts) == len(drawn.labels or ()) == 1
    with pytest.raises(
        InvalidArgument, match=r"has no column 'text' or .*; it has 'review', 'target'. Name it: --column"
    ):
        read_data(str(tmp_path / "b.csv"))
    (tmp_path / "c.jsonl").write_text("[1]\n")
    with pytest.raises(InvalidArgument, match="line 1 of .* must be a JSON object"):
        read_data(str(tmp_path / "c.jsonl"))
