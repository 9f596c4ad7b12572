"""Two methods on the same sentences: which is higher at which level, beside what the paper has there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnflow import evaluate

from .beside import Beside
from .page import Claim, stretch, table

PAIRS = (("raw", "rollout"), ("raw", "flow"), ("rollout", "flow"))


@dataclass(frozen=True)
class Contrast:
    """`second` − `first` at each level: tested here, and as the difference of the paper's two means."""

    first: str
    second: str
    tests: Sequence[evaluate.Difference]
    printed: Sequence[float]

    @classmethod
    def of(cls, beside: Beside, first: str, second: str) -> Contrast:
        """The contrast of two methods in a table that the paper has too."""
        tests = [
            test
            for test in beside.report.differences
            if (test.reference, test.first, test.second) == (beside.reference, first, second)
            and test.level in beside.levels
        ]
        means = zip(beside.printed[first], beside.printed[second], strict=True)
        return cls(first, second, tests, [round(other.mean - one.mean, 2) for one, other in means])

    @property
    def levels(self) -> list[str]:
        return [test.level for test in self.tests]

    def signs(self) -> list[int]:
        """1 where `second` was shown to be the higher one, −1 where `first` was, 0 where nothing was shown."""
        higher = {f"{self.second} higher": 1, f"{self.first} higher": -1}
        return [higher.get(test.verdict, 0) for test in self.tests]

    def printed_signs(self) -> list[int]:
        return [(gap > 0) - (gap < 0) for gap in self.printed]

    def sentence(self) -> str:
        """Where which of the two is higher, here and in the paper."""
        signs, sizes = self.signs(), [abs(test.difference) for test in self.tests]
        parts = []
        for sign, words in ((1, f"above {self.first} at"), (-1, f"below {self.first} at")):
            found = [size for size, this in zip(sizes, signs, strict=True) if this == sign]
            if found:
                parts.append(f"{words} {self._where(signs, sign)} (by {extent(found)})")
        here = f"{self.second} is " + " and ".join(parts) if parts else ""
        if 0 in signs:
            rest = (
                f"no difference was shown at {self._where(signs, 0)}"
                if parts
                else f"no difference between {self.first} and {self.second} was shown"
            )
            here = f"{here}; {rest}" if parts else rest
        printed = self.printed_signs()
        theirs = [
            f"{word} at {self._where(printed, sign)}"
            for sign, word in ((1, "above"), (-1, "below"), (0, "equal"))
            if sign in printed
        ]
        return f"{here[:1].upper()}{here[1:]}. In the paper it is {', '.join(theirs)}."

    def _where(self, signs: Sequence[int], sign: int) -> str:
        return stretch([level for level, this in zip(self.levels, signs, strict=True) if this == sign], self.levels)


def claim(said: str, contrasts: Sequence[Contrast]) -> Claim:
    """Whether each `second` is higher where the paper has it higher."""
    here, hits, all_of_them = [], 0, 0
    for contrast in contrasts:
        wanted = [sign > 0 for sign in contrast.printed_signs()]
        pairs = list(zip(contrast.levels, contrast.signs(), wanted, strict=True))
        levels = [level for level, _, asked in pairs if asked]
        above = [level for level, sign, asked in pairs if asked and sign > 0]
        below = [level for level, sign, asked in pairs if asked and sign < 0]
        hits, all_of_them = hits + len(above), all_of_them + len(levels)
        words = f"{contrast.second} is above {contrast.first} at {stretch(above, contrast.levels)}"
        words += f" and below it at {stretch(below, contrast.levels)}" if below else ""
        here.append(f"{words} (in the paper above at {stretch(levels, contrast.levels)})")
    agrees = "yes" if hits == all_of_them else "in part" if hits else "no"
    return Claim(said, "; ".join(here), agrees)


def contrasts_table(contrasts: Sequence[Contrast]) -> str:
    """A row for each pair, the paper's below it; bold is what was shown."""
    rows = []
    for contrast in contrasts:
        gaps = [f"{0.0 - test.difference:+.2f}" for test in contrast.tests]
        cells = [f"**{gap}**" if sign else gap for gap, sign in zip(gaps, contrast.signs(), strict=True)]
        rows.append([f"{contrast.second} − {contrast.first}", *cells])
        rows.append(["the paper's means", *(f"{gap:+.2f}" for gap in contrast.printed)])
    return table(["", *contrasts[0].levels], rows) if contrasts else ""


def power(contrasts: Sequence[Contrast]) -> str:
    """How many sentences were compared, how, and what would have been seen."""
    counts = [test.n for contrast in contrasts for test in contrast.tests]
    if not counts:
        return "Too few sentences for a test."
    n = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    limits = [test.detectable for contrast in contrasts for test in contrast.tests if test.sd > 0]
    seen = (
        f"a mean difference of {max(limits):.3f} or more would have been found at every level (power 0.8)"
        if limits
        else "no level varies"
    )
    return f"n = {n} sentences, paired permutation tests, Holm-corrected: {seen}."


def extent(sizes: Sequence[float]) -> str:
    """ "0.05 to 0.15", or one number."""
    low, high = f"{min(sizes):.2f}", f"{max(sizes):.2f}"
    return low if low == high else f"{low} to {high}"
