"""Models so small that a second thread only costs time; the weights that are trained here stay the same."""

from tests.one_thread import one_thread as one_thread
