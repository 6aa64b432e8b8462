"""The two lines of a run: what is asked, what is known so far, and the close, by whoever is left to write it."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ttstack.arm.digest import arm_digest, model_digest, pin_digest
from ttstack.arm.key import cache_key
from ttstack.host.conditions import clock_synchronised, cpu_governor, load_average
from ttstack.host.errors import HostError
from ttstack.host.files import read_json, write_json
from ttstack.host.filesystems import filesystem_of
from ttstack.host.machine import cpu_model, memory_available, memory_bytes
from ttstack.host.places import records_file
from ttstack.host.process import boot_id
from ttstack.records.build import closing, jsonable
from ttstack.records.context import HostFacts, HostState
from ttstack.records.parse import closed
from ttstack.records.schema import violation
from ttstack.records.store import Store
from ttstack.records.types import AskedRecord, CacheAsked, CardSeen, Observed
from ttstack.render.cards import choose_cards

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ttstack.arm.types import Asked
    from ttstack.host.types import Card
    from ttstack.records.log import Log
    from ttstack.records.types import Identity, Json, Measured, Outcome, Phase
    from ttstack.run.options import Options
    from ttstack.run.state import RunFolder


def store_of(state: Path) -> Store:
    """Return the records of this host."""
    return Store(records_file(state))


def asked_record(asked: Asked, argv: tuple[str, ...], options: Options) -> AskedRecord:
    """Put together what was asked, complete enough to ask for it again."""
    key = cache_key(asked)
    return AskedRecord(
        arm_digest=arm_digest(asked),
        pin_digest=pin_digest(asked.pin),
        model_digest=model_digest(asked.model),
        arm=_mapping(asked.arm),
        pin=_mapping(asked.pin),
        model=_mapping(asked.model),
        cards=options.cards or asked.arm.cards.ids,
        card_count=asked.arm.cards.count,
        cache=CacheAsked(key.key, _mapping(key.inputs)),
        argv=argv,
        secrets=asked.arm.engine.secrets,
        suite=options.suite if options.verb == "run" else "",
        settings=options.settings if options.verb == "run" else {},
    )


def host_facts(cache: Path) -> HostFacts:
    """Look at the machine, as far as a reader of numbers must know it. ``cache``: where the tensor caches are.

    Raises HostError.
    """
    try:
        free = filesystem_of(cache).free
    except HostError:
        free = None  # whether a run may go on without it is for others to say
    return HostFacts(
        hostname=platform.node(),
        boot_id=boot_id(),
        kernel=platform.release(),
        cpu_count=os.cpu_count() or 1,
        cpu_model=cpu_model(),
        memory_bytes=memory_bytes(),
        python=platform.python_version(),
        state=HostState(
            load=load_average(),
            memory_available_bytes=memory_available(),
            cpu_governor=cpu_governor(),
            cache_free_bytes=free,
            clock_synchronised=clock_synchronised(),
        ),
    )


def cards_seen(asked: Asked, cards: Sequence[Card]) -> tuple[CardSeen, ...]:
    """Tell of the cards that a run has, in the order in which its engine counts them."""
    return tuple(
        CardSeen(card.id, card.bdf, card.node, card.serial, card.firmware, card.driver, card.board, inner)
        for inner, card in enumerate(choose_cards(asked, cards))
    )


def _mapping(value: object) -> Mapping[str, Json]:
    made = jsonable(value)
    if not isinstance(made, dict):
        raise TypeError(f"{type(value).__name__} is no table")
    return made


@dataclass(slots=True)
class Draft:
    """What is known of a run so far."""

    phases: list[Phase] = field(default_factory=list)
    observed: Observed = field(default_factory=Observed)
    identity: Identity | None = None
    measured: Measured | None = None

    def line(self, run: str, outcome: Outcome, exit_code: int, reason: str = "", text: str = "") -> dict[str, Json]:
        """Make the closing line."""
        return closing(
            run=run,
            outcome=outcome,
            exit_code=exit_code,
            reason=reason,
            text=text,
            phases=self.phases,
            observed=self.observed,
            identity=self.identity,
            measured=self.measured,
        )

    def save(self, folder: RunFolder) -> None:
        """Keep it beside the log, for whoever must close the run in our place. Raises HostError."""
        write_json(folder.draft, self.line(folder.run, "ok", 0))


def load_draft(folder: RunFolder) -> Draft:
    """Read what was known; an empty one when nothing was kept, or what is there is no draft: the close needs none."""
    try:
        table = read_json(folder.draft)
    except HostError:
        return Draft()
    if table.get("kind") != "close" or violation(table, strict=False):
        return Draft()
    line = closed(table)
    return Draft(list(line.phases), line.observed or Observed(), line.identity, line.measured)


def close_left(  # noqa: PLR0913, PLR0917 - what a close says
    store: Store, folder: RunFolder, outcome: Outcome, exit_code: int, reason: str, text: str
) -> dict[str, Json] | None:
    """Close a run that its owner left open; None when it is closed already, or was never opened."""
    line = load_draft(folder).line(folder.run, outcome, exit_code, reason, text)

    def settled(log: Log) -> bool:
        return not any(run.id == folder.run and run.close_line is None for run in log.runs)

    return line if store.append(line, unless=settled) else None
