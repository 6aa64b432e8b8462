from __future__ import annotations

from pathlib import Path

import pytest

from ttstack.host import places
from ttstack.host.errors import HostError
from ttstack.host.types import Roots


def test_the_environment_decides() -> None:
    env = {"TTX_STATE": "/a", "TTX_LOCKS": "/b", "TTX_CACHE": "/c"}
    found = places.find_places(simulated=False, environ=env)
    assert (found.state, found.locks, found.cache) == (Path("/a"), Path("/b"), Path("/c"))
    assert found.roots == Roots()


def test_a_simulated_host_has_locks_and_caches_of_its_own() -> None:
    env = {"TTX_STATE": "/a", "TTX_LOCKS": "/b", "TTX_CACHE": "/c"}
    roots = Roots(Path("/s"), Path("/p"), Path("/d"))
    found = places.find_places(simulated=True, environ=env, roots=roots)
    assert (found.state, found.locks, found.cache) == (Path("/a"), Path("/a/sim-host/locks"), Path("/a/sim-host/cache"))
    assert (found.roots, found.simulated) == (roots, True)
    assert places.simulated_tree(env) == Path("/a/sim-host/tree")


@pytest.mark.parametrize(
    ("uid", "env", "state"),
    [
        (0, {}, "/var/lib/ttx"),
        (1000, {"HOME": "/home/u"}, "/home/u/.local/state/ttx"),
        (1000, {"HOME": "/home/u", "XDG_STATE_HOME": "/x"}, "/x/ttx"),
    ],
)
def test_without_it_the_user_decides(
    monkeypatch: pytest.MonkeyPatch, uid: int, env: dict[str, str], state: str
) -> None:
    monkeypatch.setattr(places.os, "geteuid", lambda: uid)
    assert places.state_folder(env) == Path(state)


def test_a_folder_is_absolute_or_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The supervisor works in another folder: a relative path would be another place there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(places.os, "geteuid", lambda: 1000)
    assert places.state_folder({"HOME": "/home/u", "XDG_STATE_HOME": "x"}) == Path("/home/u/.local/state/ttx")
    assert places.state_folder({"HOME": "h"}) == tmp_path / "h/.local/state/ttx"
    assert places.state_folder({"TTX_STATE": "s"}) == tmp_path / "s"

    def nobody(_uid: int) -> None:
        raise KeyError

    monkeypatch.setattr(places.pwd, "getpwuid", nobody)
    with pytest.raises(HostError, match="user 1000 has no home"):
        places.state_folder({"HOME": ""})
