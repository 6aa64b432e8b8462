"""The engine's environment as far as it follows from what was asked (docs/reference/launch.md, groups 1 to 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ttstack.arm.types import Asked

FIXED: dict[str, str] = {
    "ARCH_NAME": "blackhole",
    "VLLM_PLUGINS": "tt,tt_model_registry",
    "VLLM_TARGET_DEVICE": "tt",
    "VLLM_USE_V2_MODEL_RUNNER": "0",
}

HF_FOLDER = "/hf"
"""Where a container finds the Hugging Face cache when the engine is given an id instead of a path."""


def resulting_env(asked: Asked) -> dict[str, str]:
    """Lay together the fixed environment, then the model's, then the arm's; later ones win.

    The derived variables (MESH_DEVICE and the like) are added by ``ttstack.render``: an arm cannot set them.
    """
    arm, model = asked.arm, asked.model
    env = dict(FIXED)
    if model.path:
        env["HF_HUB_OFFLINE"] = "1"
    elif arm.engine.runtime != "process":
        env["HF_HOME"] = HF_FOLDER
    return env | dict(model.env) | dict(arm.env) | dict(arm.weights_env)
