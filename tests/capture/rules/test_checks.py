"""Checks of the rules that do not know their formulas: what must change, what must not, and what they cost the model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from numpy.typing import NDArray

import attnflow as af
from attnflow import capture
from attnflow.capture import rules
from attnflow.capture.rules import LayerRecord
from tests.capture import image_text_zoo, texts, zoo
from tests.capture.fingerprint import fingerprint
from tests.capture.foreign import TimmViT, grown
from tests.capture.rules.test_sums import sums_of
from tests.capture.test_image_text import ARGUMENTS
from tests.methods.test_relevance import Twin

tf: Any = transformers  # whose classes are not typed

EVERY = ["attention", "chefer", "gradient", *rules.variants()]
IDS = [5, 17, 40, 3, 99, 120, 7]


def graph(model: Any, inputs: Any, edges: Any, **options: Any) -> af.AttentionGraph:
    made = capture.graph(model, inputs, edges=edges, **options)
    assert isinstance(made, af.AttentionGraph)
    return made


def one_layer(**options: Any) -> Any:
    torch.manual_seed(0)
    config = tf.BertConfig(
        vocab_size=zoo.VOCABULARY,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=48,
        **options,
    )
    model = tf.BertModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(6)
    return model


@contextmanager
def swapped(values: torch.nn.Module, first: int, second: int) -> Iterator[None]:
    """While the block lasts, two positions' value vectors change places."""

    def swap(module: Any, given: Any, output: torch.Tensor) -> torch.Tensor:
        order = list(range(output.shape[1]))
        order[first], order[second] = second, first
        return output[:, order]

    handle = values.register_forward_hook(swap)
    try:
        yield
    finally:
        handle.remove()


def test_swapping_values_leaves_attention_and_moves_what_looks_at_values() -> None:
    model = one_layer()
    values = model.encoder.layer[0].attention.self.value
    for edges, moves in (
        ("attention", False),
        ("norm:none", True),
        ("norm", True),
        ("alti", True),
        ("routes", True),
        ("value_zeroing", True),
    ):
        before = af.rollout(graph(model, IDS, edges)).scores
        with swapped(values, 1, 4):
            after = af.rollout(graph(model, IDS, edges)).scores
        assert (np.abs(before - after).max() > 1e-3) == moves, edges


def test_value_zeroing_of_a_model_that_copies_one_token_gives_that_token() -> None:
    """Queries and keys are set so that every head gives all its weight to one token, and values pass."""
    model, copied = one_layer(), 4
    attention = model.encoder.layer[0].attention.self
    with torch.no_grad():
        rows = model.embeddings(torch.tensor([IDS]))[0]
        one_hot = torch.zeros(len(IDS))
        one_hot[copied] = 1
        picks = torch.linalg.pinv(rows) @ one_hot  # rows @ picks = 1 for this token, 0 for all others
        attention.query.weight.zero_()
        attention.query.bias.fill_(1000)
        attention.key.bias.zero_()
        attention.key.weight.copy_(picks.expand(32, -1))
    found = graph(model, IDS, "value_zeroing")
    expected = np.zeros((len(IDS), len(IDS)))
    expected[:, copied] = 1
    np.testing.assert_array_equal(found.levels[0], expected)
    assert {a for row in range(len(IDS)) for a in np.flatnonzero(af.flow(found).scores[0, row])} == {copied}


def test_measured_is_1_where_attention_writes_nothing() -> None:
    model = zoo.build("BERT")
    with torch.no_grad():
        dense = model.bert.encoder.layer[1].attention.output.dense
        dense.weight.zero_()
        dense.bias.zero_()
    found = graph(model, IDS, "attention", residual="measured")
    shares = np.array(found.options["residual_shares"])
    np.testing.assert_allclose(shares[1], 1, atol=1e-6)
    np.testing.assert_allclose(found.levels[1], np.eye(len(IDS)), atol=1e-6)
    assert ((shares[[0, 2]] > 0.1) & (shares[[0, 2]] < 0.99)).all()


