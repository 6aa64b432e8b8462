"""Where arms, pins and the catalogue of models are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.arm.errors import ArmError

if TYPE_CHECKING:
    from collections.abc import Mapping

CATALOGUE = "models.toml"


@dataclass(frozen=True, slots=True)
class Shelf:
    """A folder of arms, with models.toml, and a folder of pins."""

    arms: Path  # absolute
    pins: Path  # absolute

    @property
    def models(self) -> Path:
        """The catalogue of models."""
        return self.arms / CATALOGUE


def find_shelf(explicit: Path | None, environ: Mapping[str, str], cwd: Path) -> Shelf:
    """Find the folder of arms.

    It is ``explicit``, else $TTX_ARMS, else ``arms/`` of ``cwd`` or of its nearest parent that has one, else
    $TTX_SHARE/arms, where the package keeps the arms that came with it.
    Raises ArmError when a folder that was named holds no models.toml, or when there is none anywhere.
    """
    for what, named in (("", explicit), ("$TTX_ARMS: ", environ.get("TTX_ARMS"))):
        if named:
            return _shelf(cwd / named, what)
    for folder in (cwd, *cwd.parents):
        if (folder / "arms" / CATALOGUE).is_file():
            return _shelf(folder / "arms", "")
    share = environ.get("TTX_SHARE")
    if share:
        return _shelf(cwd / share / "arms", "$TTX_SHARE: ")
    raise ArmError(
        f"there is no arms/{CATALOGUE} in {cwd} or above it",
        hint="name the folder of arms: ttx --arms DIR ..., or set TTX_ARMS",
        reason="no_arms_folder",
    )


def arm_names(shelf: Shelf) -> tuple[str, ...]:
    """Names of the arms of a shelf, sorted. Raises ArmError when the folder cannot be listed."""
    return tuple(name for name in _stems(shelf.arms) if name != "models")


def pin_names(shelf: Shelf) -> tuple[str, ...]:
    """Names of the pins of a shelf, sorted; none when there is no folder of pins."""
    return _stems(shelf.pins) if shelf.pins.is_dir() else ()


def _stems(folder: Path) -> tuple[str, ...]:
    try:
        return tuple(sorted(path.stem for path in folder.iterdir() if path.suffix == ".toml" and path.stem))
    except OSError as error:
        raise ArmError(f"{folder} cannot be listed: {error.strerror}", reason="no_arms_folder") from None


def _shelf(arms: Path, what: str) -> Shelf:
    # absolute, but not resolved: the folder of pins stands beside the folder that the person named
    arms = Path.cwd() / arms
    if not (arms / CATALOGUE).is_file():
        raise ArmError(
            f"{what}{arms} is not a folder of arms: it holds no {CATALOGUE}",
            hint="a folder of arms holds one TOML file per arm and models.toml",
            reason="no_arms_folder",
        )
    return Shelf(arms, arms.parent / "pins")
