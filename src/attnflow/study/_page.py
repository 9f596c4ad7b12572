"""Reports as one HTML file that works from disk: tables, bars and coloured texts, no script."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attnflow.study._tables import answers, overview, rows_of, title_of

if TYPE_CHECKING:
    from attnflow.study._evidence import Evidence, Result

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
:root {{ color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --line: #d0d7de; --soft: #57606a; --mark: #0b62c4; --fell: 197, 90, 17; --rose: 11, 98, 196; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e6edf3; --paper: #0d1117; --line: #30363d; --soft: #9aa4af; --mark: #6cb6ff; --fell: 240, 150, 80; --rose: 108, 182, 255; }} }}
body {{ margin: 0 auto; max-width: 74rem; padding: 1.5rem; font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); }}
h1 {{ font-size: 1.5rem; }} h2 {{ font-size: 1.15rem; margin-top: 2.2rem; }} p.about, caption, figcaption {{ color: var(--soft); text-align: left; }}
.wide {{ overflow-x: auto; }} table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }} caption {{ padding: .4rem 0; }}
th, td {{ padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }} th {{ font-weight: 600; }}
tr.best td {{ font-weight: 600; }} code {{ font-size: .9em; overflow-wrap: anywhere; }} summary {{ cursor: pointer; padding: .3rem 0; }}
svg {{ max-width: 100%; height: auto; }} svg text {{ fill: var(--ink); font: 12px system-ui, sans-serif; }} svg .soft {{ stroke: var(--line); }} svg .mark {{ stroke: var(--mark); fill: var(--mark); }}
.words span {{ padding: .1em .25em; border-radius: .2em; line-height: 2; }} .words {{ margin: .3rem 0; }}
</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def document(title: str, blocks: Sequence[str]) -> str:
    """The whole page; `blocks` are HTML already."""
    return _PAGE.format(title=html.escape(title), body="\n".join([f"<h1>{html.escape(title)}</h1>", *blocks]))


def paragraph(text: str, kind: str = "") -> str:
    """Plain text as a paragraph."""
    return f'<p class="{kind}">{html.escape(text)}</p>' if kind else f"<p>{html.escape(text)}</p>"


def listing(items: Sequence[str]) -> str:
    """Plain texts as a list."""
    return "<ul>" + "".join(f"<li>{html.escape(item)}</li>" for item in items) + "</ul>"


def table(rows: Sequence[Sequence[str]], caption: str = "", marked: Sequence[int] = ()) -> str:
    """A table, header first; `marked` rows stand out."""
    head = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in rows[0])
    body = [
        f"<tr{' class=best' if number in marked else ''}>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for number, row in enumerate(rows[1:])
    ]  # fmt: skip
    said = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f'<div class="wide" tabindex="0"><table>{said}<thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'


def intervals(rows: Sequence[tuple[str, float, float, float]], label: str) -> str:
    """Means with their intervals as an SVG; the zero line where it lies inside."""
    known = [row for row in rows if all(map(math.isfinite, row[1:]))]
    if not known:
        return ""
    low, high = min(row[2] for row in known), max(row[3] for row in known)
    span = (high - low) or 1.0
    left, width, step = 330, 520, 22

    def x(value: float) -> float:
        return left + width * (value - low) / span

    height = step * len(known) + 34
    parts = [
        f'<svg viewBox="0 0 {left + width + 60} {height}" width="{left + width + 60}" role="img" aria-label="{html.escape(label)}">'
    ]
    if low < 0 < high:
        parts.append(f'<line class="soft" x1="{x(0):.1f}" x2="{x(0):.1f}" y1="0" y2="{height - 24}"/>')
    for number, (name, mean, lowest, highest) in enumerate(known):
        y = step * number + 14
        shown = name if len(name) < 50 else name[:48] + "…"
        parts.append(
            f'<text x="{left - 12}" y="{y + 4}" text-anchor="end">{html.escape(shown)}<title>{html.escape(name)}</title></text>'
        )
        parts.append(
            f'<line class="mark" stroke-width="2" x1="{x(lowest):.1f}" x2="{x(highest):.1f}" y1="{y}" y2="{y}"/>'
        )
        parts.append(f'<circle class="mark" cx="{x(mean):.1f}" cy="{y}" r="4"/>')
    scale = (low, (low + high) / 2, high)
    parts += [f'<text x="{x(v):.1f}" y="{height - 6}" text-anchor="middle">{v:.3g}</text>' for v in scale]
    return "<figure>" + "".join(parts) + f"</svg><figcaption>{html.escape(label)}</figcaption></figure>"


def words(labels: Sequence[str], values: Sequence[float], *, signed: bool = False) -> str:
    """A text whose words are coloured by a value; signed ones in two colours."""
    top = max((abs(value) for value in values), default=0.0) or 1.0
    spans = []
    for label, value in zip(labels, values, strict=True):
        colour = "--fell" if signed and value < 0 else "--rose"
        share = min(1.0, abs(value) / top)
        spans.append(
            f'<span style="background: rgba(var({colour}), {0.55 * share:.2f})" title="{value:+.3f}">{html.escape(label)}</span>'
        )
    return f'<p class="words">{" ".join(spans)}</p>'


def evidence_page(evidence: Evidence) -> str:
    """A faithfulness report: the answers, then for each measure a figure and its table, then how to make each map."""
    options = evidence.options
    model = f", model {options['model']}" if options.get("model") else ""
    about = f"{evidence.inputs} inputs{model}."
    blocks = [
        paragraph(about, "about"), table(overview(evidence), "Each map over all measures: its mean place (1 is best), and on how many it is best or not shown to be worse"),
        f"<details><summary>Measure by measure</summary>{listing(answers(evidence))}</details>",
    ]  # fmt: skip
    for key in evidence.values:
        results = evidence.of(*key)
        blocks.append(f"<h2>{html.escape(' · '.join(part for part in key if part))}</h2>")
        blocks.append(intervals([_bar(one) for one in results], title_of(evidence, key)))
        best = [number for number, one in enumerate(results) if one.way == one.best]
        blocks.append(f"<details><summary>Table</summary>{table(rows_of(results), marked=best)}</details>")
    flags: dict[str, Any] = dict(options.get("flags", {}))
    if flags:
        blocks.append("<h2>How each map is made</h2>")
        blocks.append(
            table([["map", "attnflow evaluate DATA --model M …"], *([name, flag] for name, flag in flags.items())])
        )
    return document("Which maps tell the truth", blocks)


def _bar(one: Result) -> tuple[str, float, float, float]:
    return one.way, one.mean, one.low, one.high
