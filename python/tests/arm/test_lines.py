from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttstack.arm.lines import dotted, key_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import SearchStrategy

    from ttstack.arm.lines import Key

LINES = (
    '# comment with [brackets] and "quotes',
    "top = 1",
    'a.b.c = "x" # dotted',
    "[d]",
    "\"quoted.key\" = '''",
    "many",
    "lines''''",
    "'lit' = [ # a comment ] in a list",
    "  1,",
    '  { x = "}", y = [2,',
    "    3] },",
    "]",
    "[[row]]",
    "n = 1",
    "[row.sub]",
    'deep.er = """one \\""" two""',
    '"""',
    "[[row]]",
    "[[row.cell]]",
    "v = 1979-05-27 07:32:00 # date",
    "[[row.cell]]",
    "v = { p.q = 1 }",
    '["\\u0065"]',
    'esc = "\\\\"',
    "[implicit.inner]",
    "[implicit]",
    "z = true",
)

EXPECTED: dict[Key, int] = {
    ("top",): 2,
    ("a",): 3,
    ("a", "b"): 3,
    ("a", "b", "c"): 3,
    ("d",): 4,
    ("d", "quoted.key"): 5,
    ("d", "lit"): 8,
    ("d", "lit", 0): 9,
    ("d", "lit", 1): 10,
    ("d", "lit", 1, "x"): 10,
    ("d", "lit", 1, "y"): 10,
    ("d", "lit", 1, "y", 0): 10,
    ("d", "lit", 1, "y", 1): 11,
    ("row",): 13,
    ("row", 0): 13,
    ("row", 0, "n"): 14,
    ("row", 0, "sub"): 15,
    ("row", 0, "sub", "deep"): 16,
    ("row", 0, "sub", "deep", "er"): 16,
    ("row", 1): 18,
    ("row", 1, "cell"): 19,
    ("row", 1, "cell", 0): 19,
    ("row", 1, "cell", 0, "v"): 20,
    ("row", 1, "cell", 1): 21,
    ("row", 1, "cell", 1, "v"): 22,
    ("row", 1, "cell", 1, "v", "p"): 22,
    ("row", 1, "cell", 1, "v", "p", "q"): 22,
    ("e",): 23,
    ("e", "esc"): 24,
    ("implicit",): 26,
    ("implicit", "inner"): 25,
    ("implicit", "z"): 27,
}


def walk(value: object, at: Key = ()) -> set[Key]:
    """Every path of a parsed document but the empty one."""
    items: list[tuple[str | int, object]] = []
    if isinstance(value, Mapping):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    return {(*at, name) for name, _ in items}.union(*(walk(item, (*at, name)) for name, item in items))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_way_to_write_a_key_has_its_line(newline: str) -> None:
    text = newline.join(LINES)
    assert walk(tomllib.loads(text)) == set(EXPECTED)
    assert key_lines(text) == EXPECTED


def test_dotted_names_are_quoted_where_they_must_be() -> None:
    assert dotted(("a", "b c", 3, "d.e", 'q"')) == 'a."b c"[3]."d.e"."q\\""'
    assert dotted(()) == ""


class Writer:
    """Writes random data as TOML in a random style, and notes the line of everything."""

    def __init__(self, draw: Callable[[SearchStrategy[str]], str]) -> None:
        self.draw, self.text, self.lines = draw, "", dict[tuple[str | int, ...], int]()

    def pick(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def line(self) -> int:
        return self.text.count("\n") + 1

    def noise(self) -> None:
        self.text += self.pick("", "\n", "  ", "# a = [1]\n", '\t# """ {\n')

    def name(self, name: str) -> str:
        quoted = [f"'{name}'"] if "'" not in name and name.isprintable() else []
        escaped = '"' + "".join(f"\\U{ord(c):08x}" if c in '"\\' or not c.isprintable() else c for c in name) + '"'
        bare = [name] if name.isascii() and name.replace("-", "").isalnum() else []
        return self.pick(*bare, escaped, *quoted)

    def value(self, value: object, at: Key) -> None:
        if isinstance(value, dict):
            self.text += "{ "
            for index, (name, item) in enumerate(value.items()):
                self.text += ", " if index else ""
                self.pair(name, item, at)
            self.text += " }"
        elif isinstance(value, list):
            self.text += "["
            for index, item in enumerate(value):
                self.noise()
                self.lines[*at, index] = self.line()
                self.value(item, (*at, index))
                self.noise()
                self.text += ","
            self.noise()
            self.text += "]"
        elif isinstance(value, str):
            self.string(value)
        else:
            self.text += str(value).lower()

    def string(self, value: str) -> None:
        escaped = "".join(f"\\u{ord(c):04x}" if c in '"\\' or (not c.isprintable() and c != "\n") else c for c in value)
        styles = ['"' + escaped.replace("\n", "\\n") + '"', '"""\n' + escaped + '"""']
        if value.replace("\n", "").isprintable() and "'''" not in value and not value.endswith("'"):
            styles.append("'''\n" + value + "'''")
        if value.isprintable() and "'" not in value:
            styles.append(f"'{value}'")
        self.text += self.pick(*styles)

    def pair(self, name: str, value: object, at: Key) -> None:
        """Write one key with its value, as a dotted key where it can be one."""
        key, written = (*at, name), self.name(name)
        self.lines[key] = self.line()
        while isinstance(value, dict) and len(value) == 1 and self.pick("dotted", "not") == "dotted":
            ((name, value),) = value.items()
            key = (*key, name)
            self.lines[key] = self.line()
            written += f" . {self.name(name)}"
        self.text += written + self.pick("=", " = ", "\t=")
        self.value(value, key)

    def table(self, table: dict[str, Any], at: Key, header: str) -> None:
        """Write the plain values first, then tables and arrays of tables under headers of their own."""
        later = []
        for name, value in table.items():
            tables = isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
            if (isinstance(value, dict) or tables) and self.pick("header", "inline") == "header":
                later.append((name, value))
            else:
                self.noise()
                self.pair(name, value, at)
                self.text += self.pick("\n", " # end\n")
        for name, value in later:
            prefix = f"{header}.{self.name(name)}" if header else self.name(name)
            self.noise()
            self.lines[*at, name] = self.line()
            if isinstance(value, dict):
                self.text += f"[{prefix}]\n"
                self.table(value, (*at, name), prefix)
                continue
            for index, item in enumerate(value):
                self.lines[*at, name, index] = self.line()
                self.text += f"[[{prefix}]]\n"
                self.table(item, (*at, name, index), prefix)


names = st.text(st.sampled_from("abz-9. é\"'#="), min_size=1, max_size=4)
scalars = st.one_of(
    st.integers(-5, 5), st.booleans(), st.text(st.sampled_from("a\"'#]}\n\\=é"), max_size=5), st.floats(0, 1, width=16)
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.dictionaries(names, values, max_size=4))
def test_the_lines_are_those_that_were_written(data: st.DataObject, document: dict[str, Any]) -> None:
    writer = Writer(data.draw)
    writer.table(document, (), "")
    assert tomllib.loads(writer.text) == document
    assert key_lines(writer.text) == writer.lines
