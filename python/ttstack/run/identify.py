"""Whether what runs is what the arm says. A question that nobody can answer is no "yes": nothing is measured then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ttstack.bench.errors import BenchError
from ttstack.bench.http import Client
from ttstack.bench.suites.smoke import one_completion
from ttstack.host import ports, process
from ttstack.host.errors import HostError
from ttstack.records.types import IdentityCheck
from ttstack.run.ready import healthy
from ttstack.run.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ttstack.arm.types import Asked
    from ttstack.host.types import ProcessId
    from ttstack.records.types import Json
    from ttstack.render.launch import Launch
    from ttstack.run.logscan import LogSeen
    from ttstack.run.runtime import Inside
    from ttstack.run.state import State


@dataclass(frozen=True, slots=True)
class Subject:
    """The engine to be identified. ``log``: what that of this boot shows; ``engine``: its live processes.

    ``inside``: what is known of its container; None when it has none.
    """

    asked: Asked
    launch: Launch
    state: State
    log: LogSeen
    engine: Sequence[ProcessId]
    inside: Inside | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """The verdict's answers, and what was learned on the way."""

    checks: tuple[IdentityCheck, ...]
    banners: tuple[str, ...]
    served_root: str | None
    max_model_len: int | None
    cache_dir: str | None


def identify(subject: Subject, on_check: Callable[[IdentityCheck], None], *, listen_wait_s: float) -> Found:
    """Ask everything that can be asked. Requests are sent only when the listener is shown to be ours.

    ``listen_wait_s``: an engine says that it is ready a moment before it listens.
    """
    done: list[IdentityCheck] = []

    def note(check: IdentityCheck) -> IdentityCheck:
        done.append(check)
        on_check(check)
        return check

    banners = [note(check) for check in _banners(subject)]
    cache = note(_cache_dir(subject))
    note(_cache_intact(subject))
    note(_environment(subject))
    if subject.launch.image:
        note(_image(subject))
    listener = _published if subject.launch.image else _listener
    ours = note(listener(subject, listen_wait_s)).ok
    served = _served(subject) if ours else _Served("the listener is not shown to be ours")
    for check in (*_of_served(subject, served), *([_completion(subject)] if ours else [])):
        note(check)
    return Found(
        checks=tuple(done),
        banners=tuple(str(check.expected) for check in banners if check.ok),
        served_root=served.root,
        max_model_len=served.max_model_len,
        cache_dir=cache.found if isinstance(cache.found, str) else None,
    )


def _banners(subject: Subject) -> Iterator[IdentityCheck]:
    for banner in subject.asked.arm.expect.banners:
        line = subject.log.banners.get(banner)
        yield IdentityCheck("banner", line is not None, banner, line)


def _cache_dir(subject: Subject) -> IdentityCheck:
    expected, log = subject.launch.cache_path, subject.log
    if not log.cache_dir:
        return IdentityCheck("cache_dir", None, expected, None)
    return IdentityCheck("cache_dir", not log.wrong_dir, expected, log.wrong_dir or log.cache_dir)


def _cache_intact(subject: Subject) -> IdentityCheck:
    """Look for tensor files that did not load: ttnn makes them again with a mere warning (tt-metal#25693)."""
    bad = subject.log.not_loaded
    return IdentityCheck("cache_intact", not bad, 0, bad or 0)


def _environment(subject: Subject) -> IdentityCheck:
    name = "environment"
    wanted = subject.launch.env
    env = _env_of(subject)
    if env is None:
        return IdentityCheck(name, None, dict(wanted), None)
    other: dict[str, Json] = {key: env.get(key) for key in sorted(wanted) if env.get(key) != wanted[key]}
    return IdentityCheck(name, not other, {key: wanted[key] for key in other or wanted}, other or "as asked")


def _env_of(subject: Subject) -> Mapping[str, str] | None:
    """Read the environment that the engine was started with. A container's is the engine's of containers to tell."""
    if subject.launch.image:
        return subject.inside.env if subject.inside and subject.inside.running else None
    leader = subject.state.engine
    return process.environ(leader.pid) if leader is not None and process.alive(leader) else None


def _image(subject: Subject) -> IdentityCheck:
    """Compare the image that the container was made of with the one that the arm's reference means."""
    inside = subject.inside
    if inside is None or not inside.image or not inside.wanted:
        return IdentityCheck("image", None, subject.launch.image, None)
    return IdentityCheck("image", inside.image == inside.wanted, inside.wanted, inside.image)


