"""What a whole run writes of itself: when each phase began, its cards, the host's state, the code."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ttstack.host.cards import inventory
from ttstack.records.code import this_tool
from ttstack.records.verify import verify_stream

if TYPE_CHECKING:
    from conftest import World


def _moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def test_a_run_tells_all_of_it(world: World) -> None:
    cards = inventory(world.places.roots)
    other = f'count = 2\nids = ["{cards[1].id}", "{cards[0].id}"]'  # not in the order of the bus
    result = world.execute(world.arm(cards=other, mesh="P150x2"))
    run = world.record(result.run)
    opened, closed = run.opened, run.closed
    assert closed is not None
    assert closed.observed is not None
    seen = closed.observed.cards
    assert [card.inner for card in seen] == [0, 1]
    assert [card.id for card in seen] == [cards[1].id, cards[0].id]
    by_id = {card.id: card for card in cards}
    for card in seen:
        there = by_id[card.id]
        assert (card.bdf, card.node, card.serial, card.board) == (there.bdf, there.node, there.serial, there.board)
        assert (card.firmware, card.driver) == (there.firmware, there.driver)
        assert card.firmware
        assert card.driver
    starts = [_moment(phase.start) for phase in closed.phases]
    assert len(starts) >= 6
    for before, phase, after in zip(starts, closed.phases, starts[1:], strict=False):
        assert (after - before).total_seconds() >= phase.seconds - 0.002  # one after the other, to the millisecond
    state = opened.host.state
    assert state is not None
    assert len(state.load) == 3
    assert state.memory_available_bytes
    assert state.cache_free_bytes
    assert opened.tool == this_tool()
    assert opened.ab is None
    with world.store.stream() as (stream, size):
        found = verify_stream(stream, size)
    assert (found.lines, found.findings, found.unknown, found.unsealed) == (2, (), (), 0)
