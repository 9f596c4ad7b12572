"""The page: one HTML file that holds the viewer and its data, and needs no network."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Sequence
from importlib import resources
from typing import Any

from attnflow.artifacts import write_atomically
from attnflow.render._document import document
from attnflow.render._shown import Shown

# Nothing is fetched: the page says so itself, and the browser holds it to that.
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
html, body {{ margin: 0; padding: 0; }}
{style}</style>
</head>
<body>
<main id="attnflow" class="attnflow"><noscript>This page draws with JavaScript, which is switched off.</noscript></main>
<script type="application/json" id="attnflow-data">{data}</script>
<script type="module">
{script}
mount(document.getElementById("attnflow"), JSON.parse(document.getElementById("attnflow-data").textContent), {{ page: true }});
</script>
</body>
</html>
"""


def page(shown: Shown | Sequence[Shown], path: str | os.PathLike[str] | None = None, **options: Any) -> str:
    """One HTML file that works from disk without a network; the HTML is returned, and written to `path` if given.

    `shown` is one attribution (or view) or several: those of the same tokens are methods to compare, others are further
    texts. The options are those of `document`: `title`, `query`, `level`, `special`, `scale`, `graphs`, `bottlenecks`, `images`,
    `difference`, `queries`, `theme`.
    """
    content = document(shown, **options)
    text = _PAGE.format(
        policy=_POLICY,
        title=html.escape(content["title"]),
        style=asset("viewer.css"),
        script=asset("viewer.js"),
        data=embedded(content),
    )
    if path is not None:
        write_atomically(path, lambda file: file.write(text.encode("utf-8")))
    return text


def asset(name: str) -> str:
    """A file of the viewer."""
    return resources.files("attnflow").joinpath("assets", name).read_text(encoding="utf-8")


# Within a script element only these could end it, open a comment or break a line; as escapes they mean the same in JSON.
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def embedded(content: Any) -> str:
    """JSON that stays data inside a script element, whatever its strings say."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(_ESCAPES)
