"""The live page in a real browser: type, run, compare, ask for a pair, dark mode, keyboard, what goes wrong."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

import attnflow as af
from attnflow import web
from tests.browser import painted
from tests.web.conftest import TEXT, Open, Serving, answered
from tests.web.test_api import own_graph


def ask(page: Any, text: str = TEXT) -> None:
    page.locator("#text").fill(text)
    page.get_by_role("button", name="Explain").click()
    answered(page)


def values(page: Any, panel: int) -> dict[str, float]:
    """The numbers beside the bars."""
    rows = page.locator(".panel").nth(panel).locator("tbody tr").all()
    return {row.locator("th").inner_text(): float(row.locator("td").first.inner_text()) for row in rows}


def test_type_run_and_compare(opened: Open, model: web.Served) -> None:
    page = opened()
    ask(page)
    assert page.locator(".panel h3").all_inner_texts() == ["rollout"]
    page.locator("form .chip", has_text="flow").click()  # asked by itself, as something is shown
    page.wait_for_selector(".panel >> nth=1")
    answered(page)
    assert page.locator(".panel h3").all_inner_texts() == ["rollout", "flow"]
    graph = own_graph(model)
    for panel, method in enumerate((af.rollout, af.flow)):
        row = method(graph).of(graph.options["query"])
        shown = values(page, panel)
        assert shown["key"] == pytest.approx(row[2], rel=5e-3)
        assert shown["cabinet"] == pytest.approx(row[5], rel=5e-3)


def test_edges_and_residual_are_asked_for(opened: Open, model: web.Served) -> None:
    page = opened()
    ask(page)
    page.get_by_label("Edges").select_option("chefer")
    page.get_by_label("Residual", exact=True).select_option("share")
    slider = page.get_by_role("slider", name="Residual share")
    slider.focus()
    slider.press("Home")
    page.wait_for_function("() => document.querySelector('.viewer').textContent.includes('no residual')")
    answered(page)
    graph = own_graph(model, edges="chefer", residual=0)
    assert values(page, 0)["key"] == pytest.approx(af.rollout(graph).of(0)[2], rel=5e-3)


def test_a_link_holds_the_question(opened: Open) -> None:
    page = opened()
    ask(page, "The key & the #cabinet")
    page.locator("form .chip", has_text="raw").click()
    page.wait_for_selector(".panel >> nth=1")
    answered(page)
    page.locator(".panel").first.get_by_role("button", name="key", exact=True).click()
    slider = page.get_by_role("slider", name="Level")
    slider.focus()
    slider.press("Home")
    page.get_by_role("button", name="Copy link").click()
    page.wait_for_function("() => location.hash.includes('level=0')")
    link = page.evaluate("location.hash")
    held = {name: value for name, [value] in parse_qs(urlsplit(link).fragment).items()}
    assert held == {
        "text": "The key & the #cabinet",
        "methods": "raw,rollout",
        "query": "2",
        "level": "0",
        "model": "verb_number",
    }
    other = opened(link)
    answered(other)
    assert other.locator(".question").inner_text() == page.locator(".question").inner_text()
    assert "“key”" in other.locator(".question").inner_text()
    assert other.locator(".panel h3").all_inner_texts() == ["raw", "rollout"]


def test_back_goes_to_the_question_before(opened: Open) -> None:
    page = opened()
    ask(page)
    ask(page, "The author")
    page.go_back()
    page.wait_for_function(f"() => document.querySelector('#text').value === '{TEXT}'")
    answered(page)
    assert page.locator(".panel").first.get_by_role("button", name="cabinet", exact=True).count() == 1


def test_the_flow_of_any_pair(opened: Open, model: web.Served) -> None:
    page = opened("#text=The+key+to+the+cabinets")
    answered(page)
    page.get_by_role("tab", name="Flow of a pair").click()
    page.get_by_label("Query", exact=True).select_option("6")
    page.get_by_label("Input", exact=True).select_option("2")
    page.get_by_role("button", name="Show the flow").click()
    page.wait_for_selector("svg.flow")
    wanted = af.bottleneck(own_graph(model), 6, 2)
    assert f"{wanted.value:.3g} flows from “key” up to “s”" in page.locator(".sentence").inner_text()
    assert page.get_by_role("table", name="The minimum cut").locator("tbody tr").count() == len(wanted.cut)


def test_dark_and_light_by_the_system_and_by_the_switch(opened: Open) -> None:
    def ground(page: Any) -> str:
        found: str = page.evaluate("() => getComputedStyle(document.querySelector('.viewer')).backgroundColor")
        return found

    page = opened("#text=The+key", scheme="dark")
    answered(page)
    assert ground(page) == "rgb(22, 24, 29)"
    button = page.locator(".top-row .theme")
    button.click()
    painted(page)
    assert "light" in (button.get_attribute("aria-label") or "")
    assert ground(page) == "rgb(255, 255, 255)"
    page.reload()
    answered(page)
    assert ground(page) == "rgb(255, 255, 255)"  # it is remembered


def test_by_keyboard_alone(opened: Open) -> None:
    page = opened()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "text"
    page.keyboard.type(TEXT)
    page.keyboard.press("Control+Enter")
    answered(page)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className").startswith("unit"):
            break
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    painted(page)
    assert "“key”" in page.locator(".question").inner_text()
    page.keyboard.press("Escape")
    painted(page)
    assert "“[CLS]”" in page.locator(".question").inner_text()


def test_what_goes_wrong_is_said(opened: Open) -> None:
    page = opened()
    wrong = page.get_by_role("alert")
    page.get_by_role("button", name="Explain").click()
    assert "no text" in wrong.inner_text()
    page.locator("#text").fill("one " * 200)
    page.get_by_role("button", name="Explain").click()
    page.wait_for_function("() => document.querySelector('.wrong').textContent.includes('tokens')")
    ask(page)
    assert not wrong.is_visible()
    page.get_by_text("More choices").click()
    field = page.get_by_label("Query: a token or position")
    field.fill("dog")
    field.press("Tab")
    page.wait_for_function("() => document.querySelector('.wrong').textContent.includes(\"no token is 'dog'\")")
    assert page.locator(".panel").count() == 1  # the last answer stays
    ask_again = page.get_by_label("Query: a token or position")
    ask_again.fill("key")
    ask_again.press("Tab")
    page.wait_for_function("() => document.querySelector('.question').textContent.includes('key')")


def test_a_server_that_has_gone_is_noticed(opened: Open) -> None:
    page = opened()
    page.route("**/api/explain", lambda route: route.abort())
    page.locator("#text").fill(TEXT)
    page.get_by_role("button", name="Explain").click()
    page.wait_for_function("() => document.querySelector('.wrong').textContent.includes('does not answer')")


def test_a_long_flow_shows_how_far_it_is_and_can_be_stopped(opened: Open, client: httpx.Client) -> None:
    page = opened("#methods=flow&rows=all")
    page.locator("#text").fill("the old " * 60)
    page.get_by_role("button", name="Explain").click()
    page.wait_for_selector("progress:not([hidden])")
    assert re.search(r"flow at layer \d: [\d,]+ of 14,641", page.locator(".status").inner_text())
    page.get_by_role("button", name="Stop").click()
    page.wait_for_selector("#live[data-state=ready]")
    assert page.locator(".status").inner_text() == "Stopped."
    assert page.evaluate("document.activeElement.textContent") == "Explain"
    ask(page)


def test_a_row_that_was_left_out_can_be_asked_for(chromium: Any, serving: Serving, opened: Open) -> None:
    with serving(limits=web.Limits(pairs=10)) as client:
        page = opened(
            "#text=The+key+to+the+cabinets&methods=flow,rollout", base=f"http://127.0.0.1:{client.base_url.port}"
        )
        answered(page)
        page.locator(".panel").first.get_by_role("button", name="key", exact=True).click()
        page.get_by_role("button", name="Ask for it").click()
        page.wait_for_function("() => location.hash.includes('query=2')")
        answered(page)
        assert "key" in values(page, 1) or "cabinet" in values(page, 1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_cut_off_and_axe_finds_nothing(opened: Open, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    for path, hash_ in (("/", ""), ("/", "#text=The+key+to+the+cabinets&methods=raw,flow"), ("/docs", "")):
        page = opened(hash_, scheme=scheme, width=width, path=path)
        if hash_:
            answered(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        found = axe.Axe().run(page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found] == []


def test_the_documentation_can_be_tried(opened: Open) -> None:
    page = opened(path="/docs")
    form = page.locator('form.try[data-path="/api/bottleneck"]')
    form.get_by_role("button", name="Send").click()
    page.wait_for_function(
        "() => /^200[^]*minimum|^200[^]*limit/.test(document.querySelector('form.try[data-path=\"/api/bottleneck\"] pre').textContent)"
    )


def test_signing_in(opened: Open, serving: Serving) -> None:
    token = "correct horse battery staple"
    with serving(token=token) as client:
        base = f"http://127.0.0.1:{client.base_url.port}"
        page = opened("#text=The+key", path="/docs", base=base)
        page.locator("#token").fill("a wrong token of some length")
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_function("() => document.querySelector('#said').textContent.includes('not the token')")
        page.goto(f"{base}/#text=The+key&token={token.replace(' ', '+')}")
        answered(page)
        assert page.evaluate("location.hash") == "#text=The+key"
