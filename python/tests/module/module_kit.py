"""What the tests of the NixOS module share: Nix, and the check's own comparison."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, Any

from ttstack.arm.shelf import Shelf

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[3]
LIB = ROOT / "pkgs" / "offline" / "lib"
EVAL = ROOT / "checks" / "eval"


def load_check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("arm_matches_module", EVAL / "arm_matches_module.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def nix_eval(expression: str, **arguments: str) -> Any:  # noqa: ANN401 - JSON
    """Evaluate a Nix function of strings to JSON. Values are arguments, never part of the expression."""
    command = ["nix-instantiate", "--eval", "--strict", "--json", "--store", "dummy://", "--expr", expression]
    for name, value in arguments.items():
        command += ["--argstr", name, value]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def units_of(*trees: Path) -> list[dict[str, dict[str, Any]]]:
    """Evaluate production and its prefix variant, from the modules and pins of each tree."""
    units: list[dict[str, dict[str, Any]]] = nix_eval(
        """
        { check, lib, folders }:
        map (folder: import (/. + check) { lib = import (/. + lib); modules = /. + folder; })
          (builtins.fromJSON folders)
        """,
        check=str(EVAL / "serving-units.nix"),
        lib=str(LIB),
        folders=json.dumps([str(tree / "modules") for tree in trees]),
    )
    return units


def faults_of(tree: Path, units: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    check = load_check()
    shelf = Shelf(tree / "arms", tree / "pins")
    return {name: list(check.faults(shelf, name, unit)) for name, unit in units.items()}


def copy_tree(target: Path) -> Path:
    for name in ("arms", "modules", "pins"):
        copytree(ROOT / name, target / name)
    return target
