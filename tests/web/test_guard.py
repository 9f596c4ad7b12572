"""Who may ask: names, pages of other sites, the token, and what every answer carries."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from attnflow import web
from attnflow.errors import InvalidArgument
from attnflow.web._guard import Guard
from tests.web.conftest import TEXT, Serving

TOKEN = "correct horse battery staple"
QUESTION = {"text": TEXT, "methods": ["raw"]}


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200), ("localhost", 200), ("LOCALHOST:8321", 200), ("[::1]:80", 200), ("127.0.0.1:9", 200),
        ("evil.example", 421), ("localhost.evil.example", 421), ("127.0.0.1.evil.example", 421), ("evil.example:8321", 421),
        ("192.168.0.7", 421), ("user@localhost", 421), ("localhost/evil", 421), ("localhost:port", 421), ("", 421),
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/health", "/api/choices", "/assets/viewer.js"])
def test_the_host_must_be_a_name_of_this_server(client: httpx.Client, host: str, status: int, path: str) -> None:
    assert client.get(path, headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost:1", "file://", "http://127.0.0.1.evil.example"]
)
def test_a_page_of_another_origin_is_not_answered(client: httpx.Client, origin: str) -> None:
    answer = client.post("/api/explain", json=QUESTION, headers={"Origin": origin})
    assert (answer.status_code, answer.json()["error"]) == (403, "cross_site")
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert (
        client.options("/api/explain", headers={"Origin": origin, "Access-Control-Request-Method": "POST"}).status_code
        == 403
    )


def test_its_own_page_is(client: httpx.Client) -> None:
    own = f"http://127.0.0.1:{client.base_url.port}"
    headers = {"Origin": own, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
    assert client.post("/api/explain", json=QUESTION, headers=headers).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_sites_may_link_to_the_page_and_nothing_else(client: httpx.Client, site: str) -> None:
    link = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert client.get("/", headers=link).status_code == 200
    assert client.get("/api/choices", headers=link).status_code == 403
    assert client.get("/", headers={**link, "Sec-Fetch-Dest": "iframe"}).status_code == 403
    assert (
        client.get(
            "/assets/viewer.js",
            headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"},
        ).status_code
        == 403
    )


def test_what_a_form_of_another_site_can_send_is_refused_by_its_type(client: httpx.Client) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        body = b'{"text": "a"}'
        assert client.post("/api/explain", content=body, headers={"Content-Type": kind}).status_code == 415


@pytest.mark.parametrize("path", ["/", "/docs", "/api/choices", "/assets/live.js", "/nothing", "/health"])
def test_every_answer_carries_the_policy(client: httpx.Client, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")
    assert "server" not in headers


def test_nothing_on_a_page_is_inline_or_from_elsewhere(client: httpx.Client) -> None:
    for path in ("/", "/docs"):
        text = client.get(path).text
        for sign in ("<style", "<script>", " style=", "onclick", "http://", "https://", "javascript:"):
            assert sign not in text, (path, sign)


@pytest.fixture(scope="module")
def guarded(serving: Serving) -> Iterator[httpx.Client]:
    with serving(host="0.0.0.0", token=TOKEN, hosts=["proxy.example"]) as client:
        yield client


def test_with_a_token_nobody_else_is_answered(guarded: httpx.Client) -> None:
    for path in ("/api/choices", "/openapi.json", "/nothing"):
        answer = guarded.get(path)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert guarded.post("/api/explain", json=QUESTION).status_code == 401
    for token in ("x", "wrong", TOKEN[:-1], TOKEN + "x", "ä" * 20):
        headers = [(b"Authorization", b"Bearer " + token.encode())]
        assert guarded.post("/api/explain", json=QUESTION, headers=headers).status_code == 401
    assert guarded.post("/api/explain", json=QUESTION, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert guarded.get("/health").status_code == 200


def test_a_browser_signs_in_and_keeps_a_cookie_that_is_not_the_token(guarded: httpx.Client) -> None:
    page = guarded.get("/")
    assert page.status_code == 401
    assert 'id="sign-in"' in page.text
    assert guarded.post("/sign-in", json={"token": "wrong"}).status_code == 401
    with httpx.Client(base_url=guarded.base_url, timeout=60) as browser:
        answer = browser.post("/sign-in", json={"token": TOKEN})
        assert answer.status_code == 200
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        assert TOKEN not in cookie
        assert browser.get("/").text.count('id="live"') == 1
        assert browser.post("/api/explain", json=QUESTION).status_code == 200
        assert (
            browser.post("/api/explain", json=QUESTION, headers={"Origin": "https://evil.example"}).status_code == 403
        )


def test_beyond_this_machine_addresses_and_names_that_were_given_will_do(guarded: httpx.Client) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    for host, status in (("10.1.2.3:8321", 200), ("proxy.example", 200), ("[fe80::1]", 200), ("evil.example", 421)):
        assert guarded.get("/api/choices", headers={**headers, "Host": host}).status_code == status, host


def test_another_host_needs_a_token() -> None:
    for host in ("0.0.0.0", "192.168.1.4", "server.example", "::"):
        with pytest.raises(InvalidArgument, match="needs a token"):
            web.app(host=host)
    with pytest.raises(InvalidArgument, match="at least 16 letters"):
        Guard("0.0.0.0", "short")
    for host in ("127.0.0.1", "localhost", "::1", "127.0.0.2"):
        assert not Guard(host).asks_token


def test_without_a_token_there_is_nothing_to_sign_in_to(client: httpx.Client) -> None:
    assert client.post("/sign-in", json={"token": "x"}).status_code == 404
