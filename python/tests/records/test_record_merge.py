"""Records of several files in one."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest
from records_kit import close_line, open_line, start_python

from ttstack.records.errors import RecordsError
from ttstack.records.merge import merge
from ttstack.records.store import Store, encode

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "all.jsonl"


def _file(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"".join(lines))
    return path


def _run(name: str) -> tuple[bytes, bytes]:
    return encode(open_line(name)), encode(close_line(name))


def test_each_line_is_there_once_as_it_was(tmp_path: Path, target: Path) -> None:
    a, b, c = (_run(name) for name in "abc")
    one, two = _file(tmp_path / "1", *a, b[0]), _file(tmp_path / "2", *b, c[0], *a)
    done = merge(target, [one, two])
    assert (done.added, done.known, done.left) == (5, 3, ())
    assert target.read_bytes() == b"".join((*a, b[0], b[1], c[0]))
    again = merge(target, [two, one])
    assert (again.added, again.known, again.left) == (0, 8, ())
    assert target.read_bytes() == b"".join((*a, b[0], b[1], c[0]))


def test_a_line_that_another_program_spelled_anew_is_the_same(tmp_path: Path, target: Path) -> None:
    a = _run("a")
    _file(target, *a)
    spelled = [json.dumps(dict(reversed(json.loads(line).items())), indent=None).encode() + b"\r\n" for line in a]
    done = merge(target, [_file(tmp_path / "1", *spelled)])
    assert (done.added, done.known, done.left) == (0, 2, ())


def test_a_run_in_conflict_is_left_out_whole(tmp_path: Path, target: Path) -> None:
    """Its opening is another one, so its close must not become that of ours."""
    a, b = _run("a"), _run("b")
    _file(target, a[0])
    source = _file(tmp_path / "1", *_run("a"), *b)
    done = merge(target, [source])
    assert (done.added, done.known) == (2, 0)
    assert [(left.file, left.line, left.run, left.kind) for left in done.left] == [
        (source, 1, "a", "conflict"),
        (source, 2, "a", "conflict"),
    ]
    assert f"line 1 of {target} says otherwise" in done.left[0].message
    assert target.read_bytes() == b"".join((a[0], *b))


def test_a_conflict_in_one_file_leaves_the_run_out(tmp_path: Path, target: Path) -> None:
    done = merge(target, [_file(tmp_path / "1", *_run("a"), _run("a")[1])])
    assert (done.added, sorted(left.line for left in done.left)) == (0, [1, 2, 3])
    assert not target.exists() or target.read_bytes() == b""


def test_an_id_of_another_line_is_a_conflict(tmp_path: Path, target: Path) -> None:
    a = _run("a")
    stolen = encode({**open_line("b"), "id": json.loads(a[0])["id"]})
    done = merge(target, [_file(tmp_path / "1", *a), _file(tmp_path / "2", stolen)])
    assert (done.added, [left.message for left in done.left]) == (2, ["its id is that of run a"])


def test_a_close_waits_for_no_opening_but_may_find_one_anywhere(tmp_path: Path, target: Path) -> None:
    a, b, c = (_run(name) for name in "abc")
    _file(target, a[0])
    done = merge(target, [_file(tmp_path / "1", a[1], b[1], c[1]), _file(tmp_path / "2", b[0])])
    assert done.added == 3
    assert [(left.run, left.kind) for left in done.left] == [("c", "orphan")]
    log = Store(target).read()
    assert [(run.id, run.outcome) for run in log.runs] == [("a", "ok"), ("b", "ok")]
    assert log.faults == ()


def test_what_is_no_line_is_left_out_and_named(tmp_path: Path, target: Path) -> None:
    a = _run("a")
    done = merge(target, [_file(tmp_path / "1", a[0][:-90] + b"\n", b'{"schema":2,"run":"n"}\n', b"[]\n", b"\n", *a)])
    assert [(left.line, left.kind) for left in done.left] == [(1, "torn"), (2, "newer"), (3, "invalid")]
    assert target.read_bytes() == b"".join(a)


def test_a_last_line_without_its_newline_gets_one(tmp_path: Path, target: Path) -> None:
    a = _run("a")
    done = merge(target, [_file(tmp_path / "1", a[0][:-1] + b"\r\n", a[1][:-1])])
    assert (done.added, target.read_bytes()) == (2, b"".join(a))


def test_a_file_merged_into_itself_stays_as_it_is(target: Path) -> None:
    _file(target, *_run("a"))
    before = target.read_bytes()
    done = merge(target, [target])
    assert (done.added, done.known, target.read_bytes()) == (0, 2, before)


def test_a_torn_end_is_fenced_off(tmp_path: Path, target: Path) -> None:
    a, b = _run("a"), _run("b")
    _file(target, *a, b'{"torn')
    merge(target, [_file(tmp_path / "1", *b)])
    assert target.read_bytes() == b"".join((*a, b'{"torn\n', *b))


def test_a_file_that_cannot_be_read_changes_nothing(tmp_path: Path, target: Path) -> None:
    with pytest.raises(RecordsError):
        merge(target, [_file(tmp_path / "1", *_run("a")), tmp_path])
    assert not target.exists()


WRITER = """
import sys
from pathlib import Path
from records_kit import close_line, open_line
from ttstack.records.store import Store
store = Store(Path(sys.argv[1]))
print("begin", flush=True)
for number in range(30):
    for line in (open_line(f"w-{number}"), close_line(f"w-{number}")):
        store.append(line)
"""
MERGER = """
import sys
from pathlib import Path
from ttstack.records.merge import merge
print("begin", flush=True)
merge(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
"""


def test_merges_and_writers_at_once_lose_and_double_nothing(tmp_path: Path, target: Path) -> None:
    dice = random.Random(5)  # noqa: S311 - order, not secrets
    lines = [_run(f"r-{number}") for number in range(40)]
    files = []
    for name in ("1", "2"):
        dice.shuffle(lines)
        files.append(str(_file(tmp_path / name, *(line for pair in lines for line in pair))))
    running = [
        start_python(WRITER, str(target)),
        start_python(MERGER, str(target), *files),
        start_python(MERGER, str(target), *reversed(files)),
    ]
    for process in running:
        process.communicate(timeout=60)
        assert process.returncode == 0
    log = Store(target).read()
    assert log.faults == ()
    assert {run.id for run in log.runs} == {f"r-{n}" for n in range(40)} | {f"w-{n}" for n in range(30)}
    assert all(run.outcome == "ok" for run in log.runs)
    assert len(target.read_bytes().splitlines()) == 140
