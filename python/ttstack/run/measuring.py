"""The suite of a run: what is measured of an engine that is what was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ttstack.bench.client.endpoint import Endpoint
from ttstack.bench.suites.registry import find_suite
from ttstack.bench.suites.session import Listener, Target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ttstack.arm.types import Asked
    from ttstack.host.types import Card, Places
    from ttstack.records.types import Cell, Measured, MeasuredCheck
    from ttstack.run.options import Options
    from ttstack.run.report import Reporter


def target_of(asked: Asked, places: Places, cards: Sequence[Card], url: str, max_model_len: int | None) -> Target:
    """Say what a suite measures: the server of a run, on its cards."""
    most = asked.arm.engine.args.get("max-num-seqs")
    return Target(
        endpoint=Endpoint.of(url),
        model=asked.model.served_name,
        max_model_len=max_model_len,
        max_num_seqs=most if type(most) is int and most > 0 else None,
        simulated=places.simulated,
        cards=tuple(cards),
        roots=places.roots,
    )


def measure(target: Target, options: Options, reporter: Reporter, interrupted: Callable[[], None]) -> Measured:
    """Run the suite that was asked for. ``interrupted`` raises when it is time to end."""
    suite = find_suite(options.suite)
    return suite.measure(target, suite.read(options.settings), listener_of(reporter, interrupted))


def listener_of(reporter: Reporter, interrupted: Callable[[], None]) -> Listener:
    """Pass on to a run's reporter what a suite tells."""

    def check(found: MeasuredCheck) -> None:
        reporter.check(found.name, ok=found.ok, detail="" if found.ok else found.detail)

    def cell(found: Cell) -> None:
        reporter.check(f"cell {found.name}", ok=found.valid, detail="; ".join(found.reasons or found.notes))

    return Listener(check, cell, interrupted)
