"""Vision models: streamed levels are the mean of eager heads, prefix tokens are no patches, and nothing changes."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import attnflow as af
from attnflow import capture
from attnflow.errors import CaptureError
from tests.capture.fingerprint import fingerprint
from tests.capture.vision_zoo import CLS, LAYERS, MEAN, REFUSED, SEEING, build, pixels
from tests.capture.zoo import eager_twin

tf: Any = transformers
CLOSE = 1e-5
SHAPES = {"square": (32, 32), "wide": (24, 48), "tall": (40, 16)}


def eager_attentions(model: Any, values: torch.Tensor) -> Any:
    twin = eager_twin(model)
    asked = (
        {"interpolate_pos_encoding": True}
        if "interpolate_pos_encoding" in inspect.signature(twin.forward).parameters
        else {}
    )
    with torch.no_grad():
        return twin(pixel_values=values, output_attentions=True, **asked).attentions


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", SEEING)
def test_a_streamed_graph_is_the_mean_of_eager_heads(name: str, shape: str) -> None:
    model, values = build(name), pixels(2, *SHAPES[shape])
    graphs = capture.graph(model, values, residual=None)
    expected = eager_attentions(model, values)
    for item, graph in enumerate(graphs):
        assert graph.names == tuple(f"layer {i}" for i in range(LAYERS))
        for level, attention in zip(graph.levels, expected, strict=True):
            count = attention.shape[-1]
            np.testing.assert_allclose(level[:count, :count], attention[item].mean(0).numpy(), atol=CLOSE)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", SEEING)
def test_patches_are_named_by_place_and_other_tokens_are_none(name: str, shape: str) -> None:
    kind, (height, width) = SEEING[name], SHAPES[shape]
    rows, columns = height // 8, width // 8
    graph = capture.graph(build(name), pixels(1, height, width)[0])
    labels = [f"patch {row},{column}" for row in range(rows) for column in range(columns)]
    mean = ("[mean]",) if kind.read == MEAN else ()
    assert graph.tokens.labels == (*kind.before, *labels, *kind.after, *mean)
    assert graph.tokens.grids == (af.PatchGrid(rows, columns, len(kind.before)),)
    others = len(kind.before) + len(kind.after) + len(mean)
    assert graph.tokens.special.sum() == others
    assert not graph.tokens.special[len(kind.before) : graph.tokens.grids[0].stop].any()


@pytest.mark.parametrize("name", SEEING)
def test_the_default_query_is_said(name: str) -> None:
    found = af.explain(pixels(1)[0], build(name))
    assert found.options["query_is"] == SEEING[name].read
    assert found.queries == ((0,) if SEEING[name].read == CLS else (len(found.tokens) - 1,))
    assert found.scores.sum() == pytest.approx(1)


@pytest.mark.parametrize("method", ["raw", "rollout"])
@pytest.mark.parametrize("name", ["SigLIP", "BEiT"])
def test_the_mean_of_the_patches_is_the_mean_of_their_answers(name: str, method: str) -> None:
    graph = capture.graph(build(name), pixels(1)[0])
    grid = graph.tokens.grids[0]
    every = af.attribute(graph, method)
    for level in range(len(graph)):
        patches = every.scores[level, grid.offset : grid.stop].mean(axis=0)
        np.testing.assert_allclose(every.of("[mean]", level), patches, atol=1e-7)
    assert not every.scores[:, : grid.stop, -1].any()  # nobody reads it


def test_flow_to_the_mean_is_no_more_than_the_mean_of_flows_allows() -> None:
    """At the first level it is rollout; above, all patches together carry at least what each share carries."""
    graph = capture.graph(build("SigLIP"), pixels(1)[0])
    flow, rollout = af.flow(graph), af.rollout(graph)
    np.testing.assert_allclose(flow.of("[mean]", 0), rollout.of("[mean]", 0), atol=1e-9)
    assert (flow.of("[mean]") >= rollout.of("[mean]") - 1e-9).all()
    assert flow.of("[mean]").max() <= 1 + 1e-9


@pytest.mark.parametrize("name", SEEING)
def test_a_batch_gives_what_each_image_gives_alone(name: str) -> None:
    model, values = build(name), pixels(3)
    together = capture.graph(model, list(values), batch_size=2)
    for one, graph in zip(values, together, strict=True):
        np.testing.assert_allclose(graph.levels, capture.graph(model, one).levels, atol=CLOSE)


def test_images_of_several_sizes_keep_their_order() -> None:
    model, sizes = build("ViT"), [(32, 32), (32, 48), (32, 48), (32, 32)]
    graphs = capture.graph(model, [pixels(1, *size)[0] for size in sizes])
    assert [graph.tokens.grids[0].columns for graph in graphs] == [4, 6, 6, 4]


@pytest.mark.parametrize("edges", ["attention", "chefer"])
@pytest.mark.parametrize("name", SEEING)
def test_the_model_is_left_as_it_was(name: str, edges: str) -> None:
    model = build(name, training=True)
    next(iter(model.children())).eval()
    before = fingerprint(model)
    target = None if edges == "attention" else _sum
    capture.graph(model, pixels(), edges=edges, target=target)
    assert fingerprint(model) == before


def _sum(outputs: Any) -> torch.Tensor:
    found: torch.Tensor = outputs[0].square().sum(dim=tuple(range(1, outputs[0].ndim)))
    return found


@pytest.mark.parametrize("name", SEEING)
def test_gradients_are_those_of_the_eager_model(name: str) -> None:
    model, values = build(name), pixels(1)
    graph = capture.graph(model, values[0], edges="chefer", residual=None, renormalise=False, target=_sum)
    outputs = eager_twin(model)(pixel_values=values, output_attentions=True)
    gradients = torch.autograd.grad(_sum(outputs).sum(), outputs.attentions)
    for level, weights, gradient in zip(graph.levels, outputs.attentions, gradients, strict=True):
        expected = (weights * gradient).clamp(min=0).mean(1)[0].detach().numpy()
        count = len(expected)
        np.testing.assert_allclose(level[:count, :count], expected, atol=1e-5 + 1e-4 * expected.max())


def test_a_class_is_a_target_by_its_name() -> None:
    made, config = SEEING["ViT"].make()
    config.id2label, config.label2id = {0: "cat", 1: "dog"}, {"cat": 0, "dog": 1}
    model = made(config)
    by_name = capture.graph(model, pixels(1)[0], edges="gradient", target="dog")
    by_number = capture.graph(model, pixels(1)[0], edges="gradient", target=1)
    np.testing.assert_array_equal(by_name.levels, by_number.levels)


@pytest.mark.parametrize("name", REFUSED)
def test_models_without_one_square_graph_are_refused(name: str) -> None:
    model, (_, message) = build(name), REFUSED[name]
    values = pixels(1)
    video = {"pixel_values": torch.stack([values[0]] * 2)[None]}
    before = fingerprint(model)
    with pytest.raises(CaptureError, match=message):
        capture.graph(model, video if name == "TimeSformer" else values[0])
    assert fingerprint(model) == before


def test_tubelets_become_one_grid_for_each_of_them() -> None:
    shape: dict[str, Any] = SEEING["ViT"].make()[1].to_dict()
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "image_size", "patch_size")
    config = tf.VideoMAEConfig(**{name: shape[name] for name in names}, num_frames=4, tubelet_size=2)
    model = tf.VideoMAEModel(config).eval()
    graph = capture.graph(model, {"pixel_values": torch.randn(1, 4, 3, 32, 32)})
    assert graph.tokens.grids == (af.PatchGrid(4, 4, 0), af.PatchGrid(4, 4, 16))
    assert graph.tokens.labels[17] == "frame 1 patch 0,1"
    assert graph.options["query_is"] == MEAN
    with pytest.raises(af.AttnflowError, match="[Vv]ideo"):
        capture.graph(model, torch.randn(1, 4, 3, 32, 32))


def test_a_stack_holds_every_head() -> None:
    model, values = build("DINOv3"), pixels(1)
    stack = capture.stack(model, values[0])
    expected = eager_attentions(model, values)
    np.testing.assert_allclose(stack.weights, np.stack([layer[0].numpy() for layer in expected]), atol=CLOSE)
    assert stack.tokens.grids == (af.PatchGrid(4, 4, 5),)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_pixel_values_become_the_models_precision(dtype: torch.dtype) -> None:
    wanted = capture.graph(build("ViT"), pixels(1)[0])
    found = capture.graph(build("ViT").to(dtype), pixels(1)[0])
    np.testing.assert_allclose(found.levels, wanted.levels, atol=0.12)


def test_text_is_told_that_the_model_sees() -> None:
    with pytest.raises(CaptureError, match="ViTForImageClassification reads images: there is no file 'The key'"):
        capture.graph(build("ViT"), "The key")


def test_an_image_is_told_that_the_model_reads() -> None:
    from tests.capture.zoo import build as build_text

    with pytest.raises(CaptureError, match="BertForSequenceClassification reads no images"):
        capture.graph(build_text("BERT"), np.zeros((8, 8, 3), dtype=np.uint8))
