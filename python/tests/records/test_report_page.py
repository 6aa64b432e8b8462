from __future__ import annotations

import random
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from records_kit import IDENTITY
from report_kit import AB_ROWS, NASTY, cell, history, load, report_of, run_lines, sweep

from ttstack.records.report.charts import boots_chart, curve_chart, forest_chart, trend_chart
from ttstack.records.report.drawing import Look, look, svg
from ttstack.records.report.html import MOST, html_page
from ttstack.records.report.types import AbRow
from ttstack.records.types import Measured, MeasuredCheck, Phase

if TYPE_CHECKING:
    from collections.abc import Iterator

VOID_TAGS = {"meta", "br", "link", "img", "input", "hr"}
LOADS = {"src", "srcset", "data", "poster", "action", "background", "xlink:href", "style"}


class Page(HTMLParser):
    """A page as its elements: (tag, attributes, the text inside, the place of its parent)."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], list[str], int]] = []
        self.open: list[int] = []
        self.feed(text)
        assert self.open == [], "an element was never closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), [], self.open[-1] if self.open else -1))
        if tag not in VOID_TAGS:
            self.open.append(len(self.elements) - 1)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), [], self.open[-1]))

    def handle_endtag(self, tag: str) -> None:
        at = self.open.pop()
        assert self.elements[at][0] == tag, (self.elements[at], tag)

    def handle_data(self, data: str) -> None:
        for at in self.open:
            self.elements[at][2].append(data)

    def every(self, tag: str, of: str = "") -> Iterator[tuple[dict[str, str | None], str]]:
        for name, attributes, texts, _ in self.elements:
            if name == tag and (not of or of in (attributes.get("class") or "").split()):
                yield attributes, "".join(texts)


@pytest.fixture(scope="module")
def text() -> str:
    return html_page(report_of(history()))


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_the_page_needs_nothing_else(text: str, page: Page) -> None:
    tags = {tag for tag, _, _, _ in page.elements}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "image", "use", "foreignobject", "base"}
    for tag, attributes, _, _ in page.elements:
        assert not LOADS & set(attributes), (tag, attributes)
        assert (attributes.get("href") or "#").startswith("#"), attributes
        assert not [name for name in attributes if name.startswith("on")]
    assert not re.search(r"url\(|@import|@font-face|https?:|//", text)
    policy = next(each for each, _ in page.every("meta") if each.get("http-equiv") == "Content-Security-Policy")
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'"


def test_links_within_the_page_lead_somewhere(page: Page) -> None:
    ids = [each["id"] for _, each, _, _ in page.elements if "id" in each]
    assert len(ids) == len(set(ids))
    links = {each["href"] for each, _ in page.every("a")}
    assert len(links) > 8
    assert links <= {f"#{name}" for name in ids}
    labelled = [each["aria-labelledby"] for each, _ in page.every("svg", "chart")]
    assert {name for words in labelled for name in str(words).split()} <= set(ids)


def test_every_chart_can_be_read_without_being_seen(page: Page) -> None:
    charts = list(page.every("svg", "chart"))
    assert len(charts) == 1 + 3 + 4 + 4 + 4 + 1  # A/B, sweeps, loads, simulated loads, trends, boots
    for attributes, _ in charts:
        assert attributes["role"] == "img"
        assert str(attributes["viewbox"]).startswith("0 0 420 ")
    for tag in ("title", "desc"):
        said = [text for each, text in page.every(tag) if each.get("id", "").endswith(f"-{tag}")]  # type: ignore[union-attr]
        assert len(said) == len(charts)
        assert all(len(words) > 10 for words in said)
    parents = {each[3] for each in page.elements if each[0] == "details"}
    figures = [at for at, each in enumerate(page.elements) if each[0] == "figure"]
    beside = [at for at in figures if at in parents or page.elements[at][1].get("class") == "wide"]
    assert beside == figures  # a table in each, or right after it


def test_a_number_that_may_not_be_quoted_leads_to_the_reason(text: str) -> None:
    boxes = re.findall(r'<article class="bad-box" id="([^"]+)">(.*?)</article>', text, re.DOTALL)
    ((name, inside),) = boxes
    assert "<li>identity was not checked</li>" in inside
    numbers = re.findall(r'<td class="num( bad)?">([^<]+?)(?: <small>.*?</small>)?(?: (<a .*?</a>))?</td>', inside)
    assert len(numbers) == 6 * 4 + 2
    for bad, _, link in numbers:
        assert bad
        assert f'href="#{name}"' in link
        assert "not quotable: identity was not checked" in link
    # Nowhere else, but for the chart's own table.
    others = text.replace(inside, "")
    assert set(re.findall(r'href="#why-[^"]+"', others)) == {f'href="#{name}"'}


def test_reasons_stand_at_curves_and_points_too(text: str) -> None:
    keys = re.findall(r'<li class="bad"><svg.*?</li>', text, re.DOTALL)
    assert len(keys) == 3
    assert all("trial: ✗ not quotable, identity was not checked" in key for key in keys)
    assert "not quotable: suite sweep32k: cell prompt 4096: 1 of 3 requests are void: short" in text
    assert '<tr><td class="id">' in text


def test_what_is_simulated_says_so_wherever_it_stands(text: str) -> None:
    rows: list[str] = re.findall(r"<(?:tr|li|h3|figcaption)\b.*?</(?:tr|li|h3|figcaption)>", text, re.DOTALL)
    about = [row for row in rows if re.search(r"\bsim\b", row)]
    assert len(about) > 8
    assert all("simulated" in row for row in about)
    assert "1 of 18 runs simulated: no card was involved." in text


def test_the_page_says_first_whether_it_may_be_quoted(text: str) -> None:
    head = text.split("<main>", maxsplit=1)[0]
    assert "2 of 16 measured runs may not be quoted." in head
    assert '<a href="#not-quotable">' in head


def test_a_simulated_boot_says_so_beside_its_bar(text: str) -> None:
    assert re.search(r"<text[^>]*>3 sim: sim</text>", text)


def nasty_lines() -> list[bytes]:
    shape = {NASTY: NASTY, "concurrency": 1}
    lines = []
    for at in range(3):
        cells = tuple(
            cell(f"{NASTY} {count}", {**shape, "concurrency": count}, {"ttft_s": (1.0,), f"{NASTY}_s": (2.0,)}, NASTY)
            for count in (1, 2)
        )
        checks = (MeasuredCheck(NASTY, ok=False, detail=NASTY),)
        measured = Measured(NASTY, checks, {NASTY: (1.0,)}, requests=4, cells=cells)
        lines += run_lines(
            at, f"{NASTY} arm", measured, pin=f"{NASTY}{at}", phases=(Phase(NASTY, 3.0), Phase("boot", 9.0))
        )
    return lines + run_lines(3, NASTY, None, outcome="refused", exit_code=3, reason="busy", text=NASTY)


def nasty_page() -> str:
    row = replace(AB_ROWS[0], label="x", metric="y")
    return html_page(report_of(nasty_lines(), title=NASTY, files=(NASTY,), ab=(row,)))


def test_no_name_is_markup() -> None:
    text = nasty_page()
    page = Page(text)
    assert "script" not in {tag for tag, _, _, _ in page.elements}
    assert "<script" not in text
    assert "alert(1)" in text
    assert not [char for char in text if not char.isprintable() and char != "\n"]
    assert not {name for _, each, _, _ in page.elements for name in each if name.startswith("on")}


def test_parts_that_there_is_nothing_for_are_left_out() -> None:
    text = html_page(report_of(run_lines(0, "prod", None, outcome="refused", exit_code=3, reason="busy"), ab=()))
    assert re.findall(r'<section id="([^"]+)">', text) == ["boots", "stopped"]
    assert "callout" not in text.split("</style>")[1]
    text = html_page(report_of(run_lines(0, "prod", None)[:1], ab=(), faults=3))
    assert re.findall(r'<section id="([^"]+)">', text) == ["stopped"]
    assert "3 lines left out of the files, as no records" in text


def test_a_long_list_is_cut_and_says_so() -> None:
    lines = [line for at in range(MOST + 2) for line in run_lines(at, "prod", None, outcome="refused", exit_code=3)]
    text = html_page(report_of(lines, ab=()))
    assert f"The newest {MOST} of {MOST + 2}" in text
    assert text.count('class="why bad"') == MOST


@pytest.mark.parametrize("value", [0.0, 1e-12, 1e12, -3.0, 5.0])
def test_odd_values_are_drawn(value: float) -> None:
    cells = tuple(cell(f"c{at}", {"concurrency": at}, {"ttft_s": (value, value)}) for at in (1, 2))
    measured = Measured("s", (MeasuredCheck("c", ok=True),), requests=4, cells=cells)
    text = html_page(report_of([line for at in range(2) for line in run_lines(at, "prod", measured)], ab=()))
    drawing = re.search(r'<svg class="chart".*?</svg>', text, re.DOTALL)
    assert drawing
    assert len(re.findall(r'class="dot"', drawing[0])) == 2
    assert "nan" not in drawing[0]


def test_a_phase_that_took_no_time_and_a_boot_of_none_are_drawn() -> None:
    text = html_page(report_of(run_lines(0, "prod", None, phases=(Phase("boot", 0.0),)), ab=()))
    assert '<section id="boots">' in text


def test_eight_series_differ_in_shape_as_in_colour() -> None:
    looks = [look(at) for at in range(8)]
    assert len({each.mark for each in looks}) == 8
    assert len({each.classes for each in looks}) == 8
    assert look(3, bad=True).classes == "s3 bad"
    style = html_page(report_of(run_lines(0, "prod", None), ab=())).split("</style>")[0]
    dashes = re.findall(r"\.s[1-7] \.line { stroke-dasharray: ([^;]+);", style)
    assert len(set(dashes)) == 7


def test_only_shapes_and_texts_of_a_drawing_go_on() -> None:
    tree = ET.fromstring(  # noqa: S314 - written below
        '<svg viewBox="0 0 1 1" onload="x"><defs><script>1</script><style>a</style></defs><g class="graph" onclick="x">'
        '<a href="http://x"><text>no</text></a><image href="y"/><g class="series serie-0 color-0"><circle cx="1.2345" '
        'cy="2" r="9"/><text x="1" style="a">5 &lt; 6</text></g><g class="tooltip"><text>no</text></g></g></svg>'
    )
    drawn = svg(tree, [Look("s0", "M0,0")], name="n", title="a < b", says='c "d"')
    assert drawn == (
        '<svg class="chart" viewBox="0 0 1 1" role="img" aria-labelledby="n-title n-desc"><title id="n-title">a &lt; b'
        '</title><desc id="n-desc">c "d"</desc><g class="graph"><g class="series s0"><path class="dot" transform='
        '"translate(1.2 2)" d="M0,0"/><text x="1">5 &lt; 6</text></g></g></svg>'
    )


def marks(drawn: str, classes: str) -> list[str]:
    """Give the places of the marks of a series, or the ends of its lines."""
    inside = re.search(rf'<g class="series {classes}">(?:(?!<g class="series).)*?translate\(([^)]+)\)', drawn)
    return inside[1].split() if inside else []


def test_a_forest_has_its_rows_from_above_and_better_on_its_side() -> None:
    drawn = forest_chart(AB_ROWS, "f").svg
    first, second, third = (marks(drawn, f"effect {tone}") for tone in ("good", "plain", "worse"))
    assert float(first[1]) < float(second[1]) < float(third[1])
    assert float(first[0]) < float(second[0]) < float(third[0])
    assert "5 b1" not in drawn  # it has no effect that may be told
    assert "4 request_s" in drawn
    assert "better" in drawn
    alone = AbRow("i", "l", "m", ("a", "b"), 0.0, -0.0, 0.0, "no difference detected", 4, simulated=False)
    assert "effect plain" in forest_chart([alone], "g").svg


def test_curves_carry_their_spread() -> None:
    noise = random.Random(2)  # noqa: S311
    figure = report_of(run_lines(0, "prod", sweep(noise)), ab=()).sweeps[0]
    chart = curve_chart(figure, "c")
    assert chart.svg.count('class="ci"') == 6
    assert chart.svg.count('class="dot"') == 6
    assert [key.label for key in chart.keys] == ["prod"]
    for label in ("1k", "2k", "4k", "8k", "16k", "32k"):
        assert f">{label}</text>" in chart.svg
    again = curve_chart(figure, "c", {"prod": 5})
    assert again.keys[0].look == look(5)


def test_a_trend_draws_what_may_not_be_quoted_with_other_marks() -> None:
    noise = random.Random(3)  # noqa: S311
    lines = run_lines(0, "prod", load(noise)) + run_lines(1, "prod", load(noise), identity=None)
    lines += run_lines(2, "prod", load(noise), pin="next", identity=IDENTITY)
    trend = report_of(lines, ab=()).trends[0]
    chart = trend_chart(trend, "t")
    assert chart.svg.count('d="M-4.6,-3.2') == 1
    assert '<g class="series change"><path class="line' in chart.svg
    assert ">1</text>" in chart.svg
    assert [key.label for key in chart.keys] == [
        "may be quoted",
        "may not be quoted",
        "something was changed, by its number",
    ]


def test_phases_are_known_by_numbers() -> None:
    report = report_of(run_lines(0, "prod", None, phases=(Phase("slot", 1.0), Phase("boot", 99.0))), ab=())
    chart = boots_chart(report.boots, "b")
    assert [(key.number, key.label) for key in chart.keys] == [("1", "slot"), ("2", "boot")]
    assert ">2</text>" in chart.svg
    assert ">1</text>" not in chart.svg  # a bar as narrow as that has no room for it
    assert "slot 1 s" in chart.svg
