"""The page in a real browser: what a reader sees, does and takes home."""

from __future__ import annotations

import csv
import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import attnflow as af
from attnflow import render
from tests.browser import painted
from tests.render.views import VIEWS, flow

Open = Callable[..., Any]


def colour(unit: Any) -> tuple[int, ...]:
    return tuple(int(c) for c in re.findall(r"\d+", unit.evaluate("e => getComputedStyle(e).backgroundColor"))[:3])


def unit(page: Any, label: str, panel: int = 0) -> Any:
    return page.locator(".panel").nth(panel).get_by_role("button", name=label, exact=True)


def settled(page: Any) -> None:
    page.wait_for_timeout(150)  # colours fade in for 80 ms
    painted(page)


@pytest.fixture
def two(graph: af.AttentionGraph) -> str:
    """Two methods over one text and their difference, another text, and flows."""
    other = af.AttentionGraph(np.full((2, 3, 3), 1 / 3), ["x", "y", "z"])
    return render.page(
        [af.raw(graph), af.rollout(graph), af.rollout(other)],
        title="Cabinets",
        query="cab",
        graphs=[graph],
        difference=True,
        scale="shared",
    )


def test_every_view_opens(opened: Open) -> None:
    page = opened(render.page([make() for make in VIEWS.values()]))
    texts = page.get_by_role("combobox", name="Text", exact=True)
    names = texts.locator("option").all_inner_texts()
    assert len(names) == 8  # the views of five plain tokens are methods of one text
    for number, name in enumerate(names):
        texts.select_option(str(number))
        painted(page)
        assert set(page.locator(".panel h3").all_inner_texts()) == {"rollout"}, name
        for tab in page.get_by_role("tab").all():
            tab.click()
            painted(page)
            assert page.locator("canvas:visible").count(), name


def test_a_flow_alone_opens(opened: Open) -> None:
    page = opened(render.page(flow()))
    assert "0.75 flows from “the” up to “is”" in page.locator(".sentence").inner_text()


def test_hostile_tokens_stay_text(opened: Open) -> None:
    evil = "</script><img src=x onerror=document.title='broken'>"
    a = af.rollout(af.AttentionGraph(np.full((2, 3, 3), 1 / 3), [evil, "<b>b</b>", "\u202ec"]))
    page = opened(render.page(a, title=evil))
    assert page.title() == evil
    assert page.locator("main img").count() == 0
    assert page.locator(".unit").first.inner_text() == evil


def test_values_are_those_of_the_attribution(two: str, graph: af.AttentionGraph, opened: Open) -> None:
    page = opened(two)
    row = af.rollout(graph).of("cab")
    best = page.locator(".panel").nth(1).locator("tbody tr").first
    regular = max((1, 3), key=lambda i: row[i])
    assert best.locator("th").inner_text() == ["", "the", "", "inets"][regular]
    assert float(best.locator("td").first.inner_text()) == pytest.approx(row[regular], rel=5e-3)


def test_hover_shows_a_row_and_leaving_goes_back(two: str, opened: Open) -> None:
    page = opened(two)
    before = colour(unit(page, "inets"))
    assert "“cab”" in page.locator(".question").inner_text()
    unit(page, "the").hover()
    settled(page)
    assert "“the”" in page.locator(".question").inner_text()
    tip = page.locator(".tip")
    assert tip.is_visible()
    assert "“cab” draws" in tip.inner_text()
    page.mouse.move(5, 5)
    settled(page)
    assert "“cab”" in page.locator(".question").inner_text()
    assert colour(unit(page, "inets")) == before
    assert not tip.is_visible()


def test_click_pins_in_every_panel_and_escape_unpins(two: str, opened: Open) -> None:
    page = opened(two)
    unit(page, "the").click()
    page.mouse.move(5, 5)
    settled(page)
    assert "“the”" in page.locator(".question").inner_text()
    assert page.locator("[aria-pressed=true]").all_inner_texts() == ["the"] * 3
    page.keyboard.press("Escape")
    settled(page)
    assert "“cab”" in page.locator(".question").inner_text()


