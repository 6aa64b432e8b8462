"""A report in a real browser: what it looks like, what it asks for, what it complains of."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browser import CHROMIUM, Browser
from report_kit import history, report_of, run_lines, sweep
from test_report_page import nasty_lines

from ttstack.records.report.html import html_page

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.host

LEAST_CONTRAST = 4.5  # WCAG 2.2, 1.4.3, level AA
LEAST_MARK = 3.0  # 1.4.11: lines and marks of charts
VIEWS = [(400, False), (400, True), (1600, False), (1600, True)]

# The contrast of a colour with what lies behind it, by WCAG 2.2's relative luminance.
CONTRAST = """
const channels = text => { const found = text.match(/[0-9.]+/g).map(Number);
  return {rgb: found.slice(0, 3), alpha: found.length > 3 ? found[3] : 1}; };
const linear = c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const luminance = rgb => { const l = rgb.map(c => linear(c / 255));
  return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2]; };
const behind = element => { for (let at = element; at; at = at.parentElement) {
    const colour = channels(getComputedStyle(at).backgroundColor);
    if (colour.alpha === 1) return colour.rgb;
    if (colour.alpha !== 0) throw new Error('half transparent: ' + at.className); }
  return [255, 255, 255]; };
const contrast = (element, colour) => { const [a, b] = [luminance(channels(colour).rgb), luminance(behind(element))];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); };
"""
TEXTS = f"""(() => {{ {CONTRAST}
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {{
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !element.checkVisibility() || element.closest('title, desc')) continue;
  const style = getComputedStyle(element);
  const colour = element.closest('svg') ? style.fill : style.color;
  found.push([contrast(element.closest('svg') || element, colour), walker.currentNode.data.trim().slice(0, 40),
    !!element.closest('.bad'), element.closest('svg') !== null]);
}}
return found; }})()"""
MARKS = f"""(() => {{ {CONTRAST}
return [...document.querySelectorAll('.chart .dot, .chart .series .line, .chart .series .rect, .mark path')]
  .filter(each => getComputedStyle(each).display !== 'none')
  .map(each => {{ const style = getComputedStyle(each); const svg = each.closest('svg');
    const colours = [style.fill, style.stroke].filter(c => c !== 'none');
    return [Math.max(...colours.map(c => contrast(svg, c))), each.parentElement.getAttribute('class')]; }}); }})()"""
WIDTHS = "[document.documentElement.scrollWidth, innerWidth]"
BOXES = """[...document.querySelectorAll('svg')].map(each => { const box = each.getBoundingClientRect();
  return [box.width, box.height, box.left, box.right, each.checkVisibility(), each.getAttribute('class')]; })"""
# What sticks out of a chart's own frame: the texts of an axis would be cut off there.
CUT = """[...document.querySelectorAll('.chart text')].filter(each => {
  const text = each.getBoundingClientRect(), frame = each.closest('svg').getBoundingClientRect();
  return text.left < frame.left - 1 || text.right > frame.right + 1 || text.bottom > frame.bottom + 1
    || text.top < frame.top - 1; }).map(each => each.textContent)"""


def _is_debian() -> bool:
    try:
        return "ID=debian\n" in Path("/etc/os-release").read_text(encoding="utf-8")
    except OSError:
        return False


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if not os.access(CHROMIUM, os.X_OK):
        # Where `./bootstrap check` can install it, it does.
        (pytest.fail if _is_debian() else pytest.skip)(f"there is no {CHROMIUM}")
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "report.html"
    path.write_text(html_page(report_of(history())), encoding="utf-8")
    return path


@pytest.fixture(params=VIEWS, ids=[f"{width} {'dark' if dark else 'light'}" for width, dark in VIEWS])
def shown(browser: Browser, page: Path, request: pytest.FixtureRequest) -> Browser:
    width, dark = request.param
    browser.look(width, dark=dark)
    browser.open(page)
    return browser


def requested(browser: Browser) -> list[str]:
    return [
        str(event["params"]["request"]["url"])
        for event in browser.events
        if event.get("method") == "Network.requestWillBeSent"
    ]


def complaints(browser: Browser) -> list[dict[str, Any]]:
    told = {"Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"}
    return [event for event in browser.events if event.get("method") in told]


def test_it_looks_right(shown: Browser, page: Path) -> None:
    """One test for all of a view: to open the page is what takes the time."""
    width, inner = shown.run(WIDTHS)
    assert (width, inner) == (shown.width, shown.width)
    boxes = shown.run(BOXES)
    assert len([box for box in boxes if box[5] == "chart"]) == 17
    for box_width, height, left, right, visible, name in boxes:
        assert visible, name
        assert box_width > (300 if name == "chart" else 8), name
        assert height > (120 if name == "chart" else 8), name
        assert (left >= 0, right <= inner) == (True, True), name
    assert shown.run(CUT) == []
    texts = shown.run(TEXTS)
    assert len(texts) > 600
    assert sum(bad for _, _, bad, _ in texts) > 50
    assert sum(drawn for _, _, _, drawn in texts) > 100
    assert [text for text in texts if text[0] < LEAST_CONTRAST] == []
    marks = shown.run(MARKS)
    assert len(marks) > 100
    assert [mark for mark in marks if mark[0] < LEAST_MARK] == []
    dashes = shown.run(
        "[...document.querySelectorAll('.series.bad .line')].map(e => getComputedStyle(e).strokeDasharray)"
    )
    assert (len(dashes), "none" in dashes) == (3, False)
    assert requested(shown) == [page.as_uri()]
    assert complaints(shown) == []


def test_dark_is_dark_and_light_is_light(browser: Browser, page: Path) -> None:
    def ground(media: str = "screen", *, dark: bool) -> list[int]:
        browser.look(1600, dark=dark, media=media)
        browser.open(page)
        colour = browser.run("getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number)")
        return list(colour)

    assert max(ground(dark=True)[:3]) < 60
    assert min(ground(dark=False)[:3]) > 200
    # On paper the ground is that of the paper, whatever the screen is like.
    assert ground("print", dark=True) == [0, 0, 0, 0]
    assert browser.run("getComputedStyle(document.body).color") == "rgb(27, 29, 32)"
    assert browser.run("document.querySelector('details td').checkVisibility({contentVisibilityAuto: true})")


def test_text_can_be_read_on_a_phone(browser: Browser, page: Path) -> None:
    browser.look(400, dark=False)
    browser.open(page)
    heights = browser.run("[...document.querySelectorAll('.chart text')].map(e => e.getBoundingClientRect().height)")
    assert min(heights) > 10


def test_a_name_that_is_a_script_does_not_run(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "nasty.html"
    long = "x" * 300
    lines = [*nasty_lines(), *run_lines(9, long, sweep(random.Random(1)), identity=None)]  # noqa: S311
    path.write_text(html_page(report_of(lines, title=long, files=(long,))), encoding="utf-8")
    browser.look(400, dark=True)
    browser.open(path)
    assert complaints(browser) == []
    assert browser.run("document.scripts.length") == 0
    assert browser.run(WIDTHS) == [400, 400]


def test_the_test_hears_what_it_listens_for(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "bad.html"
    path.write_text(
        "<!doctype html><body style='background:#777'><p style='color:#999'>x<script>console.log('y')</script>"
        "<img src='http://127.0.0.1:9/x'><div style='width:5000px'>wide</div>"
    )
    browser.look(400, dark=False)
    browser.open(path)
    assert "http://127.0.0.1:9/x" in requested(browser)
    assert complaints(browser)
    assert browser.run(WIDTHS) != [400, 400]
    assert min(browser.run(TEXTS))[0] < LEAST_CONTRAST
