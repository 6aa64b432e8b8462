from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from ab_kit import Book, swapped
from report_kit import history, run_lines, smoke

from ttstack.cli.main import main
from ttstack.errors import Exit

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a host with a history."""
    monkeypatch.setenv("TTX_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "records.jsonl").write_bytes(b"".join(history()))
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main(["report", "--json", *words]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def runs(capsys: pytest.CaptureFixture[str], *words: str) -> object:
    counts = told(capsys, *words)["counts"]
    assert isinstance(counts, dict)
    return counts["runs"]


def test_a_page_is_written(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "-o", "r.html"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "r.html: runs 18, measured 16, quotable 14" in err
    assert (home / "r.html").read_text().startswith("<!doctype html>")
    assert "<title>Report: cardhost</title>" in (home / "r.html").read_text()


@pytest.mark.usefixtures("home")
def test_stdout_has_the_page_where_no_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report"]) == 0
    assert capsys.readouterr().out.startswith("<!doctype html>")
    assert main(["report", "--format", "md", "--title", "Mine"]) == 0
    assert capsys.readouterr().out.startswith("# Mine\n")


def test_the_name_of_the_file_says_which_form(home: Path) -> None:
    assert main(["report", "-o", "r.md"]) == 0
    assert (home / "r.md").read_text().startswith("# ")
    assert main(["report", "-o", "r.json", "--json"]) == 0
    assert json.loads((home / "r.json").read_text())["title"] == "Report: cardhost"


def test_which_runs(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = home / "other"
    other.mkdir()
    (other / "records.jsonl").write_bytes(b"".join(run_lines(40, "else", smoke(1.0), hostname="far")))
    here = str(home / "state" / "records.jsonl")
    assert runs(capsys) == 18
    assert runs(capsys, "--arm", "prod") == 13
    assert runs(capsys, "--since", "2026-01-09T17:00") == 3
    assert runs(capsys, "last") == 1
    assert runs(capsys, "last", "20260105T083000", "20260105T083000-000000") == 2
    assert runs(capsys, "other") == 1
    assert runs(capsys, here, "other/records.jsonl", here) == 19
    assert runs(capsys, "other", "last") == 1
    assert told(capsys, here, "other")["hosts"] == ["cardhost", "far"]


def test_the_copy_of_a_run_that_has_its_end_counts(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = run_lines(0, "prod", smoke(1.0))
    (home / "begun.jsonl").write_bytes(lines[0])
    (home / "whole.jsonl").write_bytes(b"".join(lines))
    assert told(capsys, "begun.jsonl", "whole.jsonl")["counts"] == {
        "runs": 1, "measured": 1, "quotable": 1, "simulated": 0, "outcomes": {"ok": 1},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nothere"], "no run 'nothere'"),
        (["no/where"], "there is no file no/where"),
        (["gone.jsonl"], "there is no file gone.jsonl"),
        (["--arm", "nobody"], "none of the 18 runs"),
        (["--since", "soon"], "no time such as"),
        (["--format", "pdf"], "one of html, md"),
        (["--json", "--format", "md"], "not allowed with"),
    ],
)
@pytest.mark.usefixtures("home")
def test_what_is_not_there_is_refused(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", *words]) == Exit.USAGE
    out, err = capsys.readouterr()
    assert (out, says in err) == ("", True), err


def test_no_records_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TTX_STATE", str(tmp_path))
    assert main(["report"]) == Exit.USAGE
    assert "ttx run sim" in capsys.readouterr().err


def test_records_are_not_written_over(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / "state" / "records.jsonl"
    before = path.read_bytes()
    (home / "link.html").symlink_to(path)
    for name in (str(path), "link.html"):
        assert main(["report", "-o", name]) == Exit.USAGE
        assert "holds records" in capsys.readouterr().err
    assert path.read_bytes() == before


@pytest.mark.usefixtures("home")
def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert main(["report", "last", "-o", str(tmp_path / "pipe"), "--format", "md"]) == 0
    assert os.read(reader, 9).startswith(b"# ")
    os.close(reader)
    assert not (tmp_path / "pipe").is_file()


@pytest.mark.usefixtures("home")
def test_a_terminal_is_spared_the_page(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        assert main(["report"]) == Exit.USAGE
    os.close(leader)
    assert "-o report.html" in capsys.readouterr().err


def test_lines_that_are_no_records_are_told_and_counted(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (home / "state" / "records.jsonl").open("ab") as file:
        file.write(b'{"torn\n')
    assert main(["report", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["faults"] == 1
    assert "left out, torn" in err


def test_an_ab_is_judged_by_all_of_its_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = Book(tmp_path / "ab.jsonl")
    a = (1.0, 1.01, 0.99, 1.0)
    swapped(book, a, [value * (1.1 + at / 1000) for at, value in enumerate(a)])
    for words in ((), ("last",)):
        (row, *_) = told(capsys, str(book.path), *words)["ab"]  # type: ignore[misc]
        assert (row["verdict"], row["metric"], row["pairs"]) == ("worse", "request_s", 4)
        assert 0.09 < row["low"] < row["share"] < row["high"] < 0.12


def test_an_ab_without_a_verdict_says_why_and_tells_no_effect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book = Book(tmp_path / "ab.jsonl")
    swapped(book, (1.0, 1.0, 1.0, 1.0), (1.0, 1.01, 1.0, 1.02), b_outputs={"count": "other", "sum": "other"})
    (row,) = told(capsys, str(book.path))["ab"]  # type: ignore[misc]
    assert (row["verdict"], row["share"], row["low"]) == ("invalid", None, None)
    assert "answers of B are not those of A" in row["reasons"][0]


def test_neither_pygal_nor_jinja_is_imported_for_what_does_not_need_it(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_bytes(b"".join(run_lines(0, "prod", smoke(1.0))))
    code = (
        "import sys; from ttstack.cli.main import main; main(sys.argv[1:]); "
        "print([n for n in ('pygal', 'jinja2', 'duckdb', 'rich') if n in sys.modules], file=sys.stderr)"
    )
    words = [sys.executable, "-c", code, "report", str(tmp_path / "r.jsonl"), "--format", "md"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == "[]\n"
