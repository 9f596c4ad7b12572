"""Which method should one use? `python -m experiments.faithfulness`, or `make benchmark-faithfulness`.

Measures every map on encoders, a decoder, a ViT and on planted tasks, answers the open questions, and writes
experiments/results/faithfulness/. A run that was stopped goes on where it was. `--cell COLUMN MAP` prints one cell of the table.
"""

from __future__ import annotations

import argparse
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attnflow import study
from experiments.paper.page import Page, as_csv
from experiments.paper.store import write

from . import checks, outranks, questions, results, sentiment
from .headline import headline
from .measure import measured
from .subjects import ROOT, SMALL, Sizes, Subject, learnt_heads, subjects

PAGES = ("methods", "planted", "agreement", "questions", "sanity", "audit")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write, or print a cell; 0 if all went well."""
    parser = argparse.ArgumentParser(prog="python -m experiments.faithfulness", description=__doc__)
    add = parser.add_argument
    add("--only", nargs="+", metavar="SUBJECT", help="subjects whose names begin like this")
    add("--pages", nargs="+", choices=PAGES, default=PAGES, help="these pages alone")
    add("--small", action="store_true", help="a few inputs and models that are hardly trained: does it run?")
    add("--times", type=int, default=1, metavar="N", help="so many times as many inputs: narrower intervals")
    add("--workers", type=int, default=min(2, os.cpu_count() or 1), help="processes (2)")
    add("--cell", nargs=2, metavar=("COLUMN", "MAP"), help="print one cell of the table of methods")
    add("--out", type=Path, default=ROOT / "experiments" / "results" / "faithfulness")
    add("--runs", type=Path, default=ROOT / "runs" / "faithfulness", help="where measurements are kept between runs")
    add("--fresh", action="store_true", help="forget earlier measurements")
    options = parser.parse_args(arguments)
    if options.fresh:
        shutil.rmtree(options.runs, ignore_errors=True)
    options.runs.mkdir(parents=True, exist_ok=True)
    sizes = SMALL if options.small else Sizes().times(options.times)
    began = time.perf_counter()
    only = [_subject_of(options.cell[0])] if options.cell else options.only  # a cell needs no other column
    several = _chosen(sizes, options.runs, only)
    found = measured(several, sizes, options.runs, workers=options.workers)
    if options.cell:
        return _print(several, found, *options.cell)
    options.out.mkdir(parents=True, exist_ok=True)
    _write(several, found, sizes, options.runs, options.out, options.pages)
    print(f"all: {time.perf_counter() - began:.0f} s, in {options.out}")
    return 0


def _subject_of(column: str) -> str:
    """How the names of a column's subjects begin."""
    return column.rpartition(": ")[2].removesuffix(" tasks")


def _chosen(sizes: Sizes, runs: Path, only: Sequence[str] | None) -> list[Subject]:
    chosen = []
    for one in subjects(sizes, runs):
        if only and not one.name.startswith(tuple(only)):
            continue
        if one.missing:
            print(f"{one.name}: skipped, {one.missing}")
            continue
        chosen.append(one)
    if not chosen:
        raise SystemExit(f"nothing to measure; the subjects are: {', '.join(s.name for s in subjects(sizes, runs))}")
    if any(one.name == "verb number" for one in chosen):
        learnt_heads(sizes, runs)  # once, and not in every process
    return chosen


def _write(
    several: Sequence[Subject],
    found: Mapping[str, study.Evidence],
    sizes: Sizes,
    runs: Path,
    out: Path,
    wanted: Sequence[str],
) -> None:
    makers: dict[str, Callable[[], list[Page]]] = {
        "methods": lambda: [results.methods(several, found, out), results.replacements(found)],
        "planted": lambda: _planted(several, sizes, runs),
        "agreement": lambda: _agreement(several, sizes, runs, out),
        "questions": lambda: questions.pages(results.columns(several, found), out),
        "sanity": lambda: [checks.sanity(one, out) for one in several if one.name == "verb number"],
        "audit": lambda: [] if sentiment.available() else [checks.audits(sizes, runs, out)],
    }
    for name in wanted:
        for page in makers[name]():
            page.write(out)
            for finding in page.findings:
                print(f"  {finding}", flush=True)
    results.index(out, _setting(sizes, runs))


def _planted(several: Sequence[Subject], sizes: Sizes, runs: Path) -> list[Page]:
    known = any(one.name.startswith("planted") for one in several)
    return [checks.planted_truth(sizes, runs)] if known else []


def _agreement(several: Sequence[Subject], sizes: Sizes, runs: Path, out: Path) -> list[Page]:
    decoder = next((one for one in several if one.name == "agreement prompts"), None)
    if decoder is None:
        return []
    rows = outranks.table(decoder, sizes.credited, runs)
    write(out / "agreement.csv", as_csv(rows))
    return [results.agreement(rows)]


def _setting(sizes: Sizes, runs: Path) -> str:
    about = "\n".join(
        f"* **{one.name}** ({one.family}): {one.about}; n = {one.count}." for one in subjects(sizes, runs)
    )
    return (
        "Written by `make benchmark-faithfulness` (`python -m experiments.faithfulness`). Every map is measured on the model itself "
        "([what is measured](../../../docs/evidence.md)); what is not shown is said to be not shown.\n\n" + about
    )


def _print(several: Sequence[Subject], found: Mapping[str, study.Evidence], column: str, way: str) -> int:
    made: dict[str, Any] = results.columns(several, found)
    if column not in made:
        raise SystemExit(f"there is no column {column!r}; there are: {', '.join(made)}")
    measure, alone = headline(made[column])
    cell = next((one for one in alone.of(measure) if one.way == way), None)
    if cell is None:
        raise SystemExit(f"there is no map {way!r}; there are: {'; '.join(alone.ways)}")
    print(f"{column}, {way}: {measure} {cell.mean:.3f} [{cell.low:.3f}, {cell.high:.3f}], n = {cell.n}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
