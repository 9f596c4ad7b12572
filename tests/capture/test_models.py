"""The must-work list: streamed levels are the mean over heads of eager attention, alone or in a batch, and nothing changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import attnflow as af
from attnflow import capture
from tests.capture.fingerprint import fingerprint
from tests.capture.zoo import EVERY, LAYERS, TEXT, TWO_SIDED, build, eager_twin, keywords, one_of

CLOSE = 1e-5


def means(attentions: Any, item: int) -> list[np.ndarray]:
    return [layer[item].mean(0).numpy() for layer in attentions]


def eager_outputs(model: Any, arguments: dict[str, torch.Tensor]) -> Any:
    with torch.no_grad():
        return eager_twin(model)(**arguments, output_attentions=True)


@pytest.mark.parametrize("name", TEXT)
def test_a_streamed_graph_is_the_mean_of_eager_heads(name: str) -> None:
    model, arguments = build(name), keywords(name)
    graphs = capture.graph(model, arguments, residual=None)
    outputs = eager_outputs(model, arguments)
    for item, (graph, count) in enumerate(zip(graphs, (12, 8), strict=True)):
        assert len(graph) == LAYERS
        assert graph.names == tuple(f"layer {i}" for i in range(LAYERS))
        assert set(graph.kinds) == {"self"}
        for level, expected in zip(graph.levels, means(outputs.attentions, item), strict=True):
            np.testing.assert_allclose(level[:count, :count], expected[:count, :count], atol=CLOSE)


@pytest.mark.parametrize("name", TWO_SIDED)
def test_an_encoder_and_a_decoder_become_one_graph(name: str) -> None:
    model, arguments = build(name), keywords(name)
    graphs = capture.graph(model, arguments, residual=None)
    outputs = eager_outputs(model, arguments)
    for item, graph in enumerate(graphs):
        s = 20 if name == "Whisper" else (12, 8)[item]
        encoder, decoder = means(outputs.encoder_attentions, item), means(outputs.decoder_attentions, item)
        cross = means(outputs.cross_attentions, item)
        names = [f"encoder {i}" for i in range(len(encoder))]
        names += [f"decoder {i} {what}" for i in range(len(decoder)) for what in ("self", "cross")]
        assert graph.names == tuple(names)
        expected = [("encoder self", m[:s, :s], slice(0, s), slice(0, s)) for m in encoder]
        for own, other in zip(decoder, cross, strict=True):
            expected.append(("decoder self", own, slice(s, None), slice(s, None)))
            expected.append(("decoder cross", other[:, :s], slice(s, None), slice(0, s)))
        for level, kind, passive, (wanted, matrix, rows, columns) in zip(
            graph.levels, graph.kinds, graph.passive, expected, strict=True
        ):
            block = np.eye(s + 5, dtype=np.float32)
            block[rows] = 0
            block[rows, columns] = matrix
            np.testing.assert_allclose(level, block, atol=CLOSE)
            assert kind == wanted
            assert passive.tolist() == [not (rows.start <= i < (rows.stop or s + 5)) for i in range(s + 5)]
        assert len(graph.only("cross")) == len(cross)
        rolled = af.rollout(graph, queries=[-1], levels=[-1])
        assert rolled.scores.sum() == pytest.approx(1)


@pytest.mark.parametrize("name", EVERY)
def test_a_batch_gives_what_each_input_gives_alone(name: str) -> None:
    model, arguments = build(name), keywords(name)
    together = capture.graph(model, arguments)
    for item, graph in enumerate(together):
        alone = capture.graph(model, one_of(arguments, item))
        np.testing.assert_allclose(graph.levels, alone.levels, atol=CLOSE)
        assert graph.names == alone.names


@pytest.mark.parametrize("name", EVERY)
def test_the_model_is_left_as_it_was(name: str) -> None:
    model, arguments = build(name, training=True), keywords(name)
    next(model.parameters()).grad = torch.ones_like(next(model.parameters()))
    next(iter(model.children())).eval()  # parts may be in different modes
    before = fingerprint(model)
    capture.graph(model, arguments)
    assert fingerprint(model) == before


@pytest.mark.parametrize("name", EVERY)
def test_the_output_is_the_models_own(name: str) -> None:
    from attnflow.capture._batch import from_keywords
    from attnflow.capture._run import forward
    from attnflow.capture._session import borrowed, reading
    from attnflow.capture._stream import Stream

    model, arguments = build(name), keywords(name)
    batch = from_keywords(model, arguments, None)
    with torch.no_grad():
        expected = model(**arguments)[0]
        with borrowed(model), reading(model, Stream()):
            streamed = forward(model, batch)[0]
    torch.testing.assert_close(streamed, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", TEXT)
def test_a_stack_holds_every_head(name: str) -> None:
    model, arguments = build(name), keywords(name)
    outputs = eager_outputs(model, arguments)
    stacks = capture.stack(model, arguments)
    for item, (stack, count) in enumerate(zip(stacks, (12, 8), strict=True)):
        expected = np.stack([layer[item].numpy() for layer in outputs.attentions])[:, :, :count, :count]
        np.testing.assert_allclose(stack.weights[:, :, :count, :count], expected, atol=CLOSE)
        mixed, streamed = af.mix(stack), capture.graph(model, one_of(arguments, item))
        np.testing.assert_allclose(mixed.levels[:, :count], streamed.levels[:, :count], atol=CLOSE)


def squares(outputs: Any) -> torch.Tensor:
    """A target that depends on every number of the output."""
    found: torch.Tensor = outputs[0].square().sum(dim=tuple(range(1, outputs[0].ndim)))
    return found


@pytest.mark.parametrize("name", [name for name in TEXT if name != "XLNet"])
def test_gradients_are_those_of_the_eager_model(name: str) -> None:
    model, arguments = build(name), one_of(keywords(name), 0)
    before = fingerprint(model)
    graph = capture.graph(model, arguments, edges="chefer", residual=None, renormalise=False, target=squares)
    assert fingerprint(model) == before
    outputs = eager_twin(model)(**arguments, output_attentions=True)
    gradients = torch.autograd.grad(squares(outputs).sum(), outputs.attentions)
    for level, weights, gradient in zip(graph.levels, outputs.attentions, gradients, strict=True):
        expected = (weights * gradient).clamp(min=0).mean(1)[0].detach().numpy()
        np.testing.assert_allclose(level[:12, :12], expected, atol=1e-5 + 1e-4 * expected.max())


@pytest.mark.parametrize("name", TWO_SIDED)
def test_gradients_of_encoders_and_decoders(name: str) -> None:
    model, arguments = build(name), one_of(keywords(name), 0)
    graph = capture.graph(model, arguments, edges="chefer", residual=None, renormalise=False, target=squares)
    outputs = eager_twin(model)(**arguments, output_attentions=True)
    kinds = {
        "encoder": outputs.encoder_attentions,
        "decoder self": outputs.decoder_attentions,
        "cross": outputs.cross_attentions,
    }
    s = len(graph.tokens) - 5
    blocks = {"encoder": np.s_[:s, :s], "decoder self": np.s_[s:, s:], "cross": np.s_[s:, :s]}
    for kind, attentions in kinds.items():
        gradients = torch.autograd.grad(squares(outputs).sum(), attentions, retain_graph=True)
        for level, weights, gradient in zip(graph.only(kind).levels, attentions, gradients, strict=True):
            expected = (weights * gradient).clamp(min=0).mean(1)[0].detach().numpy()
            np.testing.assert_allclose(level[blocks[kind]], expected, atol=1e-5 + 1e-4 * expected.max())


def test_gradients_of_a_model_that_returns_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """XLNet hands out a copy of its weights, so autograd has no oracle: finite differences of the softmax itself."""
    model, arguments = build("XLNet").double(), one_of(keywords("XLNet"), 0)
    stack = capture.stack(model, arguments, record=("attention", "gradients"), target=squares)
    assert stack.gradients is not None
    softmax = torch.nn.functional.softmax
    for layer, head, query, key in ((0, 0, 3, 2), (1, 3, 0, 11), (2, 1, 5, 5)):
        found = []
        for step in (1e-5, -1e-5):
            calls = iter(range(LAYERS))

            def moved(*args: Any, step: float = step, calls: Any = calls, **kwargs: Any) -> torch.Tensor:
                weights = softmax(*args, **kwargs)
                if next(calls) == layer:  # noqa: B023 (used before the loop moves on)
                    weights[0, head, query, key] += step  # noqa: B023
                return weights

            monkeypatch.setattr(torch.nn.functional, "softmax", moved)
            with torch.no_grad():
                found.append(float(squares(model(**arguments))))
        monkeypatch.setattr(torch.nn.functional, "softmax", softmax)
        slope = (found[0] - found[1]) / 2e-5
        assert stack.gradients[layer, head, query, key] == pytest.approx(slope, rel=1e-3, abs=1e-5)


def test_gradients_of_frozen_weights() -> None:
    model, arguments = build("Llama"), one_of(keywords("Llama"), 0)
    free = capture.graph(model, arguments, edges="gradient", target=3)
    frozen = capture.graph(model.requires_grad_(False), arguments, edges="gradient", target=3)
    np.testing.assert_allclose(free.levels, frozen.levels, atol=1e-6)
    assert not any(parameter.requires_grad for parameter in model.parameters())
