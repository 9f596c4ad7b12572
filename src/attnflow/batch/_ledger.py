"""The output folder and its manifest: what was asked of it, and which parts are finished.

The first line of `_manifest.jsonl` says what the run is; each further line names a part, and is added after the part's
file is in place. Whatever is killed in between leaves a file without a line, which is written once more under the same
name, or half a line, which is cut off.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attnflow import __version__
from attnflow.artifacts import write_atomically
from attnflow.batch._part import Part
from attnflow.batch._work import Finished
from attnflow.errors import InvalidArgument, InvalidArtifact, SaveError

NAME = "_manifest.jsonl"
FORMAT, VERSION = "attnflow-batch", 1


class Ledger:
    """A folder that a run writes to, alone."""

    def __init__(self, folder: Path, asked: Mapping[str, Any]) -> None:
        self.folder = folder
        self.asked = {"format": FORMAT, "version": VERSION, "made_by": f"attnflow {__version__}", **asked}
        self.finished: dict[int, dict[str, Any]] = {}
        self._lock = _locked(folder)
        try:
            path = folder / NAME
            if path.exists():
                self._go_on(path)
            else:
                self._begin(path)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let others write here."""
        os.close(self._lock)

    def unfinished(self, parts: Iterator[Part]) -> Iterator[Part]:
        """The parts that are still to do. One that is finished must be as it was."""
        for part in parts:
            known = self.finished.get(part.number)
            if known is None:
                yield part
            elif known["digest"] != part.digest:
                raise InvalidArgument(
                    f"{self.folder} was begun with another input: rows {part.first:,} to {part.first + part.rows - 1:,} have changed since. "
                    "Write to another folder."
                )

    def write(self, done: Finished) -> None:
        """Put a part's file in place, then note it."""
        name = f"part-{done.number:06d}.parquet"
        try:
            write_atomically(self.folder / name, lambda file: _to_disk(file, done.content))
            line = {
                "part": done.number, "file": name, "bytes": len(done.content), "inputs": done.inputs, "rows": done.rows,
                "errors": done.errors, "digest": done.digest,
            }  # fmt: skip
            self._note(line)
        except OSError as error:
            failure = SaveError(
                f"{str(error).rstrip('.')}. {len(self.finished):,} parts are finished; the same command goes on from there."
            )
            failure.errno = error.errno
            raise failure from error
        self.finished[done.number] = line

    def _note(self, line: Mapping[str, Any]) -> None:
        path = self.folder / NAME
        size = path.stat().st_size
        try:
            with path.open("ab") as file:
                _to_disk(file, json.dumps(line).encode() + b"\n")
        except OSError:
            os.truncate(path, size)
            raise

    def _begin(self, path: Path) -> None:
        foreign = sorted(one.name for one in self.folder.iterdir() if not one.name.startswith("."))
        if foreign:
            raise InvalidArgument(
                f"{self.folder} holds other files ({', '.join(foreign[:3])}{' …' if len(foreign) > 3 else ''}). Give a new or an empty folder."
            )
        header = json.dumps(self.asked, ensure_ascii=False).encode() + b"\n"
        write_atomically(path, lambda file: _to_disk(file, header))

    def _go_on(self, path: Path) -> None:
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        try:
            header, *lines = [json.loads(line) for line in whole.splitlines()]
            _check_format(path, header)
            found = {line["part"]: line for line in lines}
        except (ValueError, KeyError, TypeError):
            raise InvalidArtifact(
                f"{path} is damaged. Write to another folder, or delete this one to begin again."
            ) from None
        _check_same(self.folder, header, self.asked)
        if len(whole) < len(content):  # killed while a line was written
            os.truncate(path, len(whole))
        for number, line in found.items():
            file = self.folder / line["file"]
            if file.exists() and file.stat().st_size == line["bytes"]:
                self.finished[number] = line
        for leftover in self.folder.glob(".*.part"):  # killed while a file was written
            leftover.unlink()


def _check_format(path: Path, header: Mapping[str, Any]) -> None:
    if header["format"] != FORMAT or header["version"] != VERSION:
        raise InvalidArtifact(
            f"{path} is of format {header['format']!r} {header['version']!r}, and this attnflow writes {FORMAT!r} {VERSION}. Write to another folder."
        )


def _check_same(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """A run goes on only as it was begun."""
    now = json.loads(json.dumps(now))
    if before["made_by"] != now["made_by"]:
        raise InvalidArgument(
            f"{folder} was begun by {before['made_by']}, and this is {now['made_by']}. Write to another folder."
        )
    for section, what in (("input", "input"), ("job", "options")):
        old, new = before[section], now[section]
        for name in dict.fromkeys((*old, *new)):
            if old.get(name) != new.get(name):
                raise InvalidArgument(
                    f"{folder} was begun with {'another ' if what == 'input' else 'other '}{what}: {name} was {json.dumps(old.get(name), ensure_ascii=False)} and is now "
                    f"{json.dumps(new.get(name), ensure_ascii=False)}. Write to another folder, or give what was given before."
                )


def _locked(folder: Path) -> int:
    """Hold the folder until the process ends, however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise SaveError(
            f"could not write to {folder}: {error.strerror or error}. Give a folder that you may write to."
        ) from None
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # not on Windows, where nothing then keeps two runs apart
        pass
    except BlockingIOError:
        os.close(handle)
        raise InvalidArgument(f"another run is writing to {folder}. Wait for it, or write to another folder.") from None
    return handle


def _to_disk(file: Any, content: bytes) -> None:
    file.write(content)
    file.flush()
    os.fsync(file.fileno())
