"""Pages of results: each part writes its own, and an index of all findings."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .store import write

ORDER = ("tables12", "claims", "table3", "figures123", "figure4")


@dataclass
class Page:
    """One part's results: what was found, in sentences, and the tables behind it."""

    name: str
    title: str
    findings: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    skipped: str = ""

    def add(self, *blocks: str) -> None:
        """Paragraphs, tables, pictures: Markdown, one after the other."""
        self.body += blocks

    def write(self, folder: Path) -> None:
        """NAME.md, and NAME.json for the index."""
        if self.skipped:
            text = f"# {self.title}\n\nNot run: {self.skipped}\n"
        else:
            findings = "\n".join(f"* {finding}" for finding in self.findings)
            text = "\n\n".join([f"# {self.title}", f"## What was found\n\n{findings}", *self.body]) + "\n"
        write(folder / f"{self.name}.md", text)
        content = {"title": self.title, "findings": self.findings, "skipped": self.skipped}
        write(folder / f"{self.name}.json", json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def index(folder: Path, setting: str) -> None:
    """README.md: every finding of every page that is there."""
    blocks = [
        "# The paper, measured again",
        "Abnar and Zuidema, *Quantifying Attention Flow in Transformers*, ACL 2020. Written by `make reproduce` "
        "(`python -m experiments.paper`); every number beside the paper's, every difference with its test. " + setting,
    ]
    for name in ORDER:
        path = folder / f"{name}.json"
        if not path.exists():
            continue
        content = json.loads(path.read_text(encoding="utf-8"))
        lines = [f"* {finding}" for finding in content["findings"]] or [f"* Not run: {content['skipped']}"]
        blocks.append(f"## [{content['title']}]({name}.md)\n\n" + "\n".join(lines))
    write(folder / "README.md", "\n\n".join(blocks) + "\n")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(row) + " |" for row in [header, *rows]]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])


def as_csv(rows: Sequence[dict[str, Any]]) -> str:
    """Rows with the same keys; numbers in full, what is missing empty."""
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def listed(items: Sequence[Any]) -> str:
    """ "L1, L2 and L3"."""
    words = [str(item) for item in items]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words) if words else "none"