def test_the_slider_moves_through_levels(two: str, opened: Open) -> None:
    page = opened(two)
    assert "layer 2" in page.locator(".question").inner_text()
    slider = page.get_by_role("slider", name="Level")
    slider.focus()
    page.keyboard.press("Home")
    settled(page)
    assert "layer 0" in page.locator(".question").inner_text()
    assert slider.get_attribute("aria-valuetext") == "layer 0"
    assert (
        page.locator(".panel").nth(0).locator(".legend").inner_text()
        == page.locator(".panel").nth(1).locator(".legend").inner_text()
    )


def test_methods_are_switched_and_compared_on_one_scale_or_two(two: str, opened: Open) -> None:
    page = opened(two)
    ends = [legend.inner_text() for legend in page.locator(".panel .legend").all()]
    assert ends[0] == ends[1]
    assert ends[2].startswith("−")
    page.get_by_label("Scale").select_option("separate")
    settled(page)
    ends = [legend.inner_text() for legend in page.locator(".panel .legend").all()]
    assert ends[0] != ends[1]
    page.get_by_role("checkbox", name="raw", exact=True).uncheck(force=True)
    settled(page)
    assert page.locator(".panel h3").all_inner_texts() == ["rollout", "raw − rollout"]


def test_special_tokens_shown_left_out_or_hidden(two: str, opened: Open) -> None:
    page = opened(two)
    start = page.locator(".panel .legend").first.inner_text()
    page.get_by_label("Special tokens and own entry").select_option("shown")
    settled(page)
    assert page.locator(".panel .legend").first.inner_text() != start
    page.get_by_label("Special tokens and own entry").select_option("hidden")
    settled(page)
    assert page.locator(".panel").first.locator(".unit").all_inner_texts() == ["the", "cab", "inets"]


def test_words_are_sums_of_their_tokens(two: str, graph: af.AttentionGraph, opened: Open) -> None:
    page = opened(two)
    page.get_by_label("Units").select_option("words")
    settled(page)
    assert page.locator(".panel").first.locator(".unit").all_inner_texts() == ["[CLS]", "the", "cabinets", "[SEP]"]
    unit(page, "the", 1).click()
    settled(page)
    value = (
        page.locator(".panel").nth(1).locator("tbody tr").filter(has_text="cabinets").locator("td").first.inner_text()
    )
    assert float(value) == pytest.approx(af.rollout(graph).words().of("the")[2], rel=5e-3)


def test_texts_are_switched(two: str, opened: Open) -> None:
    page = opened(two)
    page.get_by_role("combobox", name="Text", exact=True).select_option("1")
    settled(page)
    assert page.locator(".panel h3").all_inner_texts() == ["rollout"]
    assert page.locator(".unit").all_inner_texts() == ["x", "y", "z"]


def test_maps_give_values_to_pointer_and_keyboard(two: str, opened: Open) -> None:
    page = opened(two)
    canvas = page.locator("canvas").first
    box = canvas.bounding_box()
    canvas.hover(position={"x": box["width"] - 20, "y": 14})
    assert "at layer 2" in page.locator(".tip").inner_text()
    canvas.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert "draws" in page.locator("[aria-live]").inner_text()
    page.keyboard.press("Enter")
    settled(page)
    assert "layer 1" in page.locator(".question").inner_text()
    page.get_by_role("tab", name="Queries").click()
    painted(page)
    page.locator("canvas").first.click(position={"x": 120, "y": 14})
    settled(page)
    assert "“[CLS]”" in page.locator(".question").inner_text()


def test_a_drag_zooms_into_a_map_and_out_again(opened: Open) -> None:
    page = opened(render.page(VIEWS["2,048 tokens"]()))
    canvas = page.locator("canvas").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + 340, box["y"] + 20)
    page.mouse.up()
    painted(page)
    assert page.get_by_role("button", name="Whole map").is_visible()
    page.get_by_role("button", name="Whole map").click()
    painted(page)
    assert not page.get_by_role("button", name="Whole map").is_visible()


def test_the_flow_of_a_pair(two: str, graph: af.AttentionGraph, opened: Open) -> None:
    page = opened(two)
    page.get_by_role("tab", name="Flow").click()
    painted(page)
    page.get_by_label("Pair", exact=True).select_option("1")
    painted(page)
    said = page.locator(".sentence").inner_text()
    assert re.search(r"flows from “.+” up to “cab”", said)
    assert "limited" in said
    drawn = page.locator("svg.flow")
    assert drawn.get_attribute("aria-label") in said.replace("\xa0", " ") or "flows" in drawn.get_attribute(
        "aria-label"
    )
    assert drawn.locator("title").filter(has_text="in the minimum cut").count() >= 1
    assert page.locator(".paths").count() == 2


