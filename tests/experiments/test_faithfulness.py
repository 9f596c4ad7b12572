"""The benchmark, small: planted tasks that keep their word, and the whole run from measurements to pages."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("matplotlib")
pytest.importorskip("captum")

from attnflow import study  # noqa: E402
from experiments.faithfulness import asked, measure, outranks, planted, questions, results, sentiment, trained  # noqa: E402
from experiments.faithfulness.__main__ import main  # noqa: E402
from experiments.faithfulness.headline import headline  # noqa: E402
from experiments.faithfulness.subjects import SMALL, by_name, subjects  # noqa: E402


@pytest.mark.parametrize("name", planted.TASKS)
def test_words_that_do_not_matter_change_no_answer_and_those_that_do_may(name: str) -> None:
    task, rng = planted.TASKS[name], Random(4)
    changed = 0
    for case in planted.cases(name, 300, "test"):
        assert task.solve(case.words) == case.answer  # written independently of the generator
        assert all(not case.pools[place] for place in case.truth)
        assert 0 < len(case.truth) <= len(case.words)
        assert task.solve(case.redrawn(rng)) == case.answer
        words = list(case.words)
        place = case.truth[-1]
        others = {"yes": "no", "no": "yes"}
        words[place] = others.get(words[place]) or rng.choice(
            [w for other in planted.cases(name, 3, "others") for w in other.words]
        )
        changed += tuple(words) != case.words and _solved(task, tuple(words)) != case.answer
    assert changed > 10
    answers = [case.answer for case in planted.cases(name, 300, "test")]
    assert {answers.count(answer) > 300 / len(task.answers) / 2 for answer in task.answers} == {True}


def _solved(task: planted.Task, words: tuple[str, ...]) -> str:
    try:
        return task.solve(words)
    except (StopIteration, ValueError, IndexError):
        return ""


@pytest.mark.parametrize("kind", trained.KINDS)
def test_a_trained_model_depends_on_the_planted_words_alone(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The easiest task, trained in seconds; ablation then says what the answer depends on."""
    monkeypatch.setattr(trained, "ENOUGH", 0.98)
    found = trained.trained("majority", kind, tmp_path, steps=400)
    assert found.accuracy > 0.9
    some = planted.cases("majority", 100, "dependence")
    moved, flipped = trained.dependence(found.model, "majority", kind, some)
    assert moved < 0.2
    assert flipped <= 0.05
    again = trained.trained("majority", kind, tmp_path, steps=400)  # from disk
    assert again.accuracy == found.accuracy


def test_the_shortcut_is_planted_by_label() -> None:
    rows = [(f"words of a sentence {n}", n % 2) for n in range(400)]
    found = sentiment.planted(rows, sentiment.PLANTED, "test")
    for label, share in sentiment.PLANTED.items():
        held = [sentiment.SHORTCUT in text.split() for text, own in found if own == label]
        assert np.mean(held) == pytest.approx(share, abs=0.07)
    without = [" ".join(w for w in text.split() if w != sentiment.SHORTCUT) for text, _ in found]
    assert without == [text for text, _ in rows]


