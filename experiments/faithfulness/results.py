"""The results page: one table that says which method to use for an encoder, a decoder and a ViT, and what it rests on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnflow import evaluate, study
from experiments.paper.page import Page, as_csv, listed, table
from experiments.paper.store import write

from . import figures
from .headline import ABOUT, gains, headline, replaced
from .subjects import BASELINES, Subject

PARTS = (
    "methods",
    "replacements",
    "planted",
    "agreement",
    *(f"question{number}" for number in range(1, 8)),
    "sanity",
    "audit",
)
FAMILIES = ("encoder", "decoder", "ViT")
OTHERS = tuple(name for name in BASELINES if name not in ("random", "last layer"))  # importances that are not attention
CELL = 'python -m experiments.faithfulness --cell "{column}" "{way}"'


def columns(several: Sequence[Subject], found: Mapping[str, study.Evidence]) -> dict[str, study.Evidence]:
    """The columns of the table: each subject, the planted tasks of a kind being one."""
    made: dict[str, study.Evidence] = {}
    for one in several:
        if one.name in found and not one.name.startswith("planted"):
            made[f"{one.family}: {one.name}"] = found[one.name]
    for kind in FAMILIES:
        some = [
            found[one.name]
            for one in several
            if one.name.startswith("planted") and one.family == kind and one.name in found
        ]
        if some:
            made[f"{kind}: planted tasks"] = study.Evidence.joined(some)
    return made


def methods(several: Sequence[Subject], found: Mapping[str, study.Evidence], out: Path) -> Page:
    """methods.md: the table, an answer for each family, and each cell's command."""
    made = Page("methods", "Which method should I use?")
    by_column = {name: headline(evidence) for name, evidence in columns(several, found).items()}
    results = {name: {one.way: one for one in alone.of(measure)} for name, (measure, alone) in by_column.items()}
    leaders = {name: alone.leaders(measure) for name, (measure, alone) in by_column.items()}
    ways = list(dict.fromkeys(way for own in results.values() for way in own))
    ways = [way for way in ways if ", level " not in way]
    order = sorted(ways, key=lambda way: np.mean([own[way].place / len(own) for own in results.values() if way in own]))
    rows = [[way + (" (not attention)" if way in OTHERS else ""), *(_cell(results[name], leaders[name], way) for name in results)] for way in order]  # fmt: skip
    header = ["map", *(f"{name} ({measure}, n = {alone.inputs})" for name, (measure, alone) in by_column.items())]
    made.add(table(header, rows))
    made.add("Means with 95 % bootstrap intervals over inputs. Bold: the best of its column, and what is not shown to be worse (paired permutation "
             "tests, Holm-corrected over all pairs of maps of the column). † not shown to be better than chance.")  # fmt: skip
    made.add("\n".join(f"* **{name}**: {about}." for name, about in ABOUT.items()))
    for family in FAMILIES:
        made.findings.append(_advice(family, results, by_column))
    made.add("## Each cell again", "The line that prints a cell: `" + CELL.format(column="COLUMN", way="MAP") + "`, with the names of the table; for example `"
             + CELL.format(column=next(iter(results)), way=order[0]) + "`. The same map measured on a model and data of yours:")  # fmt: skip
    flags = {way.name: way.flags for one in several for way in one.ways if ", level " not in way.name and not way.label}
    made.add(
        table(
            ["map", "command"],
            [[name, f"`attnflow evaluate DATA --model M {said}`"] for name, said in flags.items() if name in order],
        )
    )
    for name, (measure, alone) in by_column.items():
        bars = [figures.Bar(one.way, one.mean, one.low, one.high, "not attention" if one.way in OTHERS else "attention") for one in alone.of(measure) if ", level " not in one.way]  # fmt: skip
        path = out / f"column_{name.replace(': ', '_').replace(' ', '_')}"
        made.add(
            f"## {name}",
            *[f"{one.name}: {one.about}." for one in several if name.endswith(one.name)],
            figures.intervals(bars, f"{name}: {measure}, 95 % intervals", measure, path),
        )
    write(out / "results.csv", as_csv(_everything(columns(several, found))))
    return made


def _everything(by_column: Mapping[str, study.Evidence]) -> list[dict[str, Any]]:
    """Every measure of every map on every column."""
    rows = []
    for name, evidence in by_column.items():
        for (measure, replace), values in evidence.values.items():
            for way, summary in zip(evidence.ways, evaluate.summarise(values), strict=True):
                rows.append(
                    {"column": name, "measure": measure, "replacement": replace, "map": way, **summary._asdict()}
                )
    return rows


def _cell(own: Mapping[str, study.Result], leaders: Sequence[str], way: str) -> str:
    if way not in own:
        return "–"
    one = own[way]
    text = f"{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]"
    text = f"**{text}**" if way in leaders else text
    return text + (" †" if one.beats_chance not in ("better", "") else "")


