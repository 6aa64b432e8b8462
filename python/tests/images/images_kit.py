"""What these tests share: the archive of an image, read; and commands, run."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROJECT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Layer:
    """One layer: the sha256 of its archive, what it is by the image's history, and what is in it."""

    digest: str
    comment: str
    entries: tuple[tarfile.TarInfo, ...]


@dataclass(frozen=True)
class Archive:
    """An archive as ``docker load`` takes it."""

    names: tuple[str, ...]
    config: Mapping[str, Any]
    layers: tuple[Layer, ...]


def read_archive(path: Path) -> Archive:
    """Read an archive, holding every name in it against what it names."""
    with tarfile.open(path) as outer:

        def read(name: str) -> bytes:
            member = outer.extractfile(name)
            assert member is not None
            return member.read()

        (manifest,) = json.loads(read("manifest.json"))
        config = json.loads(read(manifest["Config"]))
        assert manifest["Config"] == hashlib.sha256(read(manifest["Config"])).hexdigest() + ".json"
        layers = []
        for name, diff_id, history in zip(
            manifest["Layers"], config["rootfs"]["diff_ids"], config["history"], strict=True
        ):
            digest = hashlib.sha256(read(name)).hexdigest()
            assert (name, diff_id) == (f"{digest}/layer.tar", f"sha256:{digest}")
            with tarfile.open(fileobj=outer.extractfile(name)) as inner:
                layers.append(Layer(digest, history["comment"], tuple(inner.getmembers())))
    return Archive(tuple(manifest["RepoTags"]), config, tuple(layers))


def run(*words: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Done:
    """Run a command to its end."""
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=600, check=False)
    return Done(done.returncode, done.stdout, done.stderr, words)


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    code: int
    out: str
    err: str
    words: Sequence[str | Path]

    def well(self) -> str:
        """Return its output; fail when it failed."""
        assert self.code == 0, f"{' '.join(map(str, self.words))}: {self.err}"
        return self.out
