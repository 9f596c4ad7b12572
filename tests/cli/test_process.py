"""The command as a process: interrupted, cut off from its reader, out of space, with and without colour."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest

import attnflow as af
from attnflow.cli import main
from tests.cli.command import ATTNFLOW, bad, environment, good, run


def test_ctrl_c_stops_at_once_and_leaves_no_half_file(files: Path, tmp_path: Path) -> None:
    old = tmp_path / "flow.npz"
    old.write_bytes(b"what was there before")
    command: list[str | Path] = [ATTNFLOW, "attribute", files / "large.npz", "-m", "flow", "-o", old]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment()) as process:
        assert process.stderr is not None
        said = process.stderr.readline().decode()
        while said.startswith("attnflow: "):  # kernels that were not compiled yet
            said = process.stderr.readline().decode()
        # 300² pairs at 8 levels take minutes, and that is said before
        assert "flow: 720,000 pairs × " in said
        assert " ≈ " in said
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        assert process.wait(timeout=30) == 130
        assert time.monotonic() - sent < 20  # not after minutes
        assert process.stderr.read().decode().split() == ["Stopped."]
    assert old.read_bytes() == b"what was there before"
    assert [path.name for path in tmp_path.iterdir()] == ["flow.npz"]


def test_ctrl_c_while_libraries_load(model: Path) -> None:
    command: list[str | Path] = [ATTNFLOW, "explain", "the key", "--model", model]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()) as process:
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=60)
    assert (process.returncode, out, said.split()) == (130, b"", [b"Stopped."])


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "arguments",
    [("attribute", "large.npz", "--json"), ("render", "flow.npz"), ("methods",), ("explain", "--help")],
    ids=" ".join,
)
def test_a_closed_pipe_is_silent(files: Path, arguments: tuple[str, ...], unbuffered: str) -> None:
    read, write = os.pipe()
    os.close(read)
    done = run(*arguments, cwd=files, stdout=write, variables={"PYTHONUNBUFFERED": unbuffered})
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_full_disk_on_stdout(files: Path) -> None:
    with open("/dev/full", "wb") as full:
        for arguments in (["attribute", "large.npz", "--json"], ["methods"]):
            assert "No space left" in bad(1, *arguments, cwd=files, stdout=full)


def test_a_full_disk_under_a_file(files: Path, tmp_path: Path) -> None:
    """The kernel refuses to let files grow beyond 8 kB, as it refuses on a full disk: in the middle of writing."""
    old = tmp_path / "a.npz"
    old.write_bytes(b"what was there before")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    for name in ("a.npz", "b.csv", "c.html"):
        line = bad(1, "attribute", files / "large.npz", "--level", "0", "-o", tmp_path / name, preexec_fn=limit)
        assert f"could not write {tmp_path / name}: File too large" in line
    assert old.read_bytes() == b"what was there before"
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


def test_colour_only_where_it_is_seen(files: Path) -> None:
    asked = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
    assert "\x1b[" not in good("render", files / "rollout.npz")  # a pipe
    assert "\x1b[" in good("render", files / "rollout.npz", variables=asked)
    plain = good("render", files / "rollout.npz", variables={**asked, "NO_COLOR": "1"})
    assert "\x1b[3" not in plain
    assert "\x1b[4" not in plain


def test_a_terminal_that_lacks_the_letters(files: Path) -> None:
    assert "rollout: what ?[CLS]? draws on" in good(
        "render", files / "rollout.npz", variables={"PYTHONIOENCODING": "ascii"}
    )


def test_version_everywhere() -> None:
    assert good("--version") == f"attnflow {af.__version__}\n"
    assert good("-V", executable=(ATTNFLOW.with_name("python"), "-m", "attnflow")) == f"attnflow {af.__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str) -> None:
    assert f"_ATTNFLOW_COMPLETE={shell}_complete" in good("completion", shell)
    assert f"_ATTNFLOW_COMPLETE={shell}_complete" in good("completion", variables={"SHELL": f"/usr/bin/{shell}"})


def test_completion_completes() -> None:
    def completed(typed: str) -> set[str]:
        words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1), "_ATTNFLOW_COMPLETE": "bash_complete"}
        return {line.partition(",")[2] for line in good(variables=words).splitlines()}

    assert completed("attnflow at") == {"attribute"}
    assert completed("attnflow explain --method r") == {"raw", "relevance", "rollout"}
    assert completed("attnflow explain --edges g") == {"gradient"}
    assert "--top-k" in completed("attnflow explain --t")


def test_what_nobody_foresaw_is_one_line_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from attnflow.cli import _methods

    monkeypatch.setattr(_methods, "_rows", lambda *_: 1 / 0)
    with pytest.raises(SystemExit, match="1"):
        main(["methods"])
    [line] = capsys.readouterr().err.splitlines()
    assert line == (
        "Error: this should not have happened (ZeroDivisionError: division by zero). --verbose shows where. Please report it."
    )
