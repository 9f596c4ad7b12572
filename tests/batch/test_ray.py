"""The Ray engine on a cluster of two nodes: the rows of the local engine, also when a worker is killed half-way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars
import pytest

import attnflow as af
from attnflow import batch
from attnflow.batch._ray import _share
from tests.batch.compare import answers, same
from tests.batch.corpus import records, write_jsonl
from tests.batch.methods import killed_once

# Ray uses what it has deprecated, and leaves sockets open.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.add_node(num_cpus=1)
    yield made
    made.shutdown()  # type: ignore[no-untyped-call]


def test_equal_rows_with_a_worker_killed_half_way(cluster: Any, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = records(96)
    rows[5]["text"] = None
    corpus = write_jsonl(tmp_path / "texts.jsonl", rows)
    asked: dict[str, Any] = {
        "method": killed_once,
        "keep": ["n", "label"],
        "part_rows": 12,
        "flag": str(tmp_path / "flag"),
    }
    done = batch.run(corpus, tmp_path / "ray", engine="ray", address=cluster.address, **asked)
    assert (tmp_path / "flag").exists()  # it was killed
    assert (done.inputs, done.rows, done.errors) == (96, 96, 1)

    here = batch.run(corpus, tmp_path / "local", workers=1, **asked)
    assert (here.inputs, here.rows, here.errors) == (96, 96, 1)
    assert same(answers(tmp_path / "ray"), answers(tmp_path / "local"))

    # what one engine began, the other goes on with
    for number in (2, 6):
        (tmp_path / "ray" / f"part-{number:06d}.parquet").unlink()
    rest = batch.run(corpus, tmp_path / "ray", workers=1, **asked)
    assert (rest.inputs, rest.before) == (24, 72)
    assert same(answers(tmp_path / "ray"), answers(tmp_path / "local"))


def test_what_stops_the_local_engine_stops_ray(cluster: Any, tmp_path: Path) -> None:
    with pytest.raises(af.errors.CaptureError, match=re.escape("there is no folder './nowhere'")):
        batch.run(["the key"], tmp_path / "out", "./nowhere", engine="ray", address=cluster.address)


def test_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    for address, message in (
        ("127.0.0.1:9", "there is no Ray cluster at 127.0.0.1:9"),
        ("head", "is HOST:PORT, got 'head'"),
    ):
        with pytest.raises(af.errors.InvalidArgument, match=message):
            batch.run(["the key"], tmp_path, engine="ray", address=address)


def test_a_gpu_each_where_there_are_some() -> None:
    assert _share({"CPU": 64.0, "GPU": 8.0, "memory": 1e12}) == ({"num_gpus": 1.0}, 8)
    assert _share({"CPU": 64.0}) == ({"num_cpus": 1.0}, 64)


def test_the_frames_can_tell_rows_apart(tmp_path: Path) -> None:
    one = polars.DataFrame({"input": [0], "scores": [[0.5, 0.5]]})
    assert same(one, one)
    assert not same(one, polars.DataFrame({"input": [0], "scores": [[0.5, 0.51]]}))
    assert not same(one, polars.DataFrame({"input": [1], "scores": [[0.5, 0.5]]}))
