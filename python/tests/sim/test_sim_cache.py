from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest
from sim_engine import Engine

from ttstack.sim import cache_files
from ttstack.sim.banners import Log
from ttstack.sim.errors import BootError
from ttstack.sim.flags import parse
from ttstack.sim.jit import compile_kernels
from ttstack.sim.load import Loader
from ttstack.sim.mesh import shape
from ttstack.sim.model import make_model, read_config

_FILE = "layers.1.feed_forward.w2_sharded_dtype_BFLOAT8_B_layout_TILE.tensorbin"


def _say(tmp_path: Path) -> tuple[str, str]:
    """Boot, ask one question, stop; return the answer and the log."""
    with Engine(tmp_path, env={"TT_METAL_CACHE": str(tmp_path / "jit")}) as engine:
        text = engine.ready().text("what", max_tokens=40)
        assert engine.stop() == 0
        return text, engine.log


def _load(tmp_path: Path, *flags: str, root: Path | None = None, **env: str) -> str:
    """Load as a boot does, in this process; return the fingerprint that the text follows from."""
    root = root or make_model(tmp_path / "model")
    settings = parse(["serve", str(root), *flags], {})
    variables = {"TT_CACHE_PATH": str(tmp_path / "cache"), **env}
    mesh = shape(env.get("MESH_DEVICE", "P150x2"), 2, restricted=False)
    loader = Loader(settings, variables, Log(), mesh, read_config(str(root)), 0)
    return asyncio.run(loader.load()).hex()


def _files(tmp_path: Path, name: str = "P300/tensor_cache_bfp8") -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (tmp_path / "cache" / name).iterdir()}


def test_a_cold_and_a_warm_boot(tmp_path: Path) -> None:
    cold, log = _say(tmp_path)
    files = _files(tmp_path)
    assert len(files) == 12
    assert _FILE in files
    assert log.count("Generating cache for ") == 12
    assert f"Kernel cache: {tmp_path}/jit/tt-metal-cache/" in log
    assert f"Cache directory: {tmp_path}/cache/P300\n" in log
    assert f"Checkpoint directory: {tmp_path}/model\n" in log
    warm, log = _say(tmp_path)
    assert warm == cold
    assert "Generating cache for " not in log
    assert _files(tmp_path) == files


def test_a_stale_cache_changes_what_is_said(tmp_path: Path) -> None:
    """The weights are new, the cache is not: the old weights go on being served, and nothing in the log tells."""
    old, _ = _say(tmp_path)
    (tmp_path / "model" / "weights.sim").write_text("new")
    stale, log = _say(tmp_path)
    assert stale == old
    assert "Failed to load" not in log
    shutil.rmtree(tmp_path / "cache")
    assert _say(tmp_path)[0] != old


def test_one_foreign_file_changes_what_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = _load(tmp_path)
    other = make_model(tmp_path / "other", weights="other")
    _load(tmp_path, root=other, TT_CACHE_PATH=str(tmp_path / "cache-other"))
    name = f"P300/tensor_cache_bfp8/{_FILE}"
    shutil.copy(tmp_path / "cache-other" / name, tmp_path / "cache" / name)
    capsys.readouterr()
    assert _load(tmp_path) != right
    assert capsys.readouterr().out == ""


def test_a_damaged_file_is_made_again_silently(tmp_path: Path) -> None:
    right, _ = _say(tmp_path)
    files = _files(tmp_path)
    path = tmp_path / "cache/P300/tensor_cache_bfp8" / _FILE
    path.write_bytes(files[_FILE][:-100])
    text, log = _say(tmp_path)
    assert text == right
    assert f"| WARNING  | ttnn.operations.core:as_tensor:664 - Failed to load cache for {path}" in log
    assert "Generating cache for " not in log
    assert _files(tmp_path) == files


