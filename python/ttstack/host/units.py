"""What systemd's services run, as text: commands after all drop-ins, environment, and the scripts that they call.

``systemctl show`` tells the effective command, which ``systemctl cat`` does not (systemd#2654): the last reset of
``ExecStart=`` wins. It joins the arguments with blanks and quotes nothing, so the text cannot be split again into what
it was; who looks for a path in it has to look for the path. Where systemd does not run (sd_booted(3)) no service runs
either, but what is installed may be started at the next boot: then the files themselves are the text.
"""

from __future__ import annotations

import glob
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.host.containers import DEADLINE_S, run_command
from ttstack.host.process import PROC

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ttstack.host.containers import Answer, Runner

BOOTED = Path("/run/systemd/system")
"""There exactly when systemd is the init system (sd_booted(3))."""

# systemd.unit(5), "Unit File Load Path", of the system manager.
FOLDERS = (
    Path("/etc/systemd/system.control"),
    Path("/run/systemd/system.control"),
    Path("/run/systemd/transient"),
    Path("/run/systemd/generator.early"),
    Path("/etc/systemd/system"),
    Path("/etc/systemd/system.attached"),
    Path("/run/systemd/system"),
    Path("/run/systemd/system.attached"),
    Path("/run/systemd/generator"),
    Path("/usr/local/lib/systemd/system"),
    Path("/usr/lib/systemd/system"),
    Path("/lib/systemd/system"),
    Path("/run/systemd/generator.late"),
)
_COMMANDS = ("ExecStart", "ExecStartPre")
_PROPERTIES = (
    "Id", "LoadState", "NeedDaemonReload", "FragmentPath", "DropInPaths", *_COMMANDS,
    "Environment", "EnvironmentFiles", "BindPaths", "BindReadOnlyPaths", "WorkingDirectory", "MainPID",
)  # fmt: skip
_AT_ONCE = 200  # names in one call
_LIMIT = 1 << 20  # bytes of one file
CLIENT = re.compile(r"\b(?:docker|podman)\b[^\n]*?\brun\b")
"""In a command: it is a container engine's client, and what it starts is in a container."""

