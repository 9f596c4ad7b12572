from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import attnflow as af
from attnflow import evaluate
from attnflow.errors import InvalidArgument

Sentences = dict[str, list[af.Attribution]]


@pytest.fixture
def sentences(rng: np.random.Generator) -> Sentences:
    """40 sentences of 5 to 14 tokens, the first token special; 3 levels."""
    found: Sentences = {"raw": [], "rollout": []}
    for _ in range(40):
        n = int(rng.integers(5, 15))
        tokens = af.Tokens([f"t{i}" for i in range(n)], [i == 0 for i in range(n)])
        graph = af.AttentionGraph(0.5 * rng.dirichlet(np.ones(n), size=(3, n)) + 0.5 * np.eye(n), tokens)
        found["raw"].append(af.raw(graph, [0]))
        found["rollout"].append(af.rollout(graph, [0]))
    return found


@pytest.fixture
def references(sentences: Sentences, rng: np.random.Generator) -> list[np.ndarray]:
    """Signed importances that rollout's last level is closest to."""
    return [a.of(0) * rng.lognormal(sigma=0.3, size=len(a.tokens)) for a in sentences["rollout"]]


def test_every_correlation_is_scipys(sentences: Sentences, references: list[np.ndarray]) -> None:
    report = evaluate.compare(sentences, references, resamples=500)
    for method, attributions in sentences.items():
        expected = [
            [stats.spearmanr(a.scores[level, 0], reference).statistic for level in range(3)]
            for a, reference in zip(attributions, references, strict=True)
        ]
        np.testing.assert_allclose(report.values["reference", method], expected, atol=1e-12)
        cell = report.cell(method, "level 1")
        assert cell.mean == pytest.approx(np.mean(expected, axis=0)[1])
        assert cell.sd == pytest.approx(np.std(expected, axis=0, ddof=1)[1])
        assert cell.low < cell.mean < cell.high


def test_the_better_method_is_found_and_the_equal_level_is_not_told_apart(
    sentences: Sentences, references: list[np.ndarray]
) -> None:
    report = evaluate.compare(sentences, references, resamples=2_000)
    first, last = report.differences[0], report.differences[-1]
    assert (first.level, last.level) == ("level 0", "level 2")
    assert (first.difference, first.p_corrected, first.verdict) == (0, 1, "no difference shown")
    assert last.verdict == "rollout higher"
    assert last.low <= last.difference <= last.high < 0
    assert last.effect == pytest.approx(last.difference / last.sd)
    assert 0 < last.detectable < abs(last.difference)


def test_policies_choose_the_inputs(sentences: Sentences, references: list[np.ndarray]) -> None:
    one = sentences["raw"][0]
    assert len(one.tokens) > 4
    with_special = af.Tokens(one.tokens.labels, [i in (0, 2) for i in range(len(one.tokens))])
    marked = replace(one, tokens=with_special)
    reference = references[0]

    def correlation(**policy: Any) -> float:
        report = evaluate.compare(marked, reference, resamples=10, **policy)
        return float(report.values["reference", "raw"][0, -1])

    def expected(kept: list[int]) -> float:
        return float(stats.spearmanr(marked.of(0)[kept], reference[kept]).statistic)

    everything = list(range(len(one.tokens)))
    assert correlation() == pytest.approx(expected(everything))
    assert correlation(count_own=False) == pytest.approx(expected(everything[1:]))
    assert correlation(count_special=False) == pytest.approx(expected([0, 1, *everything[3:]]))  # its own stays
    assert correlation(count_own=False, count_special=False) == pytest.approx(expected([1, *everything[3:]]))


def test_signed_and_absolute(sentences: Sentences, references: list[np.ndarray]) -> None:
    flipped = [-reference for reference in references]
    signed = evaluate.compare(sentences, {"plus": references, "minus": flipped}, resamples=10)
    plus, minus = signed.values["plus", "raw"], signed.values["minus", "raw"]
    np.testing.assert_allclose(plus, -minus)
    absolute = evaluate.compare(sentences, {"minus": flipped}, absolute=True, resamples=10)
    np.testing.assert_allclose(absolute.values["minus", "raw"], plus)


