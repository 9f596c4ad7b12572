"""One script per question; each prints a table. Run one as `python -m benchmarks.rollout`, all by `make bench`."""
