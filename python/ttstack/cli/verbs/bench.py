"""``ttx bench``: measure a server that is there, whoever runs it."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.cli.command import add_json, print_json
from ttstack.cli.streams import told
from ttstack.cli.suites import add_suite, print_cells, settings_of
from ttstack.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from ttstack.cli.command import Context
    from ttstack.run.foreign import Found

EXAMPLES = """\
  ttx bench http://127.0.0.1:8000                    the smoke suite
  ttx bench http://127.0.0.1:8000 --suite infbench --set runs=10 --set concurrency=1,8,32
  ttx bench https://example.org/llm --model m --api-key-env LLM_KEY --suite sweep32k --json
  ttx bench http://127.0.0.1:8000 --suite soak --settings night.toml -o soak.json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("url", metavar="URL", help="http[s]://host[:port][/prefix], what stands before /v1")
    add_suite(parser)
    parser.add_argument("--model", default="", metavar="NAME", help="which model; needed where the server has several")
    parser.add_argument(
        "--max-model-len", type=count, metavar="N", help="tokens that a request may have, where the server does not say"
    )
    parser.add_argument("--max-num-seqs", type=count, metavar="N", help="requests that the server computes at once")
    parser.add_argument(
        "--api-key-env", default="", metavar="VARIABLE", help="the environment variable with the bearer token"
    )
    add_json(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write that JSON to a file as well")
    parser.set_defaults(func=_bench)


def count(text: str) -> int:
    """Read a number of tokens or requests, for argparse."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def _bench(_context: Context, args: argparse.Namespace) -> int:
    from ttstack.cli.checklist import checklist  # noqa: PLC0415 - help and completion need not wait for it
    from ttstack.cli.command import note  # noqa: PLC0415
    from ttstack.host.places import find_places  # noqa: PLC0415
    from ttstack.run.foreign import Wanted, measure_foreign  # noqa: PLC0415

    _check_url(args.url)
    wanted = Wanted(
        url=args.url,
        suite=args.suite,
        settings=settings_of(args),
        model=args.model,
        max_model_len=args.max_model_len,
        max_num_seqs=args.max_num_seqs,
        token=_token(args.api_key_env),
        token_name=args.api_key_env,
    )
    places = find_places(simulated=False, environ=os.environ)
    with checklist(f"ttx bench {args.url}: suite {args.suite}", phases=("check", "measure")) as reporter:
        found = measure_foreign(wanted, places, reporter)
    if found.error is not None:
        note(f"ttx: {found.error}")
    if args.output is not None:
        _write(args.output, found)
    with told():
        if args.json:
            print_json(found.closed)
        else:
            _show(found)
    return found.exit_code


def _check_url(url: str) -> None:
    """Refuse what is no URL as what it is: a fault of the command line. Raises UsageError."""
    from ttstack.bench.client.endpoint import Endpoint  # noqa: PLC0415 - help and completion need not wait for it
    from ttstack.bench.errors import BenchError  # noqa: PLC0415

    try:
        Endpoint.of(url)
    except BenchError as error:
        raise UsageError(error.message, hint=error.hint, reason="bad_url") from error


def _token(variable: str) -> str:
    if not variable:
        return ""
    token = os.environ.get(variable, "").strip()
    if not token:
        raise UsageError(f"--api-key-env: there is no {variable}", hint=f"export {variable}=...", reason="no_token")
    return token


def _write(path: Path, found: Found) -> None:
    from ttstack.host.files import write_json  # noqa: PLC0415 - only when it is asked for

    write_json(path, found.closed)


def _show(found: Found) -> None:
    if found.measured is not None:
        print_cells(found.measured)
    print(f"outcome  {found.closed['outcome']}, exit {int(found.exit_code)}")
    print(f"more     ttx records show {found.run}")
