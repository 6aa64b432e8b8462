from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ttstack.errors import UsageError
from ttstack.host.types import ProcessId
from ttstack.run.control import LiveRun, choose
from ttstack.run.state import State, run_folder

ENGINE = ProcessId(12, 6)
STATE = State(
    run="1-a",
    arm="prod",
    since="2026-01-31T23:59:59Z",
    boot_id="b",
    simulated=False,
    phase="ready",
    step="ready",
    supervisor=ProcessId(11, 5),
    engine=ENGINE,
    cards=(),
    host="127.0.0.1",
    port=8000,
)


def live(run: str, arm: str) -> LiveRun:
    return LiveRun(run_folder(Path("state"), run), replace(STATE, run=run, arm=arm), supervised=True, engine=(ENGINE,))


PROD, SIM, SECOND = live("1-a", "prod"), live("2-b", "sim"), live("3-c", "sim")
OVER = LiveRun(
    run_folder(Path("state"), "0-z"), replace(STATE, run="0-z", phase="stopped"), supervised=False, engine=()
)


def test_a_run_is_chosen_by_id_and_arm_and_by_being_the_only_one() -> None:
    assert choose([OVER, PROD], None) is PROD
    assert choose([OVER, PROD, SIM], "sim") is SIM
    assert choose([OVER, PROD, SIM], "1-a") is PROD
    assert choose([OVER, PROD, SIM], "0-z") is OVER


@pytest.mark.parametrize(
    ("found", "name", "said", "hint"),
    [
        ([OVER], None, "nothing runs here", "what ran: ttx records ls"),
        ([OVER], "sim", "no run 'sim' here", "nothing runs here; what ran: ttx records ls"),
        ([OVER, PROD], "sim", "no run 'sim' here", "what runs: 1-a (arm prod)"),
        ([PROD, SIM], None, "several runs fit: 1-a (arm prod), 2-b (arm sim)", "name one by its run id or arm"),
        ([PROD, SIM, SECOND], "sim", "several runs fit: 2-b (arm sim), 3-c (arm sim)", "name one by its run id"),
    ],
)
def test_when_none_or_several_fit_the_way_out_is_said(
    found: list[LiveRun], name: str | None, said: str, hint: str
) -> None:
    with pytest.raises(UsageError) as told:
        choose(found, name)
    assert told.value.message.startswith(said)
    assert told.value.hint == hint
