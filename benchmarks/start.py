"""What starting costs: import attnflow, and a first rollout, against import numpy."""

from __future__ import annotations

from functools import partial

from benchmarks._measure import Table, machine, race, run_python

FIRST_ROLLOUT = """
import numpy as np, attnflow as af
stack = af.AttentionStack(np.full((6, 8, 32, 32), 1 / 32))
af.rollout(af.mix(stack))
"""


PROCESSES = {
    "an empty interpreter": "",
    "import numpy": "import numpy",
    "import attnflow": "import attnflow",
    "first rollout, 6 layers × 32 tokens": FIRST_ROLLOUT,
}


def main() -> None:
    print(machine())
    seconds = race(10, *(partial(run_python, "-c", code) for code in PROCESSES.values()))
    nothing, numpy = seconds[:2]
    table = Table("process", "seconds", "÷ import numpy", "the same less an empty interpreter")
    for name, taken in zip(PROCESSES, seconds, strict=True):
        table.row(name, taken, taken / numpy, (taken - nothing) / (numpy - nothing))
    table.print("Fresh processes")


if __name__ == "__main__":
    main()
