from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ttstack.arm.digest import arm_digest
from ttstack.arm.load import load
from ttstack.arm.shelf import find_shelf
from ttstack.cli.ab_cell import _beside
from ttstack.errors import UsageError
from ttstack.host.cards import inventory
from ttstack.run.ab.cell import CellOrder
from ttstack.run.ab.plan import beside, check_pairs, choose_mode
from ttstack.slots.errors import NoSuchCardError

if TYPE_CHECKING:
    from conftest import World

    from ttstack.arm.types import Asked

FIRST, SECOND = "0000:01:00.0", "0000:02:00.0"


def asked(world: World, name: str, cards: str = "count = 1") -> Asked:
    return load(str(world.arm(name, cards=cards)), find_shelf(world.base / "arms", {}, world.base))


def chosen(world: World, a: str, b: str, *, one_at_a_time: bool = False) -> tuple[str, list[int]]:
    cards = inventory(world.places.roots)
    mode, ids = choose_mode(asked(world, "a", a), asked(world, "b", b), cards, one_at_a_time=one_at_a_time)
    return mode, [[card.id for card in cards].index(each) for each in ids]


@pytest.mark.parametrize(
    ("a", "b", "one_at_a_time", "expected"),
    [
        ("count = 1", "count = 1", False, ("swap", [0, 1])),
        ("count = 1", "count = 1", True, ("turns", [0])),
        ("count = 2", "count = 2", False, ("turns", [0, 1])),
        ("count = 2", "count = 1", False, ("turns", [0, 1])),
        (f'ids = ["{SECOND}"]', "count = 1", True, ("turns", [1])),
        (f'ids = ["{SECOND}"]', f'ids = ["{FIRST}"]', False, ("swap", [0, 1])),
        (f'ids = ["{SECOND}"]', f'ids = ["{SECOND}"]', False, ("swap", [0, 1])),
    ],
)
def test_both_at_once_where_each_takes_one_of_two(
    world: World,
    a: str,
    b: str,
    one_at_a_time: bool,  # noqa: FBT001 - a table's column
    expected: tuple[str, list[int]],
) -> None:
    assert chosen(world, a, b, one_at_a_time=one_at_a_time) == expected


def test_one_card_for_two_arms_that_name_others_is_refused(world: World) -> None:
    with pytest.raises(UsageError, match="name 2 cards, and this A/B has a place for 1"):
        chosen(world, f'ids = ["{SECOND}"]', f'ids = ["{FIRST}"]', one_at_a_time=True)


def test_more_cards_than_there_are_is_refused(world: World) -> None:
    with pytest.raises(NoSuchCardError):
        chosen(world, 'count = 3\nmesh = "(1,3)"', "count = 1")


def test_an_arm_beside_itself_has_a_port_and_a_name_of_its_own(world: World) -> None:
    a = asked(world, "a")
    twin = beside(a, a)
    assert (twin.arm.name, twin.arm.engine.port) == ("a-b", a.arm.engine.port + 1)
    other = asked(world, "other")
    assert beside(a, other) == other
    assert arm_digest(beside(a, other)) == arm_digest(other)


def test_a_run_has_the_name_and_the_port_of_its_order(world: World) -> None:
    a = asked(world, "a")
    twin = beside(a, a)
    arm = twin.arm
    order = CellOrder(str(arm.file), arm.name, arm.engine.port, ("c1",), "smoke", {}, None, None, 1)
    assert _beside(a, order) == twin


@pytest.mark.parametrize(("pairs", "why"), [(5, "odd"), (2, "noise"), (0, "noise"), (-4, "noise"), (-3, "odd")])
def test_pairs_that_cannot_be_balanced_or_tell_nothing_are_refused(pairs: int, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        check_pairs(pairs)
    check_pairs(4)
