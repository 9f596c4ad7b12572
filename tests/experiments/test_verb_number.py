"""The verb-number model: its readers, its generated language, its training, and the model that is shipped."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from experiments.verb_number import corpus, lexicon, tokenizer  # noqa: E402
from experiments.verb_number.augment import Augmenter, with_tags_for_rare  # noqa: E402
from experiments.verb_number.evaluate import BUNDLED, Share, evaluate, main  # noqa: E402
from experiments.verb_number.examples import (  # noqa: E402
    NUMBER_OF_TAG,
    Example,
    UnreadableExamples,
    read,
    shared_folder,
)
from experiments.verb_number.grammar import Grammar, inflect  # noqa: E402
from experiments.verb_number.network import Batch  # noqa: E402
from experiments.verb_number.recipe import SMALL  # noqa: E402
from experiments.verb_number.train import Training  # noqa: E402

if TYPE_CHECKING:
    from torch import Tensor

SHARED = (
    "source\tsentence\tsubj_index\tverb_index\tnumber\tn_attractors\tlicence\n"
    'made\tthe " keys to the cabinet are here .\t2\t6\tplur\t1\tCC0\n'
    "made\tthe dog barks\t-1\t2\tsing\t0\tCC0\n"
    "made\tare you there ?\t-1\t0\tplur\t0\tCC0\n"
)
DEPENDENCIES = (
    "sentence\torig_sentence\tpos_sentence\tsubj\tverb\tsubj_pos\thas_rel\thas_nsubj\tverb_pos\tsubj_index\tverb_index\t"
    "n_intervening\tlast_intervening\tn_diff_intervening\tdistance\tmax_depth\tall_nouns\tnouns_up_to_verb\r\n"
    '"the "" NNS of the party are late"\t"the "" keepers of the party are late"\t"DT `` NNS IN DT NN VBP JJ"\tkeepers\tare\t'
    "NNS\tFalse\tFalse\tVBP\t3\t7\t1\tNN\t1\t4\t1\tkeepers party\tkeepers party\r\n"
)


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def write(path: Path, text: str) -> Path:
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("name", ["rows.tsv", "rows.tsv.gz"])
def test_the_shared_format_counts_from_zero(tmp_path: Path, name: str) -> None:
    first, second = read(write(tmp_path / name, SHARED))  # the third row has no word before its verb
    assert first.words == words('the " keys to the cabinet')
    assert (first.plural, first.words[first.subject], first.attractors, first.licence) == (True, "keys", 1, "CC0")
    assert (second.words, second.plural, second.subject) == (("the", "dog"), False, -1)


@pytest.mark.parametrize("name", ["agr_50_mostcommon_10K.tsv", "agr_50_mostcommon_10K.tsv.gz"])
def test_the_table_of_dependencies_counts_from_one_and_quotes(tmp_path: Path, name: str) -> None:
    (row,) = read(write(tmp_path / name, DEPENDENCIES))
    assert row.words == words('the " NNS of the party')
    assert row.tags == words("DT `` NNS IN DT NN")
    assert (row.plural, row.words[row.subject], row.attractors) == (True, "NNS", 1)


@pytest.mark.parametrize(
    ("name", "attractors"), [("numpred.train", None), ("numpred.test.2", 2), ("numpred.test.3.gz", 3)]
)
def test_the_simple_format_names_its_attractors(tmp_path: Path, name: str, attractors: int | None) -> None:
    rows = read(write(tmp_path / name, "VBZ\tthe key to the cabinets\nVBP\tthe NNS\n"))
    assert [(row.words, row.plural, row.attractors) for row in rows] == [
        (words("the key to the cabinets"), False, attractors),
        (("the", "NNS"), True, attractors),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b c\n", "wanted a header"),
        ("", "wanted a header"),
        ("VBZ\tthe dog\nVBD\tthe cat\n", "line 2 starts with 'VBD'"),
        (SHARED + "made\ttoo few\n", "line 5 has 2 fields"),
        (SHARED.replace("sing", "dual"), "number is 'dual'"),
    ],
)
def test_a_foreign_file_is_named_as_such(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UnreadableExamples, match=message):
        read(write(tmp_path / "some.tsv", text))


def test_a_sample_is_even_and_the_same_each_time(tmp_path: Path) -> None:
    file = write(tmp_path / "numpred.train", "".join(f"VBZ\tthe key {number}\n" for number in range(2000)))
    drawn = [int(row.words[-1]) for row in read(file, sample=400)]
    assert drawn == [int(row.words[-1]) for row in read(file, sample=400)]
    assert len(set(drawn)) == 400
    assert all(60 < sum(low <= number < low + 500 for number in drawn) < 140 for low in (0, 500, 1000, 1500))
    assert len(read(file, sample=5000)) == 2000


def test_evaluate_tells_a_users_mistake_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "absent.tsv")]) == 1
    assert capsys.readouterr().out.startswith("cannot read")
    cut = tmp_path / "cut.tsv.gz"
    cut.write_bytes(gzip.compress(SHARED.encode())[:-12])
    assert main([str(cut)]) == 1
    assert capsys.readouterr().out.startswith("cannot read")
    rows = write(tmp_path / "rows.tsv", SHARED)
    assert main([str(rows), "--model", str(tmp_path)]) == 1
    assert "there is no model in" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("field", "value"),
    [("words", ()), ("subject", 9), ("tags", ("DT",))],
    ids=["no words", "subject outside", "few tags"],
)
def test_an_example_that_contradicts_itself_is_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"needs at least|outside|tags for"):
        replace(Example(("the", "dog"), False), **{field: value})  # type: ignore[arg-type]


@given(st.integers(), st.booleans())
def test_generated_labels_are_right_by_construction(seed: int, plural: bool) -> None:
    row = Grammar(lexicon.builtin()).example(Random(seed), plural=plural)
    subject = row.words[row.subject]
    pairs = dict(lexicon.builtin().nouns)
    assert subject in (set(pairs.values()) if plural else set(pairs))
    after = zip(row.words[row.subject + 1 :], row.tags[row.subject + 1 :], strict=True)
    others = [word for word, tag in after if tag == ("NN" if plural else "NNS")]
    assert row.attractors == len(others)
    assert set(others) <= (set(pairs) if plural else set(pairs.values()))


def test_generated_attractors_nest_and_are_many() -> None:
    rng = Random(0)
    counts = [Grammar(lexicon.builtin()).example(rng).attractors or 0 for _ in range(2000)]
    assert all(counts.count(wanted) > least for wanted, least in ((0, 300), (1, 400), (2, 200), (3, 50)))
    assert Grammar(lexicon.builtin()).example(Random(5)) == Grammar(lexicon.builtin()).example(Random(5))


def sentence(text: str) -> corpus.Tagged:
    pairs = [token.rsplit("/", 1) for token in text.split()]
    return corpus.Tagged(tuple(word for word, _ in pairs), tuple(tag for _, tag in pairs))


@pytest.mark.parametrize(
    ("text", "subject", "plural", "attractors"),
    [
        ("the/DT key/NN to/TO the/DT cabinets/NNS is/VBZ here/RB", "key", False, 1),
        ("dogs/NNS that/WDT chase/VBP the/DT cat/NN often/RB barked/VBD", "dogs", True, 1),
        (
            "he/PRP said/VBD that/IN the/DT student/NN 's/POS books/NNS made/VBN of/IN paper/NN may/MD burn/VB",
            "books",
            True,
            1,
        ),
    ],
)
def test_tags_alone_show_some_subjects(text: str, subject: str, plural: bool, attractors: int) -> None:
    (row,) = corpus.examples_of(sentence(text))
    assert (row.words[row.subject], row.plural, row.attractors) == (subject, plural, attractors)


@pytest.mark.parametrize(
    "text",
    [
        "a/DT number/NN of/IN people/NNS are/VBP here/RB",  # the verb contradicts the head
        "the/DT cat/NN and/CC the/DT dog/NN slept/VBD",  # two heads, and no verb that would tell
        "they/PRP bark/VBP",
    ],
)
def test_tags_that_do_not_show_the_subject_give_nothing(text: str) -> None:
    assert not list(corpus.examples_of(sentence(text)))


def test_a_licence_without_commercial_use_is_not_trained_on(tmp_path: Path) -> None:
    assert [corpus.is_free(name) for name in ("CC-BY-4.0", "CC-BY-SA-3.0", "CC-BY-NC-SA-3.0", "")] == [
        True,
        True,
        False,
        False,
    ]
    lines = "".join(
        f"made\t{licence}\ta/DT dog/NN {n}/CD\n" for n in range(99) for licence in ("CC-BY-4.0", "CC-BY-NC-4.0")
    )
    rows = list(corpus.read_tagged(write(tmp_path / "tagged.tsv.gz", "source\tlicence\tword/TAG ...\n" + lines)))
    assert {row.licence for row in rows} == {"CC-BY-4.0"}
    assert not any(corpus.is_held_out(" ".join(row.words)) for row in rows)
    assert 80 < len(rows) < 99


@given(st.integers())
def test_augmenting_keeps_the_label_true_to_the_subject(seed: int) -> None:
    rng = Random(seed)
    grammar = Grammar(lexicon.builtin())
    changed = Augmenter(grammar)(grammar.example(rng), rng)
    assert NUMBER_OF_TAG[changed.tags[changed.subject]] == changed.plural
    assert changed.attractors == sum(
        tag == ("NN" if changed.plural else "NNS") for tag in changed.tags[changed.subject + 1 :]
    )
    assert len(changed.words) == len(changed.tags)


def test_a_nouns_determiner_follows_its_number() -> None:
    words_of = lexicon.builtin()
    phrase = [("this", "DT"), ("old", "JJ"), ("key", "NN")]
    assert inflect(words_of, phrase, 2)
    assert phrase == [("these", "DT"), ("old", "JJ"), ("keys", "NNS")]
    assert not inflect(words_of, [("flibble", "NN")], 0)


def test_rare_words_become_their_tags() -> None:
    row = Example(words("the flibble , which"), False, subject=1, tags=words("DT NN , WDT"))
    assert with_tags_for_rare(row, {"the": 0, "which": 1}, 10).words == words("the NN , which")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Training:
    """The run of `--small`: generated data alone."""
    training = Training(SMALL, tmp_path_factory.mktemp("runs"), None)
    training.run(quiet=True)
    training.export(training.folder / "model")
    return training


def test_the_tokenizer_shows_number(small: Training) -> None:
    pieces = small.tokenizer.tokenize
    assert pieces("The NNS near NNP") == ["the", "NNS", "near", "NNP"]
    assert [pieces(word)[-1] for word in ("flibbles", "zzyqs", "glorps")] == ["##s"] * 3
    assert pieces("☃") == [tokenizer.UNK]
    ids = small.tokenizer("the key").input_ids
    assert ids[0] == small.tokenizer.cls_token_id
    assert len(ids) == 3
    encoder = tokenizer.Encoder(small.tokenizer)
    text = "the keys ' flibbles NN of off-world x"
    assert [piece for word in text.split() for piece in encoder.pieces(word)] == small.tokenizer(text).input_ids[1:]
    assert small.tokenizer.convert_ids_to_tokens(list(encoder.spelled("keys")))[-1] == "##s"


def test_the_small_recipe_learns_its_language(small: Training) -> None:
    score = evaluate(small.folder / "model", small.sources.held_out)
    assert score.share(0).accuracy > 0.65  # a few seconds teach it the nearest noun, not yet the subject
    assert "1 attractor " in score.table()


def test_a_killed_training_continues_as_if_it_had_never_stopped(small: Training, tmp_path: Path) -> None:
    recipe = replace(SMALL, pretrain_pools=1, pools=2, pool=128)

    def trained(folder: Path, *, interrupted: bool) -> dict[str, Tensor]:
        if interrupted:
            dying = Training(recipe, folder, None)
            dying.run(stop_after=1, quiet=True)

            def step(batch: Batch, *, filling: bool) -> dict[str, float]:
                Training.step(dying, batch, filling=filling)
                raise KeyboardInterrupt  # in the middle of a pool

            dying.step = step  # type: ignore[method-assign]
            with pytest.raises(KeyboardInterrupt):
                dying.run(quiet=True)
        training = Training(recipe, folder, None)
        training.run(quiet=True)
        return training.average | training.network.state_dict()

    whole, pieced = (trained(tmp_path / name, interrupted=name == "b") for name in "ab")
    assert whole.keys() == pieced.keys()
    assert all(torch.equal(whole[name], pieced[name]) for name in whole)


def test_wilsons_interval() -> None:
    low, high = Share(8, 10).interval  # the textbook's example: 0.490 to 0.943
    assert (round(low, 3), round(high, 3)) == (0.490, 0.943)
    assert Share(0, 5).interval[0] == pytest.approx(0)


needs_model = pytest.mark.skipif(not (BUNDLED / "model.safetensors").exists(), reason="no model is bundled yet")


@needs_model
def test_the_bundled_model_is_what_the_card_says() -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = AutoModelForSequenceClassification.from_pretrained(BUNDLED, local_files_only=True)
    config = model.config
    assert (config.num_hidden_layers, config.num_attention_heads, config.hidden_size) == (6, 8, 128)
    assert config.id2label == {0: "singular", 1: "plural"}
    assert sum(file.stat().st_size for file in BUNDLED.iterdir()) <= 6_000_000
    assert "Licence" in (BUNDLED / "MODEL_CARD.md").read_text(encoding="utf-8")
    loaded = AutoTokenizer.from_pretrained(BUNDLED, local_files_only=True)
    assert loaded.is_fast
    inputs = loaded("The key to the cabinets", return_tensors="pt")
    assert loaded.convert_ids_to_tokens(inputs.input_ids[0])[0] == loaded.cls_token
    assert loaded.unk_token is not None


@needs_model
def test_the_bundled_model_knows_the_generated_language() -> None:
    rng = Random("unseen")
    score = evaluate(BUNDLED, [Grammar(lexicon.builtin()).example(rng) for _ in range(500)])
    assert score.share().accuracy >= 0.9


@needs_model
def test_the_bundled_model_on_the_papers_task() -> None:
    folder = shared_folder()
    if folder is None:
        pytest.skip("no shared data: set ATTNFLOW_SHARED, or put it in ../shared")
    rows = Random(0).sample(read(folder / "agreement_linzen.tsv.gz"), 3000)
    score = evaluate(BUNDLED, rows)
    assert score.share().accuracy >= 0.95
    assert score.share(1).accuracy >= 0.80
