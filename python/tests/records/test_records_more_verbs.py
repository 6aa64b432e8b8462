"""``ttx records verify``, ``merge``, ``diff`` and ``query``, and the choices of ``ls``."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from records_kit import AB, CELL, MEASURED, asked, close_line, forged, open_line, true_asked

from ttstack.cli.main import main
from ttstack.errors import Exit
from ttstack.records.statistics import summarise
from ttstack.records.store import Store, encode

if TYPE_CHECKING:
    from pathlib import Path

SLOWER = replace(CELL, values={"ttft_s": (0.5, 1.0)}, stats={"ttft_s": summarise((0.5, 1.0))})


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("TTX_STATE", str(tmp_path))
    store = Store(tmp_path / "records.jsonl")
    now = datetime.now(UTC)
    for name, age in (("old", 30), ("week", 8), ("new", 1)):
        moment = now - timedelta(days=age)
        store.append(open_line(name, asked=true_asked(), now=moment, arm="prod" if name == "week" else "sim"))
        measured = replace(MEASURED, cells=(SLOWER,)) if name == "new" else MEASURED
        outcome = {"outcome": "failed", "exit_code": 1} if name == "week" else {}
        store.append(close_line(name, now=moment, measured=measured, **outcome))
    return store


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["records", *words])
    out, err = capsys.readouterr()
    return code, out, err


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    code, out, _ = run(capsys, "ls", "--json", *words)
    assert code == 0
    return [entry["run"] for entry in json.loads(out)["runs"]]


@pytest.mark.usefixtures("store")
def test_ls_since_a_day_or_an_age(capsys: pytest.CaptureFixture[str]) -> None:
    day = (datetime.now(UTC) - timedelta(days=9)).strftime("%Y-%m-%d")
    assert listed(capsys, "--since", day) == ["week", "new"]
    assert listed(capsys, "--since", "7d") == ["new"]
    assert listed(capsys, "--since", "5w") == ["old", "week", "new"]
    assert listed(capsys, "--since", "90m") == listed(capsys, "--since", "2h") == []
    assert listed(capsys, "--since", "2999-01-01T12:00+02:00") == []
    for wrong in ("yesterday", "7", "99999999d", "2026-13-01"):
        assert main(["records", "ls", "--since", wrong]) == Exit.USAGE
        assert "is no time such as 2026-01-31 or 7d" in capsys.readouterr().err


@pytest.mark.usefixtures("store")
def test_ls_of_what_may_be_quoted_counts_only_that(capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(capsys, "--quotable") == ["old", "new"]
    assert listed(capsys, "--quotable", "--limit", "1") == ["new"]
    assert listed(capsys, "--quotable", "--arm", "prod") == []


def test_ls_believes_the_rule_more_than_a_line(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    lie = {**close_line("lie", outcome="failed", exit_code=1), "quotable": True, "quotable_reasons": []}
    store.append(open_line("lie"))
    with store.path.open("ab") as file:
        file.write(json.dumps(lie).encode() + b"\n")
    assert "lie" in listed(capsys)
    assert "lie" not in listed(capsys, "--quotable")


def test_ls_leaves_out_what_turns_out_to_be_no_record(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    with store.path.open("ab") as file:
        file.write(forged("bad") + encode(close_line("bad")))
    code, out, err = run(capsys, "ls", "--json", "-n", "2")
    found = json.loads(out)
    assert code == 0
    assert [entry["run"] for entry in found["runs"]] == ["week", "new"]
    assert [(fault["line"], fault["kind"]) for fault in found["faults"]] == [(7, "invalid")]
    assert "7: left out, invalid of run bad" in err


def test_ls_tells_a_few_bad_lines_and_counts_all(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    with store.path.open("ab") as file:
        file.write(b'{"torn\n' * 50)
    code, out, err = run(capsys, "ls", "--json")
    assert (code, len(json.loads(out)["faults"])) == (0, 50)
    assert err.count("left out, torn") == 20
    assert "30 more lines are left out" in err


def test_verify_says_that_all_holds_or_names_lines(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "verify")
    assert (code, out, err) == (0, "", f"{store.path}: all 6 lines hold\n")
    store.path.write_bytes(store.path.read_bytes().replace(b'"outcome":"failed"', b'"outcome":"ok"'))
    code, out, err = run(capsys, "verify")
    assert code == Exit.FAILED
    assert [line.split()[:3] for line in out.splitlines()] == [
        ["LINE", "RUN", "RULE"],
        ["4", "week", "sum"],
        ["4", "week", "quotable"],
    ]
    assert "1 of 6 lines do not hold" in err
    code, out, _ = run(capsys, "verify", "--json")
    found = json.loads(out)
    assert (code, found["ok"], found["lines"]) == (1, False, 6)
    assert [(entry["line"], entry["rule"]) for entry in found["findings"]] == [(4, "sum"), (4, "quotable")]


def test_verify_says_what_it_cannot_tell(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    store.append(open_line("other", asked=replace(asked(), cache=None)))
    line = {name: value for name, value in json.loads(encode(close_line("other"))).items() if name != "sum"}
    with store.path.open("ab") as file:
        file.write(json.dumps(line).encode() + b"\n")
    code, _, err = run(capsys, "verify")
    assert code == 0
    assert f"{store.path}:7: not all of it is checked: this version cannot compute its digests" in err
    assert "1 lines are of before lines had sums" in err


def test_merge_adds_and_says_what_it_left(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "host" / "records.jsonl"
    there = Store(other)
    there.append(open_line("far", ab=AB))
    there.append(close_line("far"))
    code, out, err = run(capsys, "merge", str(other.parent))
    assert (code, out) == (0, "")
    assert f"{store.path}: 2 lines added, 0 were there, 0 left out" in err
    assert "far" in listed(capsys)
    with other.open("ab") as file:
        file.write(b'{"torn\n')
    code, out, _ = run(capsys, "merge", str(other), "--json")
    found = json.loads(out)
    assert (code, found["added"], found["known"], found["left"][0]["kind"]) == (0, 0, 2, "torn")
    there.append(open_line("new"))
    code, out, _ = run(capsys, "merge", str(other), "--records", str(store.path))
    assert code == Exit.FAILED
    assert out.splitlines()[-1].split()[2:4] == ["new", "conflict"]
    code, _, err = run(capsys, "merge", str(tmp_path / "none"))
    assert (code, "there is no file" in err) == (2, True)


def test_merge_makes_a_file_that_is_not_there(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, _ = run(capsys, "merge", str(store.path), "--records", str(tmp_path / "both.jsonl"))
    assert code == 0
    assert (tmp_path / "both.jsonl").read_bytes() == store.path.read_bytes()


@pytest.mark.usefixtures("store")
def test_diff_for_people_and_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "diff", "old", "new")
    assert code == 0
    assert [line.strip() for line in out.splitlines()[-1:]] == [
        "prefill 1024  ttft_s  2  0.375     0.75      +100.00 %"
    ]
    assert "an effect between two boots is no verdict" in err
    code, out, err = run(capsys, "diff", "old", "week", "--json")
    found = json.loads(out)
    assert (found["a"]["quotable"], found["b"]["not_quotable"]) == (True, ["the outcome is failed"])
    assert found["cells"][0]["percent"] == 0.0
    assert "B (week) may not be quoted: the outcome is failed" in run(capsys, "diff", "old", "week")[2]
    assert main(["records", "diff", "old", "none"]) == Exit.USAGE


def test_diff_says_when_nothing_differs(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("x", "y"):
        store.append(open_line(name))
    code, out, err = run(capsys, "diff", "x", "y")
    assert (code, out) == (0, "")
    assert "nothing differs" in err


@pytest.mark.usefixtures("store")
def test_query_in_every_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT run, seconds, reason FROM runs ORDER BY time"
    code, out, _ = run(capsys, "query", sql)
    assert (code, out.splitlines()[:2]) == (0, ["run   seconds  reason", "old   1.75"])
    code, out, _ = run(capsys, "query", sql, "--csv")
    rows = list(csv.reader(out.splitlines()))
    assert (code, rows[0], rows[1]) == (0, ["run", "seconds", "reason"], ["old", "1.75", ""])
    code, out, _ = run(capsys, "query", sql, "--json")
    assert (code, json.loads(out)[0]) == (0, {"run": "old", "seconds": 1.75, "reason": ""})
    file = tmp_path / "runs.parquet"
    code, out, err = run(capsys, "query", sql, "--parquet", str(file))
    assert (code, out, f"{file}: 3 rows" in err) == (0, "", True)
    assert file.read_bytes()[:4] == b"PAR1"
    code, out, _ = run(capsys, "query", sql, "--parquet", str(file), "--json")
    assert (code, json.loads(out)) == (0, {"file": str(file), "rows": 3})
    code, _, err = run(capsys, "query", "SELECT nothing")
    assert (code, "views: opened" in err) == (Exit.FAILED, True)


def test_query_skips_and_counts_torn_lines(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    with store.path.open("ab") as file:
        file.write(b'{"torn\n')
    code, out, err = run(capsys, "query", "SELECT count(*) AS n FROM runs", "--json")
    assert (code, json.loads(out)) == (0, [{"n": 3}])
    assert "left out, torn" in err


@pytest.mark.usefixtures("store")
def test_show_tells_of_code_host_cards_and_cells(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    store.append(open_line("z", ab=AB))
    store.append(close_line("z"))
    _, out, _ = run(capsys, "show", "z")
    for text in (
        "ab-1, pair 0, side A",
        "git /src/ttstack, commit cccccccccccc and changes dddddddddddd",
        "load 0.50 0.25 0.12",
        "governor performance",
        "clock synchronised",
        "p150a  firmware 19.13.1.0  driver 2.10.1  the engine's 0",
        "1.500 s  2026-01-31T23:59:59.123Z",
        "prefill 1024",
        "ttft_s  0.25  0.5",
    ):
        assert text in out, text


def test_ls_and_show_wait_for_nothing_that_they_do_not_use(store: Store) -> None:
    """DuckDB, rich and the rest cost more than a list of thousands of runs."""
    code = (
        "import sys; from ttstack.cli.main import main; main(['records', 'ls']);"
        "heavy = {'duckdb', 'rich', 'jinja2', 'asyncio', 'ttstack.records.query', 'ttstack.records.verify'};"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "new" in done.stdout
    assert store.path.exists()


def test_ls_of_many_runs_looks_closely_at_those_that_it_shows(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, last = encode(open_line("RUN")), encode(close_line("RUN"))
    from ttstack.records import line, seal  # noqa: PLC0415 - to be watched

    with store.path.open("wb") as file:
        for number in range(2000):
            for raw in (first, last):
                table: Any = raw.replace(b"RUN", f"r-{number}".encode()).rpartition(b',"sum"')[0] + b"}"
                file.write(seal.seal(table))
    parsed: list[int] = []
    real = line.decode
    monkeypatch.setattr(line, "decode", lambda number, raw: (parsed.append(number), real(number, raw))[1])
    assert len(listed(capsys, "--arm", "sim", "--outcome", "ok", "--quotable")) == 20
    assert len(parsed) == 40
    # Nor does it parse what may not be quoted when only the rest is asked for.
    parsed.clear()
    store.append(open_line("bad"))
    store.append(close_line("bad", outcome="failed", exit_code=1))
    assert "bad" not in listed(capsys, "--quotable", "-n", "1")
    assert len(parsed) == 2
