"""What the parts of an arm must be to each other: flags to the engine, mesh to the count, expectations to flags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from os.path import abspath
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ttstack.arm.check import DERIVED_ENV, describe, path_fault
from ttstack.arm.fields import CARDS, ENGINE
from ttstack.arm.flags import KINDS, REFUSED, fits, known_flags, known_options
from ttstack.arm.mesh import DEFAULT, MESHES, chips
from ttstack.near import did_you_mean

if TYPE_CHECKING:
    from ttstack.arm.layers import Report
    from ttstack.arm.types import Pin

FLAG_NAME = r"[a-z0-9][a-z0-9-]*"


def table(data: Mapping[str, object], *names: str) -> Mapping[str, object]:
    """Return a table inside a table; an empty one where there is none, or something else."""
    value: object = data
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def check_rules(report: Report, pin: Pin | None) -> None:
    """Report everything that does not fit together; ``pin`` is None when it could not be read."""
    data = report.layers.data
    _check_flags(report, pin)
    _check_options(report, pin)
    _check_cards(report)
    _check_environment(report)
    _check_overlays(report, pin)
    _check_expect(report)
    runtime = runtime_of(table(data, "engine"))
    if pin is not None and runtime in {"docker", "podman"} and not pin.image:
        report.add(
            ("pin",), f"the runtime {runtime} needs an image, and the pin {pin.name!r} names none", f"see {pin.file}"
        )


def runtime_of(engine: Mapping[str, object]) -> str:
    """Return the runtime that is written, else the kind's own."""
    return str(engine.get("runtime", "process" if engine.get("kind") == "sim" else "docker"))


def _check_flags(report: Report, pin: Pin | None) -> None:
    engine = table(report.layers.data, "engine")
    kind = engine.get("kind")
    known = known_flags(kind, pin.extra_flags if pin else None) if isinstance(kind, str) else None
    for name, value in table(engine, "args").items():
        key = ("engine", "args", name)
        if name in REFUSED:
            report.add(key, "this flag may not be set here", REFUSED[name])
        elif known is None:
            # Another program's flags are not known here; without a kind, that it is missing has been said.
            if kind in ENGINE["kind"].choices and not re.fullmatch(FLAG_NAME, name):
                report.add(key, "is not a flag's name", "lower-case letters, digits and dashes, without leading dashes")
        elif name not in known:
            names = [*known, *REFUSED]
            report.add(key, f"unknown flag of {'vllm serve' if kind == 'vllm' else kind}", did_you_mean(name, names))
        elif not fits(known[name], value):
            report.add(key, f"expected {KINDS[known[name]]}, not {describe(value)}")


def _check_options(report: Report, pin: Pin | None) -> None:
    options = known_options(pin.extra_flags if pin else None)
    for name, value in table(report.layers.data, "engine", "tt").items():
        key = ("engine", "tt", name)
        option = options.get(name)
        if option is None:
            report.add(key, "unknown option of the Tenstorrent plugin", did_you_mean(name, options))
        elif not fits(option.kind, value):
            report.add(key, f"expected {KINDS[option.kind]}, not {describe(value)}")
        elif option.choices and value not in option.choices:
            hint = did_you_mean(str(value), option.choices)
            report.add(key, f"expected one of {', '.join(option.choices)}, not {describe(value)}", hint)


def _check_cards(report: Report) -> None:
    cards = table(report.layers.data, "cards")
    ids = cards.get("ids")
    names = [name.lower() for name in ids if isinstance(name, str)] if isinstance(ids, list) else []
    for index, name in enumerate(names):
        if name in names[:index]:
            report.add(("cards", "ids", index), f"two cards that are one: {name!r} is already in the list")
    count = cards.get("count")
    if isinstance(report.layers.data.get("cards"), Mapping) and count is None and not names:
        report.missing(
            ("cards", "count"), "missing: how many cards, or ids of them", f"expected {CARDS['count'].expected}"
        )
    if not isinstance(count, int) or isinstance(count, bool):
        count = len(names)
    elif isinstance(ids, list) and len(ids) != count:
        report.add(("cards", "ids"), f"{len(ids)} ids, but cards.count is {count}")
    mesh = cards.get("mesh")
    if isinstance(mesh, str):
        _check_mesh(mesh, count, report)
    elif mesh is None and count and count not in DEFAULT and count <= CARDS["count"].high:
        report.missing(
            ("cards", "mesh"), f"missing: {count} cards have no mesh of their own", f"for example (1,{count})"
        )


