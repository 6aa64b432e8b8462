from __future__ import annotations

import json
import os
import pty
import sys
from typing import TYPE_CHECKING, Any

import pytest
from records_kit import MEASURED, close_line, open_line

from ttstack.cli.main import main
from ttstack.errors import Exit
from ttstack.host.process import boot_id, myself
from ttstack.records.store import Store
from ttstack.records.types import Identity, IdentityCheck, Measured, MeasuredCheck, Owner

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("TTX_STATE", str(tmp_path))
    store = Store(tmp_path / "records.jsonl")
    bad = Measured(
        "smoke", (*MEASURED.checks, MeasuredCheck("stop", ok=False, detail="it went on")), requests=2, void=1
    )
    unsure = Identity((IdentityCheck("cache", ok=None, expected="/c"), IdentityCheck("root", ok=False, found="/x")))
    for line in (
        open_line("a-1"),
        close_line("a-1"),
        open_line("a-2", arm="prod", simulated=False),
        close_line(
            "a-2", outcome="failed", exit_code=5, reason="suite", text="smoke failed", measured=bad, identity=unsure
        ),
        open_line("b-3", owner=Owner(myself().pid, myself().start, boot_id())),
        open_line("b-4", owner=Owner(myself().pid, myself().start, "another boot")),
    ):
        store.append(line)
    return store


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["records", *words])
    out, err = capsys.readouterr()
    return code, out, err


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    code, out, _ = run(capsys, "ls", "--json", *words)
    assert code == 0
    runs: list[dict[str, Any]] = json.loads(out)["runs"]
    return runs


@pytest.mark.usefixtures("store")
def test_ls_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "ls")
    lines = out.splitlines()
    assert (code, err, len(lines)) == (0, "", 5)
    assert lines[0].split() == ["RUN", "WHEN", "VERB", "ARM", "OUTCOME", "QUOTABLE", "SECONDS", "SUITE"]
    assert "sim (simulated)" in lines[1]
    assert lines[1].endswith("yes       1.8      smoke 1/1")
    assert lines[2].endswith("failed (suite)  no        1.8      smoke 1/2 (failed: stop)")
    assert "running" in lines[3]
    assert "aborted" in lines[4]


@pytest.mark.usefixtures("store")
def test_ls_chooses(capsys: pytest.CaptureFixture[str]) -> None:
    assert [entry["run"] for entry in listed(capsys)] == ["a-1", "a-2", "b-3", "b-4"]
    assert [entry["run"] for entry in listed(capsys, "-n", "1")] == ["b-4"]
    assert len(listed(capsys, "-n", "0")) == 4
    assert [entry["run"] for entry in listed(capsys, "--arm", "prod")] == ["a-2"]
    assert [entry["run"] for entry in listed(capsys, "--outcome", "running")] == ["b-3"]
    assert listed(capsys, "--arm", "none") == []
    assert "none of the 4 runs" in run(capsys, "ls", "--arm", "none")[2]
    for bad in (("-n", "-1"), ("-n", "x"), ("--outcome", "fine")):
        assert main(["records", "ls", *bad]) == Exit.USAGE


@pytest.mark.usefixtures("store")
def test_ls_is_data(capsys: pytest.CaptureFixture[str]) -> None:
    first, second, *_ = listed(capsys)
    assert (first["quotable"], first["not_quotable"], first["simulated"]) == (True, [], True)
    assert (second["outcome"], second["reason"], second["checks_failed"]) == ("failed", "suite", ["stop"])
    assert "suite smoke: stop failed" in second["not_quotable"]


@pytest.mark.usefixtures("store")
def test_show_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "show", "a-2")
    assert code == 0
    titles = [line for line in out.splitlines() if not line.startswith(" ")]
    assert titles == ["run", "asked", "host", "observed", "identity", "measured", "phases"]
    for text in (
        "failed, exit code 5",
        "suite: smoke failed",
        "- the outcome is failed",
        "HF_TOKEN (by name)",
        "could not be told; expected /c",
        "no: expected null, found /x",
        "2 requests, 1 of them void",
        "failed: it went on",
        "1.500 s",
    ):
        assert text in out
    assert "gone: it never closed the run" in run(capsys, "show", "last")[1]


@pytest.mark.usefixtures("store")
def test_show_finds_by_the_start_of_an_id(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(run(capsys, "show", "b-4", "--json")[1])["outcome"] == "aborted"
    assert json.loads(run(capsys, "show", "--json")[1])["run"] == "b-4"
    shown = json.loads(run(capsys, "show", "a-1", "--json")[1])
    assert (shown["open"]["kind"], shown["close"]["kind"]) == ("open", "close")
    code, _, err = run(capsys, "show", "a")
    assert (code, "2 runs begin with 'a'" in err) == (2, True)
    code, _, err = run(capsys, "show", "a-3")
    assert code == 2
    assert "did you mean" in err


def test_what_is_no_record_is_said_and_counted(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    with store.path.open("ab") as file:
        file.write(b'{"schema":1,"torn')
    code, out, err = run(capsys, "ls", "--json")
    assert (code, [fault["kind"] for fault in json.loads(out)["faults"]]) == (0, ["torn"])
    assert f"{store.path}:7: left out, torn" in err


def test_no_records_and_another_file(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    code, _, err = run(capsys, "show", "--records", str(empty))
    assert (code, "no runs in" in err) == (2, True)
    code, _, err = run(capsys, "ls", "--records", str(tmp_path / "none"))
    assert (code, "or the state folder that holds it" in err) == (2, True)
    other = Store(tmp_path / "other.jsonl")
    other.append(open_line("o-1"))
    assert [entry["run"] for entry in listed(capsys, "--records", str(other.path))] == ["o-1"]
    assert len(listed(capsys, "--records", str(store.path.parent))) == 4
    (tmp_path / "folder").mkdir()
    code, _, err = run(capsys, "ls", "--records", str(tmp_path / "folder"))
    assert (code, "there is no file" in err) == (2, True)
    store.path.unlink()
    code, out, err = run(capsys, "ls")
    assert (code, out, "no runs in" in err) == (0, "", True)


def test_what_an_engine_printed_cannot_steer_the_terminal(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    store.append(open_line("c-5"))
    store.append(close_line("c-5", outcome="failed", exit_code=1, reason="boot", text="\x1b[2Jgone\nnext 日本"))
    out = run(capsys, "show")[1]
    assert "\x1b" not in out
    assert "\\x1b[2Jgone\\nnext 日本" in out


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("no_colour", ["", "1"])
def test_colours_only_on_a_terminal(no_colour: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", no_colour)
    monkeypatch.setenv("TERM", "xterm")
    parent, child = pty.openpty()
    with os.fdopen(parent, "rb", 0) as shown, os.fdopen(child, "w") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        assert main(["records", "show", "a-1"]) == 0
        terminal.flush()
        monkeypatch.undo()
        assert (b"\x1b[" in shown.read(65536)) == (not no_colour)


def test_a_reason_that_is_the_outcome_is_said_once(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    store.append(open_line("c-5"))
    store.append(close_line("c-5", outcome="interrupted", exit_code=130, reason="interrupted", text="by a signal"))
    assert run(capsys, "ls")[1].splitlines()[-1].count("interrupted") == 1
