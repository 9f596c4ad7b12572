"""Images: asked about by models that see, from a request and by dropping one on the page."""

from __future__ import annotations

import base64
import io
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

import attnflow as af
from attnflow import render, web
from tests.browser import painted
from tests.capture import image_text_zoo
from tests.capture.vision_zoo import LAYERS, SIDE, build
from tests.web.conftest import TEXT, Open, Serving, answered


def photograph(form: str = "PNG", width: int = 60, height: int = 40, **options: Any) -> bytes:
    """A picture that is not the same anywhere."""
    rng = np.random.default_rng(1)
    file = io.BytesIO()
    Image.fromarray(rng.integers(0, 255, (height, width, 3), dtype=np.uint8)).save(file, form, **options)
    return file.getvalue()


def base64_of(content: bytes) -> str:
    return base64.b64encode(content).decode()


@pytest.fixture(scope="module")
def eyes() -> web.Served:
    from transformers import ViTImageProcessor

    processor: Any = ViTImageProcessor
    return web.Served("eyes", build("ViT"), processor=processor(size={"height": SIDE, "width": SIDE}))


@pytest.fixture(scope="module")
def seeing(serving: Serving, model: web.Served, eyes: web.Served) -> Iterator[httpx.Client]:
    with serving({"verb_number": model, "eyes": eyes}, limits=web.Limits(pixels=10_000)) as client:
        yield client


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "GIF", "BMP"])
def test_the_document_is_that_of_the_library(seeing: httpx.Client, eyes: web.Served, form: str) -> None:
    content = photograph(form)
    answer = seeing.post(
        "/api/explain", json={"model": "eyes", "image": base64_of(content), "methods": ["rollout", "flow"]}
    )
    assert answer.status_code == 200, answer.text
    graph = af.capture.graph(eyes.model, Image.open(io.BytesIO(content)), processor=eyes.processor)
    named = af.AttentionGraph(graph.levels, graph.tokens, graph.names, options={**graph.options, "model": "eyes"})
    shown = [af.rollout(named), af.flow(named)]
    wanted = render.document(shown, query=graph.options["query"], level=LAYERS - 1, title="eyes")
    assert answer.json()["document"] == json.loads(json.dumps(wanted))
    [grid] = answer.json()["document"]["texts"][0]["grids"]
    assert grid["image"].startswith("data:image/")
    assert grid["size"] == [60, 40]


def test_a_pair_of_patches(seeing: httpx.Client) -> None:
    question = {"model": "eyes", "image": base64_of(photograph()), "query": 0, "input": 3}
    found = seeing.post("/api/bottleneck", json=question).json()
    assert (found["query"], found["input"], len(found["levels"])) == (0, 3, LAYERS)


def huge() -> bytes:
    """A PNG of a few bytes that claims to be 50,000 × 50,000."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    size = (50_000).to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ("!!!", "no base64"), ("aGVsbG8=", "of another kind"), (base64_of(photograph()[:300]), "damaged"),
        (base64_of(photograph("TIFF")), "of another kind"), (base64_of(photograph(width=200, height=100)), "200 × 100 pixels"),
        (base64_of(huge()), "pixels"), (base64_of(b"%!PS-Adobe-3.0 EPSF-3.0\n"), "of another kind"),
        (base64_of(b"<svg xmlns='http://www.w3.org/2000/svg'/>"), "of another kind"), ("/etc/passwd", "cannot be read"),
    ],
)  # fmt: skip
def test_what_is_no_image_or_too_large_is_refused(seeing: httpx.Client, image: str, words: str) -> None:
    answer = seeing.post("/api/explain", json={"model": "eyes", "image": image})
    assert (answer.status_code, answer.json()["error"]) == (422, "cannot_answer")
    assert words in answer.json()["message"]


def test_a_model_is_asked_about_what_it_reads(seeing: httpx.Client, client: httpx.Client) -> None:
    assert "about an image" in seeing.post("/api/explain", json={"model": "eyes", "text": TEXT}).json()["message"]
    answer = seeing.post("/api/explain", json={"image": base64_of(photograph())})
    assert "about a text" in answer.json()["message"]
    without = client.post("/api/explain", json={"text": TEXT, "image": base64_of(photograph())})
    assert without.status_code == 400  # no model there sees


@pytest.mark.parametrize("name", ["CLIP", "BLIP captions", "LLaVA"])
def test_an_image_and_a_text(serving: Serving, name: str) -> None:
    reads = image_text_zoo.processor(name)
    both = web.Served("both", image_text_zoo.build(name), reads.tokenizer, reads)
    content = photograph(width=40)
    with serving({"both": both}) as client:
        assert client.get("/api/choices").json()["models"][0]["reads"] == "both"
        answer = client.post("/api/explain", json={"image": base64_of(content), "text": "a cat on the mat"})
        assert answer.status_code == 200, answer.text
        [text] = answer.json()["document"]["texts"]
        graph = af.capture.graph(
            both.model, (Image.open(io.BytesIO(content)), " a cat on the mat"), reads.tokenizer, reads
        )
        assert len(text["labels"]) == len(graph.tokens)
        assert len(text["grids"]) == len(graph.tokens.grids)
        assert "about an image and a text" in client.post("/api/explain", json={}).json()["message"]


def test_a_text_that_names_a_file_stays_a_text(serving: Serving, tmp_path: Path) -> None:
    """To models that see and read, the library takes a path for an image; from a request it must not."""
    secret = tmp_path / "secret.png"
    secret.write_bytes(photograph())
    reads = image_text_zoo.processor("CLIP")
    both = web.Served("both", image_text_zoo.build("CLIP"), reads.tokenizer, reads)
    with serving({"both": both}) as client:
        for question in ({"text": str(secret)}, {"text": str(secret), "second": str(secret)}):
            answer = client.post("/api/explain", json=question)
            assert answer.status_code == 200, answer.text
            assert answer.json()["document"]["texts"][0]["grids"] == []
        beside = {"text": str(secret), "image": base64_of(photograph(width=40))}
        [text] = client.post("/api/explain", json=beside).json()["document"]["texts"]
        assert [grid["size"] for grid in text["grids"]] == [[40, 40]]


def test_an_image_on_the_page(seeing: httpx.Client, opened: Open, tmp_path: Path) -> None:
    file = tmp_path / "photograph.png"
    file.write_bytes(photograph())
    page = opened(base=f"http://127.0.0.1:{seeing.base_url.port}")
    # Dropped anywhere, while a model that reads is chosen.
    page.evaluate(
        """(content) => {
          const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
          const transfer = new DataTransfer();
          transfer.items.add(new File([bytes], "photograph.png", { type: "image/png" }));
          document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
        }""",
        base64_of(photograph()),
    )
    answered(page)
    assert page.get_by_label("Model").input_value() == "eyes"
    assert page.get_by_role("tab", name="Image").get_attribute("aria-selected") == "true"
    page.locator(".drop input").set_input_files(str(file))
    answered(page)
    link = page.evaluate("location.hash")
    other = opened(link, base=f"http://127.0.0.1:{seeing.base_url.port}")
    answered(other)
    assert other.locator(".drop img").is_visible()
    page.get_by_label("Model").select_option("verb_number")
    painted(page)
    assert page.locator("#text").is_visible()
