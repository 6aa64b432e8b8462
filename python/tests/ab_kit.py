"""Records of A/Bs that nobody ran, for tests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from ttstack.bench.ab.design import orders
from ttstack.records.build import closing, opening
from ttstack.records.context import AbPlace, HostFacts
from ttstack.records.store import Store
from ttstack.records.types import (
    AskedRecord,
    CardSeen,
    Identity,
    IdentityCheck,
    Measured,
    MeasuredCheck,
    Observed,
    Owner,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ttstack.records.log import RunRecord
    from ttstack.records.types import Json

HOST = HostFacts("cardhost", "b-1", "6.12.0", 2, "some cpu", 8_000_000_000, "3.11.2")
CARDS = {"c0": "0000:01:00.0", "c1": "0000:02:00.0", "c2": "0000:03:00.0", "z": "0000:00:07.0"}
TOOL = {"name": "ttx", "version": "1", "source": "git", "place": "/src", "commit": "0" * 40}
YES = Identity((IdentityCheck("served_root", ok=True),))
NO = Identity((IdentityCheck("served_root", ok=False),))
ANSWERS = {"count": "one two three", "sum": "ninety-two"}


def asked(arm: Mapping[str, Json], cards: Sequence[str], **change: Any) -> AskedRecord:  # noqa: ANN401 - any field
    table: dict[str, Any] = {
        "arm_digest": "a" * 64,
        "pin_digest": "b" * 64,
        "model_digest": "c" * 64,
        "arm": arm,
        "pin": {"name": "current", "file": "/pins/current.toml"},
        "model": {"name": "tiny"},
        "cards": tuple(cards),
        "card_count": len(cards),
        "cache": None,
        "argv": ("vllm", "serve", str(arm["engine"])),
        "secrets": (),
        "suite": "smoke",
    }
    return AskedRecord(**{**table, **change})


def arm(name: str = "prod", **engine: Json) -> dict[str, Json]:
    """Make an arm as records have it."""
    return {
        "name": name,
        "file": f"/arms/{name}.toml",
        "description": f"arm {name}",
        "engine": {"port": 8000, "args": {}, **engine},
        "cards": {"count": 1, "ids": [], "mesh": "P150"},
    }


def measured(values: Mapping[str, float], outputs: Mapping[str, str], **change: Any) -> Measured:  # noqa: ANN401
    """Make what a suite found: three samples around each value, which is their median."""
    samples = {name: (value * 0.9, value, value * 1.2) for name, value in values.items()}
    made = Measured("smoke", (MeasuredCheck("all", ok=True),), samples, requests=3, outputs=outputs)
    return replace(made, **change)


@dataclass
class Book:
    """A file of records to which A/Bs are added."""

    path: Path
    count: int = 0

    def add(  # noqa: PLR0913 - by name
        self,
        place: AbPlace | None,
        values: Mapping[str, float] | float = 1.0,
        *,
        cards: Sequence[str] = ("c0",),
        this: Mapping[str, Json] | None = None,
        outputs: Mapping[str, str] | None = None,
        identity: Identity = YES,
        image: str = "sha256:1",
        host: HostFacts = HOST,
        close: bool = True,
        dirty: str = "",
        asks: Mapping[str, Any] | None = None,
        suite: Mapping[str, Any] | None = None,
        **closes: Any,  # noqa: ANN401 - any field
    ) -> str:
        """Write the lines of a run; a run that did not go well has nothing measured."""
        run = f"r-{self.count:04}"
        self.count += 1
        store = Store(self.path)
        which = arm() if this is None else this
        line = opening(
            run=run,
            verb="run",
            arm=str(which["name"]),
            asked=asked(which, **{"cards": cards, **(asks or {})}),
            owner=Owner(4242, 99, host.boot_id),
            host=host,
            simulated=False,
            ab=place,
        )
        store.append({**line, "tool": {**TOOL, "dirty": dirty}})
        if not close:
            return run
        given = {"request_s": values} if isinstance(values, int | float) else values
        well = closes.get("outcome", "ok") == "ok" and identity is YES
        made = measured(given, ANSWERS if outputs is None else outputs, **(suite or {})) if well else None
        seen = Observed(tuple(CardSeen(card, CARDS[card], f"/dev/{card}") for card in cards), image=image, cache="hit")
        filled = {"outcome": "ok", "exit_code": 0, "identity": identity, "observed": seen, "measured": made, **closes}
        store.append(closing(run=run, **filled))
        return run

    def runs(self) -> Sequence[RunRecord]:
        """Read all of it back."""
        log = Store(self.path).read()
        assert log.faults == ()
        return log.runs


def place(
    pair: int,
    side: Literal["A", "B"],
    *,
    pairs: int = 4,
    turns: bool = False,
    attempt: int = 0,
    **change: Any,  # noqa: ANN401
) -> AbPlace:
    """Make the place of a run as ``design.planned`` has it."""
    first = orders(pairs)[pair % pairs]
    order: Literal["ab", "ba", ""] = ("ab" if first else "ba") if turns else ""
    position = (2 * pair + (0 if first == (side == "A") else 1)) if turns else pair
    made = AbPlace("ab-1", pairs, "request_s", False, pair, side, order, position, attempt)  # noqa: FBT003 - its order
    return replace(made, **change)


def swap_cards(pair: int, side: Literal["A", "B"], pairs: int = 4) -> tuple[str, ...]:
    """Say which card a side has in a swap."""
    return ("c0",) if orders(pairs)[pair % pairs] == (side == "A") else ("c1",)


def swapped(book: Book, a: Sequence[float], b: Sequence[float], **more: Any) -> None:  # noqa: ANN401 - of both sides
    """Add an A/B whose arms change cards, with a value for each boot. ``b_*`` is of B's runs alone."""
    theirs = {name.removeprefix("b_"): more.pop(name) for name in list(more) if name.startswith("b_")}
    changes = more.pop("plan", {})
    for pair, (one, two) in enumerate(zip(a, b, strict=True)):
        for side, value, extra in (("A", one, {}), ("B", two, theirs)):
            where = place(pair, side, **{"pairs": len(a), **changes})  # type: ignore[arg-type]
            book.add(where, value, cards=swap_cards(pair, side, where.pairs), **{**more, **extra})  # type: ignore[arg-type]
