"""Who uses a cache whose lock is free, and what adopts it again."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from ttstack.cache import lock
from ttstack.cache.errors import CacheRefusedError
from ttstack.cache.survey import standing_of
from ttstack.host import container_mounts
from ttstack.host.container_mounts import Mounting, Mountings
from ttstack.run import caches
from ttstack.run.caches import retake_cache, users
from ttstack.run.control import look_at
from ttstack.run.minding import BuildMinded
from ttstack.run.plan import read_plan
from ttstack.run.runtime import ContainerId
from ttstack.run.state import run_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import World

    from ttstack.cache.types import Directory
    from ttstack.run.control import LiveRun
    from ttstack.run.plan import Plan


@pytest.fixture
def left(world: World, monkeypatch: pytest.MonkeyPatch) -> tuple[World, Plan, Directory, Callable[..., None]]:
    """A run that is over, with what is told of it and of containers in the test's hand."""
    run = world.execute(world.arm("bad", "die:kv")).run
    folder = run_folder(world.places.state, run)
    plan = read_plan(folder)
    live = look_at(folder)
    assert live is not None

    def tell(engine: bool = False, trouble: str = "", told: Mountings | None = None) -> None:  # noqa: FBT001, FBT002 - a test's own
        parts = (ContainerId("abc"),) if engine else ()
        found: list[LiveRun] = [replace(live, engine=parts, trouble=trouble)]
        monkeypatch.setattr(caches, "runs", lambda _state: tuple(found))
        monkeypatch.setattr(container_mounts, "look", lambda: told or Mountings())

    tell()
    return world, plan, standing_of(world.places.cache / plan.launch.cache_key), tell


def test_a_run_that_has_an_engine_still_uses_its_cache(
    left: tuple[World, Plan, Directory, Callable[..., None]],
) -> None:
    world, plan, directory, tell = left
    state = world.places.state
    assert users(directory, state, containers=False) == ""
    tell(engine=True)
    assert plan.run in users(directory, state, containers=False)
    tell(trouble="docker does not answer")
    assert plan.run in users(directory, state, containers=False)
    assert users(replace(directory, path=directory.path.with_name("f" * 16)), state, containers=False) == ""


def test_a_container_that_mounts_it_uses_it_and_one_that_cannot_be_asked_may(
    left: tuple[World, Plan, Directory, Callable[..., None]],
) -> None:
    world, _, directory, tell = left
    state, path = world.places.state, directory.path
    link = world.base / "link"
    link.symlink_to(path)
    for source in (path, path.parent, path / "P150", link):
        tell(told=Mountings((Mounting("container x", (str(source),), {}),)))
        assert users(directory, state, containers=True) == "container x"
        assert users(directory, state, containers=False) == ""
    tell(told=Mountings((Mounting("container x", (f"{path}x", "/etc"), {}),)))
    assert users(directory, state, containers=True) == ""
    tell(told=Mountings(troubles=("docker did not answer",)))
    assert "docker did not answer" in users(directory, state, containers=True)


def test_the_lock_of_an_adopted_container_is_taken_again(
    left: tuple[World, Plan, Directory, Callable[..., None]],
) -> None:
    world, plan, directory, _ = left
    root, key = world.places.cache, directory.key
    alone = retake_cache(plan)  # it is not complete
    assert lock.state(root, key) == "exclusive"
    with pytest.raises(CacheRefusedError, match=key):
        retake_cache(plan)
    minded = BuildMinded(plan, alone)
    assert minded.fds == (alone,)
    assert not os.get_inheritable(alone)
    minded.let_go()
    assert (lock.state(root, key), minded.fds) == ("free", ())
    assert world.execute(world.arm()).exit_code == 0
    shared = retake_cache(plan)
    assert lock.state(root, key) == "shared"
    os.close(shared)
