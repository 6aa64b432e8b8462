"""The hosts of tests/fixtures/cards."""

from __future__ import annotations

from pathlib import Path

from ttstack.host.types import Roots

HOSTS = Path(__file__).resolve().parents[1] / "fixtures" / "cards"


def host(name: str) -> Roots:
    """Say where a host's trees are."""
    assert (HOSTS / name).is_dir(), f"no fixture {name}"
    return Roots(HOSTS / name / "sys", HOSTS / name / "proc", HOSTS / name / "dev")
