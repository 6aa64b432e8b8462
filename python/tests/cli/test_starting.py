"""What is said before a run begins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ttstack.cli.starting import _warn_of_hugepages
from ttstack.host.types import Places, Roots

if TYPE_CHECKING:
    from collections.abc import Callable

CARDS = Path(__file__).resolve().parents[1] / "fixtures" / "cards"


def places(roots: Roots, base: Path) -> Places:
    return Places(base, base / "locks", base / "cache", roots, simulated=False)


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[[Path], str]:
    def ask(tree: Path) -> str:
        _warn_of_hugepages(places(Roots(tree / "sys", tree / "proc", tree / "dev"), tmp_path))
        return capsys.readouterr().err

    return ask


def test_too_few_hugepages_are_told_before_the_boot(said: Callable[[Path], str], tmp_path: Path) -> None:
    assert [tree.name for tree in sorted(CARDS.iterdir()) if tree.is_dir() and said(tree)] == ["two-p150a-swapped"]
    assert "hugepagesz=1G" in said(CARDS / "two-p150a-swapped")
    assert said(tmp_path / "nothing") == ""
