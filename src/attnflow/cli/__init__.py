"""The command line: parse, call the library, print or write. Nothing else is decided here."""

from __future__ import annotations

from attnflow.cli._run import main

__all__ = ["main"]
