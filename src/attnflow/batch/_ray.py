"""The Ray engine: parts as a Ray data set, a pool of actors that load the model once, the same rows in the same files.

Rows are read on the node that the run was started on, and the finished parts are written there, so the nodes need no disk
in common. They need attnflow, and the model under the name that was given. Ray restarts an actor that dies, and has its part
done again.
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from attnflow.batch._job import Job
from attnflow.batch._part import Held, Part
from attnflow.batch._rows import Picture, Row
from attnflow.batch._work import Finished, Work
from attnflow.errors import AttnflowError, InvalidArgument, MissingExtra

COLUMN = "pickled"  # the one column of the data set: a part, then its rows, then its answers


def on_ray(
    job: Job, types: Mapping[str, Any], parts: Iterator[Part], workers: int | None, address: str | None
) -> Iterator[Finished]:
    """Each part, finished, in any order."""
    ray = _library()
    with _cluster(ray, address), _quiet(ray.data.DataContext.get_current()):
        blocks = [
            ray.put(_table([pickle.dumps(part)])) for part in parts
        ]  # Ray moves to disk what does not fit in memory
        if not blocks:
            return
        here = {f"node:{ray.util.get_node_ip_address()}": 0.001}  # which every node has of itself
        each, most = _share(ray.cluster_resources())
        count = min(workers or most, len(blocks))
        setting = ray.put((job, dict(types), "cuda" if "num_gpus" in each else None))
        answers = (
            ray.data.from_arrow_refs(blocks)
            .map_batches(_read, batch_size=None, batch_format="pyarrow", num_cpus=0, resources=here)
            .map_batches(
                _Actor, fn_constructor_args=(setting,), batch_size=None, batch_format="pyarrow",
                compute=ray.data.ActorPoolStrategy(size=count), **each,
            )
        )  # fmt: skip
        for batch in answers.iter_batches(batch_size=None, batch_format="pyarrow"):
            for content in batch[COLUMN].to_pylist():
                yield _answer(pickle.loads(content))


class _Actor:
    """A worker of the pool. What stops a run travels as an answer, since Ray would try it again without end."""

    def __init__(self, setting: Any) -> None:
        import ray

        self._failed: Exception | None = None
        try:
            self._work = Work(*ray.get(setting))
        except AttnflowError as error:
            self._failed = error

    def __call__(self, batch: pa.Table) -> Iterator[pa.Table]:
        """Parts with their rows to finished parts, one after the other."""
        for content in batch[COLUMN].to_pylist():
            part = pickle.loads(content)
            failed = self._failed or (part if isinstance(part, Exception) else None)
            yield _table([pickle.dumps(failed or self._work(part))])


def _read(batch: pa.Table) -> pa.Table:
    """Parts with the rows in them, so that they can be sent anywhere."""
    found: list[bytes] = []
    for content in batch[COLUMN].to_pylist():
        part: Part = pickle.loads(content)
        try:
            rows = [_carried(row) for row in part.read()]
            found.append(pickle.dumps(replace(part, read=Held(rows))))
        except AttnflowError as error:
            found.append(pickle.dumps(error))
    return _table(found)


def _carried(row: Row) -> Row:
    """A row with the content of its image and not only its place."""
    if not isinstance(row.value, Picture) or isinstance(row.value.content, bytes):
        return row
    try:
        return replace(row, value=Picture(row.value.content.read_bytes()))
    except OSError as error:
        return replace(row, value=None, error=f"could not read {row.value.content.name}: {error.strerror or error}")


def _table(contents: list[bytes]) -> pa.Table:
    return pa.table({COLUMN: pa.array(contents, pa.large_binary())})


def _answer(found: Any) -> Finished:
    if isinstance(found, Exception):
        raise found
    done: Finished = found
    return done


def _share(resources: Mapping[str, float]) -> tuple[dict[str, float], int]:
    """What each worker takes, and how many there can be: a GPU each where there are some, else a core each."""
    gpus, cores = int(resources.get("GPU", 0)), int(resources.get("CPU", 1))
    return ({"num_gpus": 1.0}, gpus) if gpus else ({"num_cpus": 1.0}, max(1, cores))


def _library() -> Any:
    os.environ.setdefault("RAY_DATA_USAGE_DISABLED", "1")  # nobody asked for reports on what is run here
    try:
        import ray.data
        import ray.util
    except ImportError:
        raise MissingExtra("ray, which engine='ray' needs,", extra="ray") from None
    return ray


@contextmanager
def _quiet(context: Any) -> Iterator[None]:
    """Progress is said by the run itself."""
    said, before = logging.getLogger("ray.data"), context.enable_progress_bars
    level = said.level
    context.enable_progress_bars = False
    said.setLevel(logging.WARNING)
    try:
        yield
    finally:
        context.enable_progress_bars = before
        said.setLevel(level)


@contextmanager
def _cluster(ray: Any, address: str | None) -> Iterator[None]:
    """A connection: the one that is there, or to the cluster at this address, or to one that is started for this."""
    if ray.is_initialized():
        if address is not None and address != ray.get_runtime_context().gcs_address:
            raise InvalidArgument(
                f"this process is connected to the Ray cluster at {ray.get_runtime_context().gcs_address}, not {address}: call ray.shutdown() first."
            )
        yield
        return
    if address is not None:
        _check_reached(address)
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
    try:
        ray.init(address=address or "auto", **quiet)
    except ConnectionError:
        if address is not None:
            raise InvalidArgument(f"what answers at {address} is not a Ray cluster.") from None
        ray.init(**quiet)
    try:
        yield
    finally:
        ray.shutdown()


def _check_reached(address: str) -> None:
    """Ray itself asks for many minutes before it says that nobody is there."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not (host and port.isdigit()):
        raise InvalidArgument(
            f"the address of a Ray cluster is HOST:PORT, got {address!r}. `ray start --head` prints it."
        )
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise InvalidArgument(f"there is no Ray cluster at {address}: {error.strerror or error}.") from None
