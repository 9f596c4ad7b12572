"""What starting costs: import attnflow, a first rollout, help, and `attnflow explain` cold and warm."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

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

ATTNFLOW = Path(sys.executable).with_name("attnflow")
COMMANDS = ("", "explain", "capture", "attribute", "render", "bottleneck", "methods", "completion")
LIBRARIES = "import torch; from transformers import AutoTokenizer, RobertaPreLayerNormForSequenceClassification"
EXPLAIN = ("explain", "the key to the cabinets", "--method")


def imports() -> None:
    seconds = race(10, *(partial(run_python, "-c", code) for code in PROCESSES.values()))
    nothing, numpy = seconds[:2]
    table = Table("process", "seconds", "÷ import numpy", "the same less an empty interpreter")
    for name, taken in zip(PROCESSES, seconds, strict=True):
        table.row(name, taken, taken / numpy, (taken - nothing) / (numpy - nothing))
    table.print("Fresh processes")


def helps() -> None:
    helped = (partial(run_command, {}, *name.split(), "--help") for name in COMMANDS)
    numpy, *seconds = race(5, partial(run_python, "-c", "import numpy"), *helped)
    table = Table("command", "seconds", "÷ import numpy")
    for name, taken in zip(COMMANDS, seconds, strict=True):
        table.row(" ".join(["attnflow", *name.split(), "--help"]), taken, taken / numpy)
    table.print("Help (to be at most 0.25 s)")


def explaining() -> None:
    """Cold: nothing compiled yet, neither Python nor the kernels, as after an installation. Files are in memory in both."""
    table = Table("command", "cold, s", "warm, s", "warm ÷ importing torch and transformers")
    for method in ("rollout", "flow"):
        with TemporaryDirectory() as folder:
            kept = {"PYTHONPYCACHEPREFIX": f"{folder}/python", "NUMBA_CACHE_DIR": f"{folder}/kernels"}
            start = time.perf_counter()
            run_command(kept, *EXPLAIN, method)
            cold = time.perf_counter() - start
            warm, libraries = race(
                3, partial(run_command, kept, *EXPLAIN, method), partial(run_python, "-c", LIBRARIES)
            )
        table.row(f"attnflow explain … --method {method}", cold, warm, warm / libraries)
    table.print("From a text to an answer, with the bundled model")


def run_command(variables: dict[str, str], *arguments: str) -> None:
    """Run the real executable to its end."""
    subprocess.run([ATTNFLOW, *arguments], check=True, capture_output=True, env={**os.environ, **variables})


def main() -> None:
    print(machine())
    imports()
    helps()
    explaining()


if __name__ == "__main__":
    main()