def test_effective_attention_does_what_attention_does_to_the_values() -> None:
    """24 tokens, heads 8 wide: 16 dimensions of each row are lost. 7 tokens: none are."""
    model = zoo.build("BERT")
    long = list(range(3, 27))
    seen: list[LayerRecord] = []

    def keep(record: LayerRecord) -> torch.Tensor:
        seen.append(record)
        return record.weights.mean(0)

    for head in range(zoo.HEADS):
        seen.clear()
        plain = graph(model, long, keep, residual=None)
        found = graph(model, long, "effective", residual=None, heads=head)
        assert found.signed
        for level, record in zip(found.levels, seen, strict=True):
            weights, values = record.weights[head].double().numpy(), record.value[head].double().numpy()
            np.testing.assert_allclose(level @ values, weights @ values, atol=1e-4)
            assert np.abs(level - weights).max() > 1e-3
            assert np.linalg.matrix_rank(level.astype(np.float64), tol=1e-4) <= 8
        assert len(plain) == len(found)
    short = graph(model, IDS, "effective", residual=None)
    np.testing.assert_allclose(short.levels, graph(model, IDS, "attention", residual=None).levels, atol=1e-5)


@contextmanager
def nudged(model: Any, layer: int, place: tuple[int, int, int], by: float) -> Iterator[None]:
    """While the block lasts, one attention weight (head, query, key) of a layer is a little larger than its softmax says."""
    calls = itertools.count()

    def attention(
        module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: Any = None, **options: Any
    ) -> tuple[Any, Any]:
        scores = query @ key.transpose(-1, -2) * (scaling or query.shape[-1] ** -0.5)
        if getattr(module, "is_causal", False) and mask is None:
            scores = scores + torch.full(scores.shape[-2:], -1e300, dtype=scores.dtype).triu(1)
        weights = torch.softmax(scores if mask is None else scores + mask, -1)
        if next(calls) == layer:
            weights = weights.clone()
            weights[(0, *place)] += by
        return (weights @ value).transpose(1, 2).contiguous(), weights

    tf.AttentionInterface.register("nudged", attention)
    model.set_attn_implementation("nudged")
    try:
        yield
    finally:
        model.set_attn_implementation("sdpa")


@pytest.mark.parametrize(("name", "target"), [("BERT", 1), ("BERT", (1, 0)), ("GPT-2", 33), ("GPT-2", (33, 34))])
def test_gradients_of_targets_are_finite_differences(name: str, target: Any, rng: np.random.Generator) -> None:
    model = zoo.build(name).double()
    stack = capture.stack(model, IDS, record=("attention", "gradients"), target=target)

    def score() -> float:
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([IDS])).logits[0]
        row = logits if logits.ndim == 1 else logits[-1]
        return float(row[target[0]] - row[target[1]] if isinstance(target, tuple) else row[target])

    for _ in range(12):
        layer, head = int(rng.integers(3)), int(rng.integers(4))
        query, key = sorted(rng.integers(len(IDS), size=2).tolist(), reverse=True)
        found = []
        for by in (1e-5, -1e-5):
            with nudged(model, layer, (head, query, key), by):
                found.append(score())
        assert stack.gradients[layer, head, query, key] == pytest.approx(
            (found[0] - found[1]) / 2e-5, rel=1e-4, abs=1e-7
        )


@pytest.mark.parametrize("edges", EVERY)
@pytest.mark.parametrize("residual", ["own", "measured", "w_res", 0.3, None])
def test_every_combination_gives_a_graph_for_every_method_or_an_error_that_says_so(edges: str, residual: Any) -> None:
    model = zoo.build("BERT")
    found = graph(model, IDS, edges, residual=residual, target=1 if edges in ("chefer", "gradient") else None)
    assert found.options["edges"] == edges
    assert len(found) == 3
    assert np.isfinite(af.raw(found).scores).all()
    if edges == "effective":
        assert af.rollout(found).scores.shape == (3, 7, 7)
        with pytest.raises(af.errors.InvalidAttention, match="signed, and a negative number is no capacity"):
            af.flow(found)
        with pytest.raises(af.errors.InvalidAttention, match="signed, and relevance adds up amounts"):
            af.relevance(found)
        return
    assert all(found.proportions)
    np.testing.assert_allclose(af.rollout(found).scores.sum(-1), 1, rtol=1e-9)
    assert (
        af.flow(found, queries=[0], levels=[-1]).scores >= af.rollout(found, queries=[0], levels=[-1]).scores - 1e-9
    ).all()
    if residual is None:
        assert af.relevance(found).scores.shape == (3, 7, 7)
    else:
        with pytest.raises(af.errors.InvalidArgument, match="relevance adds the identity itself"):
            af.relevance(found)


