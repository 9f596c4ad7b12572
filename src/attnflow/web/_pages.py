"""What a browser is given: the page, the documentation of the API, and the few files that both need."""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from attnflow.render import asset
from attnflow.web._refused import CODES
from attnflow.web._schema import describe

# The only files there are, by name: no part of a path in a request ever becomes a path on the disk.
ASSETS = {
    "viewer.js": "text/javascript", "viewer.css": "text/css", "live.js": "text/javascript", "element.js": "text/javascript", "drop.js": "text/javascript", "live.css": "text/css",
    "question.js": "text/javascript", "stream.js": "text/javascript", "try.js": "text/javascript", "sign-in.js": "text/javascript", "icon.svg": "image/svg+xml",
}  # fmt: skip

_SHELL = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/viewer.css">
<link rel="stylesheet" href="/assets/live.css">
<script type="module" src="/assets/{script}"></script>
</head>
<body>
{body}
</body>
</html>
"""

_PAGE = '<div id="live" class="live attnflow"><noscript>This page draws with JavaScript, which is switched off.</noscript></div>'

_SIGN_IN = """<main class="live attnflow narrow">
<h1 class="title">attnflow</h1>
<form id="sign-in">
<label class="field"><span>The token that this server was started with</span>
<input type="text" autocomplete="username" value="attnflow" hidden>
<input id="token" type="password" autocomplete="current-password" required></label>
<button type="submit" class="go">Sign in</button>
<p id="said" role="alert"></p>
</form>
</main>"""


def page_routes(description: Mapping[str, Any]) -> list[Route]:
    """The page, /docs, /openapi.json and /assets."""
    documentation = _shell("attnflow API", "try.js", docs(description))
    plain = json.dumps(description, ensure_ascii=False).encode()

    async def live(request: Request) -> Response:
        return HTMLResponse(_shell("attnflow", "live.js", _PAGE))

    async def manual(request: Request) -> Response:
        return HTMLResponse(documentation)

    async def described(request: Request) -> Response:
        return Response(plain, media_type="application/json")

    found = [
        Route("/", live, methods=["GET"]),
        Route("/docs", manual, methods=["GET"]),
        Route("/openapi.json", described, methods=["GET"]),
    ]
    return found + [_asset(name, kind) for name, kind in ASSETS.items()]


def sign_in_page() -> Response:
    """What a browser without the token sees in place of a page."""
    return HTMLResponse(_shell("attnflow: sign in", "sign-in.js", _SIGN_IN), 401, {"WWW-Authenticate": "Bearer"})


def _asset(name: str, kind: str) -> Route:
    content = asset(name).encode()
    tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'

    async def get(request: Request) -> Response:
        headers = {"ETag": tag, "Cache-Control": "no-cache"}  # kept, and asked for again whether it changed
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=kind)

    return Route(f"/assets/{name}", get, methods=["GET"])


def _shell(title: str, script: str, body: str) -> str:
    return _SHELL.format(title=html.escape(title), script=script, body=body)


def docs(description: Mapping[str, Any]) -> str:
    """The OpenAPI document for people, with a form to try each operation."""
    operations = [
        _operation(path, verb, operation, description)
        for path, verbs in description["paths"].items()
        for verb, operation in verbs.items()
    ]
    codes = "".join(
        f"<tr><td><code>{code}</code><td>{status}<td>{_words(words)}" for code, (status, words) in CODES.items()
    )
    return (
        f'<main class="live attnflow manual"><header class="row masthead"><h1 class="title">attnflow API '
        f'<small>{html.escape(description["info"]["version"])}</small></h1><nav><a href="/">The page</a> <a href="/openapi.json">OpenAPI</a></nav>'
        f"</header><p>{_words(description['info']['description'])}</p>{''.join(operations)}"
        "<section><h2>Errors</h2><p>Every error is <code>{&quot;error&quot;: code, &quot;message&quot;: a sentence}</code>.</p>"
        f'<div class="scroll" role="group" aria-label="Errors" tabindex="0"><table class="fields"><thead><tr><th>code<th>status<th>meaning</thead><tbody>{codes}</tbody></table></div></section></main>'
    )


def _operation(path: str, verb: str, operation: Mapping[str, Any], description: Mapping[str, Any]) -> str:
    name = operation["operationId"]
    parts = [
        f'<section aria-labelledby="{name}"><h2 id="{name}"><span class="verb">{verb.upper()}</span> <code>{path}</code></h2>',
        f"<p>{_words(operation['summary'])}</p>",
    ]
    if "description" in operation:
        parts.append(f"<p>{_words(operation['description'])}</p>")
    body = ""
    if "requestBody" in operation:
        content = operation["requestBody"]["content"]["application/json"]
        schema = description["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
        parts.append(_fields(schema))
        example = html.escape(json.dumps(content["example"], indent=2))
        body = (
            f'<label class="field"><span>Body</span><textarea rows="6" spellcheck="false">{example}</textarea></label>'
        )
    parts.append(
        f'<form class="try" data-path="{path}" data-verb="{verb.upper()}">{body}<button type="submit" class="go">Send</button>'
        '<pre tabindex="0" aria-live="polite" aria-label="Answer" hidden></pre></form></section>'
    )
    return "".join(parts)


def _fields(schema: Mapping[str, Any]) -> str:
    rows = []
    for name, one in schema["properties"].items():
        need = " <small>required</small>" if name in schema["required"] else ""
        default = f"<td><code>{html.escape(json.dumps(one['default']))}</code>" if "default" in one else "<td>"
        rows.append(
            f"<tr><th scope=row><code>{name}</code>{need}<td>{html.escape(describe(one))}{default}<td>{_words(one.get('description', ''))}"
        )
    head = "<thead><tr><th>field<th>is<th>default<th>means</thead>"
    return f'<div class="scroll" role="group" aria-label="Fields" tabindex="0"><table class="fields">{head}<tbody>{"".join(rows)}</tbody></table></div>'


def _words(text: str) -> str:
    """A sentence with `code` and **bold** in it."""
    found = html.escape(text)
    for mark, tag in (("**", "b"), ("`", "code")):
        pieces = found.split(mark)
        found = "".join(f"<{tag}>{piece}</{tag}>" if i % 2 else piece for i, piece in enumerate(pieces))
    return found
