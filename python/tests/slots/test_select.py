from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttstack.host.types import Card
from ttstack.slots.errors import NoSuchCardError
from ttstack.slots.select import Want, share, want

CARDS = (
    Card("/dev/tenstorrent/1", 1, "0000:01:00.0", "00000401aaaa0001", "53a1", "p150a"),
    Card("/dev/tenstorrent/0", 0, "0000:02:00.0", "", "53a2", "p150a"),
)


@pytest.mark.parametrize("name", ["0000:01:00.0", "01:00.0", "00000401AAAA0001", "blackhole-53a1"])
def test_a_card_has_several_names_and_one_slot(name: str) -> None:
    assert want(1, [name], CARDS) == Want(1, ("00000401aaaa0001",))


def test_two_names_of_one_card_are_refused() -> None:
    with pytest.raises(NoSuchCardError, match="one card"):
        want(2, ["01:00.0", "blackhole-53a1"], CARDS)


@pytest.mark.parametrize(("count", "names"), [(1, ["0000:03:00.0"]), (3, []), (1, [""])])
def test_what_is_not_here_is_refused_and_the_host_is_shown(count: int, names: list[str]) -> None:
    with pytest.raises(NoSuchCardError, match=r"0000:02:00\.0"):
        want(count, names, CARDS)


def test_any_gets_from_what_older_requests_leave() -> None:
    assert share(Want(1), [], ["a", "b"]) == ("a", "b")
    assert share(Want(1), [Want(1)], ["a", "b"]) == ("b",)
    assert share(Want(1), [Want(2)], ["a"]) == ()  # a mesh waits for its second card and keeps the first
    assert share(Want(1), [Want(1, ("b",))], ["a", "b"]) == ("a",)
    assert share(Want(2, ("a", "b")), [], ["a", "b"]) == ("a", "b")
    assert share(Want(2, ("a", "b")), [], ["a"]) == ()
    assert share(Want(2, ("a", "b")), [Want(1, ("b",))], ["a", "b"]) == ()


WANTS = st.one_of(
    st.integers(1, 3).map(Want),
    st.sets(st.sampled_from("abc"), min_size=1).map(lambda ids: Want(len(ids), tuple(sorted(ids)))),
)


@given(st.lists(WANTS, min_size=1, max_size=6), st.sets(st.sampled_from("abc")))
def test_the_oldest_is_never_held_up_by_the_younger_and_no_card_goes_to_two(line: list[Want], free: set[str]) -> None:
    cards = sorted(free)
    first = line[0]
    can = len(cards) >= first.count if not first.ids else set(first.ids) <= free
    assert bool(share(first, [], cards)) == can
    if can:
        got = share(first, [], cards)[: first.count] if not first.ids else first.ids
        for at, later in enumerate(line[1:], 1):
            # What a younger one may choose never hurts the oldest: enough is left for it.
            taken = set(share(later, line[:at], cards))
            left = [card for card in cards if card not in taken]
            assert first.ids <= tuple(left) if not first.ids else set(first.ids).isdisjoint(taken)
            assert first.ids or len(left) >= first.count
        assert set(got) <= free


def test_the_serial_of_a_board_with_two_chips_names_none_of_them() -> None:
    chips = [
        Card(f"/dev/tenstorrent/{n}", n, f"0000:0{n + 3}:00.0", "0000046511940c01", "", "p300c", shared_serial=True)
        for n in (0, 1)
    ]
    with pytest.raises(NoSuchCardError, match=r"could be 0000:03:00\.0 or 0000:04:00\.0"):
        want(1, ["0000046511940C01"], chips)
    assert want(1, ["04:00.0"], chips).ids == ("0000:04:00.0",)
