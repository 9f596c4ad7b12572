"""Whole runs in real processes: killed, out of space, with rows that kill their worker; from Python and from the shell."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import datasets
import duckdb
import numpy as np
import polars
import pytest

import attnflow as af
from attnflow import batch
from tests.batch.compare import answers, same
from tests.batch.corpus import POISON, records, texts, write_jsonl
from tests.batch.methods import deadly
from tests.cli.command import ATTNFLOW, bad, environment, good, run


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 rows, of which every thirtieth cannot be explained."""
    rows: list[dict[str, Any]] = records(300)
    for place, poison in zip(range(7, 300, 30), 2 * list(POISON.values()), strict=True):
        rows[place]["text"] = poison
    return write_jsonl(tmp_path_factory.mktemp("corpus") / "texts.jsonl", rows)


@pytest.fixture(scope="module")
def whole(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> polars.DataFrame:
    """The answers of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole") / "out"
    done = batch.run(corpus, folder, keep=["n", "label"], part_rows=20, workers=2)
    assert (done.inputs, done.rows, done.errors, done.before) == (300, 300, 10, 0)
    assert len(list(folder.glob("part-*.parquet"))) == 15
    return answers(folder)


def test_every_row_of_the_input_is_there_once(whole: polars.DataFrame) -> None:
    assert whole["input"].to_list() == whole["n"].to_list() == list(range(300))
    failed = whole.filter(polars.col("error").is_not_null())
    assert failed["input"].to_list() == list(range(7, 300, 30))
    assert whole["label"].to_list() == ["a", "b"] * 150


def test_killed_and_started_again(corpus: Path, whole: polars.DataFrame, tmp_path: Path) -> None:
    options = ("--keep", "n", "--keep", "label", "--part-rows", "20", "--workers", "1")
    command: list[str | Path] = ["batch", "run", corpus, "-o", tmp_path, *options]
    rng = random.Random(5)
    for _ in range(2):
        before = len(list(tmp_path.glob("part-*")))
        with subprocess.Popen([ATTNFLOW, *command], stderr=subprocess.PIPE, env=environment()) as process:
            while len(list(tmp_path.glob("part-*"))) == before:
                assert process.poll() is None, process.communicate()[1]
                time.sleep(0.01)
            time.sleep(rng.uniform(0, 0.1))
            [worker] = children(process.pid)
            process.kill()
        assert before < len(list(tmp_path.glob("part-*"))) < 15
        wait_for_the_end_of(worker)
    said = json.loads(good(*command, "--json"))
    assert said["inputs"] + said["before"] == 300
    assert said["before"] >= 40
    assert same(answers(tmp_path), whole)
    again = run(*command)
    assert again.stderr.decode().startswith("0 inputs in ")
    assert "300 were done before" in again.stderr.decode()


def children(process: int) -> list[int]:
    """Of every thread of a process."""
    found = [path.read_text().split() for path in Path(f"/proc/{process}/task").glob("*/children")]
    return [int(child) for some in found for child in some]


def wait_for_the_end_of(process: int) -> None:
    """Nobody who is left behind goes on working."""
    status, deadline = Path(f"/proc/{process}/status"), time.monotonic() + 60
    while status.exists() and "State:\tZ" not in status.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_row_that_kills_its_worker_is_an_error(tmp_path: Path) -> None:
    given = ["the key", "the dog with the man", "the keys", "the cabinet"]
    done = batch.run(given, tmp_path, method=deadly, workers=1)
    assert (done.rows, done.errors) == (4, 1)
    said = answers(tmp_path)["error"].to_list()
    assert [one is None for one in said] == [True, False, True, True]
    assert "the worker died of this row" in said[1]


def test_a_full_disk(corpus: Path, tmp_path: Path) -> None:
    """The kernel refuses to let files grow beyond 6 kB, as it refuses on a full disk: in the middle of writing."""
    command = ("batch", "run", corpus, "-o", tmp_path / "out", "--part-rows", "150", "--workers", "1", "-q")
    line = bad(1, *command, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000)))
    assert "part-000000.parquet: File too large" in line
    assert "0 parts are finished; the same command goes on from there." in line
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [".lock", "_manifest.jsonl"]


def test_a_data_set_and_its_change(tmp_path: Path) -> None:
    data = datasets.Dataset.from_list(records(40))
    done = batch.run(data, tmp_path / "out", method=["raw", "rollout"], keep="label", part_rows=10, workers=1)
    assert (done.inputs, done.rows, done.errors) == (40, 80, 0)
    assert batch.run(data, tmp_path / "out", method=["raw", "rollout"], keep="label", part_rows=10).inputs == 0
    other = datasets.Dataset.from_list([*records(35), *records(5)])
    with pytest.raises(af.errors.InvalidArgument, match="rows 30 to 39 have changed since"):
        batch.run(other, tmp_path / "out", method=["raw", "rollout"], keep="label", part_rows=10)
    with pytest.raises(af.errors.InvalidArgument, match=r'methods was \["raw", "rollout"\] and is now \["flow"\]'):
        batch.run(data, tmp_path / "out", method="flow", keep="label", part_rows=10)


def test_a_loaded_model_and_a_folder_of_texts(tmp_path: Path, work: Any) -> None:
    (tmp_path / "in").mkdir()
    for i, text in enumerate(texts(3)):
        (tmp_path / "in" / f"{i}.txt").write_text(text)
    model, tokenizer = work.loaded.model, work.loaded.tokenizer
    batch.run(tmp_path / "in", tmp_path / "out", model, "raw", tokenizer=tokenizer, workers=1, residual=0)
    found = answers(tmp_path / "out")
    assert found["id"].to_list() == ["0.txt", "1.txt", "2.txt"]
    for row, text in zip(found.to_dicts(), texts(3), strict=True):
        own = af.explain(text, model, "raw", tokenizer=tokenizer, residual=0)
        np.testing.assert_allclose(row["scores"], own.scores[0, 0], atol=2e-6)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["two.csv"], 1, "There are: a, b. Name one with --column."),
        (["missing.jsonl"], 1, "there is no file or folder missing.jsonl"),
        (["{corpus}", "--keep", "lable"], 1, "the input has no column 'lable'. Did you mean 'label'?"),
        (["{corpus}", "-M", "./nowhere"], 1, "there is no folder './nowhere'"),
        (["{corpus}", "-m", "rolout"], 2, "Did you mean 'rollout'?"),
        (["{corpus}", "--address", "head:1"], 1, "is of a Ray cluster, and the engine is 'local'"),
        (["{corpus}", "--normalise"], 2, "--normalise is for flow"),
    ],
)
def test_mistakes_are_one_line(corpus: Path, tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    (tmp_path / "two.csv").write_text("a,b\n1,2\n")
    given = [one.format(corpus=corpus) for one in arguments]
    assert message in bad(code, "batch", "run", *given, "-o", tmp_path / "out", "--workers", "1", cwd=tmp_path)


def test_duckdb_reads_it_without_a_word(whole: polars.DataFrame, tmp_path: Path) -> None:
    assert whole.columns[:19] == batch.SCHEMA.names
    whole.write_parquet(tmp_path / "all.parquet")
    found = duckdb.connect().execute(f"SELECT count(*), count(error) FROM '{tmp_path}/*.parquet'")
    assert found.fetchall() == [(300, 10)]


def test_importing_batch_brings_nothing_heavy() -> None:
    script = "import sys, attnflow.batch; print([name for name in ('pyarrow', 'torch', 'ray') if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout == "[]\n"
