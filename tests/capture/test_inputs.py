"""Every form of input becomes the same graph; every bad one its own sentence."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from attnflow import capture
from attnflow.errors import CaptureError, InvalidArgument
from tests.capture import texts
from tests.capture.zoo import build, keywords

tf: Any = transformers  # whose classes are not typed

TEXT = "The keys to the cabinets"


@pytest.fixture(scope="module")
def bert() -> Any:
    return build("BERT")


@pytest.fixture(scope="module")
def gpt() -> Any:
    return build("GPT-2")


def ids(tokenizer: Any, text: str = TEXT) -> list[int]:
    found: list[int] = tokenizer(text)["input_ids"]
    return found


@pytest.mark.parametrize(
    "form",
    [
        "text",
        "ids",
        "numpy ids",
        "torch ids",
        "keywords",
        "encoding",
        "lists",
        "arrays",
        "words",
        "rows of ids",
        "column",
        "list",
    ],
)
def test_every_form_gives_the_same(bert: Any, form: str) -> None:
    tokenizer = texts.wordpiece()
    expected = capture.graph(bert, TEXT, tokenizer)
    numbers = ids(tokenizer)
    inputs: dict[str, Any] = {
        "text": TEXT,
        "ids": numbers,
        "numpy ids": np.array(numbers),
        "torch ids": torch.tensor(numbers),
        "keywords": {"input_ids": torch.tensor([numbers])},
        "encoding": tokenizer(TEXT, return_tensors="pt"),
        "lists": tokenizer(TEXT),  # without a batch axis
        "arrays": tokenizer(TEXT, return_tensors="np"),
        "words": TEXT.split(),
        "rows of ids": torch.tensor([numbers, numbers]),
        "column": np.array([TEXT, "keys"], dtype=object),
        "list": [TEXT, "keys"],
    }
    found = capture.graph(bert, inputs[form], tokenizer, words=form == "words")
    if form in ("rows of ids", "list", "column"):
        assert isinstance(found, list)
        assert len(found) == 2
        found = found[0]
    np.testing.assert_allclose(found.levels, expected.levels, atol=1e-6)
    assert found.tokens.labels == expected.tokens.labels
    assert found.tokens.special.tolist() == expected.tokens.special.tolist()


def test_a_list_of_one_is_a_list(bert: Any) -> None:
    assert len(capture.graph(bert, [TEXT], texts.wordpiece())) == 1


@pytest.mark.parametrize("batch_size", [1, 2, 3, 8])
def test_results_keep_their_order_and_values(gpt: Any, batch_size: int) -> None:
    lines = [TEXT, "keys", "The author laughed.", "the table, the keys", "don't"]
    together = capture.graph(gpt, lines, texts.byte_level(), batch_size=batch_size)
    for line, graph in zip(lines, together, strict=True):
        alone = capture.graph(gpt, line, texts.byte_level())
        assert graph.tokens == alone.tokens
        np.testing.assert_allclose(graph.levels, alone.levels, atol=1e-5)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_on_either_side_is_cropped(side: str) -> None:
    model = build("Llama")
    tokens = torch.tensor([[5, 6, 7, 8]])
    alone = capture.graph(model, {"input_ids": tokens})
    filler, none = torch.zeros(1, 3, dtype=torch.long), torch.zeros(1, 3, dtype=torch.long)

    def order(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.cat([b, a] if side == "left" else [a, b], 1)

    mask = order(torch.ones_like(tokens), none)
    padded = {
        "input_ids": order(tokens, filler),
        "attention_mask": mask,
        "position_ids": (mask.cumsum(1) - 1).clamp(min=0),
    }
    graph = capture.graph(model, padded)
    np.testing.assert_allclose(graph.levels, alone.levels, atol=1e-6)


def test_pairs_of_texts_are_told_apart(bert: Any) -> None:
    tokenizer = texts.wordpiece()
    graph = capture.graph(bert, ("The keys", "are on the table"), tokenizer)
    assert graph.tokens.labels.count("[SEP]") == 2
    encoded = tokenizer("The keys", "are on the table", return_tensors="pt")
    np.testing.assert_allclose(graph.levels, capture.graph(bert, encoded).levels, atol=1e-6)
    assert len(capture.graph(bert, [("a", "b"), ("the", "keys")], tokenizer)) == 2


def test_embeddings_instead_of_ids(bert: Any) -> None:
    numbers = torch.tensor([[1, 5, 9, 2]])
    vectors = bert.get_input_embeddings()(numbers).detach()
    graph = capture.graph(bert, {"inputs_embeds": vectors})
    np.testing.assert_allclose(graph.levels, capture.graph(bert, {"input_ids": numbers}).levels, atol=1e-6)
    assert graph.tokens.labels == ("0", "1", "2", "3")


def test_sound_is_read_by_a_processor() -> None:
    model = build("Whisper")
    extractor = tf.WhisperFeatureExtractor(feature_size=8, chunk_length=0.4, n_fft=64, hop_length=160)
    graph = capture.graph(model, np.zeros(6400, dtype=np.float32), processor=extractor)
    assert graph.tokens.labels[:2] == ("frame 0", "frame 1")
    assert len(graph.tokens) == 21
    assert graph.names[-1] == "decoder 1 cross"


def test_a_chat_goes_through_the_template(gpt: Any) -> None:
    graph = capture.graph(build("GPT-2"), [{"role": "user", "content": "a"}], texts.byte_level())
    assert "".join(graph.tokens.labels).endswith("<assistant>") or graph.tokens.words[-1].label == ">"


def test_a_folder_holds_model_and_tokenizer(bert: Any, tmp_path: Path) -> None:
    bert.save_pretrained(tmp_path)
    texts.wordpiece().save_pretrained(tmp_path)
    expected = capture.graph(bert, TEXT, texts.wordpiece())
    for model in (str(tmp_path), tmp_path, tf.BertForSequenceClassification.from_pretrained(tmp_path)):
        graph = capture.graph(model, TEXT)
        np.testing.assert_allclose(graph.levels, expected.levels, atol=1e-6)
        assert graph.options["query_is"] == "the class token"
    assert capture.graph(tmp_path, ids(texts.wordpiece())).tokens.labels[0] == "[CLS]"


# --- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inputs", ["", "   ", ["keys", ""], ("keys", " "), [], {"input_ids": torch.zeros(1, 0)}])
def test_empty_input(bert: Any, inputs: Any) -> None:
    with pytest.raises((CaptureError, InvalidArgument), match="empty|batch of input"):
        capture.graph(bert, inputs, texts.wordpiece())


def test_empty_words_and_ids(bert: Any) -> None:
    with pytest.raises(CaptureError, match="the words are empty"):
        capture.graph(bert, [""], texts.wordpiece(), words=True)
    with pytest.raises(CaptureError, match="token ids is empty"):
        capture.graph(bert, np.array([], dtype=int))


def test_text_longer_than_the_model_allows(bert: Any) -> None:
    long = "keys " * 100
    with pytest.raises(CaptureError, match=r"the input has \d+ tokens, the model takes at most 64.*truncate=True"):
        capture.graph(bert, long, texts.wordpiece())
    graph = capture.graph(bert, long, texts.wordpiece(), truncate=True)
    assert len(graph.tokens) == 64
    assert graph.tokens.labels[-1] == "[SEP]"


def test_the_limit_of_roberta_leaves_out_its_padding_rows() -> None:
    from attnflow.capture._models import length_limit

    assert length_limit(build("RoBERTa"), None) == 63  # 64 rows, counted from padding index + 1
    assert length_limit(build("T5"), None) is None
    assert length_limit(build("OPT"), None) == 64


def test_a_tokenizer_that_does_not_fit(bert: Any) -> None:
    tokenizer = copy.deepcopy(texts.byte_level())
    tokenizer.add_tokens([f"new{i}" for i in range(20)])
    with pytest.raises(
        CaptureError, match=r"the tokenizer does not fit the model: it gives token id \d+, .* knows ids 0 to 289"
    ):
        capture.graph(bert, "The new19", tokenizer)
    with pytest.raises(CaptureError, match="the ids do not fit the model: it gives token id -3"):
        capture.graph(bert, [1, -3])


def test_a_missing_tokenizer(bert: Any) -> None:
    with pytest.raises(
        CaptureError, match="was not loaded from a folder or the hub, so its tokenizer is not known. Pass tokenizer="
    ):
        capture.graph(bert, TEXT)


def test_a_folder_without_a_tokenizer(bert: Any, tmp_path: Path) -> None:
    bert.save_pretrained(tmp_path)
    with pytest.raises(CaptureError, match="holds no tokenizer. Pass tokenizer="):
        capture.graph(str(tmp_path), TEXT)


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="there is no folder"):
        capture.graph(str(tmp_path / "missing"), TEXT)
    with pytest.raises(CaptureError, match=r"holds no model: there is no config.json"):
        capture.graph(str(tmp_path), TEXT)


def test_a_hub_name_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: Any, **__: Any) -> None:
        raise OSError("We couldn't connect to the hub")

    monkeypatch.setattr(tf.AutoConfig, "from_pretrained", offline)
    with pytest.raises(CaptureError, match="If this machine is offline, download it elsewhere with save_pretrained"):
        capture.graph("bert-base-uncased", TEXT)


@pytest.mark.parametrize("name", ["BERT", "DeBERTa-v2", "Llama"])
def test_weights_that_are_not_numbers(name: str) -> None:
    model = build(name)
    with torch.no_grad():
        list(model.parameters())[5].fill_(torch.nan)
    with pytest.raises(CaptureError, match="holds NaN or infinity. Its weights do"):
        capture.graph(model, keywords(name))


@pytest.mark.parametrize("model", [3, None, "", torch.nn.Linear(2, 2)])
def test_what_is_not_a_model(model: Any) -> None:
    with pytest.raises((CaptureError, InvalidArgument)):
        capture.graph(model, TEXT)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heads": "median"}, "unknown way to mix heads"),
        ({"heads": 4}, "there is no head 4"),
        ({"heads": [1, 2]}, "heads must be"),
        ({"heads": np.ones((2, 4))}, "2 layers"),
        ({"edges": "atention"}, "Did you mean 'attention'"),
        ({"residual": 2}, "residual is a share"),
        ({"dtype": "int8"}, "unknown storage"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"generate": 3}, "does not generate text|generate= needs text"),
        ({"top_k": 0}, "top_k must be"),
        ({"topk": 3}, "unknown option 'topk'. Did you mean 'top_k'"),
        ({"edges": ["attention"]}, "unknown edge rule"),
        ({"dtype": ["float16"]}, "unknown storage"),
    ],
)
def test_options_that_do_not_fit(bert: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((CaptureError, InvalidArgument), match=message):
        capture.graph(bert, [1, 5, 2], **options)


def test_a_mask_that_hides_everything(bert: Any) -> None:
    with pytest.raises(CaptureError, match="marks all positions of an input as padding"):
        capture.graph(
            bert,
            {"input_ids": torch.ones(1, 3, dtype=torch.long), "attention_mask": torch.zeros(1, 3, dtype=torch.long)},
        )


def test_a_mask_of_another_shape(bert: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"the attention mask has shape \(1, 3\), the input it is for \(1, 7\)"):
        capture.graph(bert, {"input_ids": torch.ones(1, 7, dtype=torch.long), "attention_mask": torch.ones(1, 3)})


@pytest.mark.parametrize(
    ("ids", "where"),
    [([3, "a"], "at position 1 came 'a'"), ([True, 3], "came True"), (np.ones((1, 1, 3), int), "came")],
)
def test_ids_that_are_no_numbers(bert: Any, ids: Any, where: str) -> None:
    with pytest.raises(InvalidArgument, match=f"token ids are whole numbers, .*{where}"):
        capture.graph(bert, ids)


def test_more_than_the_positions_reach(bert: Any, gpt: Any) -> None:
    """However it comes, and before the model fails over it in words of its own."""
    long = torch.full((1, 65), 5)
    for model in (bert, gpt):
        with pytest.raises(CaptureError, match=r"the input has 65 tokens, the model takes at most 64"):
            capture.graph(model, {"input_ids": long})
    assert len(capture.graph(gpt, [5] * 62, generate=2).tokens) <= 64
    with pytest.raises(CaptureError, match=r"input and generated text come to 65 tokens, the model takes at most 64"):
        capture.graph(gpt, [5] * 62, generate=3)
    two_sided = build("BART")
    with pytest.raises(CaptureError, match=r"input and generated text come to 65 tokens, the decoder takes at most 64"):
        capture.graph(two_sided, [5, 6, 7], generate=65)
    with pytest.raises(CaptureError, match=r"the decoder's input has 65 tokens, the decoder takes at most 64"):
        capture.graph(two_sided, {"input_ids": long[:, :4], "decoder_input_ids": long})


def test_what_is_no_tokenizer_no_text_and_no_weights(bert: Any) -> None:
    with pytest.raises(InvalidArgument, match="tokenizer must be a loaded tokenizer, .* got 5"):
        capture.graph(bert, TEXT, 5)
    for inputs in ([TEXT, 3], [(TEXT, None)]):
        with pytest.raises(
            InvalidArgument, match=r"a text was expected, got (3|None). All inputs of a list are of one kind"
        ):
            capture.graph(bert, inputs, texts.wordpiece())
    with pytest.raises(CaptureError, match="on the meta device: it has shapes and no weights"):
        capture.graph(build("BERT").to("meta"), TEXT, texts.wordpiece())


def test_inputs_of_no_known_form(bert: Any) -> None:
    for unknown in (3.5, b"keys", None, {1, 2}):
        with pytest.raises(InvalidArgument, match="inputs must be text"):
            capture.graph(bert, unknown)
    with pytest.raises(InvalidArgument, match=r"for example input_ids of shape \(1, n\); got words of shape \(1, 3\)"):
        capture.graph(bert, {"words": torch.ones(1, 3)})
    with pytest.raises(InvalidArgument, match="input_ids must be a rectangle of numbers"):
        capture.graph(bert, {"input_ids": [[1, 2], [3]]})
    with pytest.raises(InvalidArgument, match="a chat message is a dict"):
        capture.graph(bert, [{"role": "user"}], texts.byte_level())
    with pytest.raises(CaptureError, match="no chat template"):
        capture.graph(bert, [{"role": "user", "content": "a"}], texts.wordpiece())
    with pytest.raises(InvalidArgument, match="cannot record 'values'"):
        capture.stack(bert, [1, 2], record=("values",))
