"""An audit as text, Markdown, CSV, JSON, and as a page with the texts that moved most."""

from __future__ import annotations

import html
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from attnflow.artifacts import jsonable
from attnflow.study import _page
from attnflow.study._reliance import EFFECTS
from attnflow.study._tables import number
from attnflow.tables import aligned, comma_separated, finite, piped

if TYPE_CHECKING:
    from attnflow.study._audit import Audit, Move

Grid = list[list[str]]

SINGLE_WORDS = 25  # listed on a page; the CSV has all


def conclusions(audit: Audit) -> list[str]:
    """What moved, in sentences; and what would not be known."""
    one, other = audit.options["names"]
    found = [
        f"{other} relies {move.verdict} on {_called(move)} than {one}: {move.before:.2f} → {move.after:.2f} "
        f"[{move.low:+.2f}, {move.high:+.2f}], effect {number(move.effect, '+.2f')} (n = {move.n if audit.options['paired'] else f'{move.n} and {move.other_n}'}, p = {move.p_corrected:.2g})."
        for move in audit.shown[:12]
    ]  # fmt: skip
    rest = len(audit.shown) - len(found)
    if rest > 0:
        found.append(f"{rest} further groups moved; the tables have them.")
    if not found:
        found.append(
            f"No move was shown in any of {len(audit.moves)} groups (Holm-corrected); that is not a proof that none is there."
        )
    return found


def _called(move: Move) -> str:
    return {"word": f"the word “{move.group}”", "word class": f"the class {move.group}", "special token": move.group,
            "position": f"the {move.group}", "word list": f"the list “{move.group}”"}[move.kind]  # fmt: skip


def table_of(audit: Audit, kind: str, most: int | None = None) -> Grid:
    """The groups of a kind, header first."""
    one, other = audit.options["names"]
    rows = [
        [
            move.group, f"{move.before:.2f}", f"{move.after:.2f}", f"{move.difference:+.2f} [{move.low:+.2f}, {move.high:+.2f}]",
            number(move.effect, "+.2f"), f"{move.p_corrected:.2g}", str(min(move.n, move.other_n)), move.verdict,
        ]
        for move in audit.of(kind)[:most]
    ]  # fmt: skip
    return [[kind, one, other, "difference [95% interval]", "effect", "p (Holm)", "n", "result"], *rows]


def about(audit: Audit) -> str:
    """What was compared, in a sentence."""
    options = audit.options
    (one, other), (n, m), (a, b) = options["names"], options["inputs"], options["models"]
    texts = f"on the same {n} inputs" if options["paired"] else f"on {n} and {m} inputs"
    unit = (
        "how far the probability of the answer moves when a word is taken away"
        if options["way"] in EFFECTS
        else "the share of the map that lies on a word, in times of the share it would hold if the map were spread evenly"
    )
    return f"{one} ({a}) and {other} ({b}) {texts}, by {options['way']}. Reliance on a group of words is the mean of {unit}."


def _tables(audit: Audit) -> list[tuple[str, Grid]]:
    kinds = list(dict.fromkeys(move.kind for move in audit.moves))
    return [(kind, table_of(audit, kind, SINGLE_WORDS if kind == "word" else None)) for kind in kinds]


def text(audit: Audit) -> str:
    """Aligned tables."""
    return "\n\n".join([about(audit), "\n".join(conclusions(audit)), *(aligned(grid) for _, grid in _tables(audit))])


def markdown(audit: Audit) -> str:
    """Tables of a page."""
    blocks = [about(audit), "\n".join(f"* {one}" for one in conclusions(audit))]
    blocks += [f"**By {kind}**\n\n{piped(grid)}" for kind, grid in _tables(audit)]
    return "\n\n".join(blocks) + "\n"


def as_csv(audit: Audit) -> str:
    """Every group."""
    rows = [{**asdict(move), "verdict": move.verdict} for move in audit.moves]
    return comma_separated(rows, list(rows[0]) if rows else [])


def as_json(audit: Audit) -> str:
    """Every group, the examples and the options."""
    examples = [
        {"input": place, "distance": distance, "words": list(before.labels), "before": before.values.tolist(), "after": after.values.tolist()}
        for place, distance, before, after in audit.examples
    ]  # fmt: skip
    content = {
        "options": jsonable(audit.options),
        "conclusions": conclusions(audit),
        "moves": [{**asdict(move), "verdict": move.verdict} for move in audit.moves],
        "examples": examples,
    }
    return json.dumps(finite(content), indent=1, ensure_ascii=False) + "\n"


def audit_page(audit: Audit) -> str:
    """Conclusions, the moves as a figure, the texts that moved most, the tables."""
    one, other = audit.options["names"]
    blocks = [_page.paragraph(about(audit), "about"), "<h2>What moved</h2>", _page.listing(conclusions(audit))]
    bars = [(f"{move.kind}: {move.group}", move.difference, move.low, move.high) for move in audit.shown[:20]]
    if bars:
        blocks.append(_page.intervals(bars, f"Reliance of {other} minus {one}, with 95% intervals"))
    if audit.examples:
        blocks.append("<h2>The texts that moved most</h2>")
        blocks.append(
            _page.paragraph(
                f"Each text as {one} and as {other} reads it, then the difference: blue is more, orange is less.",
                "about",
            )
        )
        blocks += [_example(audit, number) for number in range(len(audit.examples))]
    for kind, grid in _tables(audit):
        marked = [place for place, row in enumerate(grid[1:]) if row[-1] != "no move shown"]
        blocks += [f"<h2>By {html.escape(kind)}</h2>", _page.table(grid, marked=marked)]
    return _page.document("What the answers come from, before and after", blocks)


def _example(audit: Audit, number: int) -> str:
    place, distance, before, after = audit.examples[number]
    one, other = audit.options["names"]
    parts = [f"<h3>Input {place}: moved by {distance:.2f}</h3>"]
    for name, reading in ((one, before), (other, after)):
        parts += [_page.paragraph(name, "about"), _page.words(reading.labels, reading.values.tolist())]
    difference = (after.values - before.values).tolist()
    parts += [_page.paragraph(f"{other} − {one}", "about"), _page.words(before.labels, difference, signed=True)]
    return "".join(parts)
