"""What a worker makes of rows: what af.explain makes of them one by one, whatever lies beside them."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import attnflow as af
from attnflow.batch._job import Job
from attnflow.batch._rows import Row, kind_of, length_of
from attnflow.batch._schema import SCHEMA
from attnflow.batch._work import DEADLY, Work, groups
from tests.batch.corpus import JOB, POISON, part_of, texts
from tests.capture import vision_zoo


def rows_of(work: Work, values: list[Any], **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(io.BytesIO(work(part_of(values), **options).content)).to_pylist()
    return found


def with_job(work: Work, methods: Any, options: dict[str, Any], **given: Any) -> Work:
    """Another job with the same loaded model."""
    made = object.__new__(Work)
    made.__dict__.update({**work.__dict__, "job": Job.of(methods, options, **{**JOB, **given})})
    return made


def test_rows_are_what_explain_says(work: Work) -> None:
    given_texts = texts(20)
    rows = rows_of(work, given_texts)
    assert [(row["input"], row["method"]) for row in rows] == [(i, m) for i in range(20) for m in ("rollout", "flow")]
    for row in rows:
        own = af.explain(given_texts[row["input"]], work.loaded.model, row["method"], tokenizer=work.loaded.tokenizer)
        assert (row["level"], row["level_name"], row["error"]) == (own.levels[0], own.level_names[0], None)
        assert (row["query"], row["query_is"]) == (own.queries[0], own.options["query_is"])
        assert (tuple(row["tokens"]), row["special"]) == (own.tokens.labels, own.tokens.special.tolist())
        assert row["query_token"] == own.tokens.labels[own.queries[0]]
        np.testing.assert_allclose(row["scores"], own.of(own.queries[0]), atol=2e-6)
        shares = [row[f"saturation_{name}"] for name in ("query", "input", "either")]
        if own.saturation is None:
            assert shares == [None] * 3
        else:
            assert shares == [own.saturation.query[0], own.saturation.input[0], own.saturation.either[0]]
        assert (row["version"], row["model"], row["label"]) == (af.__version__, "attnflow/verb_number", "a")
        assert json.loads(row["options"])["residual"] == 0.5


@given(st.lists(st.one_of(st.sampled_from(texts(6)), st.sampled_from(list(POISON.values()))), min_size=1, max_size=12))
def test_a_poisoned_row_costs_nobody_else_anything(work: Work, values: list[Any]) -> None:
    rows = rows_of(work, values)
    assert [row["input"] for row in rows] == [i for i in range(len(values)) for _ in range(2)]
    for row in rows:
        value = values[row["input"]]
        if value in POISON.values():
            assert row["error"]
            assert row["scores"] is row["level"] is None
        else:
            assert row["error"] is None
            assert math.isclose(sum(row["scores"]), 1, abs_tol=1e-5) or row["method"] == "flow"


def test_what_each_poison_is_said_to_be(work: Work) -> None:
    said = {name: row["error"] for name, row in zip(POISON, rows_of(work, list(POISON.values()))[::2], strict=True)}
    assert said["empty"].startswith("the text is empty")
    assert said["missing"] == "there is nothing to explain: the value is missing"
    assert said["number"] == "a text was expected, got the number 7"
    assert "at most 128" in said["long"]


def test_a_method_that_fails_leaves_the_others(work: Work) -> None:
    def broken(graph: Any, queries: Any = None, levels: Any = None) -> Any:
        raise ZeroDivisionError("by chance")

    rows = rows_of(with_job(work, [broken, "raw"], {}), ["the key"])
    assert [(row["method"], row["error"]) for row in rows] == [
        ("broken", "ZeroDivisionError: by chance"),
        ("raw", None),
    ]


def test_levels_and_queries_are_rows(work: Work) -> None:
    rows = rows_of(with_job(work, "rollout", {"residual": 0.3}, level=None, query=[0, -1]), ["the key"])
    assert [(row["level"], row["query"]) for row in rows] == [(level, query) for level in range(6) for query in (0, 2)]
    whole = af.explain(
        "the key", work.loaded.model, tokenizer=work.loaded.tokenizer, residual=0.3, query=[0, -1], level=None
    )
    np.testing.assert_allclose([row["scores"] for row in rows], whole.scores.reshape(12, 3), atol=1e-6)
    assert {json.loads(row["options"])["residual"] for row in rows} == {0.3}


def test_a_query_that_a_text_has_not_is_that_texts_error(work: Work) -> None:
    rows = rows_of(with_job(work, "rollout", {}, query="key"), ["the key to the dog", "the dog"])
    assert rows[0]["query_token"] == "key"
    assert "no token is 'key'" in rows[1]["error"]


def test_words_are_joined(work: Work) -> None:
    [row] = rows_of(with_job(work, "rollout", {}, join_words=True), ["the keys"])
    assert row["tokens"] == ["[CLS]", "the", "keys"]


def test_other_kinds_of_input(work: Work) -> None:
    ids = work.loaded.tokenizer("the key")["input_ids"]
    rows = rows_of(with_job(work, "rollout", {}), ["the key", ["the", "key"], ids])
    assert [row["tokens"] for row in rows] == [["[CLS]", "the", "key"]] * 3
    np.testing.assert_allclose(rows[1]["scores"], rows[0]["scores"], atol=1e-6)
    np.testing.assert_allclose(rows[2]["scores"], rows[0]["scores"], atol=1e-6)


def test_row_by_row_gives_the_same_and_leaves_out_the_deadly(work: Work) -> None:
    announced: list[int] = []
    values = texts(6)
    together, alone = rows_of(work, values), rows_of(work, values, alone=announced.append, deadly={2})
    assert sorted(announced) == [0, 1, 3, 4, 5]
    for one, other in zip(together, alone, strict=True):
        assert (one["input"], one["tokens"]) == (other["input"], other["tokens"] or one["tokens"])
        if one["input"] == 2:
            assert other["error"] == DEADLY
        else:
            np.testing.assert_allclose(one["scores"], other["scores"], atol=2e-6)


def test_the_columns_are_those_of_the_schema(work: Work) -> None:
    found = pq.read_schema(io.BytesIO(work(part_of(["", "the key"])).content))
    assert found.names == [*SCHEMA.names, "label"]
    assert [field.type for field in found][:-1] == [field.type for field in SCHEMA]


@given(
    st.lists(
        st.one_of(st.text(max_size=200), st.tuples(st.text(), st.text()), st.lists(st.integers(0, 9), min_size=1))
    ),
    st.integers(1, 9),
)
def test_groups_are_alike_and_hold_every_row_once(values: list[Any], most: int) -> None:
    rows = [Row(i, value, error="bad" if value == "" else None) for i, value in enumerate(values)]
    found = list(groups(rows, most))
    assert sorted(row.number for group in found for row in group) == list(range(len(rows)))
    for group in found:
        assert 1 <= len(group) <= most
        assert len({(kind_of(row.value), row.error) for row in group}) == 1
        lengths = [length_of(row.value) for row in group]
        assert lengths == sorted(lengths)
    assert [len(group) for group in groups([Row(i, "word " * 9000) for i in range(3)], 8)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("methods", "options", "message"),
    [
        ("rolout", {}, "unknown method 'rolout'. Did you mean 'rollout'"),
        ([], {}, "no method was asked for"),
        ("rollout", {"normalise": True}, "unknown option 'normalise' for rollout"),
        ("rollout", {"residul": 0.5}, "Did you mean 'residual'"),
        ("rollout", {"edges": "gradiant"}, "unknown edge rule 'gradiant'"),
        ("flow", {"threads": 2}, "unknown option 'threads' for flow"),
        ("rollout", {"words": True}, "words= is not an option here"),
    ],
)
def test_a_wrong_option_is_found_before_anything_starts(methods: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(af.AttnflowError, match=message.replace("(", "\\(")):
        Job.of(methods, options, **JOB)


def test_an_option_goes_to_the_methods_that_have_it(work: Work) -> None:
    rows = rows_of(with_job(work, ["rollout", "flow"], {"normalise": True}), ["the key to the dog"])
    assert all(math.isclose(sum(row["scores"]), 1, abs_tol=1e-5) for row in rows)


def test_images_of_every_make(tmp_path: Path) -> None:
    model = vision_zoo.build("ViT").eval()
    processor = transformers.ViTImageProcessor(size={"height": vision_zoo.SIDE, "width": vision_zoo.SIDE})
    pixels = np.random.default_rng(3).integers(0, 255, (40, 30, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    (tmp_path / "broken.png").write_bytes((tmp_path / "a.png").read_bytes()[:500])
    Image.fromarray(pixels[:, ::-1]).save(tmp_path / "c.png")
    seeing = Work(Job.of("rollout", {}, **{**JOB, "model": model, "processor": processor}), {"label": "string"})
    rows = rows_of(
        seeing, [tmp_path / "a.png", tmp_path / "broken.png", tmp_path / "c.png", (tmp_path / "a.png").read_bytes()]
    )
    assert [row["error"] is None for row in rows] == [True, False, True, True]
    for row, name in zip((rows[0], rows[2], rows[3]), ("a", "c", "a"), strict=True):
        own = af.explain(tmp_path / f"{name}.png", model, processor=processor)
        np.testing.assert_allclose(row["scores"], own.scores[0, 0], atol=2e-6)
        [grid] = own.tokens.grids
        assert row["grid"] == [grid.rows, grid.columns, grid.offset]
        assert len(row["options"]) < 2000
