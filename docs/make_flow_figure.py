"""The figure of docs/flow.md: what saturation does to flow, on real attention (needs the package of MiniLM's weights).

python -m docs.make_flow_figure
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("svg")
import matplotlib.pyplot as plt

import attnflow as af
from benchmarks._attention import attention

TOKENS, MAPS = 128, 20


def main() -> None:
    graph = af.AttentionGraph(attention(TOKENS)[0])
    found, small = af.flow(graph), af.flow(af.AttentionGraph(attention(MAPS)[0]))
    levels, saturation = np.arange(1, len(graph) + 1), found.saturation
    assert saturation is not None
    plt.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "attnflow", "font.size": 9, "font.family": "sans-serif"}
    )
    figure, (lines, middle, top) = plt.subplots(
        1, 3, figsize=(10, 3.1), width_ratios=(1.25, 1, 1), layout="constrained"
    )
    for label, shares, style in (
        ("at either", saturation.either, "-"),
        ("at the input", saturation.input, "--"),
        ("at the query", saturation.query, ":"),
    ):
        lines.plot(levels, 100 * np.array(shares), "o" + style, color="#1b4f72", label=label, markersize=4)
    lines.set(xlabel="levels", ylabel="% of pairs that stop at a trivial cut", ylim=(-2, 102))
    lines.legend(frameon=False, loc="upper left")
    for axes, level in ((middle, 2), (top, 5)):
        image = axes.imshow(small.scores[level], cmap="Blues", vmin=0, vmax=1)
        axes.set(title=f"flow after {level + 1} levels", xlabel="input", ylabel="query", xticks=[], yticks=[])
    figure.colorbar(image, ax=[middle, top], shrink=0.85)
    out = Path(__file__).with_name("flow-saturation.svg")
    figure.savefig(out, metadata={"Date": None})
    print(np.round(100 * np.array(saturation.either), 1), out.name)


if __name__ == "__main__":
    main()
