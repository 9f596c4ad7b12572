"""What the paper says in words, as numbers for each layer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import attnflow as af
from attnflow import evaluate

from .measure import attributions
from .page import Page, as_csv, listed, table
from .store import Record, write

TIED = 1e-9  # of the row's largest score
NEAR_UNIFORM = 0.95  # of the entropy that a uniform row has


class Measure(NamedTuple):
    """A quantity of each sentence and layer."""

    name: str
    values: NDArray[np.float64]  # [sentence, level]

    def summaries(self) -> list[evaluate.Summary]:
        return evaluate.summarise(self.values)

    def means(self) -> list[float]:
        return [summary.mean for summary in self.summaries()]


def run(records: Sequence[Record], about: str, out: Path) -> Page:
    """Entropies, diagonals, mass of the top tokens, agreement of rollout and flow."""
    page = Page("claims", "What the paper says of the maps, as numbers")
    found = _measures(records)
    levels = [f"L{number + 1}" for number in range(found["entropy_raw"].values.shape[1])]
    page.add(
        f"{len(records)} {about}. Entropies are shares of a uniform row's (1 is uniform), over the maps of the class token unless said "
        "otherwise; flows are divided by their sum first. Mean [95 % bootstrap interval]."
    )
    rows = [
        [measure.name, *(f"{s.mean:.3f} [{s.low:.3f}, {s.high:.3f}]" if s.n > 1 else f"{s.mean:.3f}" for s in measure.summaries())]
        for measure in found.values()
    ]  # fmt: skip
    page.add(table(["", *levels], rows))
    page.findings += _sentences(found, levels)
    flat: list[dict[str, Any]] = [
        {"measure": key, "about": measure.name, "level": level, **summary._asdict()}
        for key, measure in found.items()
        for level, summary in zip(levels, measure.summaries(), strict=True)
    ]
    write(out / "claims.csv", as_csv(flat))
    return page


def _measures(records: Sequence[Record]) -> dict[str, Measure]:
    maps = attributions(records)
    lengths = np.array([len(record["labels"]) for record in records])
    stacked = {
        name: np.stack([record[name] for record in records])
        for name in ("entropy_all", "diagonal_raw", "diagonal_rollout", "saturation", "saturation_query")
    }
    with_flow = [record["diagonal_flow"] for record in records if "diagonal_flow" in record]
    top = {method: evaluate.top_mass(several, k=3) for method, several in maps.items()}
    uniform = np.repeat((np.minimum(3, lengths) / lengths)[:, None], stacked["saturation"].shape[1], axis=1)
    found = {
        "entropy_raw": Measure("entropy, raw", evaluate.entropy(maps["raw"])),
        "entropy_raw_all": Measure("entropy, raw, mean of all queries", stacked["entropy_all"]),
        "entropy_rollout": Measure("entropy, rollout", evaluate.entropy(maps["rollout"])),
        "entropy_flow": Measure("entropy, flow", evaluate.entropy(maps["flow"])),
        "diagonal_raw": Measure("share on the own position, raw, all queries", stacked["diagonal_raw"]),
        "diagonal_rollout": Measure("share on the own position, rollout, all queries", stacked["diagonal_rollout"]),
        "diagonal_flow": Measure(
            f"share on the own position, flow, all queries (n = {len(with_flow)})", np.stack(with_flow)
        ),
        "top_raw": Measure("share of the 3 largest, raw", top["raw"]),
        "top_rollout": Measure("share of the 3 largest, rollout", top["rollout"]),
        "top_flow": Measure("share of the 3 largest, flow", top["flow"]),
        "top_uniform": Measure("share of 3 inputs if uniform", uniform),
        "kendall": Measure("Kendall τ of rollout and flow", evaluate.agreement(maps["rollout"], maps["flow"])),
        "kendall_without": Measure(
            "the same without the class token", evaluate.agreement(maps["rollout"], maps["flow"], count_own=False)
        ),
        "saturation": Measure("flows limited by query or input alone", stacked["saturation"]),
        "saturation_query": Measure("of these: by all that leaves the query", stacked["saturation_query"]),
        "tied_flow": Measure("inputs whose flow another input has too", _tied(maps["flow"])),
        "tied_rollout": Measure("the same of rollout", _tied(maps["rollout"])),
    }
    return found  # fmt: skip


def _tied(several: Sequence[af.Attribution]) -> NDArray[np.float64]:
    """The share of inputs whose score another input has as well, up to the accuracy of a search [sentence, level]."""
    return np.array([[_tied_share(row) for row in attribution.scores[:, 0]] for attribution in several])


def _tied_share(row: NDArray[np.float64]) -> float:
    near = np.abs(row[:, None] - row) <= TIED * np.abs(row).max()
    return float((near.sum(axis=1) > 1).mean())


def _sentences(found: dict[str, Measure], levels: list[str]) -> list[str]:
    mean = {name: measure.means() for name, measure in found.items()}
    last = levels[-1]
    uniform = [level for level, value in zip(levels, mean["entropy_raw_all"], strict=True) if value >= NEAR_UNIFORM]
    above = levels[3:]
    agrees = _agreement(set(above), set(uniform))
    fades = "fades" if mean["diagonal_rollout"][-1] < mean["diagonal_rollout"][0] else "does not fade"
    focused = evaluate.paired_tests(found["entropy_flow"].values, found["entropy_rollout"].values, resamples=2_000)
    flatter = [level for level, test in zip(levels, focused, strict=True) if test.difference > 0 and test.low > 0]
    sharper = [level for level, test in zip(levels, focused, strict=True) if test.difference < 0 and test.high < 0]
    sayings = [
        f"**Raw attention becomes near-uniform above layer three** (entropy over all queries at least {NEAR_UNIFORM} of the uniform one): "
        f"so it is at {listed(uniform)} here ({agrees}); entropies {_numbers(mean['entropy_raw_all'])}, for the class token alone {_numbers(mean['entropy_raw'])}.",
        f"**The residual fades with depth**: the share that a position takes from itself {fades}: {_numbers(mean['diagonal_rollout'])} in rollout, "
        f"{_numbers(mean['diagonal_flow'])} in flow.",
        f"**Rollout is focused, flow amortised**: flow has the higher entropy at {listed(flatter)}, rollout at {listed(sharper)} (intervals of the paired "
        f"difference exclude 0). At {last} the three largest inputs hold {mean['top_rollout'][-1]:.2f} of rollout, {mean['top_flow'][-1]:.2f} of flow and "
        f"{mean['top_raw'][-1]:.2f} of raw attention, where three of a uniform map hold {mean['top_uniform'][-1]:.2f}.",
        f"**Rollout and flow agree in rank at the first layer and less above**: Kendall's τ {_numbers(mean['kendall'])}; "
        f"{_numbers(mean['saturation'])} of the flows are limited by what leaves the query or enters the input alone, "
        f"{_numbers(mean['saturation_query'])} by the query, which is the same limit for every input: {_numbers(mean['tied_flow'])} of the inputs have "
        "the same flow as another, so that a rank correlation has less and less to go by.",
    ]  # fmt: skip
    return sayings


def _agreement(said: set[str], seen: set[str]) -> str:
    if not said:
        return "this model has too few layers to compare"
    if said <= seen:
        return "agrees"
    return "agrees in part" if said & seen else "does not agree"


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)
