"""The command that holds our evaluation of the modules against a real NixOS."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from module_kit import EVAL, LIB, ROOT, nix_eval

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.host
COMMAND = ROOT / "checks" / "against-nixos"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(COMMAND), *arguments], capture_output=True, text=True, check=False, timeout=300)


def test_it_says_how_it_is_used() -> None:
    done = run()
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: checks/against-nixos NIXPKGS_NIXOS NIXPKGS_LIB" in done.stderr
    assert "NIXPKGS_LIB" in run("--help").stdout


def test_it_refuses_folders_that_are_not_nixpkgs(tmp_path: Path) -> None:
    done = run(str(tmp_path), str(LIB))
    assert done.returncode == 2
    assert f"{tmp_path} is not the nixos/ folder" in done.stderr


@pytest.mark.skipif("NIXPKGS_NIXOS" not in os.environ, reason="set NIXPKGS_NIXOS and NIXPKGS_LIB to nixos/ and lib/")
def test_our_evaluation_is_that_of_nixos() -> None:
    done = run(os.environ["NIXPKGS_NIXOS"], os.environ["NIXPKGS_LIB"])
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_tables_hold_with_the_modules_that_are_here() -> None:
    failures = nix_eval(
        "{ eval, lib }: (import (/. + eval) { lib = import (/. + lib); }).failures", eval=str(EVAL), lib=str(LIB)
    )
    assert failures == []
