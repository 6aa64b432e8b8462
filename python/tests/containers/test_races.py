"""Two `up` for one card at the same moment, with real containers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import racing

from ttstack.host.cards import inventory
from ttstack.run.link import python_path

if TYPE_CHECKING:
    from containers_kit import Host

    from ttstack.host.types import Card

pytestmark = pytest.mark.docker

ROUNDS = int(os.environ.get("TTX_RACES", "200"))


def _start(host: Host, card: Card, rounds: int) -> subprocess.Popen[str]:
    arms = [f"{side}{card.number}" for side in ("left", "right")]
    for arm in arms:
        host.arm(arm, "hang:mesh", cards=f'ids = ["{card.bdf}"]', own_cache=True)
    words = [sys.executable, racing.__file__, str(host.base), card.id, str(rounds), *arms]
    environ = {**os.environ, "PYTHONPATH": python_path()}
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environ)


def test_of_two_that_race_for_one_card_one_wins(wide_host: Host) -> None:
    """The races for different cards run side by side, as most of a round is waiting for Docker."""
    cards = inventory(wide_host.places.roots)
    shares = [len(range(at, ROUNDS, len(cards))) for at in range(len(cards))]
    started = [_start(wide_host, card, share) for card, share in zip(cards, shares, strict=True)]
    try:
        printed = [each.communicate(timeout=1800)[0] for each in started]
    finally:
        for each in started:
            each.kill()
    rounds = [json.loads(line) for text in printed for line in text.splitlines()]
    assert len(rounds) == ROUNDS
    for each in rounds:
        assert sorted(each["codes"].values()) == [3, 130], each
        reasons = {arm: each["told"][arm]["reason"] for arm in each["codes"]}
        assert reasons == {arm: "busy" if code == 3 else "interrupted" for arm, code in each["codes"].items()}
        assert (len(each["claimed"]), each["left"]) == (1, []), each
        assert each["reasons"] == ["stopped"], each  # not "killed": a stop so early is heard, too
    assert {arm[:-1] for each in rounds for arm, code in each["codes"].items() if code == 3} == {"left", "right"}
    records = wide_host.records()
    assert len(records) == 2 * ROUNDS
    assert sorted({run.outcome for run in records}) == ["interrupted", "refused"]
    assert wide_host.clean()
