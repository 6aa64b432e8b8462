"""One run for people: sections of names and values, with colours on a terminal."""

from __future__ import annotations

import json
import os
import shlex
import sys
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

from ttstack.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ttstack.records.context import HostState, Tool
    from ttstack.records.log import RunRecord
    from ttstack.records.types import CacheWork, Closed, Json

Mark = Literal["", "good", "bad", "unknown"]
_STYLE = {"": "", "good": "green", "bad": "bold red", "unknown": "yellow"}
_FEW = 4  # samples that are printed one by one


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a section."""

    name: str
    value: str
    mark: Mark = ""


Sections = dict[str, list[Row]]


def print_record(run: RunRecord) -> None:
    """Print a run on stdout."""
    found = sections(run)
    width = max(len(row.name) for rows in found.values() for row in rows)
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        _print_rich(found, width)
        return
    for title, rows in found.items():
        print(title)
        for row in rows:
            print(f"  {row.name:<{width}}  {row.value}".rstrip())


def _print_rich(found: Sections, width: int) -> None:
    from rich.console import Console  # noqa: PLC0415 - late: it takes longer to import than all the rest
    from rich.text import Text  # noqa: PLC0415 - as above

    console = Console(highlight=False)
    for title, rows in found.items():
        console.print(Text(title, "bold"))
        for row in rows:
            line = Text.assemble("  ", (f"{row.name:<{width}}", "dim"), "  ", (row.value, _STYLE[row.mark]))
            console.print(line, soft_wrap=True)


def sections(run: RunRecord) -> Sections:
    """Put a run into words: what ended how, what was asked, observed, verified, measured, and how long it took."""
    found: Sections = {"run": list(_run(run)), "asked": list(_asked(run)), "host": list(_host(run))}
    if run.closed is not None:
        found["observed"] = list(_observed(run.closed))
        found["identity"] = list(_identity(run.closed))
        found["measured"] = list(_measured(run.closed))
        found["phases"] = [Row(phase.name, f"{phase.seconds:.3f} s  {phase.start}") for phase in run.closed.phases]
    return {
        title: [Row(printable(row.name), printable(row.value), row.mark) for row in rows]
        for title, rows in found.items()
        if rows
    }


def _run(run: RunRecord) -> Iterator[Row]:
    opened, closed = run.opened, run.closed
    yield Row("id", run.id)
    yield Row(
        "what", f"{opened.verb} {opened.arm}" + (" (simulated: no card was involved)" if opened.simulated else "")
    )
    yield Row("opened", opened.time)
    if closed is not None:
        yield Row("closed", closed.time)
    mark: Mark = "good" if run.outcome == "ok" else "unknown" if run.outcome == "running" else "bad"
    code = f", exit code {closed.exit_code}" if closed else ""
    yield Row("outcome", f"{run.outcome}{code}", mark)
    if closed is not None and closed.reason:
        yield Row("reason", f"{closed.reason}: {closed.text}", "bad")
    if closed is None:
        yield Row("owner", f"process {opened.owner.pid}, {'alive' if run.alive else 'gone: it never closed the run'}")
    if opened.ab is not None:
        yield Row("A/B", f"{opened.ab.id}, pair {opened.ab.pair}, side {opened.ab.side}, attempt {opened.ab.attempt}")
    yield Row("quotable", "yes" if run.quotable else "no", "good" if run.quotable else "bad")
    for reason in run.not_quotable:
        yield Row("", f"- {reason}")


def _asked(run: RunRecord) -> Iterator[Row]:
    asked = run.opened.asked
    for name in ("arm", "pin", "model"):
        digest = str(getattr(asked, f"{name}_digest"))
        yield Row(name, f"{getattr(asked, name).get('name', '')}  {digest[:16]}".strip())
    yield Row("cards", ", ".join(asked.cards) or f"any {asked.card_count}")
    if asked.cache is not None:
        yield Row("cache key", asked.cache.key)
    yield Row("command", shlex.join(asked.argv))
    if asked.secrets:
        yield Row("secrets", f"{', '.join(asked.secrets)} (by name)")
    yield Row("suite", asked.suite or "none")


def _host(run: RunRecord) -> Iterator[Row]:
    host = run.opened.host
    memory = f", {host.memory_bytes / 2**30:.0f} GiB" if host.memory_bytes else ""
    yield Row("name", host.hostname)
    yield Row("machine", f"{host.cpu_count} cpus{f' ({host.cpu_model})' if host.cpu_model else ''}{memory}")
    yield Row("kernel", host.kernel)
    yield Row("tool", _tool(run.opened.tool))
    if host.state is not None:
        yield Row("state", ", ".join(_state(host.state)))


def _tool(tool: Tool) -> str:
    commit = f", commit {tool.commit[:12]}" if tool.commit else ""
    changed = f" and changes {tool.dirty[:12]}" if tool.dirty else ""
    place = f" ({tool.source} {tool.place}{commit}{changed})" if tool.source else ""
    return f"{tool.name} {tool.version}{place}"


def _state(state: HostState) -> Iterator[str]:
    if state.load:
        yield f"load {' '.join(f'{load:.2f}' for load in state.load)}"
    if state.memory_available_bytes is not None:
        yield f"{state.memory_available_bytes / 2**30:.1f} GiB memory available"
    if state.cpu_governor:
        yield f"governor {state.cpu_governor}"
    if state.cache_free_bytes is not None:
        yield f"{state.cache_free_bytes / 1e9:.1f} GB free for caches"
    if state.clock_synchronised is not None:
        yield f"clock {'' if state.clock_synchronised else 'not '}synchronised"


def _observed(closed: Closed) -> Iterator[Row]:
    seen = closed.observed
    if seen is None:
        return
    for card in seen.cards:
        told = (card.id, card.bdf, card.node, card.board, card.firmware and f"firmware {card.firmware}")
        inner = "" if card.inner is None else f"the engine's {card.inner}"
        driver = card.driver and f"driver {card.driver}"
        yield Row("card", "  ".join(filter(None, (*told, driver, inner))))
    for banner in seen.banners:
        yield Row("banner", banner)
    cache = f"{seen.cache_dir or ''} ({seen.cache})" if seen.cache else seen.cache_dir
    rows = {
        "served root": seen.served_root,
        "max_model_len": seen.max_model_len,
        "engine pid": seen.engine_pid,
        "image": seen.image,
        "cache": cache,
        "log": seen.log,
    }
    for name, value in rows.items():
        if value is not None:
            yield Row(name, str(value))
    if seen.cache_work is not None:
        yield Row("cache work", _work(seen.cache_work))


def _work(work: CacheWork) -> str:
    written = f"{work.bytes_written / 1e9:.3f} GB written in {work.seconds:.1f} s"
    seeded = f", {work.seeded_bytes / 1e9:.3f} GB seeded from {work.seeded_from}" if work.seeded_from else ""
    return f"{written}{seeded}{f', in the place of one that was of no use: {work.replaced}' if work.replaced else ''}"


def _identity(closed: Closed) -> Iterator[Row]:
    if closed.identity is None:
        return
    verdict = closed.identity.verdict
    yield Row("verdict", verdict, "good" if verdict == "confirmed" else "bad")
    for check in closed.identity.checks:
        if check.ok:
            yield Row(check.name, f"yes: {_short(check.found)}", "good")
        elif check.ok is None:
            yield Row(check.name, f"could not be told; expected {_short(check.expected)}", "unknown")
        else:
            yield Row(check.name, f"no: expected {_short(check.expected)}, found {_short(check.found)}", "bad")


def _measured(closed: Closed) -> Iterator[Row]:
    measured = closed.measured
    if measured is None:
        return
    void = f", {measured.void} of them void" if measured.void else ""
    yield Row("suite", f"{measured.suite}, {measured.requests} requests{void}", "good" if measured.ok else "bad")
    for check in measured.checks:
        if check.ok:
            yield Row(check.name, "ok", "good")
        else:
            found = f" (expected {_short(check.expected)}, found {_short(check.found)})"
            yield Row(check.name, f"failed: {check.detail}{found}", "bad")
    for name, samples in measured.values.items():
        yield Row(name, _samples(samples))
    for cell in measured.cells:
        yield Row(cell.name, f"{cell.requests} requests", "good" if cell.valid else "bad")
        for reason in cell.reasons:
            yield Row("", f"- void: {reason}", "bad")
        for note in cell.notes:
            yield Row("", f"- {note}")
        for name, samples in cell.values.items():
            yield Row("", f"{name}  {_samples(samples)}")


def _samples(samples: tuple[float, ...]) -> str:
    if len(samples) <= _FEW:
        return "  ".join(f"{sample:.6g}" for sample in samples) or "no sample"
    return f"median {median(samples):.6g}, {min(samples):.6g} to {max(samples):.6g}, n={len(samples)}"


def _short(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
