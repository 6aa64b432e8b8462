"""Which code of ttx wrote a record: a commit and what was changed since, a store path, or an installed version."""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from hashlib import sha256
from pathlib import Path

import ttstack
from ttstack.records.context import Tool

PACKAGE = Path(ttstack.__file__).resolve().parent
_STORE = re.compile(r"/nix/store/[0-9a-z]{32}-[^/]+")
_TIMEOUT_S = 10.0


@cache
def this_tool() -> Tool:
    """Describe the code that runs, once in a process, as it was loaded once."""
    return tool_of(PACKAGE)


def tool_of(package: Path) -> Tool:
    """Describe the code in a package's folder. What cannot be told is left empty."""
    version = ttstack.__version__
    found = _STORE.match(str(package))
    if found is not None:
        return Tool("ttx", version, "store", found[0])
    # An ignored folder inside somebody's work tree (a venv) is no part of its commit.
    if _git(package, "ls-files", "--error-unmatch", "--", "__init__.py") is not None:
        seen = _git(package, "rev-parse", "--show-toplevel", "HEAD")
        top, commit = seen.decode("utf-8", "replace").splitlines() if seen else ("", "")
        return Tool("ttx", version, "git", top or str(package), commit, dirty_digest(package, Path(top or package)))
    return Tool("ttx", version, "wheel" if any(package.parent.glob("ttstack-*.dist-info")) else "files", str(package))


def dirty_digest(package: Path, top: Path) -> str:
    """Digest what a package's folder has beyond the commit: names and contents of changed, new and deleted files.

    64 hex digits; "" when there is nothing, or git does not tell.
    """
    changed = _git(package, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--", ".")
    if not changed:
        return ""
    digest = sha256()
    for entry in sorted(changed.rstrip(b"\0").split(b"\0")):
        name = entry[3:]  # after two letters of state and a space
        digest.update(b"%d:%s%s" % (len(name), name, _content(top / os.fsdecode(name))))
    return digest.hexdigest()


def _content(path: Path) -> bytes:
    try:
        if path.is_symlink():
            return b"link" + sha256(os.fsencode(path.readlink())).digest()
        return b"file" + sha256(path.read_bytes()).digest()
    except OSError:
        return b"none"


def _git(folder: Path, *words: str) -> bytes | None:
    """Ask git about a folder; None when it has no answer."""
    # Variables that name another repository must not count, and a look must not write the index.
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
        "GIT_OPTIONAL_LOCKS": "0"
    }
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(folder), *words]
    try:
        done = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout
