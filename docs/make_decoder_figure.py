"""The figure of docs/decoders.md: why raw rollout on a decoder credits the first tokens (needs the package of SmolLM2's weights).

python -m docs.make_decoder_figure
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("svg")
import matplotlib.pyplot as plt

import attnflow as af
from attnflow import capture
from benchmarks.edges import load

TEXT = "The keys to the cabinet that stands beside the old wooden table"
WAYS: dict[str, dict[str, Any]] = {
    "attention": {},
    "attention, receptive field": {"receptive_field": True},
    "attention, measured residual": {"residual": "measured"},
    "norm": {"edges": "norm"},
    "alti": {"edges": "alti"},
    "alti, receptive field": {"edges": "alti", "receptive_field": True},
}
STYLES = {
    "attention": ("#1b4f72", "-"), "uniform attention": ("#777777", "--"), "attention, receptive field": ("#1b4f72", ":"),
    "attention, measured residual": ("#b9770e", "-"), "norm": ("#7d3c98", "-"), "alti": ("#1e8449", "-"),
    "alti, receptive field": ("#1e8449", ":"),
}  # fmt: skip


def main() -> None:
    model, _, tokenizer = load("SmolLM2", 16)
    graphs = {name: capture.graph(model, TEXT, tokenizer, **options) for name, options in WAYS.items()}
    labels = [label.replace("Ġ", "") for label in graphs["attention"].tokens.labels]
    n, levels = len(labels), len(graphs["attention"])
    uniform = 0.5 * np.tri(n) / np.arange(1, n + 1)[:, None] + 0.5 * np.eye(n)
    graphs["uniform attention"] = af.AttentionGraph([uniform] * levels)
    rows = {name: af.rollout(graph, queries=[-1]).scores[:, 0] for name, graph in graphs.items()}
    ratio = af.against_uniform(graphs["attention"], queries=[-1], levels=[-1]).scores[0, 0]
    draw(rows, ratio, labels)
    for name, row in rows.items():
        print(f"{name:<30} first token {100 * row[-1, 0]:6.2f} %   last {100 * row[-1, -1]:6.2f} %")
    print("log-ratio", np.round(ratio, 2))


def draw(rows: dict[str, Any], ratio: Any, labels: list[str]) -> None:
    plt.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "attnflow", "font.size": 9, "font.family": "sans-serif"}
    )
    figure, (lines, *bars) = plt.subplots(1, 4, figsize=(12, 3.4), width_ratios=(1.6, 1, 1, 1), layout="constrained")
    for name, (colour, style) in STYLES.items():
        lines.plot(range(1, len(rows[name]) + 1), 100 * rows[name][:, 0], style, color=colour, label=name)
    lines.set(xlabel="levels", ylabel="% of the last token's rollout\nthat the first token gets", ylim=(-2, 102))
    lines.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.6))
    places = np.arange(len(labels))
    shown = (
        ("attention", 100 * rows["attention"][-1], "%"),
        ("against uniform", ratio, "log-ratio"),
        ("alti", 100 * rows["alti"][-1], "%"),
    )
    for axes, (title, values, unit) in zip(bars, shown, strict=True):
        axes.barh(places, values, color=STYLES.get(title, ("#1b4f72", ""))[0])
        axes.axvline(0, color="#444444", linewidth=0.6)
        axes.set(title=title, xlabel=unit, yticks=places, yticklabels=labels if axes is bars[0] else [])
        axes.invert_yaxis()
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_name("decoder-first-token.svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
