"""Make a Python environment from wheels: ``install.py OUT WHEELS_DIRS NAMES SITES``, the last three being lists.

OUT becomes what a virtual environment is (PEP 405): ``pyvenv.cfg``, ``bin/python3`` that points at this interpreter,
and ``lib/python3.N/site-packages``. NAMES are looked up in WHEELS_DIRS and unpacked; SITES are site-packages folders of
packages built here, whose entries are linked. Every console script of both is written to ``bin/``. Bytecode is compiled
against the source's hash, so that the result depends on nothing but its inputs.
"""

from __future__ import annotations

import compileall
import configparser
import py_compile
import re
import shutil
import sys
import zipfile
from pathlib import Path

MINOR = sys.version_info.minor


def _wheel(name: str, folders: list[Path]) -> Path:
    """Find the wheel of a package for this interpreter: its own ABI first, else the stable ABI or pure Python."""
    stem = re.sub(r"[-_.]+", "_", name).lower()
    found = [file for folder in folders for file in folder.glob("*.whl") if file.name.lower().startswith(f"{stem}-")]
    for file in found:
        if f"-cp3{MINOR}-cp3{MINOR}-" in file.name:
            return file
    for file in found:
        if "-abi3-" in file.name or re.search(r"-(py2\.)?py3-none-", file.name):
            return file
    sys.exit(f"install.py: no wheel of {name} for Python 3.{MINOR} in {', '.join(map(str, folders))}")


def _unpack(wheel: Path, site: Path, prefix: Path) -> None:
    """Unpack a wheel; its ``*.data`` trees go where the format says (only ``scripts`` and the two libs occur here)."""
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            top, _, rest = info.filename.partition("/")
            kind, _, inner = rest.partition("/")
            if top.endswith(".data"):
                if kind not in {"scripts", "purelib", "platlib"}:
                    continue  # headers, manual pages
                target = (prefix / "bin" if kind == "scripts" else site) / inner
            else:
                target = site / info.filename
            if info.is_dir():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(info))
            if kind == "scripts" and top.endswith(".data"):
                target.chmod(0o755)


def _scripts(site: Path, prefix: Path) -> None:
    """Write the console scripts that the installed packages declare."""
    for declared in sorted(site.glob("*.dist-info/entry_points.txt")):
        parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
        parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
        parser.read_string(declared.read_text(encoding="utf-8"))
        for name, reference in parser["console_scripts"].items() if parser.has_section("console_scripts") else ():
            module, _, function = reference.split("[")[0].strip().partition(":")
            script = prefix / "bin" / name
            script.write_text(
                f"#!{prefix}/bin/python3\nimport sys\nfrom {module} import {function.split('.')[0]}\n\n"
                f"sys.exit({function}())\n",
                encoding="utf-8",
            )
            script.chmod(0o755)


def main(argv: list[str]) -> int:
    """Build the environment."""
    out, folders, names, sites = Path(argv[0]), *(argument.split() for argument in argv[1:4])
    site = out / f"lib/python3.{MINOR}/site-packages"
    site.mkdir(parents=True)
    (out / "bin").mkdir()
    home = Path(sys.executable).parent
    (out / "pyvenv.cfg").write_text(f"home = {home}\ninclude-system-site-packages = false\n", encoding="utf-8")
    for alias in ("python", "python3", f"python3.{MINOR}"):
        (out / "bin" / alias).symlink_to(home / "python3")
    for name in names:
        _unpack(_wheel(name, [Path(folder) for folder in folders]), site, out)
    if not compileall.compile_dir(
        site, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH, workers=0
    ):
        return 1
    for local in sites:
        for entry in sorted(Path(local, site.relative_to(out)).iterdir()):
            if entry.name != "__pycache__":
                (site / entry.name).symlink_to(entry)
    _scripts(site, out)
    shutil.rmtree(site / "bin", ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
