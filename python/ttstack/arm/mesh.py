"""Meshes: the names that MESH_DEVICE takes, and how many cards each needs.

The names and shapes are vllm-tt-plugin's (``utils/dp_discovery.py``); their case matters.
"""

from __future__ import annotations

import re

MESHES: dict[str, int] = {
    "P150": 1,
    "P150x2": 2,
    "P150x4": 4,
    "P150x8": 8,
    "P100": 1,
    "P300": 2,
    "P300x2": 4,
    "N150": 1,
    "N150x4": 4,
    "N300": 2,
    "T3K": 8,
    "TG": 32,
    "BH-Galaxy": 32,
}
"""Name -> chips."""

DEFAULT: dict[int, str] = {1: "P150", 2: "P150x2", 4: "P150x4", 8: "P150x8"}
"""The mesh of that many P150 cards."""

LITERAL = r"\([1-9][0-9]{0,2},[1-9][0-9]{0,2}\)"
"""A shape in rows and columns, such as ``(2,2)``."""


def chips(mesh: str) -> int | None:
    """How many chips a mesh has; None for a name that is not known."""
    if mesh in MESHES:
        return MESHES[mesh]
    if not re.fullmatch(LITERAL, mesh):
        return None
    rows, columns = mesh.strip("()").split(",")
    return int(rows) * int(columns)
