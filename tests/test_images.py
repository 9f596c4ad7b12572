"""Images in every form that people have them come out upright, in eight bits, on white."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import attnflow as af
from attnflow.errors import InvalidArgument
from attnflow.images import Picture, is_image_file, picture, upright

TABLE = np.arange(6 * 4 * 3, dtype=np.uint8).reshape(6, 4, 3) * 3  # 6 rows, 4 columns
GREY = TABLE[..., 0]


def saved(path: Path, image: Image.Image, **options: Any) -> Path:
    image.save(path, **options)
    return path


def tripled(grey: np.ndarray) -> np.ndarray:
    return np.repeat(grey[..., None], 3, axis=2)


def translucent() -> np.ndarray:
    pixels = np.dstack([TABLE, np.full((6, 4), 255, dtype=np.uint8)])
    pixels[0, 0, 3], pixels[0, 1, 3] = 0, 51
    return pixels


def over_white() -> np.ndarray:
    expected = TABLE.copy()
    expected[0, 0] = 255
    expected[0, 1] = np.rint(TABLE[0, 1] * 0.2 + 255 * 0.8)
    return expected


def palette() -> Image.Image:
    image = Image.fromarray(TABLE).quantize(24)
    assert image.mode == "P"
    return image


FORMS: dict[str, tuple[Any, np.ndarray]] = {
    "RGB bytes": (TABLE, TABLE),
    "channels first": (TABLE.transpose(2, 1, 0), TABLE.transpose(1, 0, 2)),
    "floating point": (TABLE / 255, TABLE),
    "whole numbers": (TABLE.astype(np.int64), TABLE),
    "sixteen bits": (TABLE.astype(np.uint16) * 257, TABLE),
    "grey": (GREY, tripled(GREY)),
    "grey with an axis": (GREY[..., None], tripled(GREY)),
    "truth values": (GREY > 100, tripled(np.where(GREY > 100, 255, 0))),
    "translucent array": (translucent(), over_white()),
    "PIL RGB": (Image.fromarray(TABLE), TABLE),
    "PIL L": (Image.fromarray(GREY), tripled(GREY)),
    "PIL 1": (Image.fromarray(GREY > 100), tripled(np.where(GREY > 100, 255, 0))),
    "PIL RGBA": (Image.fromarray(translucent()), over_white()),
    "PIL LA": (Image.merge("LA", [Image.fromarray(GREY), Image.new("L", (4, 6), 0)]), np.full((6, 4, 3), 255)),
    "PIL 16 bits": (Image.fromarray(GREY.astype(np.uint16) * 257), tripled(GREY)),
    "PIL 32 bits": (Image.fromarray(GREY.astype(np.int32) * 257), tripled(GREY)),
    "PIL floats": (Image.fromarray((GREY / 255).astype(np.float32)), tripled(GREY)),
    "PIL palette": (palette(), np.asarray(palette().convert("RGB"))),
    "PIL CMYK": (Image.fromarray(TABLE).convert("CMYK"), TABLE),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form(name: str) -> None:
    given, expected = FORMS[name]
    found = upright(given)
    assert found.dtype == np.uint8
    assert not found.flags.writeable
    assert np.abs(found.astype(int) - expected.astype(int)).max() <= 1


def test_a_palette_with_a_transparent_colour(tmp_path: Path) -> None:
    image = palette()
    path = saved(tmp_path / "p.png", image, transparency=int(np.asarray(image)[2, 2]))
    found = upright(path)
    assert found[2, 2].tolist() == [255, 255, 255]
    assert found[5, 3].tolist() == np.asarray(image.convert("RGB"))[5, 3].tolist()


@pytest.mark.parametrize("turn", range(1, 9))
def test_a_photograph_is_turned_as_its_exif_data_say(turn: int, tmp_path: Path) -> None:
    """What a camera stores, for each way of holding it, so that upright it is TABLE."""
    stored = {
        1: TABLE, 2: TABLE[:, ::-1], 3: TABLE[::-1, ::-1], 4: TABLE[::-1], 5: TABLE.transpose(1, 0, 2),
        6: np.rot90(TABLE, 1), 7: TABLE[::-1, ::-1].transpose(1, 0, 2), 8: np.rot90(TABLE, -1),
    }[turn]  # fmt: skip
    exif = Image.Exif()
    exif[0x0112] = turn
    path = saved(tmp_path / "turned.png", Image.fromarray(np.ascontiguousarray(stored)), exif=exif)
    np.testing.assert_array_equal(upright(path), TABLE)
    with Image.open(path) as opened:
        np.testing.assert_array_equal(upright(opened), TABLE)


@pytest.mark.parametrize("mode", ["I;16", "RGB", "L"])
def test_files(mode: str, tmp_path: Path) -> None:
    pixels: Any = {"I;16": GREY.astype(np.uint16) * 257, "RGB": TABLE, "L": GREY}[mode]
    path = saved(tmp_path / "image.png", Image.fromarray(pixels))
    np.testing.assert_array_equal(upright(path), TABLE if mode == "RGB" else tripled(GREY))
    np.testing.assert_array_equal(upright(str(path)), upright(path))


def test_a_moving_picture_is_its_first_frame(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (3, 3), colour) for colour in ("red", "blue")]
    path = saved(tmp_path / "moving.gif", frames[0], save_all=True, append_images=frames[1:])
    assert upright(path)[0, 0].tolist() == [255, 0, 0]


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((2, 3, 5)), "got shape"),
        (np.zeros((0, 3, 3)), "got shape"),
        (np.full((2, 2), 1.5), "from 0 to 1, got 1.5 to 1.5"),
        (np.full((2, 2), np.nan), "from 0 to 1"),
        (np.full((2, 2), 300), "0 to 255"),
        (np.full((2, 2), "a"), "holds numbers"),
        ("nowhere.png", "could not read the image nowhere.png: No such file"),
        (None, "got a NoneType"),
    ],
)
def test_what_is_no_image_is_said(image: Any, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        upright(image)


def test_damaged_files_are_said(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    path.write_text("no image")
    with pytest.raises(InvalidArgument, match=r"x\.png is not an image"):
        upright(path)
    whole = saved(
        tmp_path / "whole.jpg", Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3)).astype(np.uint8))
    )
    path.write_bytes(whole.read_bytes()[:900])
    with pytest.raises(InvalidArgument, match="cannot be read to its end"):
        upright(path)


@pytest.mark.parametrize("form", ["png", "jpeg", "gif", "bmp", "tiff", "webp"])
def test_image_files_are_known_by_what_is_in_them(form: str, tmp_path: Path) -> None:
    path = saved(tmp_path / "named.txt", Image.fromarray(TABLE), format=form)
    assert is_image_file(path)


@pytest.mark.parametrize("text", ["BMW is a maker of cars", "GIF8 is not GIF89a", "", "P6 is a thing"])
def test_text_is_no_image(text: str, tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    path.write_text(text)
    assert not is_image_file(path)
    assert not is_image_file(tmp_path / "nothing")
    assert not is_image_file(tmp_path)


def test_a_picture_knows_its_part() -> None:
    shown = picture(TABLE)
    assert shown.box == (0, 0, 4, 6)
    assert repr(shown) == "Picture(4 × 6, box=(0, 0, 4, 6))"
    assert shown == picture(TABLE.copy())
    assert hash(shown) == hash(picture(TABLE.copy()))
    assert shown != Picture(TABLE, (0, 0, 2, 6))
    with pytest.raises(InvalidArgument, match=r"\(left, top, right, bottom\)"):
        Picture(TABLE, (3, 0, 2, 6))
    with pytest.raises(InvalidArgument, match="bytes"):
        Picture(TABLE / 255, (0, 0, 2, 6))  # type: ignore[arg-type]


def test_pictures_are_saved_with_what_was_made_of_them(tmp_path: Path, rng: np.random.Generator) -> None:
    """One image under two grids is stored once; a graph, its stack and its attribution all keep it."""
    one = Picture(TABLE, (0, 1, 4, 5))
    other = Picture(one.pixels, (0, 0, 2, 3))
    tokens = af.Tokens(list("abcde"), grids=[af.PatchGrid(1, 2, 0, one), af.PatchGrid(1, 2, 2, other)])
    stack = af.AttentionStack(rng.dirichlet(np.ones(5), size=(2, 2, 5)), tokens)
    graph = af.mix(stack)
    for made in (stack, graph, af.rollout(graph)):
        made.save(tmp_path / "made.npz")
        with np.load(tmp_path / "made.npz") as content:
            assert [name for name in content.files if name.startswith("picture")] == ["picture0"]
        found = type(made).load(tmp_path / "made.npz").tokens.grids
        assert [grid.picture for grid in found] == [one, other]


def test_a_large_picture_is_stored_smaller_with_its_part_at_the_same_place(tmp_path: Path) -> None:
    large = Picture(np.zeros((100, 4096, 3), dtype=np.uint8), (1024, 0, 3072, 100))
    tokens = af.Tokens(list("ab"), grids=[af.PatchGrid(1, 2, 0, large)])
    af.AttentionGraph([np.eye(2)], tokens).save(tmp_path / "g.npz")
    found = af.AttentionGraph.load(tmp_path / "g.npz").tokens.grids[0].picture
    assert found is not None
    assert (found.width, found.box) == (2048, (512, 0, 1536, 50))
