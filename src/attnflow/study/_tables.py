"""Evidence as tables: text, Markdown, CSV, JSON. One table for each measure and replacement, and the answer above them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from attnflow.artifacts import jsonable
from attnflow.tables import aligned, comma_separated, finite, piped

if TYPE_CHECKING:
    from attnflow.study._evidence import Evidence, Key, Result

HEADER = ("map", "mean [95% interval]", "place", "difference to the best", "effect", "p (Holm)", "to the best", "to chance")  # fmt: skip

Grid = list[list[str]]


def number(value: float, form: str = ".3f") -> str:
    """A number, or a dash where there is none."""
    return format(value, form) if math.isfinite(value) else "–"


def rows_of(results: Sequence[Result]) -> Grid:
    """A measure's table, header first."""
    return [
        list(HEADER),
        *(
            [
                one.way, f"{number(one.mean)} [{number(one.low)}, {number(one.high)}]",
                f"{number(one.place, 'g')} [{number(one.place_low, 'g')}, {number(one.place_high, 'g')}]",
                *(["–"] * 3 if one.way == one.best else [number(one.difference, "+.3f"), number(one.effect, "+.2f"), number(one.p, ".2g")]),
                "best" if one.way == one.best else one.verdict, one.beats_chance or "–",
            ]
            for one in results
        ),
    ]  # fmt: skip


def title_of(evidence: Evidence, key: Key) -> str:
    """What a table is of, with n and what would have been found."""
    measure, replace = key
    results = evidence.of(*key)
    direction = "higher is better" if evidence.higher_is_better(measure) else "lower is better"
    with_what = f", {replace}" if replace else ""
    known = [one.detectable for one in results if math.isfinite(one.detectable)]
    found = f"; differences from {max(known):.3f} up would have been found (power 0.8)" if known else ""
    n = min((one.n for one in results), default=0)
    return f"{measure}{with_what} ({direction}; n = {n}{found})"


def answers(evidence: Evidence) -> list[str]:
    """A sentence for each measure: the best map, who is not shown to be worse, and how many are not shown to beat chance."""
    found = []
    for measure, replace in evidence.values:
        results = evidence.of(measure, replace)
        if not results:
            continue
        best, *others = evidence.leaders(measure, replace)
        at_par = f"; no difference shown to {_listed(others)}" if others else ""
        idle = sum(one.beats_chance not in ("", "better") for one in results)
        lost = f"; {idle} of {len(results)} maps not shown to be better than chance" if idle else ""
        where = f"{measure} ({replace})" if replace else measure
        found.append(f"{where}: “{best}” is best{at_par}{lost}.")
    return found


def overview(evidence: Evidence) -> Grid:
    """For each map the mean of its places over the measures, with each replacement, and on how many it is best or at par."""
    groups = [
        replace
        for replace in evidence.replacements
        if any(evidence.of(*key) for key in evidence.values if key[1] == replace)
    ]
    rows: dict[str, list[str]] = {way: [way] for way in evidence.ways}
    order = dict.fromkeys(evidence.ways, 0.0)
    for replace in groups:
        keys = [key for key in evidence.values if key[1] == replace and evidence.of(*key)]
        for way in evidence.ways:
            own = [next(one for one in evidence.of(*key) if one.way == way) for key in keys]
            known = [one.place for one in own if math.isfinite(one.place)]
            place = sum(known) / len(known) if known else math.nan
            order[way] += place if math.isfinite(place) else len(evidence.ways)
            leading = sum(one.verdict in ("best", "no difference shown") for one in own)
            ahead = sum(one.beats_chance == "better" for one in own)
            rows[way] += [
                number(place, ".1f"),
                f"{leading} of {len(keys)}",
                f"{ahead} of {len(keys)}" if way != "random" else "–",
            ]
    header = ["map"]
    for replace in groups:
        named = f" ({replace})" if replace else ""
        header += [f"mean place{named}", "best or at par", "better than chance"]
    return [header, *sorted(rows.values(), key=lambda row: order[row[0]])]


def text(evidence: Evidence) -> str:
    """Aligned tables."""
    blocks = [aligned(overview(evidence)), "\n".join(answers(evidence))]
    blocks += [f"{title_of(evidence, key)}\n{aligned(rows_of(evidence.of(*key)))}" for key in evidence.values]
    return "\n\n".join(blocks)


def markdown(evidence: Evidence) -> str:
    """Tables of a page."""
    blocks = [piped(overview(evidence)), "\n".join(f"* {answer}" for answer in answers(evidence))]
    blocks += [f"**{title_of(evidence, key)}**\n\n{piped(rows_of(evidence.of(*key)))}" for key in evidence.values]
    return "\n\n".join(blocks) + "\n"


def as_csv(results: Sequence[Any]) -> str:
    """Dataclasses as rows."""
    rows = [asdict(one) for one in results]
    return comma_separated(rows, list(rows[0]) if rows else [])


def as_json(evidence: Evidence) -> str:
    """Everything but the single values."""
    content = {
        "options": jsonable(evidence.options),
        "answers": answers(evidence),
        "results": [asdict(one) for one in evidence.results],
    }
    return json.dumps(finite(content), indent=1, ensure_ascii=False) + "\n"


def _listed(items: Sequence[str], most: int = 3) -> str:
    """ "a, b and c"; names may hold commas, so they stand in quotes. Of many, the first."""
    words = [f"“{item}”" for item in items[:most]]
    if len(items) > most:
        words.append(f"{len(items) - most} more")
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
