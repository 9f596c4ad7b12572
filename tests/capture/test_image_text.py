"""Models that see and read: towers side by side, a text that attends to an image, patches among the words."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import torch

import attnflow as af
from attnflow import capture
from attnflow.errors import CaptureError, InvalidArgument
from tests.capture.fingerprint import fingerprint
from tests.capture.image_text_zoo import MODELS, build, eye, processor, seen, tokenizer
from tests.capture.zoo import eager_twin

CLOSE = 1e-5
TEXT = torch.tensor([[1, 5, 6, 7, 8, 9, 2]])  # <s> a cat on the mat </s>
PATCHES = [f"patch {row},{column}" for row in range(4) for column in range(4)]


def in_text(places: int, images: int = 1) -> torch.Tensor:
    """<s> what is <image> … this <image> … cat </s>"""
    ids = [1, 11, 12, *[4] * places, 13]
    ids += [4] * places if images == 2 else []
    return torch.tensor([[*ids, 6, 2]])


def qwen(shapes: list[tuple[int, int]]) -> dict[str, torch.Tensor]:
    """Images of these many patches down and across, merged two by two."""
    grids = torch.tensor([[1, *shape] for shape in shapes])
    generator = torch.Generator().manual_seed(4)
    values = torch.randn(int(grids.prod(1).sum()), 3 * 2 * 4 * 4, generator=generator)
    ids = [1]
    for rows, columns in shapes:
        ids += [5, *[4] * (rows * columns // 4), 6, 7]
    marks = torch.tensor([[int(one == 4) for one in [*ids, 9]]])
    found = {"input_ids": torch.tensor([[*ids, 9]]), "pixel_values": values, "image_grid_thw": grids}
    asks = "mm_token_type_ids" in inspect.signature(MODELS["Qwen2-VL"]().forward).parameters
    return {**found, "mm_token_type_ids": marks} if asks else found


ARGUMENTS: dict[str, dict[str, Any]] = {
    "CLIP": {"input_ids": TEXT, "pixel_values": seen()},
    "SigLIP": {"input_ids": TEXT, "pixel_values": seen()},
    "BLIP captions": {"input_ids": TEXT, "pixel_values": seen()},
    "BLIP matches": {"input_ids": TEXT, "pixel_values": seen()},
    "LLaVA": {"input_ids": in_text(16), "pixel_values": seen()},
    "LLaVA with the class token": {"input_ids": in_text(17), "pixel_values": seen()},
    "Qwen2-VL": qwen([(4, 6)]),
}


def eager_matrices(name: str, model: Any) -> list[Any]:
    """The mean over heads of each attention, by hooks of transformers' own on an eager twin, in the order of the levels."""
    twin = eager_twin(model)
    found: dict[str, Any] = {}

    def keep(path: str) -> Any:
        def hook(module: Any, args: Any, output: Any) -> None:
            if (
                isinstance(output, tuple)
                and len(output) > 1
                and isinstance(output[1], torch.Tensor)
                and output[1].ndim == 4
            ):
                found.setdefault(path, output[1][0].mean(0).detach().numpy())

        return hook

    eyes = name.startswith(("CLIP", "SigLIP", "BLIP"))
    for path, module in twin.named_modules():
        last = path.rpartition(".")[2]
        if last in ("self_attn", "attn", "self") and (eyes or not ("vision" in path or "visual" in path)):
            module.register_forward_hook(keep(path))
    with torch.no_grad():
        twin(**ARGUMENTS[name])
    return list(found.values())


@pytest.mark.parametrize("name", MODELS)
def test_a_streamed_graph_is_the_mean_of_eager_heads(name: str) -> None:
    model = build(name)
    graph = capture.graph(model, ARGUMENTS[name], residual=None)
    expected = eager_matrices(name, model)
    assert len(graph) == len(expected)
    patches = graph.tokens.grids[0].stop if name.startswith(("CLIP", "SigLIP", "BLIP")) else 0
    for level, kind, matrix in zip(graph.levels, graph.kinds, expected, strict=True):
        queries, keys = matrix.shape
        top = 0 if kind in ("image self", "self") else patches
        left = top if "cross" not in kind else 0
        np.testing.assert_allclose(level[top : top + queries, left : left + keys], matrix, atol=CLOSE)


