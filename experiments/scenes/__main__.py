"""Measure maps against the truth and draw them: `python -m experiments.scenes`, or `make scenes`.

Writes experiments/results/scenes/: a table with intervals (README.md, table.csv) and a sheet of maps (maps.png).
"""

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path

import numpy as np
import torch

from attnflow import evaluate
from attnflow.artifacts import write_atomically

from .draw import FEWEST, MOST, enlarged, scenes
from .maps import WAYS
from .measure import MEASURES, Measured, measure
from .sheet import sheet
from .train import MODEL, load

RESULTS = Path(__file__).resolve().parents[1] / "results" / "scenes"
SEED = 2  # of the scenes that are measured; training draws other ones


def page(found: Measured, count: int) -> str:
    """README.md."""
    lines = [
        "# Scenes: do maps find the digit?",
        "",
        "Written by `make scenes`. Each scene holds one digit among "
        f"{FEWEST} to {MOST} letters and shapes; the class is the digit, and nothing else in the scene says anything about it "
        "(`experiments/scenes`). So the truth is known: the cell of the digit, 4 of 64 patches.",
        "",
        f"The model, a vision transformer of four layers, gets {found.right.sum()} of {count} new scenes right "
        f"({found.right.mean():.1%}); these are measured. Means with 95 % bootstrap intervals over scenes.",
        "",
        "| map | " + " | ".join(MEASURES) + " |",
        "|---|" + "---|" * len(MEASURES),
    ]
    for way, summaries in found.rows():
        cells = [f"{one.mean:.3f} ({one.low:.3f} to {one.high:.3f})" for one in summaries]
        lines.append(f"| {way} | " + " | ".join(cells) + " |")
    lines += ["", *[f"* **{name}**: {what}." for name, what in MEASURES.items()], "", *findings(found), ""]
    lines += ["## Maps", "", "Each from nothing (white) to its own highest patch; the deciding cell is framed.", ""]
    lines += ["![Scenes and maps](maps.png)"]
    return "\n".join(lines) + "\n"


def findings(found: Measured) -> list[str]:
    """Paired tests of every way against rollout, corrected together."""
    base = found.ways.index("rollout")
    others = [i for i, way in enumerate(found.ways) if way not in ("rollout", "chance")]
    lines = [
        "## Against rollout",
        "",
        "Paired differences (Wilcoxon, Holm-corrected over all of them); those shown at 5 %:",
        "",
    ]
    differences = [found.values[:, i, k] - found.values[:, base, k] for i in others for k in range(len(MEASURES))]
    table = evaluate.holm(evaluate.wilcoxon_test(np.stack(differences, axis=1)))
    names = [(found.ways[i], name) for i in others for name in MEASURES]
    for (way, name), p, difference in zip(names, table, differences, strict=True):
        if p < 0.05:
            word = "higher" if np.nanmean(difference) > 0 else "lower"
            lines.append(
                f"* {name}: {way} is {word} by {abs(np.nanmean(difference)):.3f} (p {'< 0.001' if p < 0.001 else f'= {p:.3f}'})"
            )
    return lines


def as_csv(found: Measured) -> str:
    """One row for each way and measure."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["map", "measure", "n", "mean", "low", "high"])
    for way, summaries in found.rows():
        for name, one in zip(MEASURES, summaries, strict=True):
            table.writerow([way, name, one.n, *(f"{value:.5f}" for value in (one.mean, one.low, one.high))])
    return text.getvalue()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.scenes", description=__doc__)
    parser.add_argument("--scenes", type=int, default=500)
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # small matrices
    model = load(options.model)
    drawn = scenes(options.scenes, SEED)
    found = measure(model, drawn, WAYS)
    options.out.mkdir(parents=True, exist_ok=True)
    text = page(found, options.scenes)
    write_atomically(options.out / "README.md", lambda file: file.write(text.encode()))
    write_atomically(options.out / "table.csv", lambda file: file.write(as_csv(found).encode()))
    sheet(model, drawn, options.out / "maps.png")
    enlarged(drawn, 0).save(options.out / "scene.png")
    print(text)


if __name__ == "__main__":
    main()
