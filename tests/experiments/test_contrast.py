"""Which method is higher, beside the paper: on correlations that were made to differ, or not."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import attnflow as af
from experiments.paper.beside import Beside
from experiments.paper.contrast import Contrast, claim, contrasts_table, extent, power
from experiments.paper.page import stretch
from experiments.paper.published import Printed

LEVELS = ["L1", "L2", "L3", "L4"]


def made(*pulls: float, printed: tuple[float, ...]) -> Contrast:
    """Rollout agrees with the reference more than raw where the pull is positive, less where it is negative."""
    random = np.random.default_rng(0)
    references = [random.random(8) for _ in range(80)]
    maps: dict[str, list[af.Attribution]] = {"raw": [], "rollout": []}
    for wanted in references:
        noise = random.random((2, len(pulls), 8))
        for number, name in enumerate(maps):
            weight = np.array(pulls if number else [-pull for pull in pulls])
            scores = 2 * np.maximum(weight, 0)[:, None] * wanted + noise[number if any(pulls) else 0]
            tokens = af.Tokens([str(i) for i in range(8)])
            levels = tuple(range(len(pulls)))
            maps[name].append(
                af.Attribution(
                    scores[:, None], tokens, name, levels, (0,), tuple(range(8)), tuple(LEVELS[: len(pulls)])
                )
            )
    report = af.evaluate.compare(maps, references, resamples=500)
    rows = {"raw": tuple(Printed(0.1, 0.3) for _ in pulls), "rollout": tuple(Printed(0.1 + p, 0.3) for p in printed)}
    return Contrast.of(Beside(report, "reference", rows, 2000, range(len(pulls))), "raw", "rollout")


def test_a_contrast_says_where_which_is_higher_and_what_the_paper_has() -> None:
    contrast = made(1, 1, 1, -1, printed=(0.2, 0.1, -0.1, 0.0))
    assert contrast.signs() == [1, 1, 1, -1]
    assert contrast.printed == [0.2, 0.1, -0.1, 0.0]
    said = contrast.sentence()
    assert said.startswith("Rollout is above raw at L1 to L3 (by ")
    assert "and below raw at L4 (by " in said
    assert said.endswith("In the paper it is above at L1 and L2, below at L3, equal at L4.")
    row, theirs = contrasts_table([contrast]).splitlines()[2:]
    assert re.fullmatch(r"\| rollout − raw (\| \*\*\+0\.\d\d\*\* ){3}\| \*\*-0\.\d\d\*\* \|", row)
    assert theirs == "| the paper's means | +0.20 | +0.10 | -0.10 | +0.00 |"


def test_what_is_not_shown_is_not_said() -> None:
    same = made(0, 0, printed=(0.2, -0.2))  # the same scores for both methods
    assert same.signs() == [0, 0]
    assert same.sentence().startswith("No difference between raw and rollout was shown. In the paper")
    assert "**" not in contrasts_table([same])
    assert "n = 80 sentences" in power([same])


@pytest.mark.parametrize(
    ("pulls", "printed", "agrees"),
    [((1, 1), (0.2, 0.2), "yes"), ((1, -1), (0.2, 0.2), "in part"), ((-1, 1), (0.2, -0.2), "no")],
)
def test_a_claim_holds_where_the_paper_has_it(
    pulls: tuple[float, ...], printed: tuple[float, ...], agrees: str
) -> None:
    found = claim("rollout is better", [made(*pulls, printed=printed)])
    assert (found.said, found.agrees) == ("rollout is better", agrees)


def test_levels_are_listed_in_stretches() -> None:
    assert stretch(["L1", "L2", "L3"], LEVELS) == "L1 to L3"
    assert stretch(["L4", "L1", "L2"], LEVELS) == "L1, L2 and L4"
    assert stretch([], LEVELS) == "none"
    assert (extent([0.051, 0.149]), extent([0.2, 0.2])) == ("0.05 to 0.15", "0.20")
