"""How large a page is and how soon it shows something: 12 levels × 3 methods at 64, 512 and 2,048 tokens.

    python benchmarks/render.py [tokens …]

The time to first paint runs from the start of the navigation, in headless Chromium, until the coloured text is on the
page, the median of three loads of a file; `all` is when the picture below it is there too. `python` is what
writing the page takes. The attention is synthetic: softmax over scores with a local bias and a sink, 12 heads averaged.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, sync_playwright

import attnflow as af
from attnflow import render

LEVELS, HEADS = 12, 12
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


def graph(tokens: int, residual: float = 0.5) -> af.AttentionGraph:
    rng = np.random.default_rng(0)
    distance = np.abs(np.subtract.outer(np.arange(tokens), np.arange(tokens)))
    levels = np.zeros((LEVELS, tokens, tokens), dtype=np.float32)
    for level in levels:
        for _ in range(HEADS):
            scores = rng.normal(size=(tokens, tokens)).astype(np.float32) * rng.uniform(
                0.5, 3
            ) - distance * rng.uniform(0, 0.3)
            scores[:, 0] += rng.uniform(0, 6)
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            level += weights / weights.sum(axis=1, keepdims=True) / HEADS
    mixed = (1 - residual) * levels + residual * np.eye(tokens, dtype=np.float32)
    labels = ["[CLS]", *(f"word{i % 97}" for i in range(tokens - 2)), "[SEP]"]
    return af.AttentionGraph(mixed, af.Tokens(labels, special=[label[0] == "[" for label in labels]))


def painted(page: Page, path: Path) -> tuple[float, float]:
    page.goto(path.as_uri())
    page.wait_for_selector("[data-painted=all]", timeout=120_000)
    text = page.evaluate("performance.getEntriesByName('attnflow-text')[0].startTime")
    return float(text), float(page.evaluate("performance.now()"))


def main(sizes: list[int]) -> None:
    print(
        f"{'tokens':>7}{'values':>13}{'kept':>13}{'page MB':>9}{'off by':>9}{'python s':>10}{'first paint ms':>16}{'all ms':>8}{'hover ms':>10}"
    )
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=list(FLAGS))
        for tokens in sizes:
            full = graph(tokens)
            attributions = [af.raw(full), af.rollout(full), af.rollout(graph(tokens, residual=0.2))]
            path = Path(folder) / f"{tokens}.html"
            start = time.perf_counter()
            render.page(attributions, path, title=f"{tokens} tokens")
            wrote = time.perf_counter() - start
            cubes = [view["cube"] for view in render.document(attributions)["texts"][0]["views"]]
            rows = [view["queries"] for view in render.document(attributions)["texts"][0]["views"]]
            kept = sum(LEVELS * tokens * (tokens if row is None else len(row)) for row in rows)
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            times = [painted(page, path) for _ in range(3)]
            hover = page.evaluate(HOVER)
            page.close()
            print(
                f"{tokens:>7}{3 * LEVELS * tokens**2:>13,}{kept:>13,}{path.stat().st_size / 1e6:>9.2f}{cubes[0]['error']:>9.2%}{wrote:>10.1f}"
                f"{statistics.median(t for t, _ in times):>16.0f}{statistics.median(t for _, t in times):>8.0f}{hover:>10.0f}",
                flush=True,
            )
        browser.close()


# From a pointer over a token to the frame that shows its row, median of ten.
HOVER = """async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const units = [...document.querySelectorAll(".panel .unit")].slice(5, 15);
  const times = [];
  for (const unit of units) {
    const start = performance.now();
    unit.dispatchEvent(new PointerEvent("pointerover", { bubbles: true, pointerType: "mouse", clientX: 50, clientY: 50 }));
    await frame();
    await frame();
    times.push(performance.now() - start);
  }
  return times.sort((a, b) => a - b)[5];
}"""

if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [64, 512, 2048])
