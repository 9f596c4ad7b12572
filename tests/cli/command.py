"""The real executable, run the way a shell runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ATTNFLOW = Path(sys.executable).with_name("attnflow")


def environment(**more: str) -> dict[str, str]:
    """This process's, without what a developer may have set, and without a network to wait for."""
    hidden = ("NO_COLOR", "FORCE_COLOR", "PYTHONUNBUFFERED", "PYTHONWARNINGS", "COLUMNS", "TRANSFORMERS_VERBOSITY")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return {**kept, "HF_HUB_OFFLINE": "1", "COLUMNS": "100", **more}


def run(
    *arguments: str | Path, cwd: Path | None = None, text: str | bytes = b"", executable: Sequence[str | Path] = (ATTNFLOW,),
    variables: dict[str, str] | None = None, **options: Any,
) -> subprocess.CompletedProcess[bytes]:  # fmt: skip
    """What a command answers."""
    command = [str(part) for part in (*executable, *arguments)]
    given = text.encode() if isinstance(text, str) else text
    options.setdefault("stdout", subprocess.PIPE)
    return subprocess.run(
        command,
        cwd=cwd,
        input=given,
        stderr=subprocess.PIPE,
        env=environment(**(variables or {})),
        timeout=300,
        **options,
    )


def good(*arguments: str | Path, **options: Any) -> str:
    """What a command that must succeed prints."""
    done = run(*arguments, **options)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def bad(code: int, *arguments: str | Path, **options: Any) -> str:
    """The one line of error of a command that must fail; a usage error may say how to use it before."""
    done = run(*arguments, **options)
    said = done.stderr.decode()
    assert done.returncode == code, (done.returncode, said, done.stdout[:500])
    assert "Traceback" not in said
    *before, line = said.splitlines()
    assert line.startswith("Error: "), said
    assert len(before) == 0 if code == 1 else before[0].startswith("Usage: attnflow"), said
    return line.removeprefix("Error: ")