def _published(subject: Subject, wait_s: float) -> IdentityCheck:
    """Ask whether our container publishes the port: on the host a proxy or a rule listens, never the engine itself.

    Then wait until the engine behind it answers, which it does a moment after it says that it is ready.
    """
    port = subject.launch.ports[0]
    expected = f"the container publishes port {port.inside} on {port.host}:{port.outside}"
    inside = subject.inside
    if inside is None or not inside.running:
        return IdentityCheck("listener", None, expected, "no container of this run runs")
    if (port.host, port.outside, port.inside) not in inside.ports:
        return IdentityCheck("listener", ok=False, expected=expected, found=str(sorted(inside.ports)))
    up = wait_until(lambda: healthy(subject.state.url, timeout_s=1.0), wait_s)
    return IdentityCheck("listener", up, expected, f"{subject.state.container[:12]}" if up else "nobody answers there")


def _listener(subject: Subject, wait_s: float) -> IdentityCheck:
    name, port = "listener", subject.state.port
    expected = f"the engine listens on port {port}"
    family = [entry.pid for entry in subject.engine]
    try:
        wait_until(lambda: bool(ports.listening_inodes(port)), wait_s)
        inodes = ports.listening_inodes(port)
        if not inodes:
            return IdentityCheck(name, ok=False, expected=expected, found="nobody listens")
        foreign = [inode for inode in sorted(inodes) if not ports.owners(frozenset({inode}), family)]
        if not foreign:
            return IdentityCheck(name, ok=True, expected=expected, found=f"pid {ports.owners(inodes, family)[0]}")
        who = ports.owners(frozenset(foreign))
    except HostError as error:
        return IdentityCheck(name, None, expected, error.message)
    found = ", ".join(f"pid {pid} ({process.command(pid)})" for pid in who) or "a process that cannot be seen"
    return IdentityCheck(name, ok=False, expected=expected, found=found)


@dataclass(frozen=True, slots=True)
class _Served:
    """What /v1/models says; ``fault`` is why it says nothing."""

    fault: str = ""
    id: str | None = None
    root: str | None = None
    max_model_len: int | None = None


def _served(subject: Subject) -> _Served:
    try:
        answer = Client.of(subject.state.url, timeout_s=30.0).get("/v1/models")
    except BenchError as error:
        return _Served(error.message)
    body: Any = answer.body
    rows = body.get("data") if isinstance(body, dict) else None
    rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    if not rows:
        return _Served(f"/v1/models answered {answer.status} and lists no model")
    wanted = subject.asked.model.served_name
    row = next((row for row in rows if row.get("id") == wanted), rows[0])
    length = row.get("max_model_len")
    return _Served(
        id=_text(row.get("id")), root=_text(row.get("root")), max_model_len=length if type(length) is int else None
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _of_served(subject: Subject, served: _Served) -> Iterator[IdentityCheck]:
    arm, model = subject.asked.arm, subject.asked.model
    root = model.root if arm.expect.served_root == "checkpoint" else arm.expect.served_root
    yield _equal("served_root", root, served.root, served.fault)
    yield _equal("served_id", model.served_name, served.id, served.fault)
    if arm.expect.max_model_len is not None:
        yield _equal("max_model_len", arm.expect.max_model_len, served.max_model_len, served.fault)


def _equal(name: str, expected: Json, found: Json, fault: str) -> IdentityCheck:
    if found is None:
        return IdentityCheck(name, None, expected, fault or None)
    return IdentityCheck(name, found == expected, expected, found)


def _completion(subject: Subject) -> IdentityCheck:
    result = one_completion(subject.state.url, subject.asked.model.served_name)
    return IdentityCheck("completion", result.ok, result.expected, result.detail if not result.ok else result.found)


def title(check: IdentityCheck) -> str:
    """Name a question for people."""
    return f"banner {check.expected!r}" if check.name == "banner" else check.name


def sentence(check: IdentityCheck) -> str:
    """Say what is wrong with one answer."""
    if check.name == "banner":
        return f"the log of this boot does not show {check.expected!r}"
    if check.ok is None:
        return f"{check.name} could not be told (expected {check.expected!r}, {check.found})"
    return f"{check.name} is {check.found!r}, not {check.expected!r}"
