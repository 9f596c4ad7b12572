"""What mkdocs does besides reading docs/: results of experiments join the site, and the reference is written from the public names.

On a code host the pages of docs/ link to `../experiments/results/…`, `../CHANGELOG.md` and the like, which lie outside. In the
site these files are pages of their own, under `results/` and `project/`.
"""

from __future__ import annotations

import importlib
import posixpath
import re
from pathlib import Path
from types import ModuleType
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "experiments" / "results"
TUTORIALS = ROOT / "runs" / "tutorials"  # made by docs/make_tutorials.py
PROJECT = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "ARCHITECTURE.md",
    "CODE_OF_CONDUCT.md",
    "SECURITY.md",
    "src/attnflow/assets/verb_number/MODEL_CARD.md",
)
SHOWN = {".md", ".png", ".svg", ".csv", ".html"}
LINK = re.compile(r"(\]\(|(?:src|href)=\")(?!https?:|#|mailto:|data:)([^)\s\"#]+)")


# Pages of the reference: title, what it is, and the room whose public names it shows ("" is the front door).
REFERENCE = {
    "core": ("Types and methods", "What `import attnflow as af` has.", ""),
    "capture": ("Capture", "From a model and an input to attention. Needs `attnflow[models]`.", "capture"),
    "rules": ("Rules", "Edge rules as objects, and the families of models that they know.", "capture.rules"),
    "evaluate": ("Evaluate", "Correlations, measures of faithfulness, intervals and tests.", "evaluate"),
    "render": ("Render", "Pictures, all from one description.", "render"),
    "study": ("Study", "Which maps tell the truth about a model, and how models differ.", "study"),
    "batch": ("Batch", "Many inputs to Parquet. Needs `attnflow[models,batch]`.", "batch"),
    "web": ("Web", "The viewer as a server. Needs `attnflow[models,app]`.", "web"),
    "errors": ("Errors", "The tree of exceptions; [what each means](../errors.md).", "errors"),
}


def reference(name: str) -> str:
    """A page of the reference: every public name of a room, by its docstring."""
    title, what, room = REFERENCE[name]
    module = importlib.import_module(".".join(filter(None, ["attnflow", room])))
    shown = [f"::: {module.__name__}.{one}" for one in public(module)]
    return "\n\n".join([f"# {title}", what, *shown]) + "\n"


def public(module: ModuleType) -> list[str]:
    """The public names of a module that are things of their own: not rooms, nor what another page shows."""
    if module.__name__ == "attnflow.errors":
        return [
            name for name, item in vars(module).items() if isinstance(item, type) and item.__module__ == module.__name__
        ]
    return [
        name
        for name in module.__all__
        if not isinstance(getattr(module, name), ModuleType | dict) and name != "AttnflowError"
    ]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lies outside docs/, and the reference."""
    for name in REFERENCE:
        files.append(File.generated(config, f"reference/{name}.md", content=reference(name)))
    for path in sorted(RESULTS.rglob("*")):
        if path.suffix in SHOWN:
            files.append(File.generated(config, place(path), abs_src_path=str(path)))
    for path in sorted(TUTORIALS.rglob("*")):
        if path.is_file():
            files.append(File.generated(config, place(path), abs_src_path=str(path)))
    for name in PROJECT:
        if (ROOT / name).exists():
            files.append(File.generated(config, place(ROOT / name), abs_src_path=str(ROOT / name)))
    return files


def place(path: Path) -> str:
    """Where in the site a file of the project is, as a path below docs/."""
    if path.is_relative_to(RESULTS):
        return f"results/{path.relative_to(RESULTS).as_posix()}"
    if path.is_relative_to(TUTORIALS):
        return f"tutorials/{path.relative_to(TUTORIALS).as_posix()}"
    if path == ROOT / "README.md":
        return "index.md"
    if path in {ROOT / name for name in PROJECT}:
        return f"project/{path.name}"
    return path.relative_to(ROOT / "docs").as_posix()


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Links as they are in the project, turned into links within the site."""
    source = page.file.abs_src_path
    if source is None:
        return markdown
    here = Path(source).parent

    def moved(match: re.Match[str]) -> str:
        target = (here / match[2]).resolve()
        if not target.exists() or not target.is_relative_to(ROOT):
            return match[0]
        if target.is_dir():
            target /= "README.md"
        shown = {ROOT / name for name in ("README.md", *PROJECT)}
        if not (
            target in shown or any(target.is_relative_to(folder) for folder in (ROOT / "docs", RESULTS, TUTORIALS))
        ):
            return match[0]
        return match[1] + posixpath.relpath(place(target), posixpath.dirname(page.file.src_uri) or ".")

    return LINK.sub(moved, markdown)
