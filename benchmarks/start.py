"""What starting costs: import attnflow, and a first rollout, against import numpy."""

from __future__ import annotations

from benchmarks._measure import Table, machine, seconds_of

FIRST_ROLLOUT = """
import numpy as np, attnflow as af
stack = af.AttentionStack(np.full((6, 8, 32, 32), 1 / 32))
af.rollout(af.mix(stack))
"""


def main() -> None:
    print(machine())
    nothing = seconds_of("-c", "")
    numpy = seconds_of("-c", "import numpy", times=10)
    table = Table("process", "seconds", "÷ import numpy", "the same less an empty interpreter")
    for name, code in (
        ("import numpy", "import numpy"),
        ("import attnflow", "import attnflow"),
        ("first rollout, 6 layers × 32 tokens", FIRST_ROLLOUT),
    ):
        seconds = seconds_of("-c", code, times=10)
        table.row(name, seconds, seconds / numpy, (seconds - nothing) / (numpy - nothing))
    table.print(f"Fresh processes (an empty interpreter takes {nothing:.3g} s)")


if __name__ == "__main__":
    main()
