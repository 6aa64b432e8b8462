"""The suites by name, and what each is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ttstack.bench.suites.infbench import Infbench, run_infbench
from ttstack.bench.suites.settings import read_settings, read_table
from ttstack.bench.suites.smoke import Smoke, run_smoke
from ttstack.bench.suites.soak import Soak, run_soak
from ttstack.bench.suites.sweep32k import Sweep32k, run_sweep32k
from ttstack.errors import UsageError
from ttstack.near import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ttstack.bench.suites.session import Listener, Target
    from ttstack.records.types import Measured


@dataclass(frozen=True, slots=True)
class Suite:
    """A fixed set of measurements of one server, with its settings."""

    name: str
    summary: str
    settings: type[Any]
    function: Callable[[Target, Any, Listener], Measured]

    def read(
        self, table: Mapping[str, object] | None = None, words: Sequence[str] = (), file: Path | None = None
    ) -> Any:  # noqa: ANN401 - each suite has its own
        """Make settings from a file's table of this suite, then ``table``, then ``KEY=VALUE``. Raises UsageError."""
        tables = {} if file is None else read_table(file, self.name, SUITES)
        return read_settings(self.settings, self.name, {**tables, **(table or {})}, words)

    def measure(self, target: Target, settings: Any, listener: Listener) -> Measured:  # noqa: ANN401 - as above
        """Measure. A server that fails is a result, not an error; what the listener raises ends the suite."""
        return self.function(target, settings, listener)


SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite("smoke", "whether a server answers as its API promises", Smoke, run_smoke),
        Suite("sweep32k", "prefill and decode from 1k to 32k tokens", Sweep32k, run_sweep32k),
        Suite("infbench", "PP and TG of one request, then of more and more at once", Infbench, run_infbench),
        Suite("soak", "a mixed load for minutes or hours: drift, memory, temperature and clock", Soak, run_soak),
    )
}


def find_suite(name: str) -> Suite:
    """Return a suite. Raises UsageError that names the nearest one."""
    try:
        return SUITES[name]
    except KeyError:
        hint = did_you_mean(name, SUITES) or f"there are: {', '.join(SUITES)}"
        raise UsageError(f"unknown suite {name!r}", hint=hint, reason="unknown_suite") from None
