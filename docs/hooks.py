"""What mkdocs does besides reading docs/: results of experiments join the site, and links to them lead there.

On a code host the pages of docs/ link to `../experiments/results/…`, `../CHANGELOG.md` and the like, which lie outside. In the
site these files are pages of their own, under `results/` and `project/`.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "experiments" / "results"
TUTORIALS = ROOT / "runs" / "tutorials"  # made by docs/make_tutorials.py
PROJECT = ("CHANGELOG.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CODE_OF_CONDUCT.md", "SECURITY.md")
SHOWN = {".md", ".png", ".svg", ".csv", ".html"}
LINK = re.compile(r"(\]\(|(?:src|href)=\")(?!https?:|#|mailto:|data:)([^)\s\"#]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lies outside docs/."""
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
    if path.parent == ROOT:
        return "index.md" if path.name == "README.md" else f"project/{path.name}"
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
