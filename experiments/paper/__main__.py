"""Measure the paper again: `python -m experiments.paper [--sentences 2000] [--only tables12 …]`.

Parts that need what is not installed or not there are skipped, with the reason printed. A run that was stopped goes on
where it was; `--fresh` forgets what was measured before.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from .page import ORDER, index
from .parts import Options, Skipped, run_part

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts that were asked for; 0 if none failed."""
    parser = argparse.ArgumentParser(prog="python -m experiments.paper", description=__doc__)
    add = parser.add_argument
    add("--only", nargs="+", choices=ORDER, default=ORDER, help="these parts alone")
    add("--sentences", type=int, default=2000, help="for tables 1 and 2 (2000)")
    add("--data", type=Path, help="a file of sentences: the shared TSV, agr_50_mostcommon_10K.tsv or numpred.*")
    add("--generated", action="store_true", help="generated sentences, even where there is shared data")
    add(
        "--model", type=Path, default=ROOT / "src" / "attnflow" / "assets" / "verb_number", help="the verb-number model"
    )
    add("--sst2-model", help="a classifier fine-tuned on SST-2 (folder or hub name) instead of one tuned here")
    add("--sst2-sentences", type=int, help="at most so many of the SST-2 development set")
    add("--masked-model", help="a masked language model (folder or hub name) for figure 4")
    add("--out", type=Path, default=ROOT / "experiments" / "results" / "paper")
    add("--runs", type=Path, default=ROOT / "runs" / "paper", help="where measurements are kept between runs")
    add("--fresh", action="store_true", help="forget earlier measurements")
    options = Options(**vars(parser.parse_args(arguments)))
    if options.fresh:
        shutil.rmtree(options.runs, ignore_errors=True)
    options.out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    for name in options.only:
        started = time.perf_counter()
        print(f"{name} …", flush=True)
        try:
            page = run_part(name, options)
        except Skipped as reason:
            print(f"{name}: skipped, {reason}")
            continue
        page.write(options.out)
        for finding in page.findings:
            print(f"  {finding}")
        print(f"{name}: {time.perf_counter() - started:.0f} s")
    index(options.out, options.setting())
    print(f"all: {time.perf_counter() - began:.0f} s, in {options.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
