"""Write an image to standard output, as ``docker load`` reads it: ``image.py BASE TREE STORE_PATH...``.

BASE is a JSON file: ``name`` and ``tag`` of the image, and ``architecture``, ``created`` and ``config`` as the image
specification has them. TREE becomes the lowest layer, laid at the root; each store path becomes a layer of its own. A
layer depends on nothing but its own files: names in order, owned by root, of one time. Raises ValueError when a store
path links to a file outside the store that is not in TREE.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_STORE = "nix/store"
_TIME = 1  # as Nix has it in its store


def _entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.mtime = kind, mode, _TIME
    info.uname = info.gname = "root"
    return info


def _add(archive: tarfile.TarFile, name: str, file: Path) -> None:
    """Add one file, folder or link; two names of one file are two files, as the store may have joined them or not."""
    status = file.lstat()
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        info = _entry(name, tarfile.SYMTYPE, mode)
        info.linkname = str(file.readlink())
        archive.addfile(info)
    elif stat.S_ISDIR(status.st_mode):
        archive.addfile(_entry(name, tarfile.DIRTYPE, mode))
    else:
        info = _entry(name, tarfile.REGTYPE, mode)
        info.size = status.st_size
        with file.open("rb") as content:
            archive.addfile(info, content)


def _below(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        yield entry
        if entry.is_dir() and not entry.is_symlink():
            yield from _below(entry)


def _pack_tree(archive: tarfile.TarFile, tree: Path) -> None:
    for file in _below(tree):
        _add(archive, str(file.relative_to(tree)), file)


def _pack_store_path(archive: tarfile.TarFile, path: Path) -> None:
    for folder in ("nix", _STORE):
        archive.addfile(_entry(folder, tarfile.DIRTYPE, 0o755))
    name = f"{_STORE}/{path.name}"
    _add(archive, name, path)
    if path.is_dir() and not path.is_symlink():
        for file in _below(path):
            _add(archive, f"{name}/{file.relative_to(path)}", file)


def _check_links(path: Path, tree: Path) -> None:
    for file in _below(path) if path.is_dir() else ():
        target = str(file.readlink()) if file.is_symlink() else ""
        if target.startswith("/") and not target.startswith(f"/{_STORE}/"):
            inside = tree / target[1:]
            if not os.path.lexists(inside):
                raise ValueError(f"{file} links to {target}: of the host's files an image has its Python alone")


def _add_bytes(out: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mtime = len(content), _TIME
    out.addfile(info, io.BytesIO(content))


def _add_layer(out: tarfile.TarFile, path: Path, pack: Callable[[tarfile.TarFile, Path], None]) -> str:
    """Add a layer; return the sha256 of its archive."""
    with tempfile.TemporaryFile() as spool:
        with tarfile.open(fileobj=spool, mode="w", format=tarfile.GNU_FORMAT) as archive:
            pack(archive, path)
        info = tarfile.TarInfo()
        info.size, info.mtime = spool.tell(), _TIME
        spool.seek(0)
        digest = hashlib.file_digest(spool, "sha256").hexdigest()
        spool.seek(0)
        info.name = f"{digest}/layer.tar"
        out.addfile(info, spool)
    return digest


def write_image(base: dict[str, object], tree: Path, paths: list[Path], target: IO[bytes]) -> None:
    """Write the whole archive."""
    for path in paths:
        _check_links(path, tree)
    with tarfile.open(fileobj=target, mode="w|", format=tarfile.GNU_FORMAT) as out:
        layers = {"host-python": _add_layer(out, tree, _pack_tree)}
        for path in paths:
            layers[str(path)] = _add_layer(out, path, _pack_store_path)
        image = {
            **{key: base[key] for key in ("architecture", "config", "created")},
            "os": "linux",
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in layers.values()]},
            "history": [{"created": base["created"], "comment": name} for name in layers],
        }
        content = json.dumps(image, sort_keys=True).encode()
        config = f"{hashlib.sha256(content).hexdigest()}.json"
        _add_bytes(out, config, content)
        manifest = {
            "Config": config,
            "RepoTags": [f"{base['name']}:{base['tag']}"],
            "Layers": [f"{digest}/layer.tar" for digest in layers.values()],
        }
        _add_bytes(out, "manifest.json", json.dumps([manifest]).encode())


def main(argv: list[str]) -> int:
    """Write the image that the arguments name."""
    base, tree, *paths = map(Path, argv)
    # By name, not by hash: a change of one layer must not move the others.
    paths.sort(key=lambda path: path.name.partition("-")[2])
    write_image(json.loads(base.read_text(encoding="utf-8")), tree, paths, sys.stdout.buffer)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
