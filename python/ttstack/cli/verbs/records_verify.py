"""``ttx records verify`` and ``merge``: whether records hold, and records of several hosts in one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.cli.command import leaf, note, print_json, print_table
from ttstack.cli.record_files import add_records, file_of
from ttstack.errors import Exit, UsageError

if TYPE_CHECKING:
    import argparse

    from ttstack.cli.command import Context

_VERIFY = "  ttx records verify\n  ttx records verify --records runs/records.jsonl --json\n"
_MERGE = "  ttx records merge other-host.jsonl\n  ttx records merge a.jsonl b.jsonl --records both.jsonl\n"
_COLUMNS = ("LINE", "RUN", "RULE", "WHAT")
_LEFT = ("FILE", "LINE", "RUN", "KIND", "WHAT")


def add_verify(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``verify``."""
    parser = leaf(
        commands, "verify", "compute again what can be, and name each line that does not hold", _VERIFY, _verify
    )
    add_records(parser)


def add_merge(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``merge``."""
    parser = leaf(commands, "merge", "add the records of other files, each line once", _MERGE, _merge)
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="records.jsonl of another host, or its folder"
    )
    add_records(parser)


def _verify(_context: Context, args: argparse.Namespace) -> int:
    from ttstack.records.store import Store  # noqa: PLC0415 - late, as in every verb: what others need not wait for
    from ttstack.records.verify import verify_stream  # noqa: PLC0415 - as above

    path = file_of(args)
    with Store(path).stream() as (stream, size):
        found = verify_stream(stream, size)
    code = Exit.FAILED if found.findings else Exit.DONE
    if args.json:
        findings = [{"line": f.line, "run": f.run, "rule": f.rule, "message": f.message} for f in found.findings]
        unknown = [{"line": f.line, "run": f.run, "message": f.message} for f in found.unknown]
        told = {"file": str(path), "ok": not findings, "lines": found.lines, "unsealed": found.unsealed}
        print_json({**told, "findings": findings, "unknown": unknown})
        return code
    if found.findings:
        print_table(_COLUMNS, [(str(f.line), f.run, f.rule, f.message) for f in found.findings])
    for entry in found.unknown:
        note(f"{path}:{entry.line}: not all of it is checked: {entry.message}")
    if found.unsealed:
        note(f"{path}: {found.unsealed} lines are of before lines had sums: whether they were changed cannot be told")
    broken = len({finding.line for finding in found.findings})
    note(f"{path}: {broken} of {found.lines} lines do not hold" if broken else f"{path}: all {found.lines} lines hold")
    return code


def _merge(_context: Context, args: argparse.Namespace) -> int:
    from ttstack.host.places import records_file  # noqa: PLC0415 - as above
    from ttstack.records.merge import merge  # noqa: PLC0415 - as above

    sources = [records_file(file) if file.is_dir() else file for file in args.files]
    for file in sources:
        if not file.exists():
            raise UsageError(
                f"there is no file {file}", hint="merge takes a records.jsonl, or its folder", reason="no_records"
            )
    path = file_of(args, must_exist=False)
    done = merge(path, sources)
    if args.json:
        left = [
            {
                "file": str(entry.file),
                "line": entry.line,
                "run": entry.run,
                "kind": entry.kind,
                "message": entry.message,
            }
            for entry in done.left
        ]
        print_json({"file": str(path), "added": done.added, "known": done.known, "left": left})
    else:
        if done.left:
            print_table(_LEFT, [(str(e.file), str(e.line), e.run, e.kind, e.message) for e in done.left])
        note(f"{path}: {done.added} lines added, {done.known} were there, {len(done.left)} left out")
    # A torn line is what a killed writer leaves; there is nothing in it to lose.
    return Exit.FAILED if any(entry.kind != "torn" for entry in done.left) else Exit.DONE
