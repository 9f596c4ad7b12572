"""The whole study on a small model, each number against the pieces that it is made of."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnflow as af
from attnflow import capture, evaluate, study
from attnflow.errors import AttnflowError, InvalidArgument, UnknownMethod
from tests.study.conftest import TEXTS

pytest.importorskip("captum", reason="captum is not installed")


@pytest.fixture(scope="module")
def evidence(folder: Path) -> study.Evidence:
    return study.faithfulness(str(folder), TEXTS, baselines=list(study.BASELINES), replace=("unk", "mean"))


def column(evidence: study.Evidence, measure: str, replace: str, way: str) -> np.ndarray:
    return np.asarray(evidence.values[measure, replace][:, evidence.ways.index(way)])


def test_every_measure_of_every_map_is_there(evidence: study.Evidence) -> None:
    assert set(evidence.ways) == {"raw, residual none", "rollout", "flow", *study.BASELINES}
    expected = {(m, r) for m in [*evaluate.MEASURES, "correlation with occlusion"] for r in ("unk", "mean")}
    expected |= {(f"correlation with {name}", "") for name in ("gradient", "integrated gradients")}
    assert set(evidence.values) == expected
    assert evidence.inputs == len(TEXTS)
    assert all(np.isfinite(evidence.values[m, r]).all() for m in evaluate.MEASURES for r in ("unk", "mean"))


@pytest.mark.parametrize("replace", ["unk", "mean"])
def test_numbers_are_those_of_the_pieces(evidence: study.Evidence, folder: Path, replace: str) -> None:
    for number, text in enumerate(TEXTS):
        whole = capture.ablation(str(folder), text, replace=replace)
        places = np.flatnonzero(whole.removable)
        blank = capture.blank_out(str(folder), text, replace=replace)
        maps = {"rollout": af.explain(text, str(folder)).scores[0, 0][places], "occlusion": blank.signed[places]}

        def predict(kept: Any, whole: Any = whole, places: Any = places) -> Any:
            full = np.ones((len(kept), len(whole.tokens)), dtype=bool)
            full[:, places] = kept
            return whole(full)

        for name, row in maps.items():
            [found] = evaluate.curves([row], predict, seed=number)
            for measure in evaluate.MEASURES:
                expected = evaluate.measured(found, measure)
                assert column(evidence, measure, replace, name)[number] == pytest.approx(expected, abs=1e-5), measure
            agreed = evaluate.correlation(row, blank.scores[places])
            assert column(evidence, "correlation with occlusion", replace, name)[number] == pytest.approx(
                agreed, nan_ok=True
            )


def test_the_last_layer_is_raw_attention_and_agrees_with_itself(evidence: study.Evidence) -> None:
    for key, table in evidence.values.items():
        pair = [evidence.ways.index(name) for name in ("last layer", "raw, residual none")]
        np.testing.assert_allclose(table[:, pair[0]], table[:, pair[1]], err_msg=str(key))
    sizes = column(evidence, "correlation with gradient", "", "gradient")
    assert np.nanmin(sizes) == pytest.approx(1)


def test_a_chosen_target_is_what_is_watched(folder: Path) -> None:
    target = ["singular", "plural"]
    options: dict[str, Any] = {"baselines": (), "references": (), "replace": "unk"}
    both = study.faithfulness(str(folder), TEXTS[:2], ["rollout"], target=target, **options)
    each = [
        study.faithfulness(str(folder), [t], ["rollout"], target=c, **options)
        for t, c in zip(TEXTS, target, strict=False)
    ]
    for key, table in both.values.items():
        if key[0] in evaluate.MEASURES:
            assert table[0, 0] == pytest.approx(each[0].values[key][0, 0], abs=1e-6)
    swapped = study.faithfulness(str(folder), TEXTS[:2], ["rollout"], target=target[::-1], **options)
    assert swapped.values["comprehensiveness", "unk"] == pytest.approx(
        -both.values["comprehensiveness", "unk"], abs=1e-6
    )


def test_a_list_of_targets_stays_the_callers(folder: Path) -> None:
    target: list[Any] = ["plural", None]
    study.faithfulness(str(folder), TEXTS[:2], [], baselines=["random"], references=(), replace="unk", target=target)
    assert target == ["plural", None]


def test_words_are_taken_away_whole(folder: Path) -> None:
    text = "the cabinets"  # "cabinet", "##s"
    found = study.faithfulness(
        str(folder),
        [text],
        ["rollout"],
        baselines=["occlusion"],
        unit="word",
        replace="unk",
        references=(),
        steps=None,
        share=0.5,
    )
    whole = capture.ablation(str(folder), text)
    kept = np.array([[1, 0, 1, 1, 1], [1, 1, 0, 0, 1]], dtype=bool)
    one, other = whole(kept)
    best = min(one, other)
    assert column(found, "comprehensiveness", "unk", "occlusion")[0] == pytest.approx(whole.value - best, abs=1e-6)


def test_maps_are_scored_against_a_known_truth(folder: Path) -> None:
    options: dict[str, Any] = {"baselines": ["random"], "references": (), "replace": "unk"}
    found = study.faithfulness(str(folder), TEXTS[:2], ["rollout"], truth=[[1, 3], [2]], **options)
    rollout = af.explain(TEXTS[0], str(folder)).scores[0, 0]
    row, mask = rollout[1:-1], np.isin(np.arange(1, len(rollout) - 1), [1, 3])
    for name, value in evaluate.against_truth(row, mask).items():
        assert column(found, name, "truth", "rollout")[0] == pytest.approx(value)
    with pytest.raises(InvalidArgument, match="truth has 1 inputs, the data 2"):
        study.faithfulness(str(folder), TEXTS[:2], ["rollout"], truth=[[1]], **options)
    with pytest.raises(InvalidArgument, match="the truth of input 0 is positions or a mask"):
        study.faithfulness(str(folder), TEXTS[:1], ["rollout"], truth=[[99]], **options)


def test_parts_join_to_the_whole(folder: Path) -> None:
    options: dict[str, Any] = {"baselines": ["occlusion"], "references": (), "replace": "unk", "steps": None}
    whole = study.faithfulness(str(folder), TEXTS, ["rollout"], **options)
    parts = [study.faithfulness(str(folder), some, ["rollout"], **options) for some in (TEXTS[:1], TEXTS[1:])]
    joined = study.Evidence.joined(parts)
    assert joined.inputs == joined.options["inputs"] == len(TEXTS)
    for key, table in whole.values.items():
        np.testing.assert_allclose(joined.values[key], table, atol=1e-6)
    assert whole.only(["occlusion"]).ways == ("occlusion",)


def simulated(difference: float, n: int = 60, seed: int = 2) -> study.Evidence:
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n, 1)) + rng.normal(0, 0.3, size=(n, 3)) + [0.0, difference, 2 * difference]
    return study.Evidence({("AOPC sufficiency", "unk"): table}, ("random", "one", "other"))


def test_the_best_is_the_lowest_where_lower_is_better_and_differences_are_shown() -> None:
    found = simulated(0.5)
    first, second, third = found.of("AOPC sufficiency")
    assert [one.way for one in (first, second, third)] == ["random", "one", "other"]
    assert (first.verdict, second.verdict, third.verdict) == ("best", "worse", "worse")
    assert (second.beats_chance, third.beats_chance) == ("worse", "worse")
    assert second.difference > 0
    assert second.effect_low < second.effect < second.effect_high
    assert second.detectable < 0.5
    assert found.leaders("AOPC sufficiency") == ["random"]


def test_where_nothing_differs_nothing_is_shown() -> None:
    found = simulated(0.0)
    assert set(found.leaders("AOPC sufficiency")) == {"random", "one", "other"}
    assert {one.verdict for one in found.results} == {"best", "no difference shown"}
    text = found.to_text()
    assert "no difference shown" in text
    assert "n = 60" in text
    assert "differences from" in text


def test_reports_in_every_form(evidence: study.Evidence, tmp_path: Path) -> None:
    for ending in ("txt", "md", "csv", "json", "html"):
        evidence.save(tmp_path / f"report.{ending}")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "report.csv").read_text())))
    assert len(rows) == len(evidence.results)
    content = json.loads((tmp_path / "report.json").read_text())
    assert content["options"]["flags"]["rollout"] == "--method rollout"
    page = (tmp_path / "report.html").read_text()
    assert "<script" not in page
    assert all(name in page for name in ("rollout", "integrated gradients", "deletion area", "--method flow"))
    with pytest.raises(InvalidArgument, match="cannot tell the form"):
        evidence.save(tmp_path / "report.pdf")


def test_an_input_without_removable_tokens_has_no_values(folder: Path) -> None:
    ids = [[2, 3], [2, 5, 6, 3]]  # [CLS] [SEP]; [CLS] the key [SEP]
    found = study.faithfulness(
        str(folder), ids, ["rollout"], baselines=["random", "occlusion"], references=(), replace="unk"
    )
    assert math.isnan(found.values["comprehensiveness", "unk"][0, 0])
    assert found.of("comprehensiveness")[0].undefined == 1


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"data": []}, InvalidArgument, "data is a list of inputs"),
        ({"ways": [], "baselines": []}, InvalidArgument, "nothing to measure"),
        ({"ways": ["rolout"]}, UnknownMethod, "Did you mean 'rollout'"),
        ({"baselines": ["chance"]}, InvalidArgument, "unknown baseline 'chance'"),
        ({"references": ["shape"]}, InvalidArgument, "unknown reference 'shape'"),
        ({"replace": []}, InvalidArgument, "needs a replacement"),
        ({"replace": "blur"}, InvalidArgument, "cannot replace a token by 'blur'"),
        ({"unit": "line"}, InvalidArgument, "unknown unit 'line'"),
        ({"ways": [study.Way(label="random")], "baselines": ["random"]}, InvalidArgument, "names of baselines"),
    ],
)
def test_bad_questions_are_answered_plainly(
    folder: Path, given: dict[str, Any], error: type[AttnflowError], message: str
) -> None:
    asked: dict[str, Any] = {"data": TEXTS[:1], "ways": ["rollout"], "baselines": [], "references": [], **given}
    with pytest.raises(error, match=message):
        study.faithfulness(str(folder), asked.pop("data"), asked.pop("ways"), **asked)
