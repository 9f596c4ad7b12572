"""`python -m attnflow` is the command `attnflow`."""

from __future__ import annotations

from attnflow.cli import main

if __name__ == "__main__":
    main()