@pytest.mark.parametrize("name", MODELS)
def test_the_model_is_left_as_it_was(name: str) -> None:
    model = build(name).train()
    before = fingerprint(model)
    capture.graph(model, ARGUMENTS[name])
    capture.graph(model, ARGUMENTS[name], edges="chefer", target=_sum)
    assert fingerprint(model) == before


def _sum(outputs: Any) -> torch.Tensor:
    scores = next(outputs[key] for key in ("logits_per_image", "itm_score", "logits") if outputs.get(key) is not None)
    found: torch.Tensor = scores.square().flatten(1).sum(1)
    return found


def test_towers_stand_side_by_side() -> None:
    graph = capture.graph(build("CLIP"), ARGUMENTS["CLIP"])
    assert graph.names == ("image 0", "image 1", "text 0", "text 1", "text 2")
    assert graph.tokens.labels == ("[CLS]", *PATCHES, "1", "5", "6", "7", "8", "9", "2")
    assert graph.options["queries"] == [0, 23]
    assert graph.options["query_is"] == "the class token and the last token of the text, which make the score"
    rolled = af.rollout(graph, queries=[0, 23], levels=[-1]).scores[0]
    assert rolled[0, 17:].sum() == 0  # nothing passes from one to the other
    assert rolled[1, :17].sum() == 0
    np.testing.assert_allclose(rolled.sum(axis=1), 1)
    assert graph.passive[0].tolist() == [False] * 17 + [True] * 7


def test_what_makes_the_score_of_a_pair() -> None:
    """Without a target it is the score of each image with its own text, whose gradient autograd knows too."""
    model = build("CLIP")
    found = capture.graph(model, ARGUMENTS["CLIP"], edges="chefer", residual=None, renormalise=False)
    twin = eager_twin(model)
    outputs = twin(**ARGUMENTS["CLIP"], output_attentions=True)
    parts = outputs.vision_model_output.attentions, outputs.text_model_output.attentions
    weights = [one for part in parts for one in part]
    gradients = torch.autograd.grad(outputs.logits_per_image[0, 0], weights)
    for level, one, gradient in zip(found.levels, weights, gradients, strict=True):
        expected = (one * gradient).clamp(min=0).mean(1)[0].detach().numpy()
        start = 0 if len(expected) == 17 else 17
        own = level[start : start + len(expected), start : start + len(expected)]
        np.testing.assert_allclose(own, expected, atol=1e-6 + 1e-4 * expected.max())


def test_a_batch_of_pairs_gives_what_each_gives_alone() -> None:
    model, images = build("CLIP"), seen(2)
    ids = torch.tensor([[1, 5, 6, 7, 8, 9, 2], [1, 10, 2, 0, 0, 0, 0]])
    mask = (ids != 0).long()
    together = capture.graph(model, {"input_ids": ids, "attention_mask": mask, "pixel_values": images}, edges="chefer")
    for item, length in enumerate((7, 3)):
        alone = capture.graph(
            model, {"input_ids": ids[item : item + 1, :length], "pixel_values": images[item : item + 1]}, edges="chefer"
        )
        assert len(together[item].tokens) == 17 + length
        np.testing.assert_allclose(together[item].levels, alone.levels, atol=1e-4)
    with pytest.raises(InvalidArgument, match="2 images and 1 texts"):
        capture.graph(model, {"input_ids": ids[:1], "pixel_values": images})


def test_a_pair_is_read_in_both_towers() -> None:
    image = np.random.default_rng(0).integers(0, 255, (40, 60, 3)).astype(np.uint8)
    found = af.explain((image, "a cat on the mat"), build("CLIP"), processor=processor("CLIP"), edges="chefer")
    assert found.queries == (0, 23)
    assert found.tokens.labels[17:] == ("<s>", "a", "cat", "on", "the", "mat", "</s>")
    picture = found.tokens.grids[0].picture
    assert picture is not None
    np.testing.assert_allclose(picture.box, (10, 0, 50, 40), atol=0.5)
    swapped = af.explain(("a cat on the mat", image), build("CLIP"), processor=processor("CLIP"), edges="chefer")
    np.testing.assert_array_equal(swapped.scores, found.scores)
    [listed] = af.explain([(image, "a cat on the mat")], build("CLIP"), processor=processor("CLIP"), edges="chefer")
    np.testing.assert_array_equal(listed.scores, found.scores)