def test_what_stands_outside_the_scale_is_grey(two: str, opened: Open) -> None:
    page = opened(two)
    said = page.locator(".asking .hint").inner_text()
    assert "not in the scale: special tokens and “cab” itself" in said
    for label in ("[CLS]", "cab"):
        red, green, blue = colour(unit(page, label))
        assert max(red, green, blue) - min(red, green, blue) < 24, label
    red, green, blue = colour(unit(page, "inets"))
    assert blue - red > 40
    page.get_by_label("Special tokens and own entry").select_option("shown")
    settled(page)
    red, green, blue = colour(unit(page, "cab"))
    assert blue - red > 40
    assert "not in the scale" not in page.locator(".asking .hint").inner_text()


def test_a_flow_through_many_positions_gathers_the_small_ones(opened: Open) -> None:
    rng = np.random.default_rng(4)
    levels = 0.5 * rng.dirichlet(np.full(60, 0.4), size=(3, 60)) + 0.5 * np.eye(60)
    wide = af.AttentionGraph(levels, [f"w{i}" for i in range(60)])
    found = af.bottleneck(wide, 40, 3)
    page = opened(render.page(found), width=390, height=800, touch=True)
    drawn = page.locator("svg.flow")
    names = drawn.locator("text").all_text_contents()
    others = [name for name in names if name.endswith(" others")]
    assert others
    assert {"w40", "w3"} <= set(names)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    into = [title for title in drawn.locator("title").all_text_contents() if title.startswith("level 0: ")]
    arriving = [float(re.search(r": ([\d.e-]+) from", title)[1]) for title in into]  # type: ignore[index]
    assert sum(arriving) == pytest.approx(found.value, rel=0.01)  # nothing is lost by it
    ET.fromstring(taken(page, "picture", "SVG"))


def test_an_image_taken_home_is_as_grey_as_on_the_page(opened: Open) -> None:
    page = opened(render.page(VIEWS["image"]()))
    root = ET.fromstring(taken(page, "picture", "SVG"))
    [pale] = [node for node in root.iter() if node.tag.endswith("feColorMatrix")]
    assert pale.get("values") == "0.2"
    assert [node for node in root.iter() if node.get("filter") == "url(#grey)"]


def test_labels_from_the_right_keep_to_themselves(opened: Open) -> None:
    labels = ["שלום", "עולם", "x"]
    page = opened(render.page(af.bottleneck(af.AttentionGraph(np.full((2, 3, 3), 1 / 3), labels), 2, 0)))
    assert set(page.locator(".paths bdi").all_inner_texts()) == set(labels)


def test_the_image_and_its_patches(opened: Open) -> None:
    page = opened(render.page(VIEWS["image"]()))
    assert page.get_by_role("tab", selected=True).inner_text() == "Image"
    canvas = page.locator("canvas").first
    canvas.hover(position={"x": 20, "y": 20})
    settled(page)
    assert "patch in row 0, column 0" in page.locator(".tip").inner_text()
    assert "“patch 0”" in page.locator(".question").inner_text()
    canvas.click(position={"x": 20, "y": 20})
    page.mouse.move(5, 5)
    settled(page)
    assert "“patch 0”" in page.locator(".question").inner_text()
    assert page.locator(".unit").all_inner_texts() == ["[CLS]", "[SEP]"]


def test_dark_by_the_system_and_by_the_switch(two: str, opened: Open) -> None:
    page = opened(two, scheme="dark")
    ground = "() => getComputedStyle(document.querySelector('.attnflow')).backgroundColor"
    assert page.evaluate(ground) == "rgb(22, 24, 29)"
    switch = page.get_by_role("button", name="Colours")
    switch.click()
    painted(page)
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    switch.click()
    painted(page)
    assert page.evaluate(ground) == "rgb(22, 24, 29)"
    switch.click()  # as the system again
    page.emulate_media(color_scheme="light")
    settled(page)
    assert page.evaluate(ground) == "rgb(255, 255, 255)"


