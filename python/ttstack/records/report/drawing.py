"""From a pygal chart to SVG that stands in a page: its shapes and texts only, coloured by the page's own variables.

What pygal makes has scripts, a style sheet, tooltips for its own script and the address of that script's home. Here
only the elements and attributes that are named below go on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from xml.etree.ElementTree import Element

WIDTH = 420
"""Of every chart, in its own units: on a narrow screen it is not scaled down so far that nobody can read it."""

FONT = 13
_ELEMENTS = frozenset({"g", "path", "rect", "circle", "text", "title"})
_ATTRIBUTES = ("class", "d", "x", "y", "width", "height", "transform")
_DROPPED = ("tooltip", "background")
_FLOAT = re.compile(r"(\d+\.\d)\d+")
_SERIES = re.compile(r"series serie-(\d+) ")
_SHAPES: tuple[str, ...] = (
    "M-4,-4h8v8h-8z",  # square
    "M0,-5.5L5,4H-5z",  # triangle
    "M0,-5.5L5.5,0L0,5.5L-5.5,0z",  # diamond
    "M0,5.5L5,-4H-5z",  # triangle, upside down
    "M-1.8,-5h3.6v3.2h3.2v3.6h-3.2v3.2h-3.6v-3.2h-3.2v-3.6h3.2z",  # plus
    "M-2.7,-4.8h5.4L5.4,0L2.7,4.8h-5.4L-5.4,0z",  # hexagon
    "M-5,-2.5h10v5h-10z",  # bar
)
_CIRCLE = "M-4.5,0a4.5,4.5 0 1,0 9,0a4.5,4.5 0 1,0 -9,0z"
CROSS = "M-4.6,-3.2L-3.2,-4.6L0,-1.4L3.2,-4.6L4.6,-3.2L1.4,0L4.6,3.2L3.2,4.6L0,1.4L-3.2,4.6L-4.6,3.2L-1.4,0z"


@dataclass(frozen=True, slots=True)
class Look:
    """How a series looks: classes of the page's style sheet, and the shape of its marks around (0, 0)."""

    classes: str
    mark: str = _CIRCLE


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of a legend. ``bad``: why it may not be quoted; ``number``: by what it is known in the chart."""

    label: str
    look: Look
    bad: tuple[str, ...] = ()
    number: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: its SVG, which is safe to be put into a page as it is, and its legend."""

    svg: str
    keys: tuple[Key, ...] = ()


def look(at: int, *, bad: bool = False) -> Look:
    """Give the look of the series of a number: eight of them differ in colour, shape and, by the style, in dashes."""
    return Look(f"s{at % 8}{' bad' if bad else ''}", (_CIRCLE, *_SHAPES)[at % 8])


def svg(tree: Element, looks: Sequence[Look], *, name: str, title: str, says: str) -> str:
    """Write a chart. ``name``: unique in the page; ``says``: what a person who cannot see it is told."""
    inside = "".join(_write(child, looks, _CIRCLE) for child in tree if child.tag == "g")
    box = tree.get("viewBox")
    return (
        f'<svg class="chart" viewBox="{box}" role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(says)}</desc>{inside}</svg>'
    )


def _write(node: Element, looks: Sequence[Look], mark: str) -> str:
    tag, classes = node.tag, node.get("class", "")
    if tag not in _ELEMENTS or any(word in classes.split() for word in _DROPPED):
        return ""
    series = _SERIES.match(classes)
    if series is not None:
        mine = looks[int(series[1])]
        classes, mark = f"series {mine.classes}", mine.mark
    if tag == "circle":
        place = f"translate({_short(node.get('cx', ''))} {_short(node.get('cy', ''))})"
        return f'<path class="dot" transform="{place}" d="{mark}"/>'
    attributes = "".join(_attributes(node, classes))
    inside = escape(node.text or "") + "".join(_write(child, looks, mark) for child in node)
    if tag == "g" and not inside:
        return ""
    return f"<{tag}{attributes}>{inside}</{tag}>" if inside else f"<{tag}{attributes}/>"


def _attributes(node: Element, classes: str) -> Iterator[str]:
    for name in _ATTRIBUTES:
        value = classes if name == "class" else node.get(name)
        if value:
            yield f" {name}={quoteattr(_short(value) if name != 'class' else value)}"


def _short(value: str) -> str:
    """Leave out digits that nobody sees."""
    return _FLOAT.sub(r"\1", value)


def new_chart(kind: Callable[[Any], Any], height: int, **more: Any) -> Any:  # noqa: ANN401 - pygal has no types
    """Make an empty pygal chart."""
    import pygal  # noqa: PLC0415 - late: slow to import

    style = pygal.style.Style(
        label_font_size=FONT, major_label_font_size=FONT, value_font_size=FONT, value_label_font_size=FONT
    )
    settings: dict[str, Any] = {
        "css": (),
        "js": (),
        "no_prefix": True,
        "show_legend": False,
        "width": WIDTH,
        "height": height,
        "margin": 12,
        "spacing": 6,
        "style": style,
        "truncate_label": -1,
        "formatter": str,  # of values that only its own script would show; the slow way of them is left out
        **more,
    }
    return kind(pygal.Config(**settings))


def tree_of(chart: Any) -> Element:  # noqa: ANN401 - as above
    """Draw a pygal chart."""
    from pygal.etree import etree  # noqa: PLC0415 - as above

    etree.to_etree()  # where lxml is there, pygal would use that, whose elements are others
    tree: Element = chart.render_tree()
    return tree
