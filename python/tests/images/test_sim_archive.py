"""The archive of the simulated engine's image, as Nix builds it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import tomllib
from pathlib import Path

import pytest
from images_kit import PROJECT, read_archive, run

pytestmark = pytest.mark.host


def _nix(tree: Path, *words: str | Path) -> str:
    return run(tree / "bootstrap", "nix", *words, cwd=tree).well()


def test_it_is_what_the_pin_names_and_starts_what_the_arm_says(sim_archive: Path) -> None:
    archive = read_archive(sim_archive)
    pin = tomllib.loads((PROJECT / "pins" / "sim-image.toml").read_text())
    assert archive.names == (pin["image"],)
    config = archive.config["config"]
    assert not config.get("Entrypoint")
    (path,) = [text.removeprefix("PATH=") for text in config["Env"] if text.startswith("PATH=")]
    names = {f"/{entry.name.removeprefix('/')}" for layer in archive.layers for entry in layer.entries}
    assert f"{path}/ttx-sim" in names


def test_no_layer_tells_who_made_it_or_when(sim_archive: Path) -> None:
    archive = read_archive(sim_archive)
    assert archive.config["created"].startswith("1970-01-01T00:00:01")
    entries = [entry for layer in archive.layers for entry in layer.entries]
    assert len(entries) > 100
    assert {(entry.uid, entry.gid, entry.uname, entry.mtime) for entry in entries} == {(0, 0, "root", 1)}
    for layer in archive.layers:
        parts = [Path(entry.name).parts for entry in layer.entries]
        assert parts == sorted(parts)


def test_everybody_may_read_all_of_it(sim_archive: Path) -> None:
    for layer in read_archive(sim_archive).layers:
        closed = [entry.name for entry in layer.entries if entry.mode & 0o444 != 0o444 and not entry.issym()]
        assert closed == []


@pytest.mark.parametrize("part", ["ttx.ttstack", "sim-image.stream.hostPython", "sim-image"])
def test_another_build_gives_the_same_bytes(sim_archive: Path, part: str) -> None:
    assert sim_archive.exists()
    done = run(PROJECT / "bootstrap", "nix", "build", f".#{part}", "--no-link", "--rebuild", cwd=PROJECT)
    if "does not provide attribute" in done.err:
        pytest.skip(f"this nixpkgs has no {part}")
    done.well()


def test_the_program_that_streams_it_writes_the_same(sim_archive: Path, tmp_path: Path) -> None:
    _nix(PROJECT, "build", ".#sim-image.stream", "--out-link", tmp_path / "stream")
    streamed = subprocess.run([tmp_path / "stream"], capture_output=True, timeout=60, check=True)
    assert streamed.stdout == sim_archive.read_bytes()


def test_a_change_of_the_package_changes_its_layer_alone(sim_archive: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(
        PROJECT, tree, symlinks=True, ignore=shutil.ignore_patterns(".git", "__pycache__", ".*_cache", "runs")
    )
    with (tree / "python/ttstack/sim/engine.py").open("a") as file:
        file.write("# changed\n")
    _nix(tree, "build", ".#sim-image", "--out-link", tmp_path / "changed")
    before, after = read_archive(sim_archive).layers, read_archive(tmp_path / "changed").layers
    pairs = list(zip(before, after, strict=True))
    assert len(pairs) > 1
    (changed,) = [new for old, new in pairs if old.digest != new.digest]
    assert "ttstack" in changed.comment


@pytest.mark.parametrize("target", ["dir", "oci"])
def test_skopeo_reads_it(sim_archive: Path, tmp_path: Path, target: str) -> None:
    if shutil.which("skopeo") is None:
        pytest.skip("no skopeo here")
    copy = f"{target}:{tmp_path}/copy"
    run("skopeo", "--insecure-policy", "copy", f"docker-archive:{sim_archive}", copy).well()
    assert "Architecture" in run("skopeo", "inspect", copy).well()


def test_podman_loads_it(sim_archive: Path) -> None:
    if shutil.which("podman") is None or os.geteuid() != 0:
        pytest.skip("no podman here, or not root")
    # Its own folders: podman takes no long names here.
    with tempfile.TemporaryDirectory(prefix="ttx") as folder:
        podman = ["podman", "--root", f"{folder}/root", "--runroot", f"{folder}/run", "--storage-driver", "vfs"]
        podman += ["--cgroup-manager", "cgroupfs", "--events-backend", "file"]
        assert "ttstack/sim" in run(*podman, "load", "--input", sim_archive).well()


def _image(base: Path, tree: Path, package: Path) -> tuple[int, str]:
    done = run("python3", "-I", PROJECT / "pkgs/offline/image.py", base, tree, package)
    return done.code, done.err


def test_a_link_to_a_program_that_the_image_has_not_is_refused(tmp_path: Path) -> None:
    base, tree, package = tmp_path / "base.json", tmp_path / "tree", tmp_path / "hash-package"
    base.write_text('{"name": "n", "tag": "t", "architecture": "a", "created": "c", "config": {}}')
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "usr/bin/python3").touch()
    (package / "bin").mkdir(parents=True)
    (package / "bin/python3").symlink_to("/usr/bin/python3")
    assert _image(base, tree, package)[0] == 0
    (package / "bin/git").symlink_to("/usr/bin/git")
    code, error = _image(base, tree, package)
    assert code != 0
    assert "bin/git links to /usr/bin/git" in error
