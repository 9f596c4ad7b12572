"""explain: one call, with the query that the output is read from."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import attnflow as af
from attnflow import _explain, capture
from attnflow.errors import CaptureError, InvalidArgument, UnknownMethod
from tests.capture import texts
from tests.capture.zoo import build

TEXT = "The keys to the"


@pytest.mark.parametrize(
    ("name", "text", "query", "why"),
    [
        ("BERT", TEXT, 0, "the class token"),
        ("DistilBERT", "The [MASK] to the", 2, "the masked position"),
        ("GPT-2", TEXT, -1, "the last token, which the next one is read from"),
        ("BLOOM", TEXT, -1, "the last token, which the next one is read from"),
        ("gpt-oss", TEXT, -2, "the last token, which the next one is read from"),  # -1 is the sink
        ("T5", TEXT, -1, "the last token of the decoder, which the next one is read from"),
    ],
)
def test_the_default_query_is_where_the_output_is_read(name: str, text: str, query: int, why: str) -> None:
    tokenizer = texts.byte_level() if name in ("GPT-2", "BLOOM", "gpt-oss") else texts.wordpiece()
    found = af.explain(text, build(name), tokenizer=tokenizer)
    if name == "DistilBERT":
        query = found.tokens.labels.index("[MASK]")
    assert found.queries == (query % len(found.tokens),)
    assert found.options["query_is"] == why
    assert found.method == "rollout"
    assert found.scores.shape == (1, 1, len(found.tokens))
    assert found.scores.sum() == pytest.approx(1)


def test_it_is_capture_and_method() -> None:
    model, tokenizer = build("BERT"), texts.wordpiece()
    graph = capture.graph(model, TEXT, tokenizer, heads="max", residual=0.3, top_k=3)
    found = af.explain(
        TEXT, model, "raw", tokenizer=tokenizer, query="keys", level=None, heads="max", residual=0.3, top_k=3
    )
    np.testing.assert_allclose(found.scores, af.raw(graph, queries=["keys"]).scores, atol=1e-7)
    assert found.levels == (0, 1, 2)


def test_numbers_of_numpy_are_numbers() -> None:
    found = af.explain(TEXT, build("BERT"), tokenizer=texts.wordpiece(), query=np.int64(2), level=np.int64(-1))  # type: ignore[arg-type]
    assert (found.queries, found.levels) == ((2,), (2,))


def test_a_list_gives_a_list() -> None:
    found = af.explain([TEXT, "keys"], build("BERT"), tokenizer=texts.wordpiece())
    assert [len(one.tokens) for one in found] == [len(texts.wordpiece()(t)["input_ids"]) for t in (TEXT, "keys")]


def test_written_tokens_are_asked_about_where_they_were_predicted() -> None:
    found = af.explain(TEXT, build("GPT-2"), tokenizer=texts.byte_level(), generate=3)
    assert found.queries == tuple(one["row"] for one in found.options["predicted"])


def test_gradient_edges_with_a_target() -> None:
    found = af.explain(TEXT, build("BERT"), tokenizer=texts.wordpiece(), edges="chefer", target="label_1")
    assert found.options["edges"] == "chefer"
    assert found.scores.sum() == pytest.approx(1)


def test_a_method_of_ones_own() -> None:
    def mine(graph: Any, queries: Any = None, levels: Any = None) -> af.Attribution:
        return af.raw(graph, queries, levels)

    assert af.explain(TEXT, build("BERT"), mine, tokenizer=texts.wordpiece()).method == "raw"


def test_what_does_not_exist() -> None:
    model, tokenizer = build("BERT"), texts.wordpiece()
    with pytest.raises(UnknownMethod, match="Did you mean 'rollout'"):
        af.explain(TEXT, model, "rolout", tokenizer=tokenizer)
    with pytest.raises(InvalidArgument, match="unknown option 'headz'"):
        af.explain(TEXT, model, tokenizer=tokenizer, headz="max")
    with pytest.raises(InvalidArgument, match="no token is 'doors'"):
        af.explain(TEXT, model, tokenizer=tokenizer, query="doors")


def test_without_the_bundled_model_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_explain, "BUNDLED", "not_there")
    with pytest.raises(CaptureError, match=r"the bundled model is not part of this installation. Pass model="):
        af.explain(TEXT)


@pytest.mark.parametrize("code", ["import attnflow.capture", "from attnflow import capture, explain"])
def test_nothing_heavy_is_loaded_until_it_is_used(code: str) -> None:
    script = f"{code}\nimport sys\nprint(*[n for n in ('torch', 'transformers', 'tokenizers', 'captum') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_the_door_of_capture_is_exactly_this() -> None:
    assert (
        set(capture.__all__)
        == {
            "Ablation",
            "ablation",
            "grad_cam",
            "randomised",
            "Reference",
            "blank_out",
            "captum",
            "graph",
            "input_gradient",
            "load",
            "processor_for",
            "rules",
            "stack",
            "tokenizer_for",
            "watched",
        }
        == set(dir(capture))
    )
    for name in capture.__all__:
        assert name == "rules" or callable(getattr(capture, name))
    assert set(dir(capture.rules)) == set(capture.rules.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'grapf'"):
        _ = capture.grapf


def test_without_torch_it_names_the_extra() -> None:
    script = (
        "import sys; sys.modules['torch'] = None\nfrom attnflow import capture\nfrom attnflow.errors import MissingExtra\n"
        "try:\n    capture.graph\nexcept MissingExtra as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 'pip install "attnflow[models]"' in done.stdout
