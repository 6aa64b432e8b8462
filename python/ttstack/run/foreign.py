"""A server that somebody else runs, measured as it is found: with a record, which never counts for an arm."""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ttstack.bench.client.endpoint import Endpoint
from ttstack.bench.errors import BenchError
from ttstack.bench.http import Client
from ttstack.bench.suites.registry import find_suite
from ttstack.bench.suites.session import Target
from ttstack.errors import Exit, TtxError
from ttstack.host.cards import inventory
from ttstack.host.errors import HostError
from ttstack.host.process import boot_id, myself
from ttstack.host.types import Roots
from ttstack.records.build import closing, new_run_id, opening, timestamp
from ttstack.records.quotable import NO_ARM, reasons_against
from ttstack.records.types import AskedRecord, Observed, Owner, Phase
from ttstack.run.flow import verdict
from ttstack.run.interrupts import Interrupts
from ttstack.run.journal import host_facts, store_of
from ttstack.run.measuring import listener_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ttstack.host.types import Card, Places
    from ttstack.records.types import Json, Measured
    from ttstack.run.report import Reporter

_WAIT_S = 30.0
_EXTRA: dict[str, dict[str, Json]] = {"llamacpp": {"cache_prompt": False}}
"""``owned_by`` of /v1/models -> what a request must say so that no cache of prompts helps it. llama.cpp keeps every
prompt, and takes from it whatever two have in common, be it one token (tools/server/README.md)."""
_LOCAL = {"127.0.0.1", "::1", "localhost"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to measure. Empty and None: what the server says."""

    url: str
    suite: str
    settings: Mapping[str, Json] = field(default_factory=dict)
    model: str = ""
    max_model_len: int | None = None  # tokens
    max_num_seqs: int | None = None
    token: str = field(default="", repr=False)
    token_name: str = ""  # of the environment variable that the token is from

    def asked(self, endpoint: Endpoint) -> AskedRecord:
        """Say what was asked, as a record does."""
        return AskedRecord(
            arm_digest="",
            pin_digest="",
            model_digest="",
            arm={},
            pin={},
            model={"name": self.model, "max_model_len": self.max_model_len, "max_num_seqs": self.max_num_seqs},
            cards=(),
            card_count=0,
            cache=None,
            argv=(),
            secrets=(self.token_name,) if self.token_name else (),
            suite=self.suite,
            settings=self.settings,
            url=endpoint.url,
        )


@dataclass(frozen=True, slots=True)
class Found:
    """How it ended, and what was measured."""

    run: str
    exit_code: Exit
    closed: Mapping[str, Json]
    measured: Measured | None
    error: TtxError | None


def measure_foreign(wanted: Wanted, places: Places, reporter: Reporter) -> Found:
    """Measure a server. Faults are in the outcome; main thread only, since it minds signals.

    Raises TtxError only when nothing was begun: a bad URL, an unknown suite, a bad setting, no record to write.
    """
    endpoint = Endpoint.of(wanted.url, wanted.token)
    suite = find_suite(wanted.suite)
    settings = suite.read(wanted.settings)
    run, me, store = new_run_id(), myself(), store_of(places.state)
    work = _Work(endpoint, wanted, reporter)
    with Interrupts() as interrupts:
        store.append(
            opening(
                run=run,
                verb="bench",
                arm="",
                asked=wanted.asked(endpoint),
                owner=Owner(me.pid, me.start, boot_id()),
                host=host_facts(places.cache),
                simulated=False,
            )
        )
        error: BaseException | None = None
        try:
            with interrupts.breaking():
                with work.phase("check"):
                    target = work.look()
                with work.phase("measure"):
                    work.measured = suite.measure(target, settings, listener_of(reporter, interrupts.check))
            interrupts.check()
        except BaseException as caught:  # noqa: BLE001 - whatever it is, the record is closed
            error = caught
        found = _close(work, run, error)
        store.close(found.closed)
    if error is not None and not isinstance(error, TtxError):
        raise error
    return found


def _close(work: _Work, run: str, error: BaseException | None) -> Found:
    outcome, code, reason, text = verdict(error)
    if outcome == "ok" and len(reasons_against(outcome, NO_ARM, work.measured)) > 1:  # more than that there is no arm
        code = Exit.NOT_QUOTABLE
    line = closing(
        run=run,
        outcome=outcome,
        exit_code=code,
        reason=reason,
        text=text,
        phases=work.phases,
        observed=work.observed,
        identity=NO_ARM,
        measured=work.measured,
    )
    return Found(run, code, line, work.measured, error if isinstance(error, TtxError) else None)


@dataclass(slots=True)
class _Work:
    """What is known so far."""

    endpoint: Endpoint
    wanted: Wanted
    reporter: Reporter
    phases: list[Phase] = field(default_factory=list)
    observed: Observed | None = None
    measured: Measured | None = None

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self.reporter.begin(name)
        begun, start, ok = time.monotonic(), timestamp(), False
        try:
            yield
            ok = True
        finally:
            seconds = time.monotonic() - begun
            self.phases.append(Phase(name, round(seconds, 6), start))
            self.reporter.end(name, ok=ok, seconds=seconds)

    def look(self) -> Target:
        """Ask the server what it serves. Raises BenchError."""
        row = served(self.endpoint, self.wanted.model)
        length = self.wanted.max_model_len or length_of(row)
        root = row.get("root")
        self.observed = Observed(served_root=root if isinstance(root, str) else None, max_model_len=length)
        self.reporter.detail(f"{row['id']}, {length or 'an unknown number of'} tokens")
        return Target(
            endpoint=self.endpoint,
            model=str(row["id"]),
            max_model_len=length,
            max_num_seqs=self.wanted.max_num_seqs,
            extra=extra_of(row),
            cards=_cards(self.endpoint),
        )


def served(endpoint: Endpoint, model: str) -> dict[str, Any]:
    """Return the entry of /v1/models that is meant. Raises BenchError when it is not there, or not clear which."""
    answer = Client(endpoint, _WAIT_S).get("/v1/models")
    told = answer.body.get("data") if isinstance(answer.body, dict) else None
    listed = told if isinstance(told, list) else []
    rows: list[dict[str, Any]] = [row for row in listed if isinstance(row, dict) and row.get("id")]
    if not rows:
        raise BenchError(f"{endpoint.url}/v1/models answered {answer.status} and lists no model", reason="answer")
    names = [str(row["id"]) for row in rows]
    if not model and len(rows) > 1:
        raise BenchError("the server has several models", hint=f"--model {' or '.join(names)}", reason="model")
    if model and model not in names:
        raise BenchError(f"the server has no model {model!r}", hint=f"it has: {', '.join(names)}", reason="model")
    return rows[names.index(model) if model else 0]


def length_of(row: Mapping[str, Any]) -> int | None:
    """Read how many tokens a request may have: vLLM's ``max_model_len``, llama.cpp's ``meta.n_ctx``."""
    meta = row.get("meta")
    told = row.get("max_model_len") or (meta.get("n_ctx") if isinstance(meta, dict) else None)
    return told if type(told) is int and told > 0 else None


def extra_of(row: Mapping[str, Any]) -> Mapping[str, Json]:
    """Say what requests to this kind of server must have besides."""
    return _EXTRA.get(str(row.get("owned_by")), {})


def _cards(endpoint: Endpoint) -> tuple[Card, ...]:
    """Give the cards of this host for a server on it; whether it uses them is not known."""
    if endpoint.host in _LOCAL:
        with suppress(HostError):
            return inventory(Roots())
    return ()
