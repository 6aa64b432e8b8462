from __future__ import annotations

from itertools import count

from ttstack.run.waiting import longest_stop, wait_until


def test_it_asks_until_the_answer_is_yes() -> None:
    asked = count(1)
    assert wait_until(lambda: next(asked) == 3, 30)
    assert next(asked) == 4


def test_it_asks_once_even_without_time_and_gives_up() -> None:
    asked = count(1)
    assert wait_until(lambda: next(asked) == 1, 0)
    assert not wait_until(lambda: next(asked) < 0, 0)
    assert next(asked) == 3


def test_a_stop_may_take_both_graces_and_more() -> None:
    assert longest_stop(60) > 120
