"""From an arm's file to ``Asked``: the arm with everything that it extends, its pin and its model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from os.path import abspath, realpath
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from ttstack.arm.catalogue import load_models, load_pin
from ttstack.arm.check import check_table
from ttstack.arm.errors import ArmError, ArmFileError
from ttstack.arm.fields import ARM, ENGINE, EXPECT
from ttstack.arm.layers import Layers, Report, lay_over, read_toml
from ttstack.arm.mesh import DEFAULT
from ttstack.arm.rules import check_rules, overlay_source, runtime_of, table
from ttstack.arm.shelf import CATALOGUE, arm_names, pin_names
from ttstack.arm.types import Arm, Asked, Cards, Engine, Expect, Overlay
from ttstack.near import did_you_mean

if TYPE_CHECKING:
    from ttstack.arm.shelf import Shelf
    from ttstack.arm.types import Model, Pin, Runtime, Value
    from ttstack.errors import Problem

# What docker allows in a container's name, and short enough for ttx-NAME to stay readable.
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}"


@dataclass(frozen=True, slots=True)
class Resolved:
    """An arm, and where each of its values stands."""

    asked: Asked
    layers: Layers


def load(name_or_path: str, shelf: Shelf) -> Asked:
    """Read an arm by name, or by path when there is a ``/`` in it or it ends in ``.toml``.

    Raises ArmError when there is no such arm, ArmFileError with all problems of all files concerned at once.
    """
    return resolve(name_or_path, shelf).asked


def resolve(name_or_path: str, shelf: Shelf) -> Resolved:
    """Do as ``load`` does, and keep the places."""
    file = _file_of(name_or_path, shelf)
    layers, problems = _chain(file, shelf)
    report = Report(layers, partial=bool(problems))
    report.problems += problems
    if not re.fullmatch(_NAME, file.stem):
        report.add((), f"an arm cannot be called {file.stem!r}", "letters, digits, dots, dashes, at most 60")
    check_table(ARM, layers.data, (), report)
    pin, model = _find_pin(report, shelf), _find_model(report, shelf)
    check_rules(report, pin)
    if report.problems or pin is None or model is None:
        unique = sorted(dict.fromkeys(report.problems), key=lambda p: (p.file != file, str(p.file), p.line))
        raise ArmFileError(tuple(unique))
    return Resolved(Asked(_build(report), pin, model), layers)


def _frozen(table: Mapping[str, Any]) -> Mapping[str, Value]:
    """Make a TOML table read-only all the way down."""
    return MappingProxyType({key: _freeze(item) for key, item in table.items()})


def _freeze(value: Any) -> Value:  # noqa: ANN401 - what tomllib gives
    if isinstance(value, Mapping):
        return _frozen(value)
    if isinstance(value, list):
        return tuple(map(_freeze, value))
    scalar: str | int | float | bool = value
    return scalar


def _file_of(name: str, shelf: Shelf) -> Path:
    if "/" in name or name.endswith(".toml"):
        file = Path(abspath(name))  # noqa: PTH100 - resolve() would follow links
        if file.exists():
            _refuse_others(file, shelf)
            return file
        beside = [path.name for path in file.parent.glob("*.toml")]
        way_out = did_you_mean(file.name, beside) or "an arm of the folder of arms goes by its name alone: ttx arm ls"
        raise ArmError(f"there is no file {file}", hint=way_out)
    names = arm_names(shelf)
    if name in names:
        return shelf.arms / f"{name}.toml"
    known = f"arms in {shelf.arms}: {', '.join(names) or 'none'}"
    raise ArmError(f"unknown arm {name!r}", hint=did_you_mean(name, names) or known)


def _refuse_others(file: Path, shelf: Shelf) -> None:
    """Say what a file is that stands beside the arms and is none."""
    if realpath(file) == realpath(shelf.models):
        what = "the catalogue of models"
    elif realpath(file.parent) == realpath(shelf.pins):
        what = "a pin"
    else:
        return
    raise ArmError(f"{file} is {what}, not an arm", hint="`ttx arm check` without a name checks it, too")


def _chain(file: Path, shelf: Shelf) -> tuple[Layers, list[Problem]]:
    """Read an arm and, one after the other, the arms that it extends; lay them over each other."""
    stack = [read_toml(file)]
    problems: list[Problem] = []
    seen = {realpath(file): file}
    while "extends" in stack[-1].data:
        report = Report(stack[-1])
        base = _base_of(report, shelf)
        if base is not None and realpath(base) in seen:
            names = " -> ".join(path.stem for path in [*seen.values(), base])
            report.add(("extends",), f"extends loop: {names}")
        elif base is not None:
            seen[realpath(base)] = base
            try:
                stack.append(read_toml(base))
            except ArmFileError as error:
                report.problems += error.problems
        if report.problems:
            problems += report.problems
            break
    layers = stack[-1]
    for top in reversed(stack[:-1]):
        problems += _schema_problem(layers)
        layers = lay_over(layers, top)
    return layers, problems


def _schema_problem(layers: Layers) -> list[Problem]:
    """Check what laying another file over this one would hide."""
    report = Report(layers)
    own = {"schema": layers.data["schema"]} if "schema" in layers.data else {}
    check_table({"schema": ARM["schema"]}, own, (), report)
    return report.problems


def _base_of(report: Report, shelf: Shelf) -> Path | None:
    """Find the file that the topmost layer extends: beside it, else on the shelf."""
    name, folder = report.layers.data["extends"], report.layers.file.parent
    if not isinstance(name, str):
        check_table({"extends": ARM["extends"]}, {"extends": name}, (), report)
        return None
    if "/" in name or name.endswith(".toml"):
        places = [Path(abspath(folder / name))]  # noqa: PTH100 - resolve() would follow links
    else:
        places = [folder / f"{name}.toml", shelf.arms / f"{name}.toml"]
    found = next((place for place in places if place.exists() and place.name != CATALOGUE), None)
    if found is None:
        report.add(("extends",), f"unknown arm {name!r}", did_you_mean(name, arm_names(shelf)))
    return found


def _find_pin(report: Report, shelf: Shelf) -> Pin | None:
    name = report.layers.data.get("pin")
    if not isinstance(name, str):
        return None
    names = pin_names(shelf)
    if name not in names:
        known = f"pins in {shelf.pins}: {', '.join(names) or 'none'}"
        report.add(("pin",), f"unknown pin {name!r}", did_you_mean(name, names) or known)
        return None
    try:
        return load_pin(name, shelf)
    except ArmFileError as error:
        report.problems += error.problems
        return None


def _find_model(report: Report, shelf: Shelf) -> Model | None:
    name = report.layers.data.get("model")
    try:
        models = load_models(shelf)
    except ArmFileError as error:
        report.problems += error.problems
        return None
    if not isinstance(name, str):
        return None
    if name not in models:
        known = f"models in {shelf.models}: {', '.join(models) or 'none'}"
        report.add(("model",), f"unknown model {name!r}", did_you_mean(name, models) or known)
    return models.get(name)


def _build(report: Report) -> Arm:
    """Make the Arm of layers that have no problems."""
    data: Mapping[str, Any] = report.layers.data
    env = dict(data.get("env", {}))
    weights = env.pop("weights", {})
    expect: Mapping[str, Any] = table(data, "expect")
    return Arm(
        name=report.layers.file.stem,
        file=report.layers.file,
        description=data.get("description", ""),
        pin=data["pin"],
        model=data["model"],
        engine=_engine(data["engine"]),
        cards=_cards(data["cards"]),
        env=MappingProxyType(env),
        weights_env=MappingProxyType(dict(weights)),
        overlays=tuple(
            Overlay(overlay_source(report, index, overlay["source"]), overlay["target"])
            for index, overlay in enumerate(data.get("overlay", ()))
        ),
        expect=Expect(
            banners=tuple(expect.get("banners", ())),
            served_root=expect.get("served_root", EXPECT["served_root"].default),
            max_model_len=expect.get("max_model_len"),
        ),
    )


def _engine(engine: Mapping[str, Any]) -> Engine:
    def get(name: str) -> Any:  # noqa: ANN401 - checked before
        return engine.get(name, ENGINE[name].default)

    return Engine(
        kind=engine["kind"],
        runtime=cast("Runtime", runtime_of(engine)),
        port=engine["port"],
        host=get("host"),
        args=_frozen(engine.get("args", {})),
        tt=_frozen(engine.get("tt", {})),
        secrets=tuple(engine.get("secrets", ())),
        boot_timeout_s=get("boot_timeout_s"),
        stop_grace_s=get("stop_grace_s"),
    )


def _cards(cards: Mapping[str, Any]) -> Cards:
    ids = tuple(name.lower() for name in cards.get("ids", ()))
    count = cards.get("count", len(ids))
    return Cards(count=count, ids=ids, mesh=cards.get("mesh") or DEFAULT[count])
