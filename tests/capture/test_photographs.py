"""Real photographs, from file to picture, on the trained model of the scenes and on tiny ones of every kind."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import attnflow as af
from attnflow import render
from experiments.scenes import MODEL, load, processor
from tests.capture.vision_zoo import SEEING, build


def photographs() -> dict[str, Any]:
    """From scikit-image and scikit-learn: colour, grey, wide, tall, with transparency, sixteen bits."""
    from skimage import data
    from sklearn.datasets import load_sample_images

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        china, flower = load_sample_images().images
        astronaut, camera, cat, coffee = (
            getattr(data, name)() for name in ("astronaut", "camera", "chelsea", "coffee")
        )
    opaque = np.full((*cat.shape[:2], 1), 255, dtype=np.uint8)
    return {
        "astronaut": astronaut,
        "camera, grey": camera,
        "cat": cat,
        "cat, translucent": np.dstack([cat, opaque // 2]),
        "camera, sixteen bits": camera.astype(np.uint16) * 257,
        "coffee, as PIL": Image.fromarray(coffee),
        "china": china,
        "flower, tall": np.ascontiguousarray(flower.transpose(1, 0, 2)),
    }


PHOTOGRAPHS = photographs()


@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_a_photograph_from_file_to_map(name: str, tmp_path: Path) -> None:
    given = PHOTOGRAPHS[name]
    size = given.size if isinstance(given, Image.Image) else given.shape[1::-1]
    path = tmp_path / "photo.png"
    (given if isinstance(given, Image.Image) else Image.fromarray(given)).save(path)
    by_path = af.explain(path, load(), processor=processor())
    by_hand = af.explain(given, load(), processor=processor())
    np.testing.assert_allclose(by_path.scores, by_hand.scores, atol=1e-6)
    picture = by_path.tokens.grids[0].picture
    assert picture is not None
    assert (picture.width, picture.height) == size
    assert picture.box == (0, 0, *size)
    for smooth in (True, False):
        drawn = render.figure(by_path, path=tmp_path / "map.png", smooth=smooth)
        assert list(drawn.axes[0].images[1].get_extent()) == [0, size[0], size[1], 0]
    assert render.page(by_path, tmp_path / "map.html").count("data:image/") == 1


@pytest.mark.parametrize("name", SEEING)
def test_every_kind_of_model_reads_them(name: str) -> None:
    from transformers import CLIPImageProcessorPil

    reader = CLIPImageProcessorPil(size={"shortest_edge": 40}, crop_size={"height": 32, "width": 32})
    images = [PHOTOGRAPHS["cat"], PHOTOGRAPHS["camera, grey"]]
    found = af.explain(images, build(name), "flow", processor=reader)
    for one, image in zip(found, images, strict=True):
        grid = one.tokens.grids[0]
        assert grid.picture is not None
        assert grid.picture.pixels.shape[:2] == image.shape[:2]
        assert 0 < one.scores.max() <= 1 + 1e-9


@pytest.mark.parametrize("method", ["rollout", "flow"])
def test_the_command_line(method: str, tmp_path: Path) -> None:
    Image.fromarray(PHOTOGRAPHS["cat"]).save(tmp_path / "cat.jpg")
    command = [sys.executable, "-m", "attnflow", "explain", "cat.jpg", "--model", str(MODEL), "-m", method]
    done = subprocess.run(
        [*command, "-o", "map.png", "-o", "map.html", "-o", "map.npz"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "the class token" in done.stderr
    assert done.stdout.startswith(f"{method}: what “[CLS]” draws on")
    assert (tmp_path / "map.html").read_text().count("data:image/") == 1
    with Image.open(tmp_path / "map.png") as drawn:
        assert min(drawn.size) > 300
    loaded = af.Attribution.load(tmp_path / "map.npz")
    assert loaded.tokens.grids[0].picture is not None
    assert (loaded.tokens.grids[0].picture.width, loaded.tokens.grids[0].picture.height) == (451, 300)
    again = subprocess.run(
        [sys.executable, "-m", "attnflow", "render", "map.npz", "-o", "again.png"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert again.returncode == 0, again.stderr


def test_the_command_line_reads_a_pair(tmp_path: Path) -> None:
    from tests.capture.image_text_zoo import build as build_pair
    from tests.capture.image_text_zoo import processor as processor_of

    build_pair("CLIP").save_pretrained(tmp_path / "clip")
    processor_of("CLIP").save_pretrained(tmp_path / "clip")
    Image.fromarray(PHOTOGRAPHS["cat"]).save(tmp_path / "cat.png")
    command = [
        sys.executable,
        "-m",
        "attnflow",
        "explain",
        "cat.png",
        "--second",
        "a cat on the mat",
        "--model",
        "clip",
        "--edges",
        "chefer",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "which make the score" in done.stderr
    assert "what “[CLS]” draws on" in done.stdout
    assert "what “</s>” draws on" in done.stdout


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("photo.jpg", "there is no file photo.jpg"),
        ("a sentence", "ViTForImageClassification reads images: there is no file 'a sentence'"),
        ("notes.txt", "reads images"),
    ],
)
def test_mistakes_are_one_line(source: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("some words")
    command = [sys.executable, "-m", "attnflow", "explain", source, "--model", str(MODEL)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_torchvision_is_neither_needed_nor_brought_along() -> None:
    """Its builds load beside no other torch than their own, and then transformers fails too."""
    root = Path(__file__).parents[2]
    for name in ("pyproject.toml", "constraints.txt", "weights.txt"):
        text = (root / name).read_text(encoding="utf-8").lower()
        assert "torchvision" not in text, name
        assert "timm" not in text, name
