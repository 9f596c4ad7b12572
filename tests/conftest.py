"""What every test needs: a small stack, and hypothesis set up the same way everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import attnflow as af
from tests.browser import chromium as chromium  # one for all rooms
from tests.strict_skips import pytest_collectreport as pytest_collectreport
from tests.strict_skips import pytest_runtest_logreport as pytest_runtest_logreport
from tests.strict_skips import pytest_sessionfinish as pytest_sessionfinish
from tests.strict_skips import pytest_terminal_summary as pytest_terminal_summary

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