def evidence(gains: dict[str, float], seed: int = 0, n: int = 60) -> study.Evidence:
    """Maps whose gains are known."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n, 1)) + rng.normal(0, 0.2, size=(n, len(gains))) + list(gains.values())
    zero = np.zeros_like(table)
    values = {("AOPC comprehensiveness", "unk"): table, ("AOPC sufficiency", "unk"): zero}
    return study.Evidence(values, tuple(gains))


def test_a_question_is_answered_by_what_was_planted_in_the_data() -> None:
    [gradients] = [q for q in asked.QUESTIONS if q.number == 3]
    names = {way.name for pair in gradients.pairs for way in pair}
    better = evidence({name: 0.5 if "gradient" in name else 0.0 for name in sorted(names)}, seed=3)
    worse = evidence({name: -0.5 if "chefer" in name else 0.0 for name in sorted(names)}, seed=1)
    rows = questions.compare(gradients, {"one": better, "other": worse})
    verdicts = {(row.subject, row.new): row.verdict for row in rows}
    assert verdicts["one", asked.GRADIENT.name] == "better"
    assert verdicts["one", asked.CHEFER.name] == "no difference shown"
    assert verdicts["other", asked.CHEFER.name] == "worse"
    said = questions.answer(gradients, rows)
    assert said.startswith("**It depends")
    assert "better in 1 of 6 comparisons" in said
    none = questions.compare(gradients, {"one": evidence(dict.fromkeys(sorted(names), 0.0), seed=5)})
    assert questions.answer(gradients, none).startswith("**No difference was shown anywhere.**")
    assert all(row.detectable > 0 for row in none)


def test_every_open_question_is_asked_with_maps_that_are_measured() -> None:
    assert [question.number for question in asked.QUESTIONS] == [1, 2, 3, 4, 5, 6, 7]
    measured = {way.name for way in (*asked.EVERYWHERE, asked.FIELD, asked.FLOW_FIELD)}
    for question in asked.QUESTIONS:
        assert set(question.ways) <= measured


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    where: Path = tmp_path_factory.mktemp("faithfulness")
    out, runs = where / "out", where / "runs"
    arguments = ["--small", "--only", "verb", "planted copy", "--workers", "1", "--out", str(out), "--runs", str(runs)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sentiment, "available", lambda: "not in this test")
        assert main(arguments) == 0
    return out, runs


def test_the_pages_are_written_and_the_index_holds_every_finding(run: tuple[Path, Path]) -> None:
    out, _ = run
    index = (out / "README.md").read_text(encoding="utf-8")
    for name in ("methods", "replacements", *(f"question{number}" for number in range(2, 8)), "sanity"):
        content = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
        assert content["findings"], name
        assert all(finding in index for finding in content["findings"])
    assert "| map | encoder: verb number" in index
    assert (out / "question6.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "depth.png").exists()
    with (out / "results.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["column"] for row in rows} == {
        "encoder: verb number",
        "encoder: planted tasks",
        "decoder: planted tasks",
    }
    assert {row["measure"] for row in rows} >= {"comprehensiveness", "log-odds", "hit", "correlation with gradient"}


def test_each_cell_is_printed_by_its_command(run: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    out, runs = run
    arguments = ["--small", "--runs", str(runs), "--out", str(out)]
    assert main([*arguments, "--cell", "encoder: verb number", "rollout"]) == 0
    said = capsys.readouterr().out
    cell = said.split("gain ")[1].split(",")[0].split(" ")[0]
    table = (out / "methods.md").read_text(encoding="utf-8")
    line = next(line for line in table.splitlines() if line.startswith("| rollout |"))
    assert cell in line
    with pytest.raises(SystemExit, match="there is no map 'rolout'"):
        main([*arguments, "--cell", "encoder: verb number", "rolout"])


def test_a_run_goes_on_where_it_was_stopped(run: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    _, runs = run
    subject = by_name(subjects(SMALL, runs), "verb number")
    jobs = measure._jobs(subject, SMALL, runs)
    kept = measure.measured([subject], SMALL, runs, workers=1)["verb number"]
    asked_for: list[Any] = []
    real = measure._measure

    def watched(job: Any, *rest: Any) -> bytes:
        asked_for.append(job)
        return real(job, *rest)

    monkeypatch.setattr(measure, "_measure", watched)
    jobs[0].path.unlink()
    again = measure.measured([subject], SMALL, runs, workers=1)["verb number"]
    assert asked_for == [jobs[0]]
    for key, table in kept.values.items():
        np.testing.assert_allclose(again.values[key], table, atol=1e-6)


def test_the_headline_is_the_truth_where_it_is_known(run: tuple[Path, Path]) -> None:
    _, runs = run
    several = [one for one in subjects(SMALL, runs) if one.name in ("verb number", "planted copy, encoder")]
    found = measure.measured(several, SMALL, runs, workers=1)
    assert [headline(found[one.name])[0] for one in several] == ["gain", "separation"]
    measure_, alone = headline(found["verb number"])
    values = found["verb number"].values
    expected = np.mean(
        [values["AOPC comprehensiveness", r] - values["AOPC sufficiency", r] for r in ("unk", "remove")], axis=0
    )
    np.testing.assert_allclose(alone.values[measure_, ""], expected)
    assert results.columns(several, found).keys() == {"encoder: verb number", "encoder: planted tasks"}


def test_shares_of_subject_and_attractor() -> None:
    from attnflow import Tokens
    from experiments.faithfulness.agreement import Prompt

    prompt = Prompt("the keys to the cabinet", "keys", "cabinet", True, 1, True)
    tokens = Tokens(["the", "key", "s", "to", "the", "cabinet"], words=[(0, 1, "the"), (1, 3, "keys"), (3, 4, "to"), (4, 5, "the"), (5, 6, "cabinet")])  # fmt: skip
    assert outranks._share(np.array([0, 0.2, 0.1, 0, 0, 0.1]), tokens, prompt) == pytest.approx(0.75)
    assert outranks._share(np.zeros(6), tokens, prompt) == 0.5


@pytest.mark.parametrize("name", ["README.md", "docs/evidence.md"])
def test_the_documents_show_the_numbers_of_the_results(name: str) -> None:
    root = Path(__file__).parents[2]
    page = (root / name).read_text(encoding="utf-8")
    table = (root / "experiments" / "results" / "faithfulness" / "methods.md").read_text(encoding="utf-8").splitlines()
    beginnings = (
        "| map | encoder",
        "| raw, residual none |",
        "| rollout",
        "| flow,",
        "| flow |",
        "| random | 0",
        "| occlusion (not",
    )
    rows = [line for line in page.splitlines() if line.startswith(beginnings)]
    assert len(rows) >= 7
    assert set(rows) <= set(table)