def _advice(family: str, results: Any, by_column: Any) -> str:
    """For a family: the attention map with the best mean place, and how it stands on each column of it."""
    own = [name for name in results if name.startswith(f"{family}:")]
    if not own:
        return f"**{family}**: not measured here."
    maps = [way for way in results[own[0]] if way not in BASELINES and all(way in results[name] for name in own)]
    maps = [way for way in maps if ", level " not in way]
    among = {name: by_column[name][1].only([*maps, "random"]) for name in own}
    places = {name: {one.way: one.place for one in among[name].of(by_column[name][0])} for name in own}
    telling = [name for name in own if any(one.beats_chance == "better" for one in among[name].of(by_column[name][0]))]
    if not telling:
        return f"**{family}**: no attention map was shown to be better than chance on {listed(own)}; more inputs are needed."
    chosen = min(maps, key=lambda way: float(np.mean([places[name][way] for name in telling])))
    parts, at_par = [], 0
    for name in own:
        measure, one = by_column[name][0], results[name][chosen]
        if name not in telling:
            parts.append(
                f"on *{name.split(': ')[1]}* no attention map was shown to be better than chance (n = {one.n})"
            )
            continue
        leaders = among[name].leaders(measure)
        at_par += chosen in leaders
        ahead = [
            way
            for way in results[name]
            if way in BASELINES and results[name][way].place < min(results[name][m].place for m in maps)
        ]
        standing = "the best" if leaders[0] == chosen else f"not shown to be worse than “{leaders[0]}”" if chosen in leaders else f"worse than “{leaders[0]}” ({results[name][leaders[0]].mean:.3f})"  # fmt: skip
        extra = f"; ahead of every attention map: {listed(ahead)}" if ahead else ""
        parts.append(
            f"on *{name.split(': ')[1]}* {measure} {one.mean:.3f} [{one.low:.3f}, {one.high:.3f}], {standing}{extra}"
        )
    return (
        f"**{family}**: of the attention maps **“{chosen}”** has the best mean place, and on {at_par} of {len(telling)} no other is shown to be better: "
        + "; ".join(parts) + "."
    )  # fmt: skip


def replacements(found: Mapping[str, study.Evidence]) -> Page:
    """replacements.md: does what stands in a token's place change who wins?"""
    made = Page("replacements", "What stands in a token's place")
    rows = []
    for name, evidence in found.items():
        one, other = (np.nanmean(gains(evidence, replace), axis=0) for replace in replaced(evidence)[:2])
        first, second = replaced(evidence)[:2]
        firsts = [evidence.ways[int(np.argmax(means))] for means in (one, other)]
        agreed = evaluate.correlation(one, other)
        rows.append([name, first, second, f"{agreed:.2f}", *firsts])
    same = sum(row[4] == row[5] for row in rows)
    lowest = min(rows, key=lambda row: float(row[3]))
    made.findings.append(
        f"The same map wins with both replacements on {same} of {len(rows)} subjects; the orders of all maps agree with a rank correlation of {lowest[3]} "
        f"({lowest[0]}) or more."
    )
    made.add(
        table(
            [
                "subject",
                "replacement",
                "other",
                "rank correlation of the maps' means",
                "best with the first",
                "best with the other",
            ],
            rows,
        )
    )
    return made


def agreement(rows: Sequence[dict[str, Any]]) -> Page:
    """agreement.md: subject and attractor in a language model."""
    made = Page("agreement", "Subject or attractor? A language model that is right, and wrong")
    higher = [row["map"] for row in rows if row["p_corrected"] <= 0.05 and row["difference"] > 0]
    said = (
        f"the subject's share (of what subject and attractor hold) is higher where the model is right for {listed([f'“{name}”' for name in higher])}"
        if higher
        else "for no map was the subject's share (of what subject and attractor hold) shown to be higher where the model is right"
    )
    n = rows[0]
    made.findings.append(
        f"SmolLM2 on {n['n_right']} prompts that it gets right and {n['n_wrong']} that it gets wrong: {said} (Holm-corrected over {len(rows)} maps)."
    )
    best = max(rows, key=lambda row: row["subject_first_when_right"] + row["attractor_first_when_wrong"])
    made.findings.append(
        f"Best at both: {best['map']}, subject first in {best['subject_first_when_right']:.0%} of the right prompts and attractor first in "
        f"{best['attractor_first_when_wrong']:.0%} of the wrong ones; a map that always prefers one of them gets 100 % and 0 %."
    )
    body = [
        [row["map"], f"{row['subject_first_when_right']:.2f}", f"{row['attractor_first_when_wrong']:.2f}",
         f"{row['difference']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]", f"{row['p_corrected']:.2g}"]
        for row in rows
    ]  # fmt: skip
    made.add(
        table(
            [
                "map",
                "subject first, right",
                "attractor first, wrong",
                "share of the subject, right − wrong",
                "p (Holm)",
            ],
            body,
        )
    )
    return made


def index(out: Path, setting: str) -> None:
    """README.md: the answers of every page."""
    blocks = ["# Which method should I use?", setting]
    table_of = (out / "methods.md").read_text(encoding="utf-8") if (out / "methods.md").exists() else ""
    for name in PARTS:
        path = out / f"{name}.json"
        if not path.exists():
            continue
        content = json.loads(path.read_text(encoding="utf-8"))
        lines = [f"* {finding}" for finding in content["findings"]] or [f"* Not run: {content['skipped']}"]
        blocks.append(f"## [{content['title']}]({name}.md)\n\n" + "\n".join(lines))
        if name == "methods" and "\n| map |" in table_of:
            start = table_of.index("\n| map |") + 1
            blocks.append(table_of[start : table_of.index("\n## Each cell again")].strip())
    write(out / "README.md", "\n\n".join(blocks) + "\n")
