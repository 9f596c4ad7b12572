"""Models so small that a second thread only costs time."""

from tests.one_thread import one_thread as one_thread