def test_siglip_is_read_at_the_mean_and_the_last_word() -> None:
    graph = capture.graph(build("SigLIP"), ARGUMENTS["SigLIP"])
    assert graph.tokens.labels[-1] == "[mean]"
    assert graph.options["queries"] == [23, 22]
    assert graph.options["query_is"].startswith("the mean of the patches and the last token of the text")
    for method in ("rollout", "flow"):
        found = af.attribute(graph, method)
        np.testing.assert_allclose(
            found.of("[mean]")[:16], found.of("[mean]", 1)[:16], atol=1e-9
        )  # the text adds nothing
    rolled = af.rollout(graph)
    np.testing.assert_allclose(rolled.of("[mean]"), rolled.scores[-1, :16].mean(axis=0), atol=1e-7)


@pytest.mark.parametrize("name", ["CLIP", "SigLIP"])
def test_each_tower_alone(name: str) -> None:
    model = build(name)
    image = capture.graph(model, seen()[0])
    both = capture.graph(model, ARGUMENTS[name])
    count = both.tokens.grids[0].stop
    np.testing.assert_allclose(
        image.levels[:, :count, :count], both.only("image").levels[:, :count, :count], atol=CLOSE
    )
    text = capture.graph(model, "a cat on the mat", tokenizer())
    np.testing.assert_allclose(
        text.levels, both.only("text").levels[:, count : count + 7, count : count + 7], atol=CLOSE
    )
    assert text.options["query"] == 6
    assert text.options["query_is"] == "the last token, which the text's vector is read from"
    shot = capture.graph(model, np.zeros((40, 60, 3), dtype=np.uint8), processor=processor(name))
    assert shot.tokens.grids[0].picture.width == 60


def test_which_regions_ground_a_word() -> None:
    graph = capture.graph(build("BLIP captions"), ARGUMENTS["BLIP captions"])
    assert graph.names == (
        "image 0", "image 1", "text 0 self", "text 0 cross", "text 1 self", "text 1 cross", "text 2 self", "text 2 cross",
    )  # fmt: skip
    cross = graph.only("cross")
    assert len(cross) == 3
    raw = af.raw(cross, queries=[19], levels=[-1])  # “cat”
    assert raw.scores[0, 0, :17].sum() == pytest.approx(0.5)
    assert raw.scores[0, 0, 17:].sum() == pytest.approx(0.5)
    assert graph.options["query_is"] == "the last token of the decoder, which the next one is read from"
    assert graph.tokens.grids == (af.PatchGrid(4, 4, 1),)
    np.testing.assert_allclose(af.rollout(graph).scores[-1].sum(axis=1), 1)


@pytest.mark.parametrize("name", ["BLIP captions", "BLIP matches"])
def test_gradients_reach_the_cross_attention(name: str) -> None:
    target = 6 if name == "BLIP captions" else 1
    found = af.explain(
        (np.full((40, 60, 3), 90, dtype=np.uint8), "a cat"),
        build(name),
        processor=processor(name),
        edges="chefer",
        target=target,
    )
    assert found.scores[..., :17].sum() > 0
    assert found.tokens.labels[17:] == ("<s>", "a", "cat", "</s>")
    if name == "BLIP matches":
        assert found.queries == (17,)
        assert found.options["query_is"] == "the first token of the text, which the match is read from"


