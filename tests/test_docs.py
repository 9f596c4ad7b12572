"""Documents that cannot drift: code blocks run, names exist, the layout is the layout."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import attnflow as af

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def python_blocks(page: Path) -> str:
    """All Python blocks of a page as one script: a page is read from the top."""
    return "\n".join(BLOCK.findall(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # what a block writes, it writes here
    code = python_blocks(page)
    exec(compile(code, page.name, "exec"), {"__name__": "page"})
    assert page.read_text(encoding="utf-8").startswith("# ")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_code_appears_early_in_the_readme() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert lines.index("```python") < 15


def test_architecture_names_every_module_and_no_other() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "attnflow"
    real = {
        p.name if p.is_file() else f"{p.name}/"
        for p in package.iterdir()
        if p.suffix in (".py", "") and p.name[0] != "."
    }
    drawn = set(re.findall(r"^  (\w+(?:\.py|/)) ", text, re.MULTILINE))
    assert drawn == real - {"__pycache__/"} - {"py.typed"}


def test_the_api_page_has_every_public_name() -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for name in af.__all__:
        assert f"`af.{name}" in text, name


def test_the_changelog_has_the_version() -> None:
    assert f"## {af.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_error_is_explained() -> None:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    for name, item in vars(af.errors).items():
        if isinstance(item, type) and issubclass(item, af.AttnflowError):
            assert f"## {name}" in text, name


def test_every_make_target_is_in_contributing() -> None:
    targets = re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert {"demo", "test", "check", "bench", "docs", "reproduce"} <= set(targets)
    for target in targets:
        assert f"`make {target}`" in text, target
