"""Reading pins and the catalogue of models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from os.path import abspath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ttstack.arm.catalogue_fields import MODEL, PIN
from ttstack.arm.check import DERIVED_ENV, check_table, describe
from ttstack.arm.errors import ArmError, ArmFileError
from ttstack.arm.fields import ENV_NAME
from ttstack.arm.layers import Report, read_toml
from ttstack.arm.shelf import pin_names
from ttstack.arm.types import Model, Pin, Wheel
from ttstack.near import did_you_mean

if TYPE_CHECKING:
    from ttstack.arm.fields import Field
    from ttstack.arm.layers import Layers
    from ttstack.arm.shelf import Shelf


def load_pin(name: str, shelf: Shelf) -> Pin:
    """Read ``pins/NAME.toml``. Raises ArmError when there is none, ArmFileError with all its problems."""
    names = pin_names(shelf)
    if name not in names:
        raise ArmError(f"unknown pin {name!r}", hint=did_you_mean(name, names) or f"pins: {', '.join(names)}")
    layers = read_toml(shelf.pins / f"{name}.toml")
    report = Report(layers)
    check_table(PIN, layers.data, (), report)
    data: dict[str, Any] = _defaults(PIN) | dict(layers.data)
    if isinstance(data["image"], str) and data["image"] and not str(data["home"]).startswith("/"):
        report.add(("home",), "an image needs the absolute path of tt-metal's home inside it")
    if report.problems:
        raise ArmFileError(tuple(report.problems))
    wheel = Wheel(**data["wheel"]) if "wheel" in data else None
    names_of = ("description", "image", "home", "tt_metal", "vllm", "plugin", "cache_writes_by_rename")
    extra = MappingProxyType(dict(data.get("extra-flags", {})))
    return Pin(name=name, file=layers.file, wheel=wheel, extra_flags=extra, **{key: data[key] for key in names_of})


def load_models(shelf: Shelf) -> dict[str, Model]:
    """Read models.toml. Raises ArmFileError with all its problems."""
    layers = read_toml(shelf.models)
    report = Report(layers)
    own = {"schema": layers.data["schema"]} if "schema" in layers.data else {}
    check_table({"schema": PIN["schema"]}, own, (), report)
    models = {}
    for name, entry in layers.data.items():
        if name == "schema":
            continue
        if isinstance(entry, Mapping):
            _check_model(name, entry, report)
            if not report.problems:
                models[name] = _model(name, entry, layers)
        else:
            report.add((name,), f"expected a table, not {describe(entry)}")
    if report.problems:
        raise ArmFileError(tuple(report.problems))
    return models


def _check_model(name: str, entry: Mapping[str, object], report: Report) -> None:
    split = [key for key in entry if key not in MODEL and isinstance(entry[key], Mapping)]
    if split:
        report.add((name, split[0]), "unknown key", f'a name with a dot is written ["{name}.{split[0]}"]')
        entry = {key: value for key, value in entry.items() if key not in split}
        if not entry:
            return
    check_table(MODEL, entry, (name,), report)
    if not entry.get("hf") and not entry.get("path"):
        report.add((name,), "names no checkpoint", "write path, hf or both")
    elif not entry.get("path") and not entry.get("revision"):
        report.add((name, "revision"), "missing: without a path the revision decides what is served")
    names = entry.get("weights_env")
    for index, variable in enumerate(names if isinstance(names, list) else []):
        if isinstance(variable, str) and variable in DERIVED_ENV:
            report.add((name, "weights_env", index), f"{variable} may not be named here", DERIVED_ENV[variable])
    _check_in_name(name, entry, report)


def _check_in_name(name: str, entry: Mapping[str, object], report: Report) -> None:
    """Report what goes into the files' names and not into the cache key."""
    names, known = entry.get("weights_env_in_name"), entry.get("weights_env")
    for index, variable in enumerate(names if isinstance(names, list) else []):
        is_name = isinstance(variable, str) and re.fullmatch(ENV_NAME, variable)
        if is_name and variable not in (known if isinstance(known, list) else []):
            hint = "name it in weights_env, too: only such variables are part of the cache key"
            report.add((name, "weights_env_in_name", index), f"{variable} is not in weights_env", hint)


def _model(name: str, entry: Mapping[str, Any], layers: Layers) -> Model:
    path = str(entry.get("path", ""))
    return Model(
        name=name,
        hf=entry.get("hf", ""),
        path=abspath(layers.file.parent / path) if path else "",  # noqa: PTH100 - resolve() would follow links
        revision=entry.get("revision", "local"),
        served_name=entry.get("served_name", name),
        cache_gb=float(entry["cache_gb"]),
        env=MappingProxyType(dict(entry.get("env", {}))),
        weights_env=tuple(entry.get("weights_env", ())),
        weights_env_in_name=tuple(entry.get("weights_env_in_name", ())),
    )


def _defaults(fields: Mapping[str, Field]) -> dict[str, object]:
    return {name: field.default for name, field in fields.items() if field.default is not None}
