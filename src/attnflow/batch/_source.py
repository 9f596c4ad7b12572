"""From what a user names or hands over to a source."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attnflow.batch._files import Files
from attnflow.batch._folder import folder
from attnflow.batch._part import Source
from attnflow.batch._rows import Columns
from attnflow.batch._stream import Stream
from attnflow.errors import InvalidArgument


def source_of(given: Any, columns: Columns) -> Source:
    """A file, a folder, a data set, a table, or anything to iterate over."""
    if isinstance(given, str | os.PathLike):
        path = Path(given)
        if path.is_dir():
            return folder(path, columns)
        if not path.exists():
            raise InvalidArgument(
                f"there is no file or folder {path}. (A single text is explained by attnflow.explain; several go in a list.)"
            )
        return Files([path], columns)
    if not isinstance(given, Iterable) and not hasattr(given, "__arrow_c_stream__"):
        raise InvalidArgument(
            f"the input is a file, a folder, a data set or something to iterate over; got a {type(given).__name__}."
        )
    return Stream(given, columns)
