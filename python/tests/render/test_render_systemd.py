"""systemd's quoting: one direction is NixOS's, the other the man pages', and each is held against the real thing."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttstack.render.errors import RenderError
from ttstack.render.systemd import command_line, decode, encode, environment_line, parse_command_line

if TYPE_CHECKING:
    from pathlib import Path

NASTY = (
    "%",
    "%%",
    "%n",
    "$",
    "$$",
    "$HOME",
    "${HOME}",
    '"',
    "'",
    "\\",
    "\\\\",
    ";",
    "",
    " ",
    "\n",
    "\t",
    "\r",
    "é",
    "😀",
)
NASTY = (
    *NASTY,
    "\x01",
    "\x1f",
    "\x7f",
    "\x85",
    "\u2028",
    "\\x41",
    "\\u0041",
    "\\n",
    "a b",
    "#",
    "-",
    "@x",
    "100%",
    "\\",
)


def is_possible(letter: str) -> bool:
    code = ord(letter)
    return code != 0 and not (0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE)


letters = st.characters(exclude_categories=["Cs"]).filter(is_possible) | st.sampled_from("%$\"'\\;{} \n\tnx0u")
words = st.text(letters, max_size=12) | st.sampled_from(NASTY)
argvs = st.lists(words, max_size=8).map(tuple)


@settings(deadline=None)
@given(argvs)
def test_decode_undoes_encode(argv: tuple[str, ...]) -> None:
    line = encode(argv)
    assert decode(line) == argv
    assert "\n" not in line
    assert "\r" not in line


@settings(deadline=None)
@given(argvs)
def test_encode_is_the_rule_of_nixos(argv: tuple[str, ...]) -> None:
    json_words = [json.dumps(word, ensure_ascii=False) for word in argv]
    assert encode(argv) == " ".join(word.replace("%", "%%").replace("$", "$$") for word in json_words)


@settings(deadline=None)
@given(argvs)
def test_a_command_line_comes_back(arguments: tuple[str, ...]) -> None:
    argv = ("/usr/bin/docker", *arguments)
    assert parse_command_line(command_line(argv)) == argv


@settings(deadline=None)
@given(st.text(max_size=30))
def test_decode_never_fails_in_another_way(text: str) -> None:
    try:
        argv = decode(text)
    except RenderError:
        return
    assert decode(encode(argv)) == argv


@pytest.mark.parametrize("letter", ["\0", "\ud800", "\ufffe", "\uffff", "\ufdd0", "\U0001fffe", "\U0010ffff"])
def test_what_systemd_cannot_read_is_refused(letter: str) -> None:
    with pytest.raises(RenderError, match=f"U\\+{ord(letter):04X}"):
        encode([f"a{letter}"])
    with pytest.raises(RenderError, match=f"U\\+{ord(letter):04X}"):
        decode(f"a{letter}")


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("", ()),
        ("  a\t'b c'  ", ("a", "b c")),
        ("''", ("",)),
        ('\'it is "x"\' "it\'s"', ('it is "x"', "it's")),
        (r"'a\'b'", ("a'b",)),
        (r"\a\b\f\n\r\t\v\\\"\'\s", ("\a\b\f\n\r\t\v\\\"' ",)),
        (r"\x41\101\u00e9\U0001F600", ("AAé😀",)),
        (r"\xc3\xa9", ("é",)),  # \x names a byte
        (r"\u001f", ("\x1f",)),
        (r"a \; b", ("a", ";", "b")),
        ('a ";" ;b b;', ("a", ";", ";b", "b;")),
        ("100%% $$x $${y} %%%%n", ("100%", "$x", "${y}", "%%n")),
        ("a\u2028b\x85c", ("a\u2028b\x85c",)),
        ("/bin/x --a=b", ("/bin/x", "--a=b")),
    ],
)
def test_decode_reads_what_the_man_pages_say(text: str, argv: tuple[str, ...]) -> None:
    assert decode(text) == argv


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("100%", "bare percent"),
        ("%n", "%n is a specifier"),
        ("%%%n", "%n is a specifier"),
        (r"\x25n", "%n is a specifier"),  # unquoting comes first
        ("$HOME", r"\$HOME is a variable"),
        ("a${HOME}b", r"\$\{HOME\} is a variable"),
        ("'$HOME'", r"\$HOME is a variable"),  # quotes do not protect it
        (r"\x24HOME", r"\$HOME is a variable"),
        ("$", "bare dollar"),
        ("$$$", "bare dollar"),
        ("a ; b", "two commands"),
        (";", "two commands"),
        (r"\/", "unknown escape"),
        (r"\.", "unknown escape"),
        (r"\x4", "unknown escape"),
        (r"\x00", "unknown escape"),
        (r"\400", "unknown escape"),
        (r"\u00e", "unknown escape"),
        (r"\ud83d\ude00", "unknown escape"),
        (r"\U00110000", "unknown escape"),
        ("a\\", "unknown escape"),
        (r"\xff", "no UTF-8"),
        (r"\xc3' '", "quote inside"),
        ("'open", "not closed"),
        ('"', "not closed"),
        ('a"b"', "quote inside"),
        ('"a"b', "behind a closing quote"),
        ("a\nb", "one line"),
        ("a\rb", "one line"),
    ],
)
def test_decode_refuses_what_is_not_one_known_text(text: str, why: str) -> None:
    with pytest.raises(RenderError, match=why):
        decode(text)


@pytest.mark.parametrize(
    "program",
    [
        "",
        ";",
        "-/bin/x",
        "@/bin/x",
        ":/bin/x",
        "+/bin/x",
        "!/bin/x",
        "|/bin/x",
        "-x",
        "@x",
        "./x",
        "a/b",
        "/a$b",
        "/a\nb",
        "..",
    ],
)
def test_a_program_that_systemd_reads_otherwise_is_refused(program: str) -> None:
    with pytest.raises(RenderError):
        command_line((program, "a"))
    with pytest.raises(RenderError):
        parse_command_line(encode((program, "a")))


def test_an_empty_command_line_is_refused() -> None:
    with pytest.raises(RenderError, match="empty"):
        command_line(())
    with pytest.raises(RenderError, match="empty"):
        parse_command_line("  ")


def test_environment_doubles_percent_and_not_dollar() -> None:
    assert environment_line("A_1", 'p$1% "x" é\\') == '"A_1=p$1%% \\"x\\" é\\\\"'


@pytest.mark.parametrize(
    ("name", "value"), [("1A", ""), ("", ""), ("A-B", ""), ("A", "a\nb"), ("A", "\x7f"), ("A", "\0")]
)
def test_environment_refuses_what_systemd_rejects(name: str, value: str) -> None:
    with pytest.raises(RenderError):
        environment_line(name, value)


# The real systemd: at debug level `systemd-analyze verify` prints each command as it has read it.


def dumped(unit: Path) -> list[list[str]]:
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)],
        env={**os.environ, "SYSTEMD_LOG_LEVEL": "debug", "SYSTEMD_LOG_TARGET": "console"},
        capture_output=True,
        check=False,
        timeout=60,
    )
    lines = re.findall(rb"^\s*Command Line: (.*)$", done.stdout, re.MULTILINE)
    return [undump(line.decode()) for line in lines]


def undump(line: str) -> list[str]:
    """Undo systemd's quote_command_line: shell-like double quotes with C escapes."""
    simple = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
    found = []
    for quoted, bare in re.findall(r'"((?:[^"\\]|\\.)*)"|([^ "]+)', line, re.DOTALL):
        text = re.sub(
            rb"\\([0-7]{3}|.)",
            lambda match: bytes(
                [int(match[1], 8) if len(match[1]) == 3 else simple.get(match[1].decode(), match[1][0])]
            ),
            (quoted or bare).encode(),
            flags=re.DOTALL,
        )
        found.append(text.decode())
    return found


