"""Every subject in chunks, in several processes, kept on disk: a run that was stopped goes on where it was."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from tqdm import tqdm
from transformers.utils import logging

from attnflow import study
from experiments.paper.store import digest, write

from . import trained
from .subjects import Sizes, Subject, by_name, subjects

VERSION = 1  # of what a chunk holds


class Job(NamedTuple):
    """Some inputs of a subject."""

    subject: str
    start: int
    stop: int
    path: Path


def measured(several: Sequence[Subject], sizes: Sizes, runs: Path, *, workers: int) -> dict[str, study.Evidence]:
    """The evidence of each subject, from disk where it is there."""
    jobs = {one.name: _jobs(one, sizes, runs) for one in several}
    missing = [job for some in jobs.values() for job in some if not job.path.exists()]
    with tqdm(
        total=sum(map(len, jobs.values())), initial=sum(map(len, jobs.values())) - len(missing), unit="chunk"
    ) as bar:
        for job, content in _done(missing, sizes, runs, min(workers, len(missing))):
            write(job.path, content)
            bar.set_postfix_str(job.subject)
            bar.update()
    return {one.name: _joined(one, jobs[one.name]) for one in several}


def _jobs(subject: Subject, sizes: Sizes, runs: Path) -> list[Job]:
    ways = [(way.name, repr(way.mixing)) for way in subject.ways]
    key = digest(VERSION, subject.name, ways, subject.baselines, subject.replace, subject.references, subject.steps, subject.count,
                 sizes.tuning, sizes.planting, trained.VERSION)  # fmt: skip
    folder = runs / f"measured-{subject.name.replace(' ', '-').replace(',', '')}-{key}"
    starts = range(0, subject.count, subject.chunk)
    return [
        Job(subject.name, start, min(start + subject.chunk, subject.count), folder / f"{start:04d}.npz")
        for start in starts
    ]


def _done(jobs: Sequence[Job], sizes: Sizes, runs: Path, workers: int) -> Iterator[tuple[Job, bytes]]:
    if workers <= 1:
        for job in jobs:
            yield job, _measure(job, sizes, runs)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_prepare) as pool:
        running = {pool.submit(_measure, job, sizes, runs): job for job in jobs}
        for done in as_completed(running):
            yield running[done], done.result()


def _prepare() -> None:
    """A process of one thread: small matrices gain nothing from more."""
    torch.set_num_threads(1)
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]


@cache
def _subject(name: str, sizes: Sizes, runs: Path) -> Subject:
    """Kept in its process, with the model that it opened."""
    return by_name(subjects(sizes, runs), name)


def _measure(job: Job, sizes: Sizes, runs: Path) -> bytes:
    subject = _subject(job.subject, sizes, runs)
    given = subject.opens()
    some = slice(job.start, job.stop)
    found = study.faithfulness(
        given.model, given.texts[some], subject.ways, tokenizer=given.tokenizer, baselines=subject.baselines, replace=subject.replace,
        references=subject.references, target=None if given.targets is None else list(given.targets[some]),
        truth=None if given.truth is None else given.truth[some], steps=subject.steps, seed=job.start,
    )  # fmt: skip
    file = io.BytesIO()
    tables: Any = {"|".join(key): table for key, table in found.values.items()}
    np.savez_compressed(file, ways=np.array(found.ways), **tables)
    return file.getvalue()


def _joined(subject: Subject, jobs: Sequence[Job]) -> study.Evidence:
    flags = {way.name: way.flags for way in subject.ways}
    parts = []
    for job in jobs:
        with np.load(job.path, allow_pickle=False) as content:
            values: dict[Any, Any] = {tuple(name.split("|")): content[name] for name in content.files if name != "ways"}
            parts.append(study.Evidence(values, tuple(content["ways"].tolist()), {"seed": 0, "flags": flags}))
    return study.Evidence.joined(parts)
