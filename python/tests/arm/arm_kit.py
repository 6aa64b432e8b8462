"""A shelf to break: a small catalogue, two pins, and arms written by each test."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ttstack.arm.errors import ArmFileError
from ttstack.arm.load import load
from ttstack.arm.shelf import Shelf

if TYPE_CHECKING:
    from ttstack.arm.types import Asked
    from ttstack.errors import Problem

ROOT = Path(__file__).resolve().parents[3]

MODELS = """\
schema = 1
["qwen3.6-27b"]
hf = "Qwen/Qwen3.6-27B"
path = "/models/qwen"
cache_gb = 28.7
env = { QWEN_SAFE = "1" }
weights_env = ["QWEN_BF4", "QWEN_SAFE"]
[tiny]
path = "tiny"
cache_gb = 0
[by-id]
hf = "org/name"
revision = "main"
cache_gb = 1
"""

PIN = """\
schema = 1
image = "serve:1"
home = "/opt/tt-metal"
[wheel]
name = "ttnn"
version = "0.81.1"
python = "cp312"
sha256 = "%s"
""" % ("0" * 64)

ARM = """\
schema = 1
pin = "current"
model = "qwen3.6-27b"
[engine]
kind = "vllm"
port = 8000
[cards]
count = 2
"""


def make_shelf(folder: Path, *, models: str = MODELS, pin: str = PIN, **arms: str) -> Shelf:
    (folder / "arms").mkdir(exist_ok=True)
    (folder / "pins").mkdir(exist_ok=True)
    (folder / "arms" / "models.toml").write_text(models)
    (folder / "pins" / "current.toml").write_text(pin)
    (folder / "pins" / "bare.toml").write_text("schema = 1\n")
    for name, text in arms.items():
        (folder / "arms" / f"{name}.toml").write_text(text)
    return Shelf(folder / "arms", folder / "pins")


def load_text(folder: Path, text: str, *, models: str = MODELS, pin: str = PIN) -> Asked:
    return load("x", make_shelf(folder, models=models, pin=pin, x=text))


def problems_of(folder: Path, text: str, *, models: str = MODELS, pin: str = PIN) -> tuple[Problem, ...]:
    with pytest.raises(ArmFileError) as caught:
        load_text(folder, text, models=models, pin=pin)
    assert caught.value.exit_code == 2
    return caught.value.problems


def in_section(section: str, line: str) -> str:
    """Put a line into a section of the good arm (at its end when the section is not there)."""
    header = f"[{section}]\n"
    if not section:
        return line + "\n" + ARM
    if header in ARM:
        return ARM.replace(header, header + line + "\n")
    return ARM + header + line + "\n"