@pytest.mark.parametrize("edges", [*rules.variants(), "attention"])
@pytest.mark.parametrize("name", ["BERT", "Llama", "BART", "gpt-oss", "ALBERT"])
def test_padded_inputs_are_read_as_if_alone(name: str, edges: str) -> None:
    model, arguments = zoo.build(name), zoo.keywords(name)
    together = capture.graph(model, arguments, edges=edges, residual="own" if edges != "attention" else "measured")
    for item, found in enumerate(together):
        alone = graph(model, zoo.one_of(arguments, item), edges, residual="own" if edges != "attention" else "measured")
        np.testing.assert_allclose(found.levels, alone.levels, atol=2e-5)
        assert found.names == alone.names
        assert "[sink]" not in found.tokens.labels or edges == "attention"


@pytest.mark.parametrize("edges", ["norm", "value_zeroing", "attention"])
def test_the_model_is_left_as_it_was_and_runs_as_it_does(edges: str) -> None:
    model = zoo.build("Llama", training=True)
    before = fingerprint(model)
    hooks = sum(len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.modules())
    for residual in ("own", "measured"):
        capture.graph(model, IDS, edges=edges, residual=residual)
    with pytest.raises(ZeroDivisionError):
        capture.graph(model, IDS, edges=lambda record: 1 / 0)
    assert fingerprint(model) == before
    assert sum(len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.modules()) == hooks
    assert model.training


def test_causal_graphs_stay_causal() -> None:
    for name, edges in itertools.product(
        ("GPT-2", "Llama", "Mistral"), ["norm", "alti", "alti:l2", "value_zeroing", "routes"]
    ):
        levels = graph(zoo.build(name), IDS, edges).levels
        assert (np.triu(levels, 1) == 0).all(), (name, edges)


def test_heads_count_by_their_weights_and_one_head_alone_writes_alone() -> None:
    model = zoo.build("BERT")
    even, doubled = (graph(model, IDS, "norm", heads=heads).levels for heads in ([1, 1, 1, 1], [3, 3, 3, 3]))
    np.testing.assert_allclose(even, graph(model, IDS, "norm").levels, atol=1e-6)
    np.testing.assert_allclose(even, doubled, atol=1e-6)
    alone = graph(model, IDS, "norm:none", heads=2, residual=None, renormalise=False)
    seen: list[LayerRecord] = []

    def keep(record: LayerRecord) -> torch.Tensor:
        seen.append(record)
        return record.weights[0]

    capture.graph(model, IDS, edges=keep)
    for level, record in zip(alone.levels, seen, strict=True):
        written = record.weights[2][..., None] * record.vectors[2]
        np.testing.assert_allclose(level, written.norm(dim=-1), atol=1e-5)
    for heads in ("max", lambda matrices: matrices[0]):
        with pytest.raises(af.errors.InvalidArgument, match="adds up what the heads write"):
            capture.graph(model, IDS, edges="alti", heads=heads)


def own_rule(record: LayerRecord) -> NDArray[Any]:
    """What a user may write: how far what a key contributed points the way of the whole."""
    parts, whole = record.contributions(), record.written
    made: NDArray[Any] = torch.relu(torch.einsum("qkd,qd->qk", parts, whole)).numpy()
    return made


def test_a_users_own_rule_is_a_rule_like_any_other() -> None:
    model = zoo.build("Llama")
    found = graph(model, IDS, own_rule)
    assert found.options["edges"] == "own_rule"
    assert found.options["residual"] == 0.5
    assert all(found.proportions)
    assert af.flow(found, queries=[-1], levels=[-1]).scores.shape == (1, 1, 7)
    signed = graph(model, IDS, lambda record: record.weights.mean(0) - 0.01, residual=None)
    assert signed.signed
    np.testing.assert_allclose(signed.levels, graph(model, IDS, "attention", residual=None).levels - 0.01, atol=1e-6)
    with pytest.raises(af.errors.InvalidArgument, match=r"top_k weighs entries as amounts"):
        capture.graph(model, IDS, edges="effective", top_k=2)