@pytest.mark.host
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_systemd_itself_reads_the_same(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    batch = [("/bin/true", *data.draw(argvs)) for _ in range(20)]
    unit = tmp_path_factory.mktemp("unit") / "ttx-test.service"
    lines = "".join(f"ExecStart={command_line(argv)}\n" for argv in batch)
    unit.write_text(f"[Service]\nType=oneshot\n{lines}", encoding="utf-8", newline="\n")
    # Variables are expanded when the command is started, so a dollar sign is still doubled here.
    assert [[word.replace("$$", "$") for word in argv] for argv in dumped(unit)] == [list(argv) for argv in batch]


NIX_ENCODE = """
{ file }:
let
  argvs = builtins.fromJSON (builtins.readFile file);
  word = arg: builtins.replaceStrings [ "%" "$" ] [ "%%" "$$" ] (builtins.toJSON arg);
in
map (argv: builtins.concatStringsSep " " (map word argv)) argvs
"""


@pytest.mark.host
@pytest.mark.skipif(shutil.which("nix-instantiate") is None, reason="no Nix here")
def test_what_nix_encodes_is_decoded(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("nix")
    batch: list[tuple[str, ...]] = [NASTY]

    @settings(deadline=None)
    @given(argvs)
    def collect(argv: tuple[str, ...]) -> None:
        batch.append(argv)

    collect()
    argvs_file, program = folder / "argvs.json", folder / "encode.nix"
    argvs_file.write_text(json.dumps(batch, ensure_ascii=False), encoding="utf-8")
    program.write_text(NIX_ENCODE, encoding="utf-8")
    done = subprocess.run(
        ["nix-instantiate", "--eval", "--strict", "--json", str(program), "--argstr", "file", str(argvs_file)],
        env={**os.environ, "NIX_STATE_DIR": str(folder / "state"), "NIX_STORE_DIR": str(folder / "store")},
        capture_output=True,
        check=True,
        timeout=60,
    )
    lines = json.loads(done.stdout)
    assert [decode(line) for line in lines] == batch
    for line, argv in zip(lines, batch, strict=True):
        if not any(ord(letter) < 0x20 for word in argv for letter in word):  # \b and \u0008 are both right
            assert line == encode(argv)
