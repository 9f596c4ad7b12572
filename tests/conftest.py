"""What every test needs: a small stack, and hypothesis set up the same way everywhere."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import attnflow as af
from tests.browser import chromium as chromium  # one for all rooms

# No deadline: machines are noisy, and time is not what these tests are about.
settings.register_profile(
    "attnflow", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("attnflow")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20200701)


@pytest.fixture
def stack(rng: np.random.Generator) -> af.AttentionStack:
    """3 layers × 2 heads × 5 tokens, with gradients; the first and last tokens are special."""
    weights = rng.dirichlet(np.ones(5), size=(3, 2, 5))
    tokens = af.Tokens(
        ["[CLS]", "the", "cab", "##inets", "[SEP]"], [True, False, False, False, True], words=[(1, 2), (2, 4)]
    )
    return af.AttentionStack(weights, tokens, gradients=rng.normal(size=weights.shape))


@pytest.fixture
def graph(stack: af.AttentionStack) -> af.AttentionGraph:
    return af.mix(stack)


# In continuous integration a skipped test is a failure, unless skips.txt says why it may be.

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
