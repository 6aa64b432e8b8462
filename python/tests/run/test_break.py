from __future__ import annotations

import os
import signal

import pytest

from ttstack.run.errors import InterruptedRunError
from ttstack.run.interrupts import Interrupts


@pytest.fixture(autouse=True)
def handlers() -> object:
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def test_a_signal_waits_for_a_safe_point_and_later_ones_do_not_rename_it() -> None:
    with Interrupts() as interrupts:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(InterruptedRunError, match="SIGTERM") as caught:
            interrupts.check()
    assert caught.value.exit_code == 130


def test_inside_breaking_it_breaks_at_once_and_only_once() -> None:
    with Interrupts() as interrupts:
        after = []
        with pytest.raises(InterruptedRunError), interrupts.breaking():  # noqa: PT012 - the tidying up is the point
            try:
                os.kill(os.getpid(), signal.SIGHUP)
            finally:
                os.kill(os.getpid(), signal.SIGHUP)  # a second one breaks no tidying up
                after.append("tidied")
        assert after == ["tidied"]
        with pytest.raises(InterruptedRunError), interrupts.breaking():
            after.append("never")
        assert after == ["tidied"]


def test_without_a_signal_everything_is_as_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupts() as interrupts, interrupts.breaking():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before


def test_after_a_signal_further_ones_are_ignored() -> None:
    with Interrupts():
        os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGTERM)
