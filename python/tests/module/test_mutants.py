"""Change one thing in the arm or in the module: the comparison must fail and name it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from module_kit import EVAL, ROOT, copy_tree, faults_of, units_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.host

# (file, what stands there, what is put there instead, what the sentences must name)
ARM_MUTANTS = [
    ("arms/prod.toml", "max-model-len = 65536", "max-model-len = 32768", "engine flag --max-model-len"),
    ("arms/prod.toml", "max-num-seqs = 32", "max-num-seqs = 33", "engine flag --max-num-seqs"),
    ("arms/prod.toml", ", block-size = 64", "", "engine flag --block-size"),
    ("arms/prod.toml", "async-scheduling = false", "async-scheduling = true", "engine flag --no-async-scheduling"),
    ("arms/prod.toml", "block-size = 64", 'block-size = 64, dtype = "bfloat16"', "--label ttstack.cache"),
    ("arms/prod.toml", 'trace_mode = "all"', 'trace_mode = "none"', "tt.trace_mode"),
    ("arms/prod.toml", ', fabric_config = "FABRIC_1D"', "", "tt.fabric_config"),
    ("arms/prod.toml", "port = 8000", "port = 8001", "--publish 8001"),
    ("arms/prod.toml", "port = 8000", 'port = 8000\nhost = "0.0.0.0"', "--publish 8000"),
    ("arms/prod.toml", "port = 8000", "port = 8000\nstop_grace_s = 60", "--stop-timeout"),
    ("arms/prod.toml", "port = 8000", "port = 8000\nstop_grace_s = 60", "ExecStop: "),
    ("arms/prod.toml", "port = 8000", "port = 8000\nstop_grace_s = 60", "TimeoutStopSec"),
    ("arms/prod.toml", "port = 8000", "port = 8000\nboot_timeout_s = 60", "TimeoutStartSec"),
    ("arms/prod.toml", "port = 8000", 'port = 8000\nsecrets = ["HF_TOKEN"]', "--env HF_TOKEN"),
    ("arms/prod.toml", 'mesh = "P150x2"', 'mesh = "P300"', "--env MESH_DEVICE"),
    ("arms/prod.toml", 'count = 2\nmesh = "P150x2"', 'count = 1\nmesh = "P150"', "--device /dev/tenstorrent/1"),
    ("arms/prod.toml", "count = 2", 'ids = ["blackhole-aa", "blackhole-bb"]', "--device /dev/tenstorrent/0"),
    ("arms/prod.toml", "[cards]", "[env]\nA = '1'\n\n[cards]", "--env A"),
    ("arms/prod.toml", "[cards]", "[env.weights]\nA = '1'\n\n[cards]", "--label ttstack.cache"),
    (
        "arms/prod.toml",
        "[cards]",
        "[[overlay]]\nsource = '.'\ntarget = 'models'\n\n[cards]",
        "--mount /opt/tt-metal/models",
    ),
    ("arms/models.toml", "models/Qwen3.6-27B", "models/Qwen3.6-28B", "--mount /var/lib/tenstorrent/models/Qwen3.6-28B"),
    ("arms/models.toml", 'served_name = "qwen3.6-27b"', 'served_name = "q"', "engine flag --served-model-name"),
    ("arms/models.toml", 'revision = "local" #', 'revision = "other" #', "--label ttstack.cache"),
    ("arms/models.toml", 'hf = "Qwen/Qwen3.6-27B"', 'hf = "Qwen/Qwen3.6"', "--label ttstack.cache"),
]
MODULE_MUTANTS = [
    ("modules/prod.nix", "max-model-len = 65536", "max-model-len = 32768", "engine flag --max-model-len"),
    ("modules/prod.nix", "async-scheduling = false", "async-scheduling = null", "engine flag --no-async-scheduling"),
    ("modules/prod.nix", "inherit (pin) image cacheFormat", 'inherit (pin) cacheFormat; image = "other"', "image"),
    (
        "modules/prod.nix",
        "inherit (pin) image cacheFormat",
        'inherit (pin) image; cacheFormat = "x"',
        "--mount /cache/jit",
    ),
    ("modules/prod.nix", "metalHome = pin.home", "hugepages = true", "--mount /dev/hugepages-1G"),
    ("modules/prod.nix", "cards.count = 2", "cards.count = 1", "--device /dev/tenstorrent/1"),
    ("modules/prod.nix", 'mesh = "P150x2"', 'mesh = "(1,2)"', "--env MESH_DEVICE"),
    ("modules/prod.nix", "cards.count", 'environment.A = "1"; cards.count', "--env A"),
    ("modules/prod.nix", "cards.count", 'weightsEnvironment.A = "1"; cards.count', "--label ttstack.cache"),
    ("modules/prod.nix", "cards.count", "stopGraceSec = 10; cards.count", "--stop-timeout"),
    ("modules/prod.nix", "cards.count", "port = 9000; cards.count", "--publish 9000"),
    ("modules/prod.nix", "cards.count", 'secrets = [ "A" ]; cards.count', "--env A"),
    ("modules/prod.nix", 'trace_mode = "all"', 'trace_mode = "all"; l1_small_size = 1', "tt.l1_small_size"),
    ("modules/serving/launch.nix", 'option "--cap-drop" "ALL"', 'option "--cap-add" "ALL"', "--cap-drop"),
    ("modules/serving/launch.nix", 'option "--ipc" "host"', "[ ]", "--ipc"),
    ("modules/serving/launch.nix", 'option "--pull" "never"', 'option "--pull" "always"', "--pull"),
    ("modules/serving/launch.nix", '"--rm"', '"--detach"', "--detach"),
    ("modules/serving/launch.nix", "max-size=64m", "max-size=1g", "--log-opt max-size"),
    ("modules/serving/launch.nix", ',readonly"', '"', "--mount /var/lib/tenstorrent/models/Qwen3.6-27B"),
    ("modules/serving/launch.nix", 'HF_HUB_OFFLINE = "1"', 'HF_HUB_OFFLINE = "0"', "--env HF_HUB_OFFLINE"),
    ("modules/serving/launch.nix", "VLLM_PLUGINS =", "VLLM_PLUGIN =", "--env VLLM_PLUGINS"),
    ("modules/serving/launch.nix", '"ttstack.arm" =', '"ttstack.arms" =', "--label ttstack.arm"),
    ("modules/serving/launch.nix", '"org.tenstorrent.tt-model.devices" =', '"org" =', "--label org.tenstorrent"),
    ("modules/serving/unit.nix", '"stop"\n', '"kill"\n', "ExecStop: "),
    ("modules/serving/unit.nix", "stopGraceSec + 60", "stopGraceSec", "TimeoutStopSec"),
    (
        "modules/serving/unit.nix",
        "TimeoutStartSec = instance.bootTimeoutSec",
        "TimeoutStartSec = 90",
        "TimeoutStartSec",
    ),
    ("modules/lib/cache-key.nix", "version = 1", "version = 2", "--label ttstack.cache"),
]


VARIANT = ("modules/prod-prefix.nix", "enable-prefix-caching = true", "enable-prefix-caching = null", "")

# What an arm expects is held against its flags when it is read; without it, a changed flag is only a changed flag.
EXPECTED_LENGTH = ("arms/prod.toml", "\nmax_model_len = 65536", "")


def mutate(tree: Path, file: str, old: str, new: str) -> None:
    path = tree / file
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{file} no longer holds {old!r}: the mutant would be none"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.fixture(scope="module")
def units() -> dict[str, dict[str, Any]]:
    return units_of(ROOT)[0]


def test_production_and_its_variant_are_their_arms(units: dict[str, dict[str, Any]]) -> None:
    assert faults_of(ROOT, units) == {"prod": [], "prod-prefix": []}


@pytest.mark.parametrize("mutant", ARM_MUTANTS)
def test_a_change_of_the_arm_is_named(
    tmp_path: Path, units: dict[str, dict[str, Any]], mutant: tuple[str, str, str, str]
) -> None:
    tree = copy_tree(tmp_path)
    mutate(tree, *EXPECTED_LENGTH)
    mutate(tree, *mutant[:3])
    found = faults_of(tree, units)
    # the variant extends production, so it parts as well
    for name in ("prod", "prod-prefix"):
        assert any(mutant[-1] in sentence for sentence in found[name]), (name, found[name])


@pytest.fixture(scope="module")
def mutants(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, list[str]]]:
    """All changes of the module, evaluated by one start of Nix: the sentences for each."""
    trees = []
    for file, old, new, _ in [*MODULE_MUTANTS, VARIANT]:
        trees.append(copy_tree(tmp_path_factory.mktemp("tree")))
        mutate(trees[-1], file, old, new)
    return [faults_of(tree, units) for tree, units in zip(trees, units_of(*trees), strict=True)]


@pytest.mark.parametrize(("number", "mutant"), list(enumerate(MODULE_MUTANTS)))
def test_a_change_of_the_module_is_named(
    mutants: list[dict[str, list[str]]], number: int, mutant: tuple[str, str, str, str]
) -> None:
    for name in ("prod", "prod-prefix"):
        assert any(mutant[-1] in sentence for sentence in mutants[number][name]), (name, mutants[number][name])


def test_a_change_of_the_variant_alone_is_named_there(
    tmp_path: Path, units: dict[str, dict[str, Any]], mutants: list[dict[str, list[str]]]
) -> None:
    tree = copy_tree(tmp_path)
    mutate(tree, "arms/prod-prefix.toml", "enable-prefix-caching = true", "enable-prefix-caching = false")
    for found in (faults_of(tree, units), mutants[-1]):
        assert found["prod"] == []
        assert any("engine flag --enable-prefix-caching" in sentence for sentence in found["prod-prefix"])


def test_the_check_itself_prints_the_difference_and_fails(tmp_path: Path, units: dict[str, dict[str, Any]]) -> None:
    tree = copy_tree(tmp_path)
    file = tmp_path / "units.json"
    file.write_text(json.dumps(units), encoding="utf-8")
    command = [sys.executable, str(EVAL / "arm_matches_module.py"), str(tree / "arms"), str(file)]
    env = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=env)
    assert (done.returncode, done.stdout.count("the same")) == (0, 2), done.stderr

    mutate(tree, *EXPECTED_LENGTH)
    mutate(tree, "arms/prod.toml", "max-model-len = 65536", "max-model-len = 1")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=env)
    assert done.returncode == 1
    assert 'engine flag --max-model-len: arm "1", unit "65536"' in done.stdout