def test_all_by_keyboard(two: str, opened: Open) -> None:
    page = opened(two)
    first = page.locator(".panel").first.locator(".unit").first
    first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.textContent") == "the"
    assert "raw: “cab” draws" in page.locator("[aria-live]").inner_text()
    page.keyboard.press("Enter")
    settled(page)
    assert "“the”" in page.locator(".question").inner_text()
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.textContent") == "[SEP]"
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.tagName"))
    assert {"BUTTON", "SELECT", "INPUT", "CANVAS"} <= reached
    page.get_by_role("tab", selected=True).focus()
    page.keyboard.press("ArrowRight")
    painted(page)
    assert page.get_by_role("tab", selected=True).inner_text() == "Queries × inputs"


def taken(page: Any, what: str, form: str) -> bytes:
    with page.expect_download() as waiting:
        page.get_by_role("button", name=f"Download the {what} as {form}").click()
    assert waiting.value.suggested_filename.endswith(form.lower())
    return bytes(waiting.value.path().read_bytes())


@pytest.mark.parametrize("tab", ["Levels", "Queries", "Flow"])
def test_pictures_and_numbers_are_taken_home(tab: str, two: str, opened: Open) -> None:
    page = opened(two)
    page.get_by_role("tab", name=tab).click()
    painted(page)
    for what in ("coloured text", "picture"):
        root = ET.fromstring(taken(page, what, "SVG"))
        texts = {"".join(node.itertext()) for node in root.iter() if node.tag.endswith("}text")}
        assert "cab" in texts
        assert not [node for node in root.iter() if node.tag.endswith(("script", "foreignObject"))]
        assert taken(page, what, "PNG").startswith(b"\x89PNG")
        rows = list(csv.DictReader(io.StringIO(taken(page, what, "CSV").decode("utf-8-sig"))))
        assert rows
        assert "off_by_at_most" in rows[0] or "in_minimum_cut" in rows[0]


def test_the_csv_holds_the_values(two: str, graph: af.AttentionGraph, opened: Open) -> None:
    page = opened(two)
    page.get_by_role("tab", name="Queries").click()
    painted(page)
    rows = list(csv.DictReader(io.StringIO(taken(page, "picture", "CSV").decode("utf-8-sig"))))
    a = af.rollout(graph)
    own = [row for row in rows if row["method"] == "rollout"]
    assert len(own) == 25
    for row in own:
        true = a.of(int(row["query"]))[int(row["input"])]
        assert abs(float(row["value"]) - true) <= float(row["off_by_at_most"]) + 1e-6


def test_the_page_says_how_exact_it_is(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "exact to four digits" in opened(render.page(VIEWS["one level"]())).locator(".said").inner_text()
    monkeypatch.setattr("attnflow.render._document.MOST_LETTERS", 10)
    monkeypatch.setattr("attnflow.render._document.MOST_VALUES", 50)
    said = opened(render.page(VIEWS["signed"]())).locator(".said").inner_text()
    assert "off by at most 0.794 %" in said
    assert "Rows of 3 of 5 queries" in said


@pytest.mark.parametrize("name", ["some rows", "image", "scripts"])
def test_a_phone(name: str, opened: Open) -> None:
    page = opened(
        render.page(VIEWS[name](), title="A rather long title that has to wrap on a phone"),
        width=360,
        height=740,
        touch=True,
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for button in page.locator(".controls select").all():
        assert button.bounding_box()["height"] >= 32
    if name == "scripts":
        page.locator(".unit").nth(1).tap()
        settled(page)
        assert "שלום" in page.locator(".question").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(scheme: str, two: str, opened: Open) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python, from the development group"
    )
    for content, tabs in ((two, ("Levels", "Queries", "Flow")), (render.page(VIEWS["image"]()), ("Image",))):
        page = opened(content, scheme=scheme)
        for tab in tabs:
            page.get_by_role("tab", name=tab).click()
            settled(page)
            found = axe.Axe().run(page).response["violations"]
            serious = [one for one in found if one["impact"] in ("serious", "critical")]
            assert [(one["id"], one["nodes"][0]["html"]) for one in serious] == []
