"""What docker and systemd would read otherwise than it was meant: refused before it is written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ttstack.arm.fields import ENV_NAME
from ttstack.render.errors import RenderError

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTAINER_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*")
"""What docker accepts as a container's name."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def check_name(name: str) -> str:
    """Return a container's name; raise RenderError when docker would refuse it."""
    if not CONTAINER_NAME.fullmatch(name):
        raise RenderError(
            f"{name!r} cannot be a container's name", hint="letters, digits, '_', '.' and '-', a letter or digit first"
        )
    return name


def check_path(path: str, what: str) -> str:
    """Return an absolute path; raise RenderError for one that ``--mount`` could not hold (it is read as CSV)."""
    if not path.startswith("/"):
        raise RenderError(f"{what} must be an absolute path, not {path!r}")
    if "," in path or '"' in path or _CONTROL.search(path):
        raise RenderError(
            f"{what} {path!r} holds a comma, a double quote or a control character",
            hint="docker reads --mount as CSV: rename the folder",
        )
    return path


def check_node(path: str) -> str:
    """Return a device node's path; raise RenderError when ``--device`` would split it."""
    if ":" in check_path(path, "a device node"):
        raise RenderError(f"the device node {path!r} holds a colon, where --device splits")
    return path


def check_environment(env: Mapping[str, str], secrets: tuple[str, ...]) -> None:
    """Raise RenderError for names that are none, for NUL, and for a secret that also has a value."""
    for name in (*env, *secrets):
        if not re.fullmatch(ENV_NAME, name):
            raise RenderError(f"{name!r} cannot be the name of an environment variable")
    for name, value in env.items():
        if "\0" in value:
            raise RenderError(f"the value of {name} holds a NUL character, which no environment can")
    both = sorted(set(env) & set(secrets))
    if both:
        raise RenderError(
            f"{both[0]} is a secret and has a value in the environment too", hint="secrets are passed by name only"
        )
    twice = sorted({name for name in secrets if secrets.count(name) > 1})
    if twice:
        raise RenderError(f"the secret {twice[0]} is named twice")


def check_image(image: str) -> str:
    """Return an image's reference; raise RenderError for an empty one and for what would be read as an option."""
    if not image:
        raise RenderError("no image to run", hint="give the pin an image, or the arm another pin")
    if image.startswith("-") or any(letter.isspace() for letter in image) or _CONTROL.search(image):
        raise RenderError(f"{image!r} cannot be an image's reference")
    return image
