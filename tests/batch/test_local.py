"""How the local engine shares the machine out, and what it says of its progress."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from attnflow.batch import _local, _progress
from attnflow.batch._local import cores, gpus
from attnflow.batch._progress import Progress
from attnflow.batch._work import Finished


@pytest.mark.parametrize(
    ("visible", "count"), [(None, 3), ("", 0), ("-1", 0), ("1", 1), ("0, 2", 2), ("GPU-8932f937,GPU-1", 2)]
)
def test_gpus_are_those_that_may_be_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visible: str | None, count: int
) -> None:
    for name in ("0000:01:00.0", "0000:02:00.0", "0000:03:00.0"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(_local, "GPUS", tmp_path)
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpus() == count
    monkeypatch.setattr(_local, "GPUS", tmp_path / "none")
    assert gpus() == 0
    assert cores() >= 1


def done(inputs: int, errors: int = 0) -> Finished:
    return Finished(0, "", inputs, inputs, errors, b"")


def test_the_estimate_counts_from_the_first_part(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with Progress(False, 1000, 400) as shown:
        now += 60  # loading
        shown.add(done(100))
        assert shown.line(now) == "500 of 1,000 rows (50%)"
        now += 10
        shown.add(done(100, 3))
        assert shown.line(now) == "600 of 1,000 rows (60%), 10.0 rows/s, 40 s left, 3 errors"


def test_a_line_now_and_then_where_nobody_sees_a_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with Progress(True, None, 0) as shown:
        for _ in range(4):
            now += _progress.EVERY / 2 + 1
            shown.add(done(10))
    assert capsys.readouterr().err.splitlines() == ["20 rows, 1.2 rows/s", "40 rows, 1.2 rows/s"]
    with Progress(None, None, 0) as shown:  # as a library, it speaks only to a terminal
        now += 100
        shown.add(done(10))
    assert capsys.readouterr().err == ""


def test_times_for_people() -> None:
    assert [_progress.duration(seconds) for seconds in (3, 89, 200, 9000)] == ["3 s", "89 s", "3 min", "2.5 h"]
