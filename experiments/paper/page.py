"""Pages of results: each part writes its own, and an index sets all that the paper says beside what was measured."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .store import write

ORDER = ("tables12", "claims", "table3", "figures123", "figure4")
READING = (
    "Layers are counted from 1 as in the paper: L1 is the first. *Above*, *below* and *higher* are said only where a test shows it; "
    "*no difference was shown* does not mean that there is none. What *agrees* is decided by rules in the code, the same for every run. Each page has the tables with intervals and tests, each cell beside the paper's."
)


class Claim(NamedTuple):
    """What the paper says, what was measured here, and whether they agree: yes, in part, no or undecided."""

    said: str
    here: str
    agrees: str


@dataclass
class Page:
    """One part's results: the paper's claims, what was found, in sentences, and the tables behind it."""

    name: str
    title: str
    claims: list[Claim] = field(default_factory=list)
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
            found = f"{_claims_table(self.claims)}\n\n{_bullets(self.findings)}"
            text = "\n\n".join([f"# {self.title}", f"## What was found\n\n{found}", *self.body]) + "\n"
        write(folder / f"{self.name}.md", text)
        content = {
            "title": self.title, "claims": [claim._asdict() for claim in self.claims], "findings": self.findings,
            "skipped": self.skipped,
        }  # fmt: skip
        write(folder / f"{self.name}.json", json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def index(folder: Path, setting: str) -> None:
    """README.md: every claim in one table, then every finding of every page that is there."""
    claims: list[Claim] = []
    parts: list[str] = []
    for name in ORDER:
        path = folder / f"{name}.json"
        if not path.exists():
            continue
        content = json.loads(path.read_text(encoding="utf-8"))
        claims += [Claim(**claim) for claim in content.get("claims", ())]
        lines = _bullets(content["findings"]) or f"* Not run: {content['skipped']}"
        parts.append(f"## [{content['title']}]({name}.md)\n\n{lines}")
    summary = [f"## In short\n\n{_claims_table(claims)}", READING] if claims else []
    opening = (
        "Abnar and Zuidema, *Quantifying Attention Flow in Transformers*, ACL 2020, in the open: model, sentences, code and every "
        "choice. Written by `make reproduce` (`python -m experiments.paper`). " + setting
    )
    write(folder / "README.md", "\n\n".join(["# The paper, measured again", opening, *summary, *parts]) + "\n")


def _claims_table(claims: Sequence[Claim]) -> str:
    return table(["the paper says", "measured here", "agrees"], [list(claim) for claim in claims]) if claims else ""


def _bullets(findings: Sequence[str]) -> str:
    return "\n".join(f"* {finding}" for finding in findings)


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


def stretch(chosen: Sequence[str], everything: Sequence[str]) -> str:
    """ "L1 and L3 to L6": three or more neighbours as a stretch."""
    runs: list[list[str]] = []
    for item in everything:
        if item not in chosen:
            runs.append([])
        elif runs:
            runs[-1].append(item)
        else:
            runs = [[item]]
    return listed([word for run in runs for word in (run if len(run) < 3 else [f"{run[0]} to {run[-1]}"])])


def listed(items: Sequence[Any]) -> str:
    """ "L1, L2 and L3"."""
    words = [str(item) for item in items]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words) if words else "none"