@pytest.mark.parametrize(
    ("edges", "options", "message"),
    [
        ("altii", {}, "unknown edge rule 'altii'. Did you mean 'alti'"),
        ("norm:all", {}, "unknown edge rule 'norm:all'"),
        ("norm", {"with_layernorm": "second"}, "unknown value for with_layernorm, 'second'"),
        ("alti", {"distance": "l3"}, "unknown value for distance, 'l3'"),
        ("alti", {"with_layernorm": "both"}, "the edge rule alti has no option with_layernorm. It has distance"),
        ("attention", {"distance": "l1"}, "the edge rule attention has no option distance"),
        ("norm:both", {"with_layernorm": "first"}, "has no option with_layernorm"),
        ("alti", {"residual": "mesured"}, "unknown residual rule 'mesured'. Did you mean 'measured'"),
        (3, {}, "unknown edge rule 3"),
        (lambda record: record.weights, {}, r"must return finite numbers of shape \(7, 7\) \(queries, keys\); got shape \(4, 7, 7\)"),
        (lambda record: record.weights.mean(0) / 0, {}, "got NaN or infinity"),
        (lambda record: "nothing", {}, "got a str"),
    ],
)  # fmt: skip
def test_mistakes_are_named(edges: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(af.errors.InvalidArgument, match=message):
        capture.graph(zoo.build("BERT"), IDS, edges=edges, **options)


def test_an_unknown_family_says_what_was_not_found_and_the_call_alone_still_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = [family for family in rules.FAMILIES if "LlamaDecoderLayer" not in family.layers]
    model = zoo.build("Llama")
    expected = graph(model, IDS, "effective").levels
    monkeypatch.setattr("attnflow.capture.rules._families.FAMILIES", known)
    np.testing.assert_array_equal(graph(model, IDS, "effective").levels, expected)
    assert len(graph(model, IDS, "chefer", target=5)) == 3
    for edges, residual in (("norm", "own"), ("value_zeroing", "own"), ("attention", "measured")):
        with pytest.raises(
            af.errors.CaptureError,
            match="LlamaDecoderLayer is not in the table of model families, so its output projection",
        ):
            capture.graph(model, IDS, edges=edges, residual=residual)
    known.append(rules.Family("LlamaDecoderLayer", "self_attn", "self_attn.out", before="input_layernorm"))
    with pytest.raises(
        af.errors.CaptureError,
        match=r"LlamaDecoderLayer has no 'self_attn.out', which its line .* calls its projection",
    ):
        capture.graph(model, IDS, edges="norm")
    known[-1] = rules.Family("LlamaDecoderLayer", "self_attn", "self_attn.o_proj", before="input_layernorm")
    assert len(graph(model, IDS, "norm")) == 3


def test_a_gate_that_nobody_told_of_is_noticed() -> None:
    """Something between the heads and the projection: the parts would not add up, and are not given."""
    model = zoo.build("Llama")
    attention = model.model.layers[1].self_attn
    handle = attention.o_proj.register_forward_pre_hook(lambda module, given: (given[0] * 1.5,))
    with pytest.raises(af.errors.CaptureError, match="do not add up to what the output projection gave"):
        capture.graph(model, IDS, edges="alti")
    handle.remove()


@pytest.mark.parametrize("name", ["CLIP", "SigLIP", "LLaVA", "LLaVA with the class token", "Qwen2-VL"])
@pytest.mark.parametrize("edges", ["alti", "value_zeroing", "attention", "effective"])
def test_models_that_see_and_read(name: str, edges: str) -> None:
    """Towers side by side, patches among words; LLaVA keeps a cache while it runs, which a layer that runs again must not see."""
    found = graph(
        image_text_zoo.build(name), ARGUMENTS[name], edges, residual="measured" if edges == "attention" else "own"
    )
    assert found.signed == (edges == "effective")
    assert found.signed or all(found.proportions)
    assert np.isfinite(af.rollout(found).scores).all()


def test_models_with_attention_code_of_their_own_have_no_call_to_read() -> None:
    for edges, residual in (("alti", "own"), ("effective", "own"), ("attention", "measured")):
        with pytest.raises(af.errors.CaptureError, match="attention code of its own"):
            capture.graph(zoo.build("BLOOM"), IDS, edges=edges, residual=residual)


def test_half_precision_models_are_measured_too() -> None:
    model = zoo.build("Llama")
    for edges in ("norm", "alti", "alti:l2", "routes", "value_zeroing", "effective"):
        exact = graph(model.float(), IDS, edges).levels
        rounded = graph(model.bfloat16(), IDS, edges).levels
        assert np.abs(exact - rounded).max() < 0.05, edges


def test_modules_from_outside_transformers_have_a_call_and_may_be_given_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """After timm: effective and functions read the call; with a line in the table, norms and nearness add up too."""
    torch.manual_seed(0)
    model, image = grown(TimmViT()), torch.randn(2, 3, 16, 32)
    seen: list[LayerRecord] = []

    def keep(record: LayerRecord) -> torch.Tensor:
        seen.append(record)
        return record.weights.mean(0)

    by_rule, plain = capture.graph(model, image, edges=keep), capture.graph(model, image)
    for one, other in zip(by_rule, plain, strict=True):
        np.testing.assert_allclose(one.levels, other.levels, atol=1e-6)
    assert [record.number for record in seen] == [0, 0, 1, 1, 2, 2]
    assert capture.graph(model, image[:1], edges="effective").signed
    with pytest.raises(af.errors.CaptureError, match="ImageBlock is not in the table of model families"):
        capture.graph(model, image, edges="norm")
    line = rules.Family("ImageBlock", attention="attn", projection="attn.proj", before="norm1")
    monkeypatch.setattr("attnflow.capture.rules._families.FAMILIES", [line])
    middle: list[torch.Tensor] = []
    hooks = [
        block.norm2.register_forward_hook(lambda module, came, gave: middle.append(came[0])) for block in model.blocks
    ]

    items = [0, 1] * 3

    def adds_up(record: LayerRecord) -> torch.Tensor:
        whole = middle[-1][items.pop(0)]
        torch.testing.assert_close(sums_of(record), whole, atol=1e-5, rtol=1e-5)
        return record.weights.mean(0)

    capture.graph(model, image, edges=adds_up)
    for hook in hooks:
        hook.remove()
    for edges in ("norm", "alti", "routes", "value_zeroing"):
        together = capture.graph(model, image, edges=edges)
        alone = graph(model, image[1:], edges)
        np.testing.assert_allclose(together[1].levels, alone.levels, atol=1e-5)
    measured = capture.graph(
        model, image[:1], edges="chefer", residual="measured", target=lambda outputs: outputs[:, 0]
    )
    assert np.shape(measured.options["residual_shares"])[0] == 3


@pytest.mark.parametrize("edges", ["alti", "routes", "value_zeroing", "norm"])
@pytest.mark.parametrize("name", ["BERT", "BART"])
def test_blocks_are_put_together_right(name: str, edges: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks so small that there are many, of sizes that divide nothing."""
    model, arguments = zoo.build(name), zoo.one_of(zoo.keywords(name), 0)
    whole = graph(model, arguments, edges).levels
    for place, size in (("parts._ROWS", 5), ("parts._BLOCK", 5 * zoo.WIDTH * 3), ("record._BLOCK", 7 * zoo.WIDTH)):
        monkeypatch.setattr(f"attnflow.capture.rules._{place}", size)
    monkeypatch.setattr("attnflow.capture.rules._value_zeroing._AT_ONCE", 50)
    monkeypatch.setattr("attnflow.capture.rules._norm._AT_ONCE", 100)
    np.testing.assert_allclose(graph(model, arguments, edges).levels, whole, atol=1e-6)


def test_rules_go_with_every_other_option_of_a_capture() -> None:
    """Half-precision storage, special tokens dropped, few edges kept, text that is written on the way, rows for decoders."""
    model = zoo.build("GPT-2")
    exact = graph(model, IDS, "alti")
    half = graph(model, IDS, "alti", dtype="float16")
    assert half.levels.dtype == np.float16
    np.testing.assert_allclose(half.levels, exact.levels, atol=1e-3)
    for edges, residual in itertools.product(["norm", "value_zeroing", "attention"], ["own", "measured"]):
        sparse = graph(model, IDS, edges, residual=residual, top_k=2)
        assert ((sparse.levels > 0).sum(-1) <= 2).all()
        assert all(sparse.proportions)
        fair = graph(model, IDS, edges, residual=residual, receptive_field=True, set_aside=[0])
        assert (fair.levels[:, 1:, 0] == 0).all()
    written = graph(model, IDS, "alti", generate=3)
    rows = [one["row"] for one in written.options["predicted"]]
    assert rows == [6, 7, 8][: len(rows)]
    assert len(written.tokens) == len(IDS) + len(rows)


def test_special_tokens_are_dropped_with_what_was_measured_of_them() -> None:
    tokenizer = texts.wordpiece()
    model = zoo.build("BERT")
    for edges, residual in (("attention", "measured"), ("alti", "own"), ("effective", "own")):
        whole = graph(model, "the keys are on the table", edges, tokenizer=tokenizer, residual=residual)
        inner = graph(
            model, "the keys are on the table", edges, tokenizer=tokenizer, residual=residual, drop_special=True
        )
        assert len(inner.tokens) == len(whole.tokens) - 2
        expected = whole.levels[:, 1:-1, 1:-1]
        expected = expected if inner.signed else expected / expected.sum(-1, keepdims=True)
        if (
            edges == "attention"
        ):  # whose residual comes after the special tokens are gone, and before rows are proportions
            shares = np.array(inner.options["residual_shares"])
            plain = graph(model, "the keys are on the table", "attention", tokenizer=tokenizer, residual=None).levels[
                :, 1:-1, 1:-1
            ]
            expected = (1 - shares[:, 1:-1, None]) * plain + shares[:, 1:-1, None] * np.eye(len(inner.tokens))
            expected = expected / expected.sum(-1, keepdims=True)
        np.testing.assert_allclose(inner.levels, expected, atol=1e-6)


@pytest.mark.parametrize("edges", ["attention", "norm", "alti", "value_zeroing", "routes"])
def test_cross_attention_alone(edges: str) -> None:
    """Only what the decoder takes from the encoder, and what its residual keeps: the encoder's rows are themselves."""
    found = graph(zoo.build("BART"), zoo.one_of(zoo.keywords("BART"), 0), edges)
    crosses = found.only("cross")
    assert [name for name in found.names if "cross" in name] == list(crosses.names)
    scores = af.rollout(crosses, levels=[-1]).scores[0]
    np.testing.assert_array_equal(scores[:12, :12], np.eye(12))
    assert (scores[12:, :12].sum(-1) > 0).all()
    off = scores[12:, 12:] - np.diag(np.diagonal(scores[12:, 12:]))
    np.testing.assert_allclose(off, 0, atol=1e-9)


def test_relevance_of_an_encoder_and_a_decoder_is_that_of_the_eager_models_gradients() -> None:
    """From the model's own attentions and autograd, through the equations one by one, to the whole map."""
    model, arguments, target = zoo.build("BART"), zoo.one_of(zoo.keywords("BART"), 0), 33
    found = graph(model, arguments, "chefer", residual=None, renormalise=False, target=target)
    twin = zoo.eager_twin(model)
    outputs = twin(**arguments, output_attentions=True, use_cache=False)
    each = [
        *outputs.encoder_attentions,
        *itertools.chain(*zip(outputs.decoder_attentions, outputs.cross_attentions, strict=True)),
    ]
    gradients = torch.autograd.grad(outputs.logits[0, -1, target], each)
    cams = [
        torch.relu(one * gradient)[0].mean(0).detach().double().numpy()
        for one, gradient in zip(each, gradients, strict=True)
    ]
    maps = Twin(5, 12)
    for cam in cams[:3]:
        maps.self_q(cam)
    for own, cross in zip(cams[3::2], cams[4::2], strict=True):
        maps.self_s(own)
        maps.cross(cross, None)
    np.testing.assert_allclose(af.relevance(found, levels=[-1]).scores[0], maps.whole, atol=1e-5)