@pytest.mark.parametrize("damage", ["truncated", "empty", "short", "flipped", "longer", "garbage", "folder"])
def test_damage_is_seen(tmp_path: Path, damage: str) -> None:
    path = tmp_path / _FILE
    cache_files.store(path, bytes(range(256)))
    data = path.read_bytes()
    changed = {
        "truncated": data[:-100],
        "empty": b"",
        "short": data[:10],
        "flipped": data[:-1] + b"x",
        "longer": data + b"x",
        "garbage": b"x" * len(data),
    }
    if damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(changed[damage])
    told = {"flipped": "Cannot validate tensor data", "folder": "cannot read"}.get(damage, "truncated or corrupt")
    with pytest.raises(cache_files.CorruptError, match=told):
        cache_files.load(path)


def test_the_environment_that_changes_weights_changes_the_bytes_only(tmp_path: Path) -> None:
    plain = _load(tmp_path)
    files = _files(tmp_path)
    shutil.rmtree(tmp_path / "cache")
    changed = _load(tmp_path, SIM_LM_HEAD_BF4="1")
    assert changed != plain
    assert _files(tmp_path).keys() == files.keys()
    # The trap that the cache key is for: without the setting, the other bytes are taken all the same.
    assert _load(tmp_path) == changed


def test_mesh_and_dtype_have_folders_of_their_own(tmp_path: Path) -> None:
    fine = '{"tt":{"optimizations":"accuracy"}}'
    prints = {_load(tmp_path), _load(tmp_path, MESH_DEVICE="P150"), _load(tmp_path, "--additional-config", fine)}
    assert len(prints) == 3
    folders = {str(path.relative_to(tmp_path / "cache")) for path in (tmp_path / "cache").glob("*/*")}
    assert folders == {"P150/tensor_cache_bfp8", "P300/tensor_cache_bf16", "P300/tensor_cache_bfp8"}
    assert all("_dtype_BFLOAT16_layout_TILE" in name for name in _files(tmp_path, "P300/tensor_cache_bf16"))


def test_meshes_of_one_name_share_a_folder_and_hurt_each_other(tmp_path: Path) -> None:
    right = _load(tmp_path, MESH_DEVICE="(2,1)")
    shutil.rmtree(tmp_path / "cache")
    foreign = _load(tmp_path, MESH_DEVICE="(1,2)")
    assert foreign != right
    assert _load(tmp_path, MESH_DEVICE="(2,1)") == foreign


def test_without_a_place_it_lies_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root = make_model(tmp_path / "model")
    _load(tmp_path, TT_CACHE_PATH="")
    place = Path("model_cache") / str(root).lstrip("/") / "P300"
    assert (tmp_path / place / "tensor_cache_bfp8" / _FILE).exists()


def test_the_size_is_the_checkpoint_s(tmp_path: Path) -> None:
    _load(tmp_path, root=make_model(tmp_path / "big", tensor_bytes=100_000))
    assert {len(data) for data in _files(tmp_path).values()} == {100_048}


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    with pytest.raises(BootError, match=r"TT_FATAL @ serialization.cpp: Failed to write tensor data"):
        _load(tmp_path)


def test_files_are_renamed_not_rewritten(tmp_path: Path) -> None:
    """A hard link of a cache file keeps its bytes when the file is made again."""
    path = tmp_path / "a.tensorbin"
    cache_files.store(path, b"one")
    os.link(path, tmp_path / "seed")
    cache_files.store(path, b"two")
    assert cache_files.load(tmp_path / "seed") == b"one"
    assert cache_files.load(path) == b"two"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.tensorbin", "seed"]


def test_kernels_are_compiled_once(tmp_path: Path) -> None:
    env = {"TT_METAL_CACHE": str(tmp_path / "jit")}
    folder = tmp_path / "jit" / "tt-metal-cache"
    assert compile_kernels({}, (1, 2)) is None
    made = compile_kernels(env, (1, 2))
    assert made is not None
    assert (made[0].parent.parent, made[1]) == (folder, 5)
    assert len(list(folder.glob("*/kernels/*/trisc0.elf"))) == 5
    assert compile_kernels(env, (1, 2)) == (made[0], 0)
    assert compile_kernels(env, (1, 1)) != made
