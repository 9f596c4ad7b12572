"""The manifest: a run goes on where it was stopped, whatever stopped it, and only as the run that it was."""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import attnflow as af
from attnflow.batch import _ledger
from attnflow.batch._ledger import NAME, Ledger
from attnflow.batch._part import Part
from attnflow.batch._work import Finished

ASKED: dict[str, Any] = {
    "input": {"kind": "test", "rows": 50, "part_rows": 10},
    "job": {"methods": ["rollout"], "level": -1},
}


def part(number: int, digest: str = "d") -> Part:
    return Part(number, 10 * number, 10, f"{digest}{number}", lambda: [])


def parts(count: int = 5) -> Iterator[Part]:
    return (part(number) for number in range(count))


def finished(number: int, content: bytes = b"content") -> Finished:
    return Finished(number, f"d{number}", 10, 20, 1, content)


def left(folder: Path, asked: dict[str, Any] = ASKED) -> list[int]:
    ledger = Ledger(folder, asked)
    found = [part.number for part in ledger.unfinished(parts())]
    ledger.close()
    return found


def begun(folder: Path, *done: int) -> Path:
    ledger = Ledger(folder, ASKED)
    for number in done:
        ledger.write(finished(number))
    ledger.close()
    return folder


def test_a_run_goes_on(tmp_path: Path) -> None:
    assert left(tmp_path / "new" / "deep") == [0, 1, 2, 3, 4]
    assert left(begun(tmp_path / "out", 3, 1)) == [0, 2, 4]
    assert sorted(path.name for path in (tmp_path / "out").glob("[!.]*")) == [
        NAME,
        "part-000001.parquet",
        "part-000003.parquet",
    ]


def test_half_a_line_is_cut_off(tmp_path: Path) -> None:
    whole = (begun(tmp_path, 3, 1) / NAME).read_bytes()
    last = whole[: whole[:-1].rfind(b"\n") + 1]
    for length in range(len(last), len(whole)):
        (tmp_path / NAME).write_bytes(whole[:length])
        assert left(tmp_path) == [0, 1, 2, 4]
        assert (tmp_path / NAME).read_bytes() == last
    begun(tmp_path, 1)
    assert left(tmp_path) == [0, 2, 4]


def test_a_part_whose_file_is_gone_or_cut_is_done_again(tmp_path: Path) -> None:
    begun(tmp_path, 1, 3, 4)
    (tmp_path / "part-000001.parquet").unlink()
    (tmp_path / "part-000003.parquet").write_bytes(b"con")
    assert left(tmp_path) == [0, 1, 2, 3]


def test_another_input_or_option_is_refused_with_the_reason(tmp_path: Path) -> None:
    begun(tmp_path, 1)
    for changed, message in [
        ({"input": {**ASKED["input"], "rows": 51}}, "was begun with another input: rows was 50 and is now 51"),
        ({"input": {**ASKED["input"], "part_rows": 9}}, "part_rows was 10 and is now 9"),
        ({"job": {**ASKED["job"], "level": None}}, "was begun with other options: level was -1 and is now null"),
        ({"job": {**ASKED["job"], "top_k": 3}}, "top_k was null and is now 3"),
    ]:
        with pytest.raises(af.errors.InvalidArgument, match=message):
            left(tmp_path, {**ASKED, **changed})
    ledger = Ledger(tmp_path, ASKED)
    with pytest.raises(af.errors.InvalidArgument, match="rows 10 to 19 have changed since"):
        list(ledger.unfinished(iter([part(0), part(1, "other")])))
    ledger.close()
    assert left(tmp_path) == [0, 2, 3, 4]


def test_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(tmp_path, 1)
    monkeypatch.setattr(_ledger, "__version__", "9.9.9")
    with pytest.raises(
        af.errors.InvalidArgument, match=f"begun by attnflow {af.__version__}, and this is attnflow 9.9.9"
    ):
        left(tmp_path)


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(af.errors.InvalidArgument, match="holds other files \\(thesis.tex\\)"):
        left(tmp_path)
    (tmp_path / "out").mkdir()
    for content in (b"", b"{}\n", b"no json\n", b'[]\n{"part": 1}\n', b"\xff\xfe\n"):
        (tmp_path / "out" / NAME).write_bytes(content)
        with pytest.raises(af.errors.InvalidArtifact, match="is damaged"):
            left(tmp_path / "out")
    (tmp_path / "out" / NAME).write_text(json.dumps({"format": "attnflow-batch", "version": 2}) + "\n")
    with pytest.raises(af.errors.InvalidArtifact, match="is of format 'attnflow-batch' 2"):
        left(tmp_path / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(af.errors.SaveError, match="could not write to"):
        left(tmp_path / "file")


def test_two_runs_do_not_write_to_one_folder(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, ASKED)
    with pytest.raises(af.errors.InvalidArgument, match="another run is writing to"):
        Ledger(tmp_path, ASKED)
    ledger.close()
    assert left(tmp_path) == [0, 1, 2, 3, 4]


def test_a_full_disk_stops_it_cleanly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(tmp_path, 1)
    ledger = Ledger(tmp_path, ASKED)

    def full(file: Any, content: bytes) -> None:
        file.write(content[: len(content) // 2])
        file.flush()
        raise OSError(errno.ENOSPC, "No space left on device")

    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    real = _ledger._to_disk
    monkeypatch.setattr(_ledger, "_to_disk", full)
    with pytest.raises(af.errors.SaveError, match="No space left.*1 parts are finished; the same command goes on"):
        ledger.write(finished(2))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    # the part fits, and the line about it does not
    monkeypatch.setattr(
        _ledger, "_to_disk", lambda file, content: (full if content[:1] == b"{" else real)(file, content)
    )
    with pytest.raises(af.errors.SaveError, match="No space left"):
        ledger.write(finished(2))
    assert (tmp_path / NAME).read_bytes() == before[NAME]
    monkeypatch.undo()
    ledger.write(finished(2))
    ledger.close()
    assert left(tmp_path) == [0, 3, 4]


WRITER = """
import sys
from pathlib import Path
from tests.batch.test_ledger import ASKED, Ledger, large, part
ledger = Ledger(Path(sys.argv[1]), ASKED)
print("go", flush=True)
for one in ledger.unfinished(part(number) for number in range(100_000)):
    ledger.write(large(one.number))
"""


def large(number: int) -> Finished:
    return finished(number, bytes([number % 251]) * 50_000)


def test_killed_at_twenty_random_points(tmp_path: Path) -> None:
    """Nothing but writing, so that the kills fall into it."""
    rng = random.Random(11)
    for _ in range(20):
        command = [sys.executable, "-c", WRITER, str(tmp_path)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"go\n"
            time.sleep(rng.uniform(0, 0.05))
            process.kill()
    ledger = Ledger(tmp_path, ASKED)
    whole = set(ledger.finished)
    assert len(whole) > 20
    rest = [one.number for one in ledger.unfinished(parts(max(whole) + 10))]
    assert not whole & set(rest)
    for number in rest:
        ledger.write(large(number))
    ledger.close()
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name not in (NAME, ".lock")}
    assert files == {f"part-{number:06d}.parquet": large(number).content for number in range(max(whole) + 10)}
    numbers = [json.loads(line)["part"] for line in (tmp_path / NAME).read_text().splitlines()[1:]]
    assert sorted(numbers) == list(range(max(whole) + 10))
