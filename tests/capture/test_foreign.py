"""Any PyTorch module: what its attention functions are called with is what the graph holds, and nothing changes."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import attnflow as af
from attnflow import capture
from attnflow.errors import CaptureError, InvalidArgument
from tests.capture import zoo
from tests.capture.fingerprint import fingerprint
from tests.capture.foreign import NanoGPT, TimmViT, Windows, grown

CLOSE = 1e-5
IDS = torch.tensor([[3, 7, 1, 4, 9, 2], [5, 5, 8, 1, 0, 6]])
IMAGES = torch.randn(2, 3, 24, 32, generator=torch.Generator().manual_seed(5))
STATES = torch.randn(2, 7, 16, generator=torch.Generator().manual_seed(6))


def encoder(**options: Any) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, **options)
    return grown(nn.TransformerEncoder(layer, 3, enable_nested_tensor=not options))  # type: ignore[no-any-return]


def weights_of(model: Any, *args: Any, **keywords: Any) -> list[Any]:
    """The attention of models built on nn.MultiheadAttention, asked for one layer after the other."""
    found: list[Any] = []

    def asked(module: Any, args: Any, keywords: Any) -> Any:
        return args, {**keywords, "need_weights": True, "average_attn_weights": False}

    handles = []
    for module in model.modules():
        if isinstance(module, nn.MultiheadAttention):
            handles.append(module.register_forward_pre_hook(asked, with_kwargs=True))
            handles.append(module.register_forward_hook(lambda *a: found.append(a[-1][1].detach().numpy())))
    torch.backends.mha.set_fastpath_enabled(False)
    with torch.no_grad():
        model(*args, **keywords)
    torch.backends.mha.set_fastpath_enabled(True)
    for handle in handles:
        handle.remove()
    return found


def own_weights(model: Any, inputs: Any) -> list[Any]:
    """The attention that models with a softmax of their own keep."""
    with torch.no_grad():
        model(inputs)
    return [module.weights.detach().numpy() for module in model.modules() if hasattr(module, "weights")]


CASES: dict[str, tuple[Any, Any, Any]] = {
    "nanoGPT": (grown(NanoGPT()), IDS, lambda: own_weights(grown(NanoGPT(flash=False)), IDS)),
    "timm's ViT": (grown(TimmViT()), IMAGES, lambda: own_weights(grown(TimmViT(fused_attn=False)), IMAGES)),
    "TransformerEncoder": (encoder(), STATES, lambda: weights_of(encoder(), STATES)),
    "TransformerEncoder, norm first": (
        encoder(norm_first=True),
        STATES,
        lambda: weights_of(encoder(norm_first=True), STATES),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_streamed_graph_is_the_mean_of_its_heads(name: str) -> None:
    model, inputs, expected = CASES[name]
    graphs = capture.graph(model, inputs, residual=None)
    assert len(graphs) == 2
    for item, graph in enumerate(graphs):
        assert graph.names == ("layer 0", "layer 1", "layer 2")
        for level, weights in zip(graph.levels, expected(), strict=True):
            np.testing.assert_allclose(level, weights[item].mean(0), atol=CLOSE)
    stacks = capture.stack(model, inputs)
    np.testing.assert_allclose(stacks[1].weights, np.stack([weights[1] for weights in expected()]), atol=CLOSE)


@pytest.mark.parametrize("name", CASES)
def test_a_batch_gives_what_each_input_gives_alone(name: str) -> None:
    model, inputs, _ = CASES[name]
    together = capture.graph(model, inputs)
    for item, graph in enumerate(together):
        alone = capture.graph(model, inputs[item : item + 1])
        np.testing.assert_allclose(graph.levels, alone.levels, atol=CLOSE)
    [listed, _] = capture.graph(model, [inputs[:1], inputs[1:]])
    np.testing.assert_allclose(listed.levels, together[0].levels, atol=CLOSE)


@pytest.mark.parametrize("edges", ["attention", "chefer"])
@pytest.mark.parametrize("name", CASES)
def test_the_model_is_left_as_it_was(name: str, edges: str) -> None:
    model, inputs, _ = CASES[name]
    model.train()
    before = _fingerprint(model)
    capture.graph(model, inputs, edges=edges, target=None if edges == "attention" else _sum)
    assert _fingerprint(model) == before
    model.eval()


def _fingerprint(model: Any) -> Any:
    config, had = vars(model).pop("config", None), hasattr(model, "config")
    found = fingerprint(model)
    if had:
        model.config = config
    return found


def _sum(outputs: Any) -> torch.Tensor:
    first = outputs[0] if isinstance(outputs, tuple) else outputs
    found: torch.Tensor = first.square().flatten(1).sum(dim=1)
    return found


@pytest.mark.parametrize("name", ["nanoGPT", "timm's ViT"])
def test_gradients_are_those_of_a_softmax_of_its_own(name: str) -> None:
    model, inputs, _ = CASES[name]
    other = grown(NanoGPT(flash=False)) if name == "nanoGPT" else grown(TimmViT(fused_attn=False))
    graph = capture.graph(model, inputs[:1], edges="chefer", residual=None, renormalise=False, target=_sum)
    value = _sum(other(inputs[:1])).sum()
    weights = [module.weights for module in other.modules() if hasattr(module, "weights")]
    for level, own, gradient in zip(graph.levels, weights, torch.autograd.grad(value, weights), strict=True):
        expected = (own * gradient).clamp(min=0).mean(1)[0].detach().numpy()
        np.testing.assert_allclose(level, expected, atol=1e-5 + 1e-4 * expected.max())


def test_the_predicted_class_is_the_target_and_frozen_weights_do_no_harm() -> None:
    model = grown(TimmViT())
    by_default = capture.graph(model, IMAGES[:1], edges="gradient")
    predicted = int(model(IMAGES[:1]).argmax())
    by_number = capture.graph(model.requires_grad_(False), IMAGES[:1], edges="gradient", target=predicted)
    np.testing.assert_allclose(by_default.levels, by_number.levels, atol=1e-6)
    token = capture.graph(grown(NanoGPT()), IDS[:1], edges="gradient", target=4)
    assert token.levels.max() > 0


def test_the_output_stays_the_same() -> None:
    from attnflow.capture._functions import FunctionWatch
    from attnflow.capture._stream import Stream

    for model, inputs, _ in CASES.values():
        with torch.no_grad():
            expected = model(inputs)
            with FunctionWatch(model, Stream()):
                found = model(inputs)
        pairs = [(found, expected)] if isinstance(found, torch.Tensor) else [(found[0], expected[0])]
        torch.testing.assert_close(*pairs[0], atol=1e-4, rtol=1e-4)


def test_where_the_output_is_read() -> None:
    found = af.explain(IDS[:1], grown(NanoGPT()))
    assert found.queries == (5,)
    assert found.options["query_is"] == "the last position, since none sees a later one"
    assert found.tokens.labels == ("3", "7", "1", "4", "9", "2")
    seen = af.explain(IMAGES[:1], grown(TimmViT()))
    assert (seen.queries, seen.options["query_is"]) == ((0,), "the class token")
    assert seen.tokens.labels[:4] == ("[CLS]", "[REG 0]", "[REG 1]", "patch 0,0")
    assert seen.tokens.grids == (af.PatchGrid(3, 4, 3),)
    pooled = af.explain(IMAGES[:1], grown(TimmViT(global_pool="avg")))
    assert pooled.options["query_is"] == "the mean of the patches"
    plain = af.explain(STATES[:1], encoder())
    assert (plain.queries, plain.options["query_is"]) == ((0,), "the first position")


def test_positions_are_named_by_the_caller() -> None:
    labels = list("abcdef")
    graph = capture.graph(grown(NanoGPT()), IDS[:1], tokens=labels)
    assert graph.tokens.labels == tuple(labels)
    assert af.explain(IDS[:1], grown(NanoGPT()), tokens=labels, query="c").queries == (2,)
    each = capture.graph(grown(NanoGPT()), IDS, tokens=[labels, list("uvwxyz")])
    assert each[1].tokens.labels == tuple("uvwxyz")
    grid = af.Tokens([f"t{i}" for i in range(15)], grids=[af.PatchGrid(3, 4, 3)])
    assert capture.graph(grown(TimmViT()), IMAGES[:1], tokens=grid).tokens.grids == grid.grids
    with pytest.raises(InvalidArgument, match="got 2 tokens for attention over 6 positions"):
        capture.graph(grown(NanoGPT()), IDS[:1], tokens=["a", "b"])


def test_a_transform_from_image_to_tensor_shows_where_patches_lie() -> None:
    """As timm and open_clip bring them: a function of one PIL image."""

    def transform(image: Any) -> torch.Tensor:
        small = image.convert("RGB").resize((64, 32)).crop((16, 4, 48, 28))
        return torch.from_numpy(np.asarray(small).copy()).permute(2, 0, 1).float() / 127.5 - 1

    found = af.explain(np.zeros((64, 128, 3), dtype=np.uint8), grown(TimmViT()), processor=transform)
    picture = found.tokens.grids[0].picture
    assert picture is not None
    np.testing.assert_allclose(picture.box, (32, 8, 96, 56), atol=1)
    with pytest.raises(CaptureError, match="processor=…"):
        capture.graph(grown(TimmViT()), np.zeros((64, 128, 3), dtype=np.uint8))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("nested", [False, True])
def test_an_encoder_with_and_without_its_fast_path(nested: bool, training: bool) -> None:
    """In evaluation mode torch would take a fused kernel that no function shows, and nested tensors for padding."""
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    model = grown(nn.TransformerEncoder(layer, 2, enable_nested_tensor=nested)).train(training)
    padding = torch.zeros(2, 7, dtype=torch.bool)
    padding[1, 5:] = True
    arguments = {"src": STATES, "src_key_padding_mask": padding}
    expected = weights_of(model, **arguments)
    tokens = [af.Tokens([str(i) for i in range(7)], padding=one) for one in padding]
    full, cropped = capture.graph(model, arguments, residual=None, tokens=tokens)
    for level, weights in zip(full.levels, expected, strict=True):
        np.testing.assert_allclose(level, weights[0].mean(0), atol=CLOSE)
    for level, weights in zip(cropped.levels, expected, strict=True):
        np.testing.assert_allclose(level, weights[1].mean(0)[:5, :5], atol=CLOSE)


def test_sequences_first_and_without_a_batch() -> None:
    layer = nn.TransformerEncoderLayer(16, 4, 32)
    model = grown(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))
    batched = capture.graph(model, STATES.transpose(0, 1))
    alone = capture.graph(model, STATES[1])
    np.testing.assert_allclose(batched[1].levels, alone.levels, atol=CLOSE)
    assert len(alone.tokens) == 7


def test_a_causal_mask_is_seen() -> None:
    model = encoder()
    mask = nn.Transformer.generate_square_subsequent_mask(7)
    found = af.explain({"src": STATES[:1], "mask": mask, "is_causal": True}, model, level=None)
    assert found.queries == (6,)
    graph = capture.graph(model, {"src": STATES[:1], "mask": mask})
    assert not np.triu(graph.levels, 1).any()


def translator() -> nn.Transformer:
    model = nn.Transformer(16, 4, num_encoder_layers=2, num_decoder_layers=2, dim_feedforward=32, batch_first=True)
    return grown(model)  # type: ignore[no-any-return]


def test_an_encoder_and_a_decoder_whose_cross_attention_is_named() -> None:
    source, target = STATES[:1], torch.randn(1, 4, 16, generator=torch.Generator().manual_seed(9))
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    arguments = {"src": source, "tgt": target, "tgt_mask": mask}
    graph = capture.graph(
        translator(), arguments, residual=None, cross="multihead_attn", tokens=(list("abcdefg"), list("wxyz"))
    )
    names = ("encoder 0", "encoder 1", "decoder 0 self", "decoder 0 cross", "decoder 1 self", "decoder 1 cross")
    assert graph.names == names
    assert graph.tokens.labels == tuple("abcdefgwxyz")
    assert len(graph.only("cross")) == 2
    blocks = [np.s_[:7, :7]] * 2 + [np.s_[7:, 7:], np.s_[7:, :7]] * 2
    for level, block, weights in zip(graph.levels, blocks, weights_of(translator(), **arguments), strict=True):
        np.testing.assert_allclose(level[block], weights[0].mean(0), atol=CLOSE)
    assert graph.options["query"] == 10
    assert af.rollout(graph, queries=[10], levels=[-1]).scores.sum() == pytest.approx(1)


def test_cross_attention_that_nobody_named_is_asked_for() -> None:
    arguments = (STATES[:1], torch.randn(1, 4, 16))
    with pytest.raises(CaptureError, match=r"from 4 positions to 7.*cross='multihead_attn'"):
        capture.graph(translator(), arguments)
    with pytest.raises(InvalidArgument, match=r"no module .* has 'crossing' in its name: encoder\.layers\.0"):
        capture.graph(translator(), arguments, cross="crossing")


class Asking(nn.Module):
    """Uses the weights that it asks for."""

    def __init__(self, *, averaged: bool) -> None:
        super().__init__()
        self.attention, self.averaged = nn.MultiheadAttention(16, 4, batch_first=True), averaged

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.attention(x, x, x, average_attn_weights=self.averaged)  # type: ignore[no-any-return]


@pytest.mark.parametrize("averaged", [True, False])
@pytest.mark.parametrize("states", [STATES, STATES[0]], ids=["batch", "single"])
def test_weights_that_were_asked_for_are_handed_out(states: torch.Tensor, averaged: bool) -> None:
    from attnflow.capture._functions import FunctionWatch
    from attnflow.capture._stream import Stream

    model, reader = grown(Asking(averaged=averaged)), Stream()
    with torch.no_grad():
        expected = model(states)
        with FunctionWatch(model, reader):
            found = model(states)
    for one, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(one, wanted, atol=1e-5, rtol=1e-5)
    assert len(reader.seen) == 1


class Bare(nn.Module):
    """Calls torch's function itself, with operands of its own making."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options, self.scale = options, nn.Parameter(torch.ones(1))

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q * self.scale, k, v, **self.options)


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


