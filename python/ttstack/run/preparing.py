"""From what was asked and the cards that were got to what the supervisor is to start."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ttstack.render.build import build_launch
from ttstack.render.cards import choose_cards
from ttstack.run.plan import Plan

if TYPE_CHECKING:
    from ttstack.arm.types import Asked
    from ttstack.host.types import Card, Places
    from ttstack.render.launch import Launch
    from ttstack.run.options import Options
    from ttstack.slots.take import Slot


def on_cards(asked: Asked, options: Options) -> Asked:
    """Put the cards that the caller names in the place of the arm's; only for finding these cards."""
    if not options.cards:
        return asked
    arm = asked.arm
    return replace(asked, arm=replace(arm, cards=replace(arm.cards, ids=options.cards)))


def launch_of(asked: Asked, places: Places, options: Options, run: str, slot: Slot) -> Launch:
    """Render one run's launch. Raises RenderError."""
    return build_launch(
        asked,
        choose_cards(on_cards(asked, options), slot.cards),
        run_id=run,
        slots=[card.id for card in slot.cards],
        cache_root=str(places.cache),
        engine_command=options.engine_command,
    )


def plan_of(asked: Asked, launch: Launch, places: Places, options: Options, cards: tuple[Card, ...]) -> Plan:
    """Put together what the supervisor is told; it does not say yet whether the tensor cache is to be built."""
    return Plan(
        run=launch.labels["ttstack.run"],
        arm=asked.arm.name,
        launch=launch,
        extra_env=options.extra_env,
        boot_timeout_s=asked.arm.engine.boot_timeout_s,
        cards=cards,
        locks=places.locks,
        legacy=options.legacy,
        simulated=places.simulated,
        limits=options.limits_on(places),
    )