def test_queries_are_named_or_joined(graph: af.AttentionGraph, rng: np.random.Generator) -> None:
    found, reference = af.rollout(graph), rng.normal(size=5)
    by_token = evaluate.compare(found, reference, query="cab", resamples=10).values["reference", "rollout"]
    assert by_token[0, -1] == pytest.approx(stats.spearmanr(found.of(2), reference).statistic)
    joined = evaluate.compare(found, reference, over="max", resamples=10).values["reference", "rollout"]
    assert joined[0, 0] == pytest.approx(stats.spearmanr(found.scores[0].max(axis=0), reference).statistic)
    mean = evaluate.compare(found, reference, over="mean", resamples=10).values["reference", "rollout"]
    assert mean[0, 0] == pytest.approx(stats.spearmanr(found.scores[0].mean(axis=0), reference).statistic)


def test_rows_without_an_order_are_left_out_and_counted_or_taken_as_zero(
    sentences: Sentences, references: list[np.ndarray]
) -> None:
    references[3] = np.ones(len(references[3]))
    omitted = evaluate.compare(sentences, references, resamples=200)
    assert {(cell.n, cell.undefined) for cell in omitted.cells} == {(39, 1)}
    assert all(difference.n == 39 for difference in omitted.differences)
    zero = evaluate.compare(sentences, references, undefined="zero", resamples=200)
    assert {(cell.n, cell.undefined) for cell in zero.cells} == {(40, 0)}
    assert zero.cells[0].mean == pytest.approx(omitted.cells[0].mean * 39 / 40)


def test_a_sentence_of_its_query_alone_has_no_correlation(rng: np.random.Generator) -> None:
    alone = af.raw(af.AttentionGraph(np.ones((2, 1, 1))), [0])
    report = evaluate.compare([alone, alone], [np.ones(1), np.ones(1)], count_own=False, resamples=10)
    assert [cell.n for cell in report.cells] == [0, 0]
    assert "nan" in str(report)


def test_by_method_averages_levels_first(sentences: Sentences, references: list[np.ndarray]) -> None:
    by_level = evaluate.compare(sentences, references, resamples=10)
    whole = evaluate.compare(sentences, references, by="method", resamples=10)
    assert whole.levels == ["all levels"]
    assert whole.cell("raw").mean == pytest.approx(np.mean([by_level.cell("raw", level).mean for level in range(3)]))


def test_forms_of_input(sentences: Sentences, references: list[np.ndarray]) -> None:
    mixed = [a for pair in zip(sentences["raw"], sentences["rollout"], strict=True) for a in pair]
    as_attributions = [af.Attribution(r[None, None], a.tokens, "blank-out", (0,), (0,), a.inputs) for r, a in zip(references, sentences["raw"], strict=True)]  # fmt: skip
    expected = evaluate.compare(sentences, references, resamples=10).values
    for attributions, wanted in ((mixed, references), (sentences, as_attributions)):
        found = evaluate.compare(attributions, wanted, resamples=10).values
        assert {key: table.tolist() for key, table in found.items()} == {k: v.tolist() for k, v in expected.items()}


