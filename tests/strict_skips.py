"""In continuous integration a skipped test is a failure, unless skips.txt says why it may be. Hooks of pytest, for conftest.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_skipped: dict[str, str] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        _note(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.skipped:  # a whole file, by importorskip at its top
        _note(report)


def _note(report: pytest.TestReport | pytest.CollectReport) -> None:
    _skipped[report.nodeid] = report.longrepr[-1] if isinstance(report.longrepr, tuple) else str(report.longrepr)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if os.environ.get("ATTNFLOW_STRICT_SKIPS") and exitstatus == 0 and unexpected_skips(_skipped):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if os.environ.get("ATTNFLOW_STRICT_SKIPS"):
        for test, reason in unexpected_skips(_skipped).items():
            terminalreporter.write_line(f"SKIPPED WITHOUT LEAVE {test}: {reason}", red=True)


def unexpected_skips(skipped: dict[str, str]) -> dict[str, str]:
    """The skipped tests that skips.txt does not know."""
    lines = (Path(__file__).parent / "skips.txt").read_text(encoding="utf-8").splitlines()
    allowed = tuple(line.split()[0] for line in lines if line.strip() and not line.startswith("#"))
    return {test: reason for test, reason in skipped.items() if not test.startswith(allowed or ("\0",))}
