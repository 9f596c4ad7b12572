"""The local engine: worker processes on this machine, one for each core (or GPU), each with a model of its own.

Processes and not threads: between the matrix products of a small model lies Python, which only one thread can run.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attnflow.batch._job import Job
from attnflow.batch._part import Part
from attnflow.batch._work import Finished
from attnflow.errors import AttnflowError, CaptureError

GPUS = Path("/proc/driver/nvidia/gpus")  # where the driver lists them, on Linux
_END = object()


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpus() -> int:
    """NVIDIA's, as far as this process may see them. Asking torch would cost seconds, and memory for good."""
    if not GPUS.is_dir():
        return 0
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if allowed is None:
        return len(list(GPUS.iterdir()))
    return len([one for one in allowed.split(",") if one.strip() and one.strip() != "-1"])


def local(job: Job, types: Mapping[str, Any], parts: Iterator[Part], workers: int | None = None) -> Iterator[Finished]:
    """Each part, finished, in the order in which they are. At most two a worker are held at once."""
    cards = 0 if job.device is not None else gpus()
    crew = _Crew(job, types, parts, workers or cards or cores(), cards)
    try:
        yield from crew.finished()
    finally:
        crew.stop()


class _Crew:
    """Workers, each minded by a thread that hands it one part after the other."""

    def __init__(self, job: Job, types: Mapping[str, Any], parts: Iterator[Part], workers: int, cards: int) -> None:
        self._setting = pickle.dumps((job, dict(types)))
        self._devices = [f"cuda:{place % cards}" if cards else None for place in range(workers)]
        self._parts, self._turn = parts, threading.Lock()
        self._done: queue.Queue[Any] = queue.Queue(maxsize=workers)
        self._stopping = threading.Event()
        self._processes: list[_Process | None] = [None] * workers
        self._minders = [threading.Thread(target=self._mind, args=(place,), daemon=True) for place in range(workers)]
        for minder in self._minders:
            minder.start()

    def finished(self) -> Iterator[Finished]:
        """What the workers hand in, until all of them have nothing left to do."""
        at_work = len(self._minders)
        while at_work:
            found = self._done.get()
            if found is _END:
                at_work -= 1
            elif isinstance(found, BaseException):
                raise found
            else:
                yield found

    def stop(self) -> None:
        """End the workers, whatever they do."""
        self._stopping.set()
        for process in self._processes:
            if process is not None:
                process.kill()
        while any(minder.is_alive() for minder in self._minders):
            try:  # a minder may be waiting to hand something in
                self._done.get(timeout=0.05)
            except queue.Empty:
                continue

    def _mind(self, place: int) -> None:
        try:
            while not self._stopping.is_set() and (part := self._next()) is not None:
                self._done.put(self._explained(place, part))
            self._done.put(_END)
        except BaseException as error:  # raised where the caller is
            self._done.put(error)
        finally:
            process = self._processes[place]
            if process is not None:
                process.kill()

    def _next(self) -> Part | None:
        with self._turn:
            return next(self._parts, None)

    def _explained(self, place: int, part: Part) -> Finished:
        """A part's answer. If the worker dies of it, another goes through it row by row, and leaves out the row it dies of."""
        deadly: set[int] = set()
        careful = False
        while True:
            process = self._processes[place]
            if process is None:
                process = self._processes[place] = _Process(self._setting, self._devices[place], len(self._devices))
            try:
                return process.ask(part, careful=careful, deadly=deadly)
            except EOFError:
                if self._stopping.is_set():
                    raise
                process.kill()
                self._processes[place] = None
                if careful and process.row is None:
                    raise process.died() from None
                if process.row is not None:
                    deadly.add(process.row)
                careful = True


class _Process:
    """One worker, from this side."""

    def __init__(self, setting: bytes, device: str | None, workers: int) -> None:
        each = str(max(1, cores() // workers))
        variables = {
            "OMP_NUM_THREADS": each, "MKL_NUM_THREADS": each, "OPENBLAS_NUM_THREADS": each, "NUMBA_NUM_THREADS": each,
            "TOKENIZERS_PARALLELISM": "false",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }  # fmt: skip
        quiet = {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        command = [sys.executable, "-m", "attnflow.batch._worker"]
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**quiet, **os.environ, **variables}
        )
        self.row: int | None = None  # the one being explained, where each is announced
        try:
            self._say(setting)
            self._say(pickle.dumps(device))
            self._hear("ready")
        except BaseException as error:
            died = self.died() if isinstance(error, EOFError) else error
            self.kill()
            raise died from None

    def ask(self, part: Part, *, careful: bool, deadly: set[int]) -> Finished:
        """Have a part explained; EOFError if the worker dies of it."""
        self.row = None
        self._say(pickle.dumps((part, careful, frozenset(deadly))))
        found: Finished = self._hear("done")
        return found

    def kill(self) -> None:
        """At once: nothing that it does is needed any more."""
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:  # what was still to be sent
                    continue

    def died(self) -> CaptureError:
        """Said where no row can be blamed."""
        code = self._child.wait()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return CaptureError(
            f"a worker died ({how}) before it could explain anything. If memory is short, use fewer workers or a smaller model."
        )

    def _say(self, message: bytes) -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(message)
            self._child.stdin.flush()
        except BrokenPipeError:
            raise EOFError from None

    def _hear(self, wanted: str) -> Any:
        assert self._child.stdout is not None
        while True:
            try:
                what, *found = pickle.load(self._child.stdout)
            except (pickle.UnpicklingError, ValueError):  # cut off in the middle, or closed by kill()
                raise EOFError from None
            if what == "row":
                self.row = found[0]
            elif what == "failed":
                raise _rebuilt(*found)
            else:
                assert what == wanted
                return found[0] if found else None


def _rebuilt(kind: type[Exception], arguments: tuple[Any, ...], text: str) -> Exception:
    """The worker's error as it was, where it was raised on purpose; else as what it was to this process: a worker's failure."""
    if not issubclass(kind, AttnflowError):
        return CaptureError(f"a worker failed: {kind.__name__}: {text}")
    error = kind.__new__(kind)
    error.args = arguments or (text,)
    return error
