"""``ttx report``: what many runs come to, as a page for a browser or as Markdown for a pull request."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.cli.command import note, print_json
from ttstack.cli.since import since
from ttstack.errors import Exit, UsageError

if TYPE_CHECKING:
    import argparse

    from ttstack.cli.command import Context
    from ttstack.records.report.types import Report

EXAMPLES = """\
  ttx report -o report.html
  ttx report --arm prod --since 30d -o prod.html --title "prod in January"
  ttx report last --format md
  ttx report 20260131T2359 20260201T0815 -o two-runs.html
  ttx report here.jsonl there.jsonl -o both.html
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument(
        "records",
        metavar="RECORDS",
        nargs="*",
        help="files of records (.jsonl), or folders that hold one: where to look; and runs, by id or the start of it, "
        "or last: which ones of them. This host's records, and all of their runs, when none is given",
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write it there (stdout when it is left out)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--format", choices=("html", "md"), help="html, one page that needs nothing else (the default), or Markdown"
    )
    form.add_argument("--json", action="store_true", help="what the report is made of as JSON, for programs")
    parser.add_argument("--arm", metavar="ARM", help="only runs of this arm")
    parser.add_argument(
        "--since",
        type=since,
        metavar="WHEN",
        help="only runs since 2026-01-31, 2026-01-31T12:00 (UTC), or 90m, 7d ago",
    )
    parser.add_argument("--title", metavar="TEXT", help="the heading")
    parser.set_defaults(func=_report)


def _report(_context: Context, args: argparse.Namespace) -> int:
    from ttstack.cli.report_runs import choose  # noqa: PLC0415 - help and completion need not wait for it
    from ttstack.records.report.gather import gather  # noqa: PLC0415

    form = "json" if args.json else args.format or _form_of(args.output)
    if form == "html" and args.output is None and sys.stdout.isatty():
        hint = "write it to a file: -o report.html; or choose --format md"
        raise UsageError("a page of HTML is not for a terminal", hint=hint, reason="terminal")
    chosen = choose(args.records, arm=args.arm, since=args.since)
    _spare(args.output, chosen.files)
    report = gather(
        chosen.runs,
        title=args.title or f"Report: {args.arm or ', '.join(chosen.hosts)}",
        files=[file.name for file in chosen.files],
        faults=chosen.faults,
        ab=chosen.ab,
    )
    if args.output is None:
        _print(report, form)
    else:
        _write(args.output, _text(report, form))
        counts = report.counts
        note(f"{args.output}: runs {counts.runs}, measured {counts.measured}, quotable {counts.quotable}")
    return Exit.DONE


def _form_of(output: Path | None) -> str:
    return "md" if output is not None and output.suffix in {".md", ".markdown"} else "html"


def _spare(output: Path | None, files: tuple[Path, ...]) -> None:
    """Refuse to write a report over records."""
    if output is not None and output.exists() and any(file.exists() and output.samefile(file) for file in files):
        raise UsageError(
            f"{output} holds records", hint="give the report another name: -o report.html", reason="is_records"
        )


def _print(report: Report, form: str) -> None:
    if form == "json":
        from ttstack.records.build import jsonable  # noqa: PLC0415 - as above

        print_json(jsonable(report))
    else:
        print(_text(report, form), end="")


def _text(report: Report, form: str) -> str:
    if form == "html":
        from ttstack.records.report.html import html_page  # noqa: PLC0415 - late: pygal and jinja2 are slow to import

        return html_page(report)
    if form == "md":
        from ttstack.records.report.markdown import markdown  # noqa: PLC0415 - as above

        return markdown(report)
    import json  # noqa: PLC0415 - as above

    from ttstack.records.build import jsonable  # noqa: PLC0415

    return json.dumps(jsonable(report), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _write(path: Path, text: str) -> None:
    data = text.encode("utf-8", "replace")
    if path.exists() and not path.is_file():  # a pipe, a terminal: nothing that another file could take the place of
        path.write_bytes(data)
        return
    from ttstack.host.files import write_atomic  # noqa: PLC0415 - as above

    write_atomic(path.resolve(), data)
