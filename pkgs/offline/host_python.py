"""Copy what this machine's Python needs to run elsewhere: ``host_python.py OUT`` makes OUT, the tree of a root folder.

That is ``/usr/bin/python3``, its standard library without what only developers use, compiled against the source's
hash, and the shared libraries of both, as ldd(1) tells them. The result is the same each time on one machine, and
another on another machine: what lies here is whatever its distribution has.
"""

from __future__ import annotations

import compileall
import os
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

# Not needed to run a program, and two thirds of the whole: the static library alone is 24 MB.
_LEFT_OUT = shutil.ignore_patterns(
    "__pycache__", "config-3*", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "test", "tkinter", "turtle*"
)


def _place(out: Path, path: Path) -> None:
    """Copy a file to its own place below ``out``, and every link that leads to it.

    In Nix's sandbox /lib and the like are folders of their own, and not the links that the distribution has.
    """
    here = Path("/")
    for name in path.parts[1:]:
        usr = Path("/usr", name)
        here /= name
        target = out / here.relative_to("/")
        if here.parent == Path("/") and usr.is_dir() and here.is_dir() and here.samefile(usr):
            link = f"usr/{name}"
        elif here.is_symlink():
            link = str(here.readlink())
        elif here.is_dir():
            target.mkdir(exist_ok=True)
            continue
        else:
            shutil.copy(here, target)
            return
        if not target.is_symlink():
            target.symlink_to(link)
        rest = path.relative_to(here)
        _place(out, Path(os.path.normpath(here.parent / link), rest))
        return


def _libraries(program: Path) -> list[Path]:
    """List the shared libraries that the loader would take; those that are not installed are left out."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    return [Path(found) for found in re.findall(r"(?:=> |^\s+)(/\S+) \(0x", done.stdout, re.MULTILINE)]


def main(argv: list[str]) -> int:
    """Make the tree."""
    out = Path(argv[0])
    out.mkdir()
    python, library = Path("/usr/bin/python3"), Path(sysconfig.get_path("stdlib", vars={"installed_base": "/usr"}))
    _place(out, python)
    copy = out / library.relative_to("/")
    shutil.copytree(library, copy, symlinks=True, ignore=_LEFT_OUT)
    for link in filter(Path.is_symlink, copy.rglob("*")):
        if not link.exists():
            link.unlink()  # into /etc, for the administrator's own changes
    for program in (python, *sorted(copy.glob("lib-dynload/*.so"))):
        for needed in _libraries(program):
            _place(out, needed)
    compiled = compileall.compile_dir(
        copy,
        stripdir=str(out),
        quiet=1,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        workers=0,
    )
    return 0 if compiled else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
