"""What in a unit's text is a use of a cache, and whose text must be readable to the last word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ttstack.cache.ground import Ground
from ttstack.cache.use_units import used_by
from ttstack.host.units import Unit

if TYPE_CHECKING:
    from pathlib import Path

KEY = "0123456789abcdef"


def paths(text: str, root: Path) -> set[str]:
    found, unread = used_by(Unit("a.service", text), root, Ground(()))
    assert unread == []
    return {str(use.path) for use in found}


@pytest.mark.parametrize(
    "line",
    [
        "ExecStart=engine --mount type=bind,src={above},dst=/c",
        "ExecStart=engine --mount type=bind,source={above},dst=/c",
        "ExecStart=engine -v {above}:/c image",
        "ExecStart=engine -v '{above}:/c' image",
        "ExecStart=engine --volume={above}:/c image",
        "Environment=TT_CACHE_PATH={above}",
        'Environment="TT_METAL_CACHE={above}"',
        "BindPaths={above}:/c",
        "BindReadOnlyPaths=-{above}:/c",
        "Environment=DATA={above}\nExecStart=engine -v ${{DATA}}:/c",
        "Environment=A=1 DATA={above} B=2\nExecStart=engine -v $DATA:/c",
        "Environment='DATA={above}'\nExecStart=engine -v $DATA/:/c",
        "Environment=A={above}\nEnvironment=A=/later\nExecStart=engine -v $A:/c",
        "Environment=A=/earlier\nEnvironment=A={above}\nExecStart=engine -v $A:/c",
        "Environment=A={above} AB=/other\nExecStart=engine -v $A/$NOTHING:/c",
        "ExecStart=engine -v {above}/%i:/c",
        "ExecStart=engine -v {above}\\x2f:/c image",
    ],
)
def test_what_mounts_a_folder_above_the_root_uses_all_of_it(tmp_path: Path, line: str) -> None:
    root = tmp_path / "above" / "cache"
    root.mkdir(parents=True)
    assert paths(line.format(above=root.parent), root) == {str(root.parent)}


@pytest.mark.parametrize(
    "line",
    [
        "ExecStart=find {above} -name x",
        "Environment=DATA={above}",
        "ExecStart=engine -v /nowhere/else:/c",
        "WorkingDirectory={above}",
        "Description=-v, src= and Bind are words",
    ],
)
def test_what_only_names_a_folder_above_the_root_uses_nothing(tmp_path: Path, line: str) -> None:
    root = tmp_path / "above" / "cache"
    root.mkdir(parents=True)
    assert paths(line.format(above=root.parent), root) == set()


@pytest.mark.parametrize("word", ["{root}/" + KEY, "'{root}/" + KEY + "'", KEY, "%%" + KEY, "x-" + KEY + ".log"])
def test_a_key_and_a_path_below_the_root_count_wherever_they_stand(tmp_path: Path, word: str) -> None:
    root = tmp_path / "my cache"
    root.mkdir()
    assert f"{root}/{KEY}" in paths(f"ExecStart=engine {word.format(root=root)}", root)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ttx-prod.service", ""),
        ("tenstorrent-x.service", ""),
        ("a.service", "ExecStart=docker run -e X=$Y image"),
        ("a.service", "ExecStart=podman run -e X=$Y image"),
        ("a.service", "ExecStart=vllm serve"),
        ("a.service", "Environment=TT_METAL_HOME=/x"),
        ("a.service", "ExecStart=ttx run prod"),
        ("a.service", "ExecStart=ttx-sim"),
        ("a.service", "ExecStart=python -m ttstack.sim"),
    ],
)
def test_of_an_engines_unit_all_must_be_readable(tmp_path: Path, name: str, text: str) -> None:
    found, unread = used_by(Unit(name, text, ("/etc/x: Permission denied",)), tmp_path, Ground(()))
    assert found == []
    assert unread == [f"{name} cannot be read completely: /etc/x: Permission denied"]


@pytest.mark.parametrize(
    "text",
    [
        "ExecStart=sshd -D",
        "ExecStart=docker run image",  # the environment of its client is not the container's
        "ExecStart=dockerd\nExecStart=run",
        "Environment=ATTXY=1",
    ],
)
def test_of_others_it_need_not(tmp_path: Path, text: str) -> None:
    assert used_by(Unit("a.service", text, ("/etc/x: Permission denied",)), tmp_path, Ground(())) == ([], [])