def test_places_in_the_text_become_a_grid() -> None:
    graph = capture.graph(build("LLaVA"), ARGUMENTS["LLaVA"])
    assert graph.names == ("layer 0", "layer 1", "layer 2")
    assert graph.tokens.grids == (af.PatchGrid(4, 4, 3),)
    assert graph.tokens.labels == ("1", "11", "12", *PATCHES, "13", "6", "2")
    assert graph.options["query"] == 21
    assert graph.options["query_is"] == "the last token, which the next one is read from"
    assert not np.triu(graph.levels, 1).any()
    assert graph.tokens.grids[0].picture is not None


def test_the_class_token_among_the_places_is_no_patch() -> None:
    name = "LLaVA with the class token"
    graph = capture.graph(build(name), ARGUMENTS[name])
    assert graph.tokens.grids == (af.PatchGrid(4, 4, 4),)


@pytest.mark.parametrize("apart", [True, False])
def test_several_images_are_several_grids(apart: bool) -> None:
    ids = in_text(16, images=2)
    if not apart:
        ids = torch.tensor([[1, 11, *[4] * 32, 13, 2]])
    graph = capture.graph(build("LLaVA"), {"input_ids": ids, "pixel_values": seen(2)})
    offsets = (3, 20) if apart else (2, 18)
    assert graph.tokens.grids == tuple(af.PatchGrid(4, 4, offset) for offset in offsets)
    assert graph.tokens.labels[offsets[1]] == "image 1 patch 0,0"
    first, second = (grid.picture for grid in graph.tokens.grids)
    assert first != second


def test_several_texts_of_several_images_each() -> None:
    ids = torch.tensor([[1, 11, *[4] * 16, 13, 2, *[0] * 16], [1, *[4] * 16, 12, *[4] * 16, 13, 2]])
    ids[1] = torch.tensor([1, *[4] * 16, *[4] * 16, 13, 2, 0][: ids.shape[1]])
    mask = (ids != 0).long()
    graphs = capture.graph(build("LLaVA"), {"input_ids": ids, "attention_mask": mask, "pixel_values": seen(3)})
    assert [len(graph.tokens.grids) for graph in graphs] == [1, 2]
    assert graphs[0].tokens.labels[2] == "patch 0,0"
    assert graphs[1].tokens.labels[1] == "image 0 patch 0,0"


def test_a_picture_and_a_question() -> None:
    image = np.random.default_rng(0).integers(0, 255, (40, 60, 3)).astype(np.uint8)
    model, reader = build("LLaVA"), processor("LLaVA")
    found = af.explain((image, "what is this"), model, processor=reader)
    assert len(found.tokens.grids) == 1
    picture = found.tokens.grids[0].picture
    assert picture is not None
    np.testing.assert_allclose(picture.box, (10, 0, 50, 40), atol=0.5)
    two = af.explain(([image, image[:, :40]], "<image> what <image> is this"), model, processor=reader)
    assert [grid.picture.width for grid in two.tokens.grids if grid.picture] == [60, 40]
    with pytest.raises(InvalidArgument, match="1 places <image> for 2 images"):
        af.explain(([image, image], "<image> what"), model, processor=reader)
    with pytest.raises(CaptureError, match="text is empty"):
        af.explain((image, " "), model, processor=reader)
    with pytest.raises(CaptureError, match=r"sees and reads: give a pair \(image, text\)"):
        af.explain(image, model, processor=reader)
    with pytest.raises(CaptureError, match="does not read both"):
        af.explain((image, "what"), model, processor=eye())


@pytest.mark.parametrize("shapes", [[(4, 6)], [(4, 4), (2, 6)]])
def test_merged_patches_of_any_shape(shapes: list[tuple[int, int]]) -> None:
    graph = capture.graph(build("Qwen2-VL"), qwen(shapes))
    assert [(grid.rows, grid.columns) for grid in graph.tokens.grids] == [(r // 2, c // 2) for r, c in shapes]
    assert len(graph) == 3
    starts = [i for i, label in enumerate(graph.tokens.labels) if label.endswith("patch 0,0")]
    assert [grid.offset for grid in graph.tokens.grids] == starts


def test_text_alone_goes_as_it_went() -> None:
    graph = capture.graph(build("LLaVA"), [1, 5, 6, 7])
    assert graph.tokens.grids == ()
    assert len(graph.tokens) == 4
