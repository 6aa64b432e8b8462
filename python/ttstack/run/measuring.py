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
    from ttstack.records.types import Measured, MeasuredCheck
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

    def hear(check: MeasuredCheck) -> None:
        reporter.check(check.name, ok=check.ok, detail=check.detail)

    suite = find_suite(options.suite)
    return suite.measure(target, suite.read(options.settings), Listener(hear, interrupted))
