#!/usr/bin/env python3
"""Renew the locked Python libraries of the stand-in for nixpkgs.

usage: refresh.py [--hashes-only]

Resolves GROUPS to their newest releases and writes, beside this file:

  runtime.lock, dev.lock   requirements with one hash per wheel, for pip --require-hashes
  wheels.json              name -> version and requirements, and the hash of each downloaded folder, by Python

--hashes-only keeps the locks and computes the folders' hashes again. Needs pip 23 or newer, nix and a registry.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# The runtime group is apart so that a first `./bootstrap run sim` fetches a few MB, not mypy.
GROUPS: dict[str, list[str]] = {
    "runtime": ["argcomplete", "duckdb", "fastjsonschema", "jinja2", "pygal", "rich", "setuptools", "tomlkit"],
    "dev": ["hypothesis", "mpmath", "mypy", "pytest", "pytest-xdist", "ruff", "xllamacpp"],
}
MINORS = (11, 12, 13, 14)
MACHINES = ("x86_64", "aarch64")


def _name(text: str) -> str:
    """Give the registry's normal form of a project name (the standard's "normalized name")."""
    return re.sub(r"[-_.]+", "-", text).lower()


def _resolve(wanted: list[str], minor: int, machine: str) -> list[dict[str, Any]]:
    """Ask pip what it would install; return the ``install`` rows of its report."""
    platforms = [f"--platform={tag}_{machine}" for tag in ("manylinux_2_28", "manylinux_2_17", "manylinux2014")]
    command = [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--dry-run"),
        *("--ignore-installed", "--only-binary=:all:", "--target=unused", "--report=-"),
        *("--implementation=cp", f"--python-version=3.{minor}", *platforms, *wanted),
    ]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    rows: list[dict[str, Any]] = json.loads(done.stdout)["install"]
    return rows


def _requires(row: dict[str, Any], known: set[str]) -> list[str]:
    """Return what a resolved package needs of the other resolved packages, extras left out."""
    lines = [line for line in row["metadata"].get("requires_dist", []) if "extra ==" not in line]
    names = {_name(re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0]) for line in lines}
    return sorted(names & known)


def _lock() -> dict[str, dict[str, Any]]:
    """Resolve every group for every Python and machine; write the locks; return name -> facts."""
    packages: dict[str, dict[str, Any]] = {}
    hashes: dict[str, set[str]] = {}
    for group, wanted in GROUPS.items():
        for machine in MACHINES:
            for minor in MINORS:
                pinned = [f"{name}=={facts['version']}" for name, facts in packages.items()]
                rows = _resolve([*wanted, *pinned], minor, machine)
                known = {_name(row["metadata"]["name"]) for row in rows}
                for row in rows:
                    name = _name(row["metadata"]["name"])
                    facts = {"group": group, "requires": _requires(row, known), "version": row["metadata"]["version"]}
                    packages.setdefault(name, facts)
                    hashes.setdefault(name, set()).add(row["download_info"]["archive_info"]["hashes"]["sha256"])
        lines = [
            f"{name}=={facts['version']}" + "".join(f" \\\n    --hash=sha256:{value}" for value in sorted(hashes[name]))
            for name, facts in sorted(packages.items())
            if facts["group"] == group
        ]
        (HERE / f"{group}.lock").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return packages


def _folder_hash(group: str, machine: str, minor: str) -> str:
    """Download a group as the derivation does; return the folder's hash as Nix writes it."""
    with tempfile.TemporaryDirectory() as folder:
        target = f"{folder}/wheels"
        subprocess.run(["sh", str(HERE / "fetch.sh"), str(HERE / f"{group}.lock"), machine, minor, target], check=True)
        command = ["nix", "--extra-experimental-features", "nix-command", "hash", "path", target]
        size = sum(entry.stat().st_size for entry in os.scandir(target))
        sys.stderr.write(f"{group} {machine} {minor}: {size / 1e6:.1f} MB\n")
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def main(argv: list[str]) -> int:
    """Write the locks and the hashes."""
    target = HERE / "wheels.json"
    if argv == ["--hashes-only"]:
        packages = json.loads(target.read_text(encoding="utf-8"))["packages"]
    elif not argv:
        packages = _lock()
    else:
        sys.stderr.write(str(__doc__))
        return 2
    minors = ["all", *(f"3.{minor}" for minor in MINORS)]
    folders = {
        f"{machine}-linux": {name: {minor: _folder_hash(name, machine, minor) for minor in minors} for name in GROUPS}
        for machine in MACHINES
    }
    text = json.dumps({"hashes": folders, "packages": packages}, indent=2, sort_keys=True)
    target.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