def _check_mesh(mesh: str, count: int, report: Report) -> None:
    key = ("cards", "mesh")
    needed = chips(mesh)
    if needed is None:
        hint = did_you_mean(mesh, MESHES) or f"known: {', '.join(MESHES)}, or a shape such as (1,2)"
        report.add(key, f"unknown mesh {mesh!r} (case matters)", hint)
    elif count and needed != count:
        own = DEFAULT.get(count, f"(1,{count})")
        cards = "1 card" if needed == 1 else f"{needed} cards"
        report.add(key, f"the mesh {mesh} has {cards}, but the arm asks for {count}", f"the mesh of {count} is {own}")


def _check_environment(report: Report) -> None:
    env = table(report.layers.data, "env")
    weights = table(env, "weights")
    for name in weights:
        if name in env:
            report.add(("env", "weights", name), "is set in env as well", "keep one of the two")
    secrets = table(report.layers.data, "engine").get("secrets")
    for index, name in enumerate(secrets if isinstance(secrets, list) else []):
        key = ("engine", "secrets", index)
        if not isinstance(name, str):
            continue
        if name in env or name in weights:
            report.add(key, f"{name} is set in env as well", "a secret is passed by name only")
        elif name in DERIVED_ENV:
            report.add(key, f"{name} may not be passed on", DERIVED_ENV[name])


def _check_overlays(report: Report, pin: Pin | None) -> None:
    overlays = report.layers.data.get("overlay")
    targets: list[PurePosixPath] = []
    for index, overlay in enumerate(overlays if isinstance(overlays, list) else []):
        key = ("overlay", index)
        source, target = (overlay.get(name) if isinstance(overlay, Mapping) else None for name in ("source", "target"))
        if isinstance(source, str):
            path = overlay_source(report, index, source)
            if not path.is_dir():
                what = "is not a folder" if path.exists() else "does not exist"
                report.add((*key, "source"), f"the overlay's source {path} {what}")
            elif path_fault(str(path)) and not path_fault(source):
                fault = path_fault(str(path))
                report.add((*key, "source"), f"the path {path} holds {fault!r}, which a bind mount cannot carry")
        if isinstance(target, str):
            parts = PurePosixPath(target)
            if parts.is_absolute() or ".." in parts.parts or not parts.parts:
                report.add((*key, "target"), f"expected a path below tt-metal's home, not {target!r}")
            elif parts in targets:
                report.add((*key, "target"), f"two overlays have the target {target!r}")
            targets.append(parts)
    if overlays and runtime_of(table(report.layers.data, "engine")) == "process":
        report.add(("overlay",), "overlays need a container: the process runtime has no image to put them over")
    elif overlays and pin is not None and pin.image and not pin.home:
        report.add(("overlay",), f"the pin {pin.name!r} does not say where tt-metal lies (home)", f"see {pin.file}")


def overlay_source(report: Report, index: int, source: str) -> Path:
    """Resolve a source against the folder of the file that it is written in. ``..`` is resolved, links are kept."""
    folder = report.layers.place(("overlay", index, "source")).file.parent
    return Path(abspath(folder / source))  # noqa: PTH100 - resolve() would follow links


def _check_expect(report: Report) -> None:
    expect = table(report.layers.data, "expect")
    banners = expect.get("banners")
    for index, banner in enumerate(banners if isinstance(banners, list) else []):
        if not isinstance(banner, str):
            continue
        if not banner.removeprefix("re:").strip():
            report.add(("expect", "banners", index), "is empty: any line would do")
        elif banner.startswith("re:"):
            try:
                re.compile(banner.removeprefix("re:"))
            except re.error as error:
                report.add(("expect", "banners", index), f"is not a regular expression: {error}")
    length = expect.get("max_model_len")
    asked = table(report.layers.data, "engine", "args").get("max-model-len")
    if isinstance(length, int) and isinstance(asked, int) and length != asked:
        report.add(("expect", "max_model_len"), f"expected {asked}, as engine.args.max-model-len says, not {length}")