_WORD = re.compile(r"/[^\s;'\"]+")
_ENVIRONMENT_FILE = re.compile(
    r"^\s*EnvironmentFiles?\s*=\s*-?\"?(/[^\n\"]*?)\"?(?: \(ignore_errors=\w+\))?\s*$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Unit:
    """A service. ``text`` is all that was found of it; ``hidden`` names files of it that could not be read."""

    name: str
    text: str
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Units:
    """All services that are loaded or installed. Without troubles there are no others."""

    found: tuple[Unit, ...] = ()
    troubles: tuple[str, ...] = ()


class _TroubleError(Exception):
    """It could not be learned; the text is the sentence."""


def look(
    *, run: Runner = run_command, folders: Sequence[Path] = FOLDERS, booted: Path = BOOTED, proc: Path = PROC
) -> Units:
    """Look at every service: loaded, installed, template or instance. Raises nothing."""
    try:
        if not booted.is_dir():
            return Units(tuple(_files(folders, templates_only=False)))
        names = _names(run)
        shown = [unit for at in range(0, len(names), _AT_ONCE) for unit in _shown(names[at : at + _AT_ONCE], run, proc)]
        # A template has no effective command until somebody names an instance.
        return Units((*shown, *_files(folders, templates_only=True)))
    except _TroubleError as trouble:
        return Units((), (str(trouble),))
    except OSError as error:
        return Units((), (f"cannot read {error.filename}: {error.strerror}",))


def _names(run: Runner) -> list[str]:
    """Name the services that are loaded or installed, without templates."""
    installed = _call(("list-unit-files",), run)
    loaded = _call(("list-units", "--all"), run)
    words = [line.split() for answer in (installed, loaded) for line in answer.out.splitlines()]
    names = dict.fromkeys(row[0] for row in words if row and row[0].endswith(".service"))
    return [name for name in names if not name.endswith("@.service")]


def _call(words: Sequence[str], run: Runner) -> Answer:
    listing = ("--type=service", "--no-legend", "--plain", "--full") if words[0].startswith("list") else ()
    try:
        answer = run(["systemctl", "--system", "--no-pager", words[0], *listing, *words[1:]], DEADLINE_S)
    except FileNotFoundError:
        raise _TroubleError("systemd runs here, but there is no systemctl on PATH") from None
    except TimeoutError:
        raise _TroubleError(f"systemctl did not answer within {DEADLINE_S:g} s") from None
    except OSError as error:
        raise _TroubleError(f"systemctl cannot be run: {error.strerror}") from None
    if answer.code:
        line = next((line.strip() for line in answer.err.splitlines() if line.strip()), "it said nothing")
        raise _TroubleError(f"systemctl {words[0]} failed with exit {answer.code}: {line}")
    return answer


def _shown(names: Sequence[str], run: Runner, proc: Path) -> Iterator[Unit]:
    answer = _call(("show", f"--property={','.join(_PROPERTIES)}", "--", *names), run)
    blocks = [block for block in answer.out.split("\n\n") if block.strip()]
    if len(blocks) < len(names):
        raise _TroubleError(f"systemctl show told of {len(blocks)} units, not of {len(names)}")
    yield from (_unit(block, proc) for block in blocks)


def _unit(block: str, proc: Path) -> Unit:
    """Read what ``systemctl show`` printed of one unit."""
    parts: dict[str, list[str]] = {}
    for line in block.splitlines():
        name, _, value = line.partition("=")
        parts.setdefault(name, []).append(value)
    extra: list[Path] = []
    state = " ".join(parts.get("LoadState", ()))
    if state not in {"loaded", "masked", "not-found", "merged"} or "yes" in parts.get("NeedDaemonReload", ()):
        # systemd could not understand it, or has not read it anew: the next start may run what the files say.
        words = " ".join([*parts.get("FragmentPath", ()), *parts.get("DropInPaths", ())])
        extra = [Path(word) for word in words.split() if word.startswith("/")]
    commands = "\n".join(value for name in _COMMANDS for value in parts.get(name, ()))
    main = next(iter(parts.get("MainPID", ())), "0")
    if main.isdecimal() and int(main):
        # What runs may have been started with another command than the next start has: units are changed under it.
        extra.append(proc / main / "cmdline")
        if not CLIENT.search(commands):  # whose environment is not its container's
            extra.append(proc / main / "environ")
    return _with_files(" ".join(parts.get("Id", ("?",))), block, commands, extra)


def _files(folders: Sequence[Path], *, templates_only: bool) -> Iterator[Unit]:
    """Give units as their files and drop-ins have them, whichever of them would be in effect."""
    texts: dict[str, list[str]] = {}
    for folder in folders:
        for name, path in _units_in(folder):
            if not templates_only or name.endswith("@.service"):
                texts.setdefault(name, []).append(_directives(_read(path)))
    for name, parts in texts.items():
        text = "\n".join(parts)
        commands = "\n".join(line for line in text.splitlines() if line.strip().startswith("Exec"))
        yield _with_files(name, text, commands, ())


def _units_in(folder: Path | str) -> Iterator[tuple[str, str]]:
    """Give each unit file and drop-in, with the name of the unit that it is of."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in found:
        if entry.name.endswith(".service") and not entry.is_dir():
            yield entry.name, entry.path
        elif entry.name.endswith(".service.d") and entry.is_dir():
            name = entry.name.removesuffix(".d")
            # names alone are a third of the time of paths
            parts = sorted(os.listdir(entry.path))  # noqa: PTH208
            yield from ((name, f"{entry.path}/{part}") for part in parts if part.endswith(".conf"))


def _directives(text: str) -> str:
    """Join continued lines and leave out comments (systemd.syntax(7))."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("#", ";"))]
    return "\n".join(lines).replace("\\\n", " ")


def _with_files(name: str, text: str, commands: str, extra: Iterable[Path]) -> Unit:
    """Add what the unit refers to: files of environment, scripts that it runs, ``extra``."""
    texts, hidden = [text], []
    scripts = (Path(word) for word in _WORD.findall(commands))
    named = [*((path, False) for path in (*extra, *_environment_files(text))), *((path, True) for path in scripts)]
    for path, script in dict.fromkeys(named):
        try:
            texts.append(_read(path, script=script))
        except OSError as error:
            hidden.append(f"{path}: {error.strerror}")
    return Unit(name, "\n".join(texts), tuple(hidden))


def _environment_files(text: str) -> Iterator[Path]:
    """Find them as ``show`` spells them, ``EnvironmentFiles=/a (ignore_errors=no)``, and as unit files do."""
    for match in _ENVIRONMENT_FILE.finditer(text):
        yield from map(Path, glob.glob(match[1]))  # noqa: PTH207 - an absolute pattern


def _read(path: Path | str, *, script: bool = False) -> str:
    """Read a file; "" when it is not there, is no regular file, or is to be a script and is none. Raises OSError."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
        return ""
    except OSError as error:
        if script and not isinstance(error, PermissionError):
            return ""  # a word that only looks like a path
        raise
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode) or (script and os.pread(handle, 2, 0) != b"#!"):
            return ""
        return _all(handle).decode("utf-8", "replace").replace("\0", "\n")
    finally:
        os.close(handle)


def _all(handle: int) -> bytes:
    data = b""
    while len(data) < _LIMIT and (chunk := os.read(handle, _LIMIT - len(data))):
        data += chunk
    return data
