"""Scenes: the truth is where it is said to be, the model uses it, and the measures know a good map from a bad one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from experiments.scenes import CELL, CELLS, KINDS, MODEL, SIDE, load, pixels, scenes
from experiments.scenes.__main__ import main
from experiments.scenes.maps import WAYS
from experiments.scenes.measure import MEASURES, measure, overlap, scored
from experiments.scenes.train import Recipe, accuracy, save, train

DRAWN = scenes(60, seed=11)


def test_each_scene_has_one_digit_in_its_cell() -> None:
    digits = (DRAWN.kinds >= 0) & (DRAWN.kinds < 10)
    assert (digits.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(digits.argmax(axis=1), DRAWN.cells)
    np.testing.assert_array_equal(DRAWN.kinds[np.arange(60), DRAWN.cells], DRAWN.labels)
    others = (DRAWN.kinds >= 10).sum(axis=1)
    assert others.min() >= 4
    assert others.max() <= 9
    assert DRAWN.kinds.max() < len(KINDS)


def test_the_truth_is_the_cell() -> None:
    for number in range(20):
        left, top, right, bottom = DRAWN.box(number)
        row, column = divmod(int(DRAWN.cells[number]), CELLS)
        assert (left, top, right, bottom) == (column * CELL, row * CELL, column * CELL + CELL, row * CELL + CELL)
        truth = DRAWN.truth(number)
        assert truth.sum() == 4
        assert np.kron(truth, np.ones((8, 8), dtype=bool))[top:bottom, left:right].all()


def test_a_seed_draws_the_same_scenes_and_another_does_not() -> None:
    np.testing.assert_array_equal(scenes(60, seed=11).images, DRAWN.images)
    assert (scenes(60, seed=12).images != DRAWN.images).any()


def test_nothing_outside_the_cell_says_which_digit_it_is() -> None:
    """Over many scenes, no kind of distractor comes oftener with one digit than chance has it."""
    many = scenes(20_000, seed=4)
    counts = np.zeros((10, len(KINDS)))
    for digit in range(10):
        present = many.kinds[many.labels == digit]
        counts[digit] = np.bincount(present[present >= 10], minlength=len(KINDS)) / len(present)
    expected = counts.mean(axis=0)
    apart = np.abs(counts - expected)[:, 10:] / np.sqrt(expected[10:] / 2000)
    assert apart.max() < 5
    assert np.abs(np.bincount(many.cells, minlength=16) - 1250).max() < 5 * np.sqrt(1250)


def test_the_model_decides_by_the_cell() -> None:
    """Right on new scenes; with the cell painted over it is at chance, and with all others painted over still right."""
    model, drawn = load(), scenes(300, seed=13)
    assert accuracy(model, drawn) > 0.98
    outside, inside = drawn.images.copy(), drawn.images.copy()
    for number in range(len(drawn)):
        left, top, right, bottom = drawn.box(number)
        ground = np.median(drawn.images[number].reshape(-1, 3), axis=0).astype(np.uint8)
        inside[number, top:bottom, left:right] = ground
        kept = outside[number, top:bottom, left:right].copy()
        outside[number] = ground
        outside[number, top:bottom, left:right] = kept
    from dataclasses import replace

    assert accuracy(model, replace(drawn, images=inside)) < 0.3
    assert accuracy(model, replace(drawn, images=outside)) > 0.9


def test_measures_of_maps_that_are_known() -> None:
    truth = DRAWN.truth(0)
    assert scored(truth.astype(float), truth) == (1, 1, 1)
    assert scored((~truth).astype(float), truth) == (0, 0, 0)
    assert scored(np.ones((8, 8)), truth) == pytest.approx((1 / 16, 1 / 16, (4 / 16) / (8 - 4 / 16)))
    half = truth.astype(float)
    half.ravel()[np.flatnonzero(truth)[:2]] = 0
    half.ravel()[np.flatnonzero(~truth)[:2]] = 0.5
    assert overlap(half, truth) == pytest.approx(2 / 6)


def test_every_way_gives_one_number_for_each_patch() -> None:
    model, few = load(), scenes(3, seed=5)
    found = measure(model, few, WAYS, quiet=True)
    assert found.values.shape == (int(found.right.sum()), len(WAYS), len(MEASURES))
    assert np.isfinite(found.values).all()
    maps = [way(model, pixels(few)[:1], int(few.labels[0])) for way in WAYS.values()]
    assert {one.shape for one in maps} == {(8, 8)}


def test_the_page_and_the_table_are_written(tmp_path: Path) -> None:
    main(["--scenes", "4", "--out", str(tmp_path)])
    assert {path.name for path in tmp_path.iterdir()} == {"README.md", "table.csv", "maps.png", "scene.png"}
    text = (tmp_path / "README.md").read_text()
    assert all(f"| {way} |" in text for way in WAYS)
    assert len((tmp_path / "table.csv").read_text().splitlines()) == 1 + len(WAYS) * len(MEASURES)


def test_a_short_training_learns_something_and_can_be_loaded(tmp_path: Path) -> None:
    model = train(Recipe(steps=3, batch=8, width=16, layers=1, heads=2, feed_forward=16), quiet=True)
    save(model, tmp_path)
    again = load(tmp_path)
    values = pixels(scenes(2, seed=1))
    with torch.inference_mode():
        torch.testing.assert_close(again(values).logits, model(values).logits, atol=1e-2, rtol=1e-2)
    with pytest.raises(SystemExit, match="make scenes"):
        load(tmp_path / "nothing")


def test_the_model_that_is_kept_is_small() -> None:
    assert sum(path.stat().st_size for path in MODEL.iterdir()) < 2_000_000
    assert DRAWN.images.shape[1:] == (SIDE, SIDE, 3)
