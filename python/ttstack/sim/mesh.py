"""MESH_DEVICE, TT_VISIBLE_DEVICES and the names that follow from them."""

from __future__ import annotations

import re

from ttstack.sim.errors import BootError

# vllm-tt-plugin, utils/dp_discovery.py.
_SHAPES = {
    "N150": (1, 1),
    "P100": (1, 1),
    "P150": (1, 1),
    "N300": (1, 2),
    "P150x2": (1, 2),
    "P300": (1, 2),
    "N150x4": (1, 4),
    "P150x4": (1, 4),
    "P300x2": (1, 4),
    "P150x8": (1, 8),
    "T3K": (1, 8),
    "TG": (8, 4),
}
_LITERAL = re.compile(r"\(\s*([1-9][0-9]{0,2})\s*,\s*([1-9][0-9]{0,2})\s*\)")
_NAMES = {1: "P150", 2: "P300"}


def visible(setting: str | None, present: int) -> list[int]:
    """Positions of the devices to use among ``present`` ones. ``setting`` is TT_VISIBLE_DEVICES, None when unset.

    UMD reads integers as positions in the BDF-sorted list of what the process sees, and throws for anything unknown.
    Raises BootError.
    """
    if setting is None:
        return list(range(present))
    chosen: list[int] = []
    for entry in filter(None, (text.strip() for text in setting.split(","))):
        if not (entry.isascii() and entry.isdigit()) or int(entry) >= present:
            raise BootError(
                f"TT_THROW @ tt_cluster.cpp: TT_VISIBLE_DEVICES names {entry!r}, but {present} devices are there",
            )
        if int(entry) not in chosen:
            chosen.append(int(entry))
    return chosen


def shape(mesh_device: str | None, devices: int, *, restricted: bool) -> tuple[int, int]:
    """Rows and columns of the mesh.

    As in the plugin: unset takes (1, devices); when TT_VISIBLE_DEVICES restricts the devices to another number than the
    mesh has, (1, devices) is taken as well. Raises BootError for a name that is not known, or for a mesh that is larger
    than what is there.
    """
    if not mesh_device:
        return (1, devices)
    literal = _LITERAL.fullmatch(mesh_device)
    rows, columns = (int(literal[1]), int(literal[2])) if literal else _SHAPES.get(mesh_device, (0, 0))
    if not rows:
        known = ", ".join(_SHAPES)
        raise BootError(
            f"ValueError: Invalid MESH_DEVICE: {mesh_device!r}. Must be one of {known} or a (rows, cols) tuple"
        )
    if rows * columns != devices and restricted:
        return (1, devices)
    if rows * columns > devices:
        raise BootError(
            f"TT_FATAL @ system_mesh.cpp: requested mesh ({rows}, {columns}) does not fit the system mesh",
            "info:",
            f"Mesh of {rows * columns} devices was asked for, {devices} are there",
        )
    return (rows, columns)


def device_name(devices: int) -> str:
    """Name that tt_transformers gives a Blackhole mesh of that many chips, and appends to the cache's path."""
    return _NAMES.get(devices, f"P150x{devices}")
