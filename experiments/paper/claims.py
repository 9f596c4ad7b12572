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
from .page import Claim, Page, as_csv, stretch, table
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
    page.claims += _claims(found, levels)
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


def _claims(found: dict[str, Measure], levels: list[str]) -> list[Claim]:
    """The paper's sentences, each with the numbers that decide it."""
    mean = {name: measure.means() for name, measure in found.items()}
    uniform = [level for level, value in zip(levels, mean["entropy_raw_all"], strict=True) if value >= NEAR_UNIFORM]
    flatter, sharper = _flatter(found, levels)
    home, tau = mean["diagonal_rollout"], mean["kendall"]
    grow = {name: (mean[f"entropy_{name}"][0], mean[f"entropy_{name}"][-1]) for name in ("rollout", "flow")}
    return [
        Claim(
            "Raw attention is near-uniform above layer three",
            f"entropy {_numbers(mean['entropy_raw_all'])} of a uniform map's; near-uniform ({NEAR_UNIFORM} or more) at {stretch(uniform, levels)}",
            _all_or_none([level in uniform for level in levels[3:]]),
        ),
        Claim(
            "The residual fades in the higher layers",
            f"a position's share of its own input goes from {home[0]:.2f} to {home[-1]:.2f} in rollout, from {mean['diagonal_flow'][0]:.2f} to "
            f"{mean['diagonal_flow'][-1]:.2f} in flow",
            "yes" if home[-1] < home[0] and mean["diagonal_flow"][-1] < mean["diagonal_flow"][0] else "no",
        ),
        Claim(
            "Rollout and flow become more distinctive in the higher layers",
            "; ".join(f"{name}'s entropy goes from {low:.2f} to {high:.2f} (1 is uniform)" for name, (low, high) in grow.items()),
            _all_or_none([high < low for low, high in grow.values()]),
        ),
        Claim(
            "Rollout is focused, flow amortised",
            f"flow has the higher entropy at {stretch(flatter, levels)}, rollout at {stretch(sharper, levels)}",
            _all_or_none([level in flatter for level in levels[1:]]),
        ),
        Claim(
            "Rollout and flow agree at the first layer and less above",
            f"Kendall's τ {_numbers(tau)}",
            "yes" if tau[0] > 0.99 and max(tau[1:], default=0) < tau[0] else "no",
        ),
    ]  # fmt: skip


def _flatter(found: dict[str, Measure], levels: list[str]) -> tuple[list[str], list[str]]:
    """The levels at which flow's entropy is higher than rollout's, and those at which it is lower; intervals decide."""
    tests = evaluate.paired_tests(found["entropy_flow"].values, found["entropy_rollout"].values, resamples=2_000)
    named = list(zip(levels, tests, strict=True))
    flatter = [level for level, test in named if test.difference > 0 and test.low > 0]
    return flatter, [level for level, test in named if test.difference < 0 and test.high < 0]


def _sentences(found: dict[str, Measure], levels: list[str]) -> list[str]:
    """What the claims' numbers rest on."""
    mean = {name: measure.means() for name, measure in found.items()}
    return [
        f"**How spread is raw attention?** The claim is measured over all queries. The class token's own map has entropies of "
        f"{_numbers(mean['entropy_raw'])}: at the last layer its three largest inputs hold {mean['top_raw'][-1]:.2f}, where three of a uniform map hold "
        f"{mean['top_uniform'][-1]:.2f}.",
        f"**How focused are rollout and flow?** At {levels[-1]} the three largest inputs hold {mean['top_rollout'][-1]:.2f} of rollout and "
        f"{mean['top_flow'][-1]:.2f} of flow.",
        f"**Why do they part?** The share of flows that the query's or the input's own edges limit is {_numbers(mean['saturation'])} from layer 1 up. "
        f"Where the query's do ({_numbers(mean['saturation_query'])}), every input gets the same flow. So {_numbers(mean['tied_flow'])} of the inputs "
        "have the same flow as another, and a rank correlation has that much less to go by.",
    ]  # fmt: skip


def _all_or_none(seen: Sequence[bool]) -> str:
    """Whether what was said was seen everywhere, somewhere or nowhere; undecided in a model of too few layers."""
    if not seen:
        return "undecided"
    return "yes" if all(seen) else "in part" if any(seen) else "no"


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)
