"""What tests of starts and builds have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cache_kit import builder, inputs_of

from ttstack.cache.build import Start
from ttstack.cache.marker import key_of, read_marker
from ttstack.cache.survey import standing_of

if TYPE_CHECKING:
    from pathlib import Path

    from ttstack.cache.registry import Registry
    from ttstack.cache.types import Marker


KEY = key_of(inputs_of())
RUN = builder().run


def start_of(base: Path, inputs: dict[str, Any] | None = None, **fields: Any) -> Start:  # noqa: ANN401 - a start's own
    inputs = inputs_of() if inputs is None else inputs
    known: dict[str, Any] = {"builder": builder(alive=True), **fields}
    return Start(base / "caches", base / "locks", key_of(inputs), inputs, **known)


def room(_registry: Registry) -> int:
    return 1000


def standing(root: Path) -> str:
    return standing_of(root / KEY).standing


def marker(root: Path) -> Marker:
    found = read_marker(root / KEY)
    assert found is not None
    return found


def leftover(folder: Path) -> None:
    (folder / "P150" / "w.tensorbin.tmp.77").write_bytes(b"x")


def cut(folder: Path) -> None:
    path = next((folder / "P150").iterdir())
    path.write_bytes(path.read_bytes()[:50])
