"""The log: one JSON object a line. Which model, which methods, how many tokens, how long; never a text."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

LOGGER = logging.getLogger("attnflow.web")


class JsonLines(logging.Formatter):
    """A record as JSON: when, how grave, what, and the fields of `extra={"fields": …}`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage() if record.name == LOGGER.name else f"{record.name}: {record.getMessage()}",
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1]:
            line["exception"] = frames(record.exc_info[1])
        return json.dumps(line, ensure_ascii=True)


def to_stderr(*, quiet: bool = False) -> None:
    """Have the server's log, and uvicorn's, written to stderr as JSON; only what went wrong, if quiet."""
    handler = logging.StreamHandler(sys.__stderr__)  # not what --quiet swallows
    handler.setFormatter(JsonLines())
    for logger in (LOGGER, logging.getLogger("uvicorn")):
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(logging.WARNING if quiet or logger is not LOGGER else logging.INFO)


def say(event: str, fields: Mapping[str, Any], level: int = logging.INFO) -> None:
    """One line of the log."""
    LOGGER.log(level, event, extra={"fields": dict(fields)})


def frames(error: BaseException) -> dict[str, Any]:
    """An exception by its type and the places it went through. Its message may hold a text, so it is left out."""
    places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    return {"type": type(error).__name__, "at": places}
