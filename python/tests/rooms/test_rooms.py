"""The check of what rooms import, over packages made here."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

SCRIPT = Path(__file__).resolve().parents[3] / "checks/python-imports/rooms.py"


@pytest.fixture(scope="module")
def rooms() -> ModuleType:
    """Return the script as a module."""
    spec = importlib.util.spec_from_file_location("rooms_check", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _package(folder: Path, files: dict[str, str]) -> Path:
    package = folder / "ttstack"
    for name, text in {"__init__.py": "", "errors.py": "", **files}.items():
        file = package / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return package


@pytest.mark.parametrize(
    ("file", "text", "breach"),
    [
        ("arm/a.py", "import ttstack.host.b", "arm may not import host"),
        ("host/a.py", "from ttstack.cli import main", "host may not import cli"),
        ("host/a.py", "from ttstack import slots", "host may not import slots"),
        ("host/a.py", "from ..run import up", "host may not import run"),
        ("host/sub/__init__.py", "from ...run import up", "host may not import run"),
        ("host/a.py", "def f():\n    from ttstack.run import up", "host may not import run"),
        ("host/a.py", "import importlib\nimportlib.import_module('ttstack.run')", "host may not import run"),
        ("errors.py", "from ttstack.arm import types", "errors is below every room"),
        ("__init__.py", "import ttstack.arm", "ttstack is below every room"),
        ("arm/a.py", "import subprocess", "arm may not import subprocess"),
        ("render/a.py", "from asyncio import run", "render may not import asyncio"),
        ("run/a.py", "import argparse", "run may not import argparse"),
        ("slots/a.py", "def f():\n    print('x')", "slots may not print"),
        ("attic/a.py", "", "attic is not one of the rooms"),
    ],
)
def test_a_breach_is_found(rooms: ModuleType, tmp_path: Path, file: str, text: str, breach: str) -> None:
    package = _package(tmp_path, {file: text})
    (found,) = rooms.check(package)
    assert breach in found
    assert str(package / file) in found


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("host/a.py", "import ttstack.arm.types, ttstack.errors\nfrom ttstack import __version__"),
        ("host/a.py", "from . import b\nfrom .b import c\nfrom ..arm import types\nimport subprocess"),
        ("cli/main.py", "import argparse\nfrom ttstack.sim import engine\nprint('x')"),
        ("sim/a.py", "from ttstack.errors import arm, run"),
    ],
)
def test_what_is_allowed_passes(rooms: ModuleType, tmp_path: Path, file: str, text: str) -> None:
    assert rooms.check(_package(tmp_path, {file: text})) == []


def test_the_exit_code_says_it(rooms: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = _package(tmp_path / "good", {})
    bad = _package(tmp_path / "bad", {"arm/a.py": "import ttstack.cli"})
    assert [rooms.main([str(good)]), rooms.main([str(bad)]), rooms.main([])] == [0, 1, 2]
    assert "arm/a.py:1: arm may not import cli" in capsys.readouterr().out
