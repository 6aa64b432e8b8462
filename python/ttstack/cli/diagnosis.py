"""What ``ttx doctor`` shows: progress when it takes long, the findings for people, everything for programs."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from ttstack.cli.streams import say
from ttstack.printable import printable
from ttstack.records.build import jsonable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ttstack.doctor.checkup import Report
    from ttstack.doctor.types import Finding

SILENT_S = 2.0  # what takes no longer needs no progress
_MARKS = {"ok": ("ok", "green"), "note": ("note", "cyan"), "warn": ("WARN", "yellow"), "bad": ("BAD", "bold red")}


@contextmanager
def waited(stream: TextIO, clock: Callable[[], float]) -> Iterator[Callable[[Sequence[str]], None]]:
    """Give what to tell of questions without an answer; after two seconds it shows them, live on a terminal."""
    begun = clock()
    with ExitStack() as shown:
        show: Callable[[str], None] | None = None

        def waiting(names: Sequence[str]) -> None:
            nonlocal show
            if clock() - begun < SILENT_S:
                return
            if show is None:
                show = shown.enter_context(_live(stream))
            show(f"{clock() - begun:.0f} s, waiting for: {', '.join(names)}")

        yield waiting


@contextmanager
def _live(stream: TextIO) -> Iterator[Callable[[str], None]]:
    if stream.isatty():
        from rich.console import Console  # noqa: PLC0415 - only on a terminal

        console = Console(file=stream, highlight=False)
        if not console.is_dumb_terminal:
            with console.status("") as status:
                yield lambda text: status.update(printable(text))
            return
    said: list[str] = []

    def once(text: str) -> None:
        names = text.partition("waiting for: ")[2]
        if names not in said:  # a line for each change
            said.append(names)
            say(f"ttx: {text}")

    yield once


def show(report: Report, stream: TextIO) -> None:
    """Print the findings by section, the worst news last."""
    say_line = _printer(stream)
    for section, found in _sections(report.findings):
        say_line(section, "bold")
        for finding in found:
            mark, style = _MARKS[finding.level]
            say_line(f"  {mark:<4}  {printable(finding.text)}", style if finding.level != "ok" else "")
            if finding.hint and finding.level != "ok":
                say_line(f"        {printable(finding.hint)}", "dim")
    say_line(_last(report), _MARKS[report.level][1])


def _printer(stream: TextIO) -> Callable[[str, str], None]:
    if not stream.isatty():
        return lambda text, _style: print(text, file=stream)
    from rich.console import Console  # noqa: PLC0415 - only on a terminal

    console = Console(file=stream, highlight=False)
    return lambda text, style: console.print(text, style=style or None, markup=False, soft_wrap=True)


def _sections(findings: Sequence[Finding]) -> Iterator[tuple[str, list[Finding]]]:
    for name in dict.fromkeys(finding.section for finding in findings):
        yield name, [finding for finding in findings if finding.section == name]


def _last(report: Report) -> str:
    counts = {level: sum(finding.level == level for finding in report.findings) for level in ("bad", "warn")}
    if not any(counts.values()):
        return "nothing is wrong"
    reboot = "REBOOT RECOMMENDED; " if any(finding.code == "memory.reboot" for finding in report.findings) else ""
    return f"{reboot}{counts['bad']} to mend, {counts['warn']} to look at"


def entry_of(report: Report) -> dict[str, Any]:
    """Describe an examination for programs."""
    return {
        "level": report.level,
        "seconds": round(report.seconds, 3),
        "findings": [{"section": each.section, **_table(each)} for each in report.findings],
        "memory": _memory(report),
        "scan": jsonable(report.scan),
        "probes": {name: _probe(outcome) for name, outcome in report.outcomes.items()},
    }


def _table(value: object) -> dict[str, Any]:
    table = jsonable(value)
    assert isinstance(table, dict)  # noqa: S101 - of a dataclass
    return table


def _memory(report: Report) -> dict[str, Any] | None:
    if report.verdict is None:
        return None
    seen = report.outcomes["memory"].value.memory
    pins = seen.pins
    return {
        "residual": report.verdict.residual if seen.known else None,
        "certain": seen.certain if seen.known else None,
        "baseline": jsonable(report.baseline),
        "baseline_not_kept": report.baseline_kept,
        "above": report.verdict.above if seen.known else None,
        "reboot_limit": report.verdict.limit,
        "pinned": pins.outstanding if pins else None,
    }


def _probe(outcome: Any) -> dict[str, Any]:  # noqa: ANN401 - an Outcome
    return {
        "seconds": round(outcome.seconds, 3),
        "trouble": outcome.trouble,
        "late": outcome.late,
        "value": jsonable(outcome.value),
    }