BIAS = draw(6, 6)
CALLS: dict[str, tuple[Any, dict[str, Any], tuple[int, int]]] = {
    "heads": ((draw(2, 4, 6, 8), draw(2, 4, 6, 8) + 1, draw(2, 4, 6, 8)), {}, (2, 6)),
    "no heads": ((draw(2, 6, 8), draw(2, 6, 8) + 1, draw(2, 6, 8)), {}, (2, 6)),
    "no batch": ((draw(6, 8), draw(6, 8) + 1, draw(6, 8)), {}, (1, 6)),
    "grouped": ((draw(2, 4, 6, 8), draw(2, 2, 6, 8) + 1, draw(2, 2, 6, 8)), {"enable_gqa": True}, (2, 6)),
    "scaled": ((draw(2, 4, 6, 8), draw(2, 4, 6, 8) + 1, draw(2, 4, 6, 8)), {"scale": 0.9}, (2, 6)),
    "biased": ((draw(2, 4, 6, 8), draw(2, 4, 6, 8) + 1, draw(2, 4, 6, 8)), {"attn_mask": BIAS}, (2, 6)),
    "masked": (
        (draw(2, 4, 6, 8), draw(2, 4, 6, 8) + 1, draw(2, 4, 6, 8)),
        {"attn_mask": BIAS.fill_diagonal_(1) > 0},
        (2, 6),
    ),
    "causal": ((draw(2, 4, 6, 8), draw(2, 4, 6, 8) + 1, draw(2, 4, 6, 8)), {"is_causal": True}, (2, 6)),
    "wide values": ((draw(2, 4, 6, 8), draw(2, 4, 6, 8) + 1, draw(2, 4, 6, 5)), {}, (2, 6)),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_form_of_call(name: str) -> None:
    """The weights are found by attending over the unit matrix: softmax(…) · I."""
    operands, options, (count, n) = CALLS[name]
    model = Bare(**options)
    q, k, v = operands
    found = capture.graph(model, operands, residual=None)
    eye = torch.eye(n).expand(*v.shape[:-2], n, n)
    with torch.no_grad():
        expected = model(q, k, eye)
    expected = expected.mean(dim=1) if expected.ndim == 4 else expected.reshape(count, n, n)
    for graph, wanted in zip(found if count > 1 else [found], expected, strict=True):
        np.testing.assert_allclose(graph.levels[0], wanted.detach().numpy(), atol=CLOSE)


@pytest.mark.parametrize("model", [NanoGPT(flash=False), TimmViT(fused_attn=False)], ids=["nanoGPT", "timm"])
def test_a_softmax_of_its_own_is_refused_with_what_to_change(model: Any) -> None:
    inputs = IDS if isinstance(model, NanoGPT) else IMAGES
    with pytest.raises(
        CaptureError, match=r"attn makes attention of its own, .* Let it call torch\.nn\.functional\.scaled_dot"
    ):
        capture.graph(model, inputs)


def test_other_softmaxes_are_no_attention() -> None:
    class Routed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.gate = encoder(), nn.Linear(16, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x) * self.gate(x).softmax(-1)[..., :1]  # type: ignore[no-any-return]

    assert len(capture.graph(Routed(), STATES[:1])) == 3


@pytest.mark.parametrize(
    ("model", "inputs", "message"),
    [
        (nn.Linear(4, 4), torch.zeros(1, 4), "nothing called torch.nn.functional.scaled_dot_product_attention"),
        (Windows(), torch.zeros(1, 4, 8), "windows or parts"),
        (encoder(), "a text", "a tensor, a tuple of arguments"),
        (encoder(), [], "empty"),
    ],
    ids=["linear", "windows", "text", "nothing"],
)
def test_what_cannot_be_captured_is_said(model: Any, inputs: Any, message: str) -> None:
    with pytest.raises(af.AttnflowError, match=message):
        capture.graph(model, inputs)


def test_rules_that_read_the_layer_need_a_known_model() -> None:
    with pytest.raises(CaptureError, match="TransformerEncoderLayer is not in the table of model families"):
        capture.graph(encoder(), STATES[:1], edges="alti")


def test_tokens_and_cross_are_for_foreign_modules() -> None:
    with pytest.raises(InvalidArgument, match="outside transformers"):
        capture.graph(zoo.build("BERT"), [5, 6, 7], tokens=["a", "b", "c"])
    with pytest.raises(CaptureError, match="no model of transformers"):
        capture.blank_out(encoder(), [1, 2, 3])


def test_a_model_of_transformers_inside_another_module() -> None:
    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = zoo.build("BERT").bert.eval()

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.inner(ids).last_hidden_state  # type: ignore[no-any-return]

    model = Wrapped()
    ids = torch.tensor([[5, 6, 7, 8]])
    expected = capture.graph(model.inner, {"input_ids": ids})
    np.testing.assert_allclose(capture.graph(model, ids).levels, expected.levels, atol=CLOSE)


def test_other_threads_are_not_seen() -> None:
    """The mode belongs to the thread that holds it."""
    bystander, found = encoder(), []

    class Waiting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = encoder()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            thread = threading.Thread(target=lambda: found.append(bystander(STATES)))
            thread.start()
            thread.join()
            return self.inner(x)  # type: ignore[no-any-return]

    assert len(capture.graph(Waiting(), STATES[:1])) == 3
    assert len(found) == 1
