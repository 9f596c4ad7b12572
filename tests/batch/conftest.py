"""Texts, and one worker in this process that serves every test that needs a model."""

from __future__ import annotations

import pytest

from attnflow.batch._job import Job
from attnflow.batch._work import Work
from tests.batch.corpus import JOB


@pytest.fixture(scope="session")
def work() -> Work:
    """Rollout and flow with the bundled model; `label` is kept."""
    return Work(Job.of(["rollout", "flow"], {}, **JOB), {"label": "string"})
