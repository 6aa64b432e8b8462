from __future__ import annotations

from pathlib import Path

import pytest

from ttstack.bench.suites.infbench import Infbench
from ttstack.bench.suites.registry import SUITES, find_suite
from ttstack.bench.suites.settings import describe, shown
from ttstack.bench.suites.sweep32k import Sweep32k
from ttstack.errors import Exit, UsageError
from ttstack.markdown import code, table

PAGE = Path(__file__).resolve().parents[3] / "docs/reference/suites.md"


def test_suites_are_found_by_name() -> None:
    assert list(SUITES) == ["smoke", "sweep32k", "infbench", "soak"]
    assert find_suite("smoke") is SUITES["smoke"]
    with pytest.raises(UsageError, match="did you mean smoke") as told:
        find_suite("smokey")
    assert told.value.exit_code == Exit.USAGE
    with pytest.raises(UsageError, match="there are: smoke, sweep32k"):
        find_suite("qqq")


def test_words_win_over_the_table_and_the_table_over_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "night.toml"
    file.write_text('[infbench]\nruns = 7\nwaves = 9\nttft_s = 1\nseed = "a"\nconcurrency = [1, 4]\n[soak]\nbins = 9\n')
    found = SUITES["infbench"].read({"waves": 4}, ["runs=8", "tpot_s=0.5"], file)
    assert found == Infbench(runs=8, waves=4, ttft_s=1.0, tpot_s=0.5, seed="a", concurrency=(1, 4))
    assert type(found.ttft_s) is float
    assert SUITES["sweep32k"].read(file=file) == Sweep32k()


def test_lists_and_switches_as_words() -> None:
    found = SUITES["sweep32k"].read(words=["prompt_tokens=1024, 2048", "needle=false", "seed="])
    assert found == Sweep32k(prompt_tokens=(1024, 2048), needle=False)
    assert SUITES["infbench"].read(words=["concurrency="]) == Infbench()


def test_what_a_record_holds_can_be_read_again() -> None:
    for suite in SUITES.values():
        words = [f"{name}={default}" for name, default, _ in describe(suite.settings)]
        assert suite.read(words=words) == suite.settings()


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("run=5", "did you mean runs"),
        ("qqqqqqq=5", "it has: prompt_tokens"),
        ("runs", "sets nothing"),
        ("runs=2", "at least 3, not 2"),
        ("runs=five", "a whole number, not 'five'"),
        ("runs=5.5", "a whole number"),
        ("ttft_s=nan", "a number"),
        ("ttft_s=-1", "at least 0"),
        ("concurrency=1,0", "at least 1, not 0"),
        ("concurrency=1,x", "a whole number, not 'x'"),
    ],
)
def test_a_bad_word_is_refused(word: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as told:
        SUITES["infbench"].read(words=[word])
    assert told.value.reason == "bad_setting"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[infbench]\nruns = true", "a whole number, not True"),
        ("[infbench]\nruns = 2", "at least 3"),
        ("[infbench]\nconcurrency = 4", "a list"),
        ("[infbensh]\nruns = 5", "did you mean infbench"),
        ("runs = 5", "no table of a suite"),
        ("infbench = 5", "no table of a suite"),
        ("[infbench", "is not TOML"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "s.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=said):
        SUITES["infbench"].read(file=file)
    with pytest.raises(UsageError, match="No such file"):
        SUITES["infbench"].read(file=tmp_path / "none.toml")


def test_a_needle_that_is_neither_on_nor_off_is_refused() -> None:
    with pytest.raises(UsageError, match="true or false"):
        SUITES["sweep32k"].read(words=["needle=yes"])


def settings_table(suite: str) -> str:
    rows = [
        (code(name), code(default) if default else "", about)
        for name, default, about in describe(SUITES[suite].settings)
    ]
    return "\n".join(table(("setting", "default", "meaning"), rows))


@pytest.mark.parametrize("suite", list(SUITES))
def test_the_page_has_every_setting(suite: str) -> None:
    assert settings_table(suite) in PAGE.read_text(), f"put this under {suite}:\n{settings_table(suite)}"


def test_values_are_shown_as_they_are_set() -> None:
    assert [shown(value) for value in (True, (1, 2), 0.05, "x", ())] == ["true", "1,2", "0.05", "x", ""]
