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
_NAME_AT = {b"1": 8, b"u": 10, b"?": 1}
"""Kind of an entry of ``git status --porcelain=v2`` -> how many words stand before the name (git-status(1))."""


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
    # An ignored folder inside somebody's work tree (a venv) is no part of its commit: only what git lists is.
    listed = _git(package, "ls-files", "--error-unmatch", "--full-name", "--", "__init__.py")
    if listed is not None:
        top = (package, *package.parents)[listed.count(b"/")]
        commit, dirty = _state(package, top)
        return Tool("ttx", version, "git", str(top), commit, dirty)
    return Tool("ttx", version, "wheel" if any(package.parent.glob("ttstack-*.dist-info")) else "files", str(package))


def _state(package: Path, top: Path) -> tuple[str, str]:
    """Give the commit, and a digest of what the package's folder has beyond it; "" for what is not told or not there.

    The digest is over names and contents of changed, new and deleted files.
    """
    words = ("--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames", "--", ".")
    told = (_git(package, "status", *words) or b"").rstrip(b"\0").split(b"\0")
    commit, digest, dirty = b"", sha256(), False
    for entry in told:
        mark, _, rest = entry.partition(b" ")
        if mark == b"#" and rest.startswith(b"branch.oid "):
            commit = rest.removeprefix(b"branch.oid ").removeprefix(b"(initial)")
        elif mark in _NAME_AT:
            name = entry.split(b" ", _NAME_AT[mark])[-1]
            digest.update(b"%d:%s%s" % (len(name), name, _content(top / os.fsdecode(name))))
            dirty = True
    return commit.decode(), digest.hexdigest() if dirty else ""


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