class Importance:
    """Something that becomes an array, as what capture.blank_out returns does."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.values


def test_references_may_be_objects_that_become_arrays(sentences: Sentences, references: list[np.ndarray]) -> None:
    whole = evaluate.compare(sentences, references, resamples=10).values["reference", "raw"]
    found = evaluate.compare(sentences, [Importance(r) for r in references], resamples=10).values["reference", "raw"]
    assert found.tolist() == whole.tolist()
    alone = evaluate.compare(sentences["raw"][0], Importance(references[0]), resamples=10).values["reference", "raw"]
    assert alone[0].tolist() == whole[0].tolist()


def test_a_subset_of_inputs_takes_its_part_of_the_reference(sentences: Sentences, references: list[np.ndarray]) -> None:
    whole = sentences["raw"][0]
    part = af.Attribution(whole.scores[:, :, 1:], whole.tokens, "raw", whole.levels, whole.queries, whole.inputs[1:])
    given_all = evaluate.compare(part, references[0], resamples=10).values["reference", "raw"]
    given_part = evaluate.compare(part, references[0][1:], resamples=10).values["reference", "raw"]
    assert given_all.tolist() == given_part.tolist()


def test_wilcoxon_and_kendall_can_be_chosen(sentences: Sentences, references: list[np.ndarray]) -> None:
    report = evaluate.compare(sentences, references, statistic="kendall", test="wilcoxon", resamples=100)
    raw, rollout = (report.values["reference", method][:, 2] for method in ("raw", "rollout"))
    assert raw[0] == pytest.approx(stats.kendalltau(sentences["raw"][0].of(0), references[0]).statistic)
    assert report.differences[2].p == pytest.approx(stats.wilcoxon(raw - rollout).pvalue)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"by": "layer"}, "unknown value for by 'layer'.*level, method"),
    ({"undefined": "drop"}, "unknown value for undefined"),
    ({"test": "t"}, "unknown value for test"),
    ({"statistic": "pearson"}, "unknown statistic 'pearson'"),
    ({"over": "sum"}, "unknown way to join queries 'sum'"),
    ({"over": "max", "query": 0}, "no single query"),
    ({"query": 1}, "query 1 was not asked for"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_wrong_options(
    sentences: Sentences, references: list[np.ndarray], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        evaluate.compare(sentences, references, **options)


def test_wrong_data(sentences: Sentences, references: list[np.ndarray], graph: af.AttentionGraph) -> None:
    def message(attributions: Any, wanted: Any) -> str:
        with pytest.raises(InvalidArgument) as caught:
            evaluate.compare(attributions, wanted)
        return str(caught.value)

    raw = sentences["raw"]
    assert "no attribution" in message([], references)
    assert "no reference" in message(sentences, {})
    assert "expected an Attribution, got a list" in message([[1, 2]], references)
    assert "raw: 40, rollout: 39" in message({"raw": raw, "rollout": sentences["rollout"][1:]}, references)
    assert "reference has 39 sentences, the attributions have 40" in message(sentences, references[1:])
    assert "sentence 0 of 'rollout' has other tokens" in message({"raw": raw[:1], "rollout": [af.rollout(graph, 0)]}, references[:1])  # fmt: skip
    assert "same levels" in message({"raw": raw[:1], "top": [af.raw(graph, 0, levels=-1)]}, references[:1])
    assert "must hold one number for each of its" in message(raw[:1], [np.ones(99)])
    assert "NaN or infinity at input 1" in message(raw[:1], [np.r_[0.0, np.nan, references[0][2:]]])
    assert "say which one is compared" in message(af.raw(graph), np.ones(5))


def test_reports_say_the_same_in_every_form(sentences: Sentences, references: list[np.ndarray], tmp_path: Path) -> None:
    report = evaluate.compare(sentences, {"blank-out": references}, resamples=100)
    first = report.cell("raw", 0)
    for text in (report.to_text(), report.to_markdown()):
        assert str(first) in text
        assert "rollout higher" in text
    rows = list(csv.DictReader(io.StringIO(report.to_csv())))
    assert len(rows) == 6
    assert float(rows[0]["mean"]) == first.mean
    tests = list(csv.DictReader(io.StringIO(report.to_csv("differences"))))
    assert [row["verdict"] for row in tests] == [difference.verdict for difference in report.differences]
    content = json.loads(report.to_json())
    assert content["cells"][0]["mean"] == first.mean
    assert content["options"]["sentences"] == 40
    for ending in ("txt", "md", "csv", "json"):
        assert report.save(tmp_path / f"report.{ending}").stat().st_size > 100
    with pytest.raises(InvalidArgument, match=r"cannot tell the form.*\.csv, \.json, \.md, \.txt"):
        report.save(tmp_path / "report.xls")
    with pytest.raises(InvalidArgument, match=r"no result for 'row'\. Did you mean 'raw'"):
        report.cell("row")
    with pytest.raises(InvalidArgument, match="no such level; there are: level 0"):
        report.cell("raw", "level 9")
    with pytest.raises(InvalidArgument, match="unknown table"):
        report.to_csv("values")


def test_json_has_no_nan(rng: np.random.Generator) -> None:
    report = evaluate.compare(af.raw(af.AttentionGraph(np.eye(3)[None]), 0), np.ones(3), resamples=10)
    assert json.loads(report.to_json(), parse_constant=pytest.fail)["cells"][0]["mean"] is None


def test_correlations_are_read_only(sentences: Sentences, references: list[np.ndarray]) -> None:
    report = evaluate.compare(sentences, references, resamples=10)
    with pytest.raises(ValueError, match="read-only"):
        report.values["reference", "raw"][0, 0] = 1


def test_importing_evaluate_loads_no_scipy() -> None:
    code = "import sys, attnflow; attnflow.evaluate.compare; print([m for m in ('scipy', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
