"""Files that are wrong as a whole. ``#!`` marks the lines that must be named."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from arm_kit import ARM, make_shelf, problems_of

from ttstack.arm.errors import ArmFileError
from ttstack.arm.load import load

if TYPE_CHECKING:
    from pathlib import Path

# whole files; the message of each marked line follows the mark
FILES = {
    "nothing there": ("", ["schema", "pin", "model", "engine", "cards"]),
    "tables are missing things": (
        "schema = 1\npin='current'\nmodel='tiny'\n[engine]#!engine.kind,engine.port\n[cards]#!cards.count\n",
        ["engine.kind", "engine.port", "cards.count"],
    ),
    "another schema": (ARM.replace("schema = 1", "schema = 2#!"), ["schema"]),
    "schema as text": (ARM.replace("schema = 1", "schema = '1'#!"), ["schema"]),
    "schema true": (ARM.replace("schema = 1", "schema = true#!"), ["schema"]),
    "tables that are none": (
        "schema=1\npin='current'\nmodel='tiny'\nengine=1#!\ncards=[]#!\nenv='x'#!\noverlay={}#!\nexpect=1#!\n",
        ["engine", "cards", "env", "overlay", "expect"],
    ),
    "a wrong kind": (ARM.replace('"vllm"', '"vlm"#!'), ["engine.kind"]),
    "a kind that is a list": (ARM.replace('"vllm"', "['vllm']#!"), ["engine.kind"]),
    "a port that is none": (ARM.replace("8000", "65536#!"), ["engine.port"]),
    "port zero": (ARM.replace("8000", "0#!"), ["engine.port"]),
    "a count that is none": (ARM.replace("count = 2", "count = '2'#!"), ["cards.count"]),
    "no cards at all": (ARM.replace("count = 2", "count = 0#!"), ["cards.count"]),
    "a mesh is needed": (ARM.replace("[cards]\ncount = 2", "[cards]#!\ncount = 3"), ["cards.mesh"]),
    "lengths that differ": (
        ARM.replace("port = 8000", "port = 8000\nargs = { max-model-len = 8 }") + "[expect]\nmax_model_len = 9#!\n",
        ["expect.max_model_len"],
    ),
    "an unknown pin": (ARM.replace('"current"', '"curent"#!'), ["pin"]),
    "a pin outside the shelf": (ARM.replace('"current"', '"../pins/current"#!'), ["pin"]),
    "an unknown model": (ARM.replace('"qwen3.6-27b"', '"qwen3.6"#!'), ["model"]),
    "a container without an image": (ARM.replace('"current"', '"bare"#!'), ["pin"]),
    "environment twice": (ARM + "[env]\nA = '1'\n[env.weights]\nA = '2'#!\n", ["env.weights.A"]),
    "a secret in the open": (
        ARM.replace("port = 8000", "port = 8000\nsecrets = ['A']#!") + "[env]\nA = '1'\n",
        ["engine.secrets[0]"],
    ),
    "overlays": (
        ARM
        + "[[overlay]]\nsource = 'none'#!\ntarget = 'a'\n"
        + "[[overlay]]\nsource = '.'\ntarget = '/a'#!\n"
        + "[[overlay]]\nsource = '.'\ntarget = 'b/../../a'#!\n"
        + "[[overlay]]\nsource = '.'\ntarget = '.'#!\n"
        + "[[overlay]]\nsource = '.'\ntarget = './a/'#!\n"
        + "[[overlay]]\nsource = 'x.toml'#!\ntarget = 'a,b'#!\n"
        + "[[overlay]]#!overlay[6].source,overlay[6].target\n"
        + "[[overlay]]\nsource = 'a\"b'#!\ntarget = 'q'\nto = 1#!\n",
        [
            "overlay[0].source",
            "overlay[1].target",
            "overlay[2].target",
            "overlay[3].target",
            "overlay[4].target",
            "overlay[5].source",
            "overlay[5].target",
            "overlay[6].source",
            "overlay[6].target",
            "overlay[7].source",
            "overlay[7].source",
            "overlay[7].to",
        ],
    ),
    "overlays over no image": (
        ARM.replace('"vllm"', '"sim"') + "[[overlay]]#!overlay\nsource = '.'\ntarget = 'a'\n",
        ["overlay"],
    ),
    "everything at once": (
        "modle = 1#!\n"
        + ARM.replace("8000", "'x'#!").replace("count = 2", "count = 1\nmesh = 'P300'#!")
        + "[engine.args]\nmax_num_seqs = 1#!\n[env]\nA = 1#!\n",
        ["modle", "engine.port", "engine.args.max_num_seqs", "cards.mesh", "env.A"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_whole_files(tmp_path: Path, name: str) -> None:
    text, keys = FILES[name]
    marked = {number for number, line in enumerate(text.split("\n"), 1) if "#!" in line} or {1}
    found = problems_of(tmp_path, text)
    assert sorted(p.key for p in found) == sorted(keys), [str(p) for p in found]
    assert {p.line for p in found} == marked, [str(p) for p in found]


def test_the_second_of_two_equal_targets_is_named(tmp_path: Path) -> None:
    overlay = "[[overlay]]\nsource = '.'\ntarget = 'a'\n"
    (problem,) = problems_of(tmp_path, ARM + overlay + overlay)
    assert (problem.key, problem.message) == ("overlay[1].target", "two overlays have the target 'a'")


def test_a_source_below_a_folder_that_no_mount_can_carry(tmp_path: Path) -> None:
    folder = tmp_path / "a,b"
    folder.mkdir()
    (problem,) = problems_of(folder, ARM + "[[overlay]]\nsource = '.'\ntarget = 'a'\n")
    assert (problem.key, problem.line) == ("overlay[0].source", 10)
    assert "','" in problem.message


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"schema = 1\nx = [1,\n", 2, "is not TOML: "),
        (b"schema = 1\nport 8\n", 2, "at column 6"),
        (b"schema = 1\nschema = 2\n", 2, "is not TOML: "),
        (b"schema = 1\na = 'gr\xfc\xdf'\n", 2, "is not UTF-8: byte 0xfc"),
        (b"a = " + b"[" * 100_000, 0, "nested too deeply"),
        (b"a = " + b"9" * 5000, 0, "cannot be read"),
        (b"#" * (1 << 20) + b"\n", 0, "larger than 1 MiB"),
    ],
)
def test_files_that_are_no_toml(tmp_path: Path, content: bytes, line: int, message: str) -> None:
    shelf = make_shelf(tmp_path)
    file = shelf.arms / "x.toml"
    file.write_bytes(content)
    with pytest.raises(ArmFileError) as caught:
        load("x", shelf)
    (problem,) = caught.value.problems
    assert (problem.file, problem.line) == (file, line)
    assert message in problem.message
    assert "\n" not in str(problem)


def test_things_that_are_no_files(tmp_path: Path) -> None:
    shelf = make_shelf(tmp_path)
    (shelf.arms / "folder.toml").mkdir()
    os.mkfifo(shelf.arms / "pipe.toml")
    (shelf.arms / "loop.toml").symlink_to("loop.toml")
    (shelf.arms / "gone.toml").symlink_to("nowhere")
    signal.alarm(20)  # opening the pipe must not wait for a writer; SIGALRM would end the test run
    for name, message in (
        ("folder", "is a folder, not a file"),
        ("pipe", "is not a file"),
        ("loop", "cannot be read: Too many levels"),
        ("gone", "does not exist"),
    ):
        with pytest.raises(ArmFileError, match=message):
            load(name, shelf)
    signal.alarm(0)


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = make_shelf(tmp_path, x=ARM)

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("ttstack.arm.layers.os.open", refuse)
    with pytest.raises(ArmFileError, match=r"x\.toml: cannot be read: Permission denied"):
        load("x", shelf)


def test_a_name_that_no_container_can_have(tmp_path: Path) -> None:
    shelf = make_shelf(tmp_path)
    (shelf.arms / "a b.toml").write_text(ARM)
    with pytest.raises(ArmFileError, match="an arm cannot be called 'a b'"):
        load("a b", shelf)
