"""The site has a place for everything: pages in its navigation, every public name, method and rule, tutorials that say nothing old."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import attnflow as af
from attnflow.capture import rules

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.ipynb"))
# What the build brings into the site from elsewhere in the project (docs/hooks.py).
BROUGHT = ("project/", "tutorials/", "reference/")


def entries(navigation: Any) -> list[str]:
    """All pages of a navigation, depth first."""
    if isinstance(navigation, str):
        return [navigation]
    values = navigation.values() if isinstance(navigation, dict) else navigation
    return [page for value in values for page in entries(value)]


def navigation() -> list[str]:
    return entries(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])


def test_every_page_is_in_the_navigation_once() -> None:
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    listed = navigation()
    assert len(listed) == len(set(listed))
    assert pages <= set(listed)
    for page in set(listed) - pages:
        assert page.startswith(BROUGHT), page


def test_every_tutorial_is_in_the_navigation() -> None:
    assert {f"tutorials/{path.stem}.md" for path in TUTORIALS} == {
        page for page in navigation() if page.startswith("tutorials/") and not page.endswith("index.md")
    }


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_is_kept_without_outputs(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    first, *rest = notebook["cells"]
    assert first["cell_type"] == "markdown"
    assert "".join(first["source"]).startswith("# ")
    code = [cell for cell in rest if cell["cell_type"] == "code"]
    assert code
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code)
    assert f"]({path.name})" in (DOCS / "tutorials" / "index.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def hooks() -> Any:
    """docs/hooks.py, which is loaded by its path by mkdocs too."""
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("hooks", DOCS / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_is_in_the_reference(hooks: Any) -> None:
    """The pages are written from the rooms' own lists, so what can be missing is a room or a docstring."""
    rooms = {room for _, _, room in hooks.REFERENCE.values()}
    assert {name for name in af.__all__ if isinstance(getattr(af, name), ModuleType)} <= rooms
    for name, (_, _, room) in hooks.REFERENCE.items():
        assert f"reference/{name}.md" in navigation()
        module = importlib.import_module(".".join(filter(None, ["attnflow", room])))
        shown = set(re.findall(r"^::: attnflow\.(?:[\w.]+\.)?(\w+)$", hooks.reference(name), re.MULTILINE))
        assert shown
        for one in shown:
            assert (getattr(module, one).__doc__ or "").strip(), f"{module.__name__}.{one} has no docstring"


def test_every_method_and_rule_has_its_page() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in (DOCS / "methods").glob("*.md"))
    guide = (DOCS / "edges.md").read_text(encoding="utf-8")
    for name in (*af.METHODS, "attention", "gradient", "chefer", *rules.RULES):
        assert f"`{name}`" in text or f"[{name}]" in text, name
    for name in rules.RESIDUAL_NAMES:
        assert f'"{name}"' in guide, name


def test_every_picture_of_the_pages_about_methods_is_made() -> None:
    script = (DOCS / "make_pictures.py").read_text(encoding="utf-8")
    for page in (DOCS / "methods").glob("*.md"):
        for name in re.findall(r"pictures/method-([\w-]+)\.svg", page.read_text(encoding="utf-8")):
            assert f'"{name}"' in script
            assert (DOCS / "pictures" / f"method-{name}.svg").is_file(), name
