"""One run from arm to record. Every way out closes the record and leaves no engine and no slot behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.bench.suites.registry import find_suite
from ttstack.errors import Exit, RefusedError, TtxError, UsageError
from ttstack.host.files import make_directory
from ttstack.host.process import boot_id
from ttstack.records.build import new_run_id, opening
from ttstack.records.types import Owner
from ttstack.render.build import engine_argv
from ttstack.run.errors import IdentityRefusedError, InterruptedRunError
from ttstack.run.interrupts import Interrupts
from ttstack.run.journal import asked_record, host_facts, store_of
from ttstack.run.link import spawn
from ttstack.run.state import run_folder
from ttstack.run.work import Work

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ttstack.arm.types import Asked
    from ttstack.host.types import Places
    from ttstack.records.types import Json, Outcome
    from ttstack.run.options import Options
    from ttstack.run.report import Reporter
    from ttstack.run.state import State


_LAST_S = 10.0  # what a supervisor may take to end once its run is closed


@dataclass(frozen=True, slots=True)
class Result:
    """How it ended. ``closed`` is the closing line, None for an engine that was left running."""

    run: str
    exit_code: Exit
    closed: Mapping[str, Json] | None
    error: TtxError | None
    state: State | None


def execute(asked: Asked, places: Places, options: Options, reporter: Reporter) -> Result:
    """Carry out ``run`` or ``up``. Faults are in the outcome; main thread only, since it minds signals.

    Raises TtxError only when nothing was begun: the arm cannot be rendered, or no record could be opened.
    """
    argv = engine_argv(asked, options.engine_command)
    if options.verb == "run":
        find_suite(options.suite).read(options.settings)
    with Interrupts() as interrupts:
        run = new_run_id()
        folder = run_folder(places.state, run)
        make_directory(folder.path)
        link = spawn(folder)
        try:
            opened = opening(
                run=run,
                verb=options.verb,
                arm=asked.arm.name,
                asked=asked_record(asked, argv, options),
                owner=Owner(link.process.pid, link.process.start, boot_id()),
                host=host_facts(places.cache),
                simulated=places.simulated,
                ab=options.ab,
            )
            store_of(places.state).append(opened)
        except BaseException:
            link.send("done")
            raise
        return _carry_out(Work(asked, places, options, reporter, interrupts, folder, link))


def _carry_out(work: Work) -> Result:
    error: BaseException | None = None
    try:
        work.run()
    except BaseException as caught:  # noqa: BLE001 - whatever it is, the record is closed; see below
        error = caught
    if work.left:
        return Result(work.folder.run, Exit.DONE, None, None, work.folder.read())
    try:
        work.stop()
        work.interrupts.check()
    except TtxError as caught:
        error = caught if error is None or caught.reason == "stop_failed" else error
    outcome = _close(work, error)
    if error is not None and not isinstance(error, TtxError):
        raise error
    return outcome


def _close(work: Work, error: BaseException | None) -> Result:
    outcome, code, reason, text = verdict(error)
    line = work.draft.line(work.folder.run, outcome, code, reason, text)
    if outcome == "ok" and not line["quotable"]:
        code = Exit.NOT_QUOTABLE
        line = work.draft.line(work.folder.run, outcome, code, reason, text)
    store_of(work.places.state).close(line)  # `ttx down` may have settled what lost its supervisor
    work.link.send("done")
    work.link.close()
    state = work.folder.read()
    if state is None or state.phase != "dirty":  # the supervisor of a container that did not end keeps its cards
        work.link.wait(_LAST_S)
    known = error if isinstance(error, TtxError) else None
    return Result(work.folder.run, code, line, known, work.folder.read())


def verdict(error: BaseException | None) -> tuple[Outcome, Exit, str, str]:
    """Say what a record says of how a run ended: outcome, exit code, reason, sentence."""
    if error is None:
        return "ok", Exit.DONE, "", ""
    if isinstance(error, InterruptedRunError):
        return "interrupted", error.exit_code, error.reason, error.message
    if isinstance(error, RefusedError | IdentityRefusedError | UsageError):
        return "refused", error.exit_code, error.reason, error.message
    if isinstance(error, TtxError):
        return "failed", error.exit_code, error.reason, error.message
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", Exit.INTERRUPTED, "interrupted", "stopped by SIGINT"
    return "failed", Exit.FAILED, "internal", f"{type(error).__name__}: {error}"
