"""A run and its tensor cache, from its first look at it to what it leaves."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
import urllib.request
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ttstack.cache import lock
from ttstack.cache.manifest import scan, write_manifest
from ttstack.cache.marker import read_marker, write_marker
from ttstack.cache.registry import locked
from ttstack.cache.survey import standing_of, survey
from ttstack.cache.trash import discard
from ttstack.cache.verify import verify
from ttstack.host import process
from ttstack.run.state import run_folder
from ttstack.run.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import World

    from ttstack.cache.types import Directory
    from ttstack.records.types import CacheWork
    from ttstack.run.flow import Result

SEED = int(os.environ.get("TTX_TEST_SEED") or random.SystemRandom().randrange(10**6))
ROUNDS = int(os.environ.get("TTX_TEST_ROUNDS", "4"))
LINES = 30  # of the checklist of a good run, about


def caches(world: World) -> list[Directory]:
    return [entry for entry in survey(world.places.cache) if entry.path.parent == world.places.cache]


def only(world: World) -> Directory:
    (entry,) = caches(world)
    return entry


def work_of(world: World, result: Result) -> tuple[str | None, CacheWork]:
    closed = world.record(result.run).closed
    assert closed is not None
    assert closed.observed is not None
    assert closed.observed.cache_work is not None
    return closed.observed.cache, closed.observed.cache_work


def test_a_first_run_builds_and_a_second_one_finds_it(world: World) -> None:
    first = world.execute(world.arm())
    assert first.exit_code == 0, first.error
    built = only(world)
    assert (built.standing, verify(built.path)) == ("complete", ())
    assert built.marker is not None
    assert (built.marker.builder.run, built.marker.seeded_from) == (first.run, "")
    assert built.marker.checkpoint
    assert lock.state(world.places.cache, built.key) == "free"
    warmth, work = work_of(world, first)
    assert (warmth, work.key, work.bytes_written) == ("cold", built.key, built.marker.bytes)
    assert work.bytes_written == sum(entry.size for entry in scan(built.path))
    (jit,) = [entry for entry in survey(world.places.cache) if entry.path.parent.name == "jit"]
    assert jit.marker is not None
    assert (jit.standing, jit.marker.kind, jit.marker.builder.run) == ("complete", "jit", first.run)
    os.utime(built.path / ".ttx-used", (1, 1))
    os.utime(jit.path / ".ttx-used", (1, 1))
    second = world.execute(world.arm())
    assert second.exit_code == 0, second.error
    warmth, work = work_of(world, second)
    assert (warmth, work.bytes_written, work.replaced) == ("hit", 0, "")
    assert only(world).marker == built.marker
    used = [entry.used for entry in survey(world.places.cache)]
    assert all(when is not None and when > 1 for when in used)
    assert "written in" in world.ttx("records", "show", first.run)


def test_an_engine_that_does_not_stop_has_its_cache_still(world: World) -> None:
    faults = ("hang:kv", "ignore-sigterm")
    result = world.execute(world.arm("ends", *faults, boot_timeout_s=1, stop_grace_s=1))
    assert result.error is not None
    entry = only(world)
    assert (entry.standing, "not ready after 1 s" in entry.text) == ("broken", True), entry
    assert lock.state(world.places.cache, entry.key) == "exclusive"
    again = world.execute(world.arm("again"))
    assert (again.exit_code, again.error.reason) == (3, "cache_refused")  # type: ignore[union-attr]


def test_a_start_that_is_refused_makes_no_cache(world: World) -> None:
    arm = world.arm()
    arm.write_text(arm.read_text().replace('kind = "sim"', 'kind = "sim"\nsecrets = ["NOT_SET_ANYWHERE"]'))
    result = world.execute(arm)
    assert (result.exit_code, result.error.reason) == (1, "secret_missing")  # type: ignore[union-attr]
    assert caches(world) == []


def test_an_engine_that_cannot_be_started_leaves_no_cache(world: World) -> None:
    result = world.execute(world.arm(), engine_command=("/no/such/program",))
    assert (result.exit_code, result.error.reason) == (1, "engine_not_started")  # type: ignore[union-attr]
    assert caches(world) == []
    assert world.clean()


def test_ctrl_c_leaves_it_broken(world: World) -> None:
    world.arm("slow", "hang:kv")
    ttx = world.start("run", "slow")
    wait_for(ttx, "boot: cache")
    assert only(world).standing == "building"
    ttx.send_signal(signal.SIGINT)
    ttx.communicate(timeout=60)
    assert (only(world).standing, only(world).text) == ("broken", "stopped as asked")


def wait_for(ttx: Any, text: str) -> None:  # noqa: ANN401 - a Popen
    for _ in range(200):
        line = ttx.stderr.readline()
        if text in line:
            return
        assert line, f"{text!r} never came"
    raise AssertionError(text)


def test_two_runs_of_one_key_build_it_once_and_then_share_it(world: World) -> None:
    world.arm("slow", "hang:kv")
    first = world.start("run", "slow")
    wait_for(first, "boot: cache")
    second = world.execute(world.arm("other"))
    assert (second.exit_code, second.error.reason) == (3, "cache_refused")  # type: ignore[union-attr]
    (run,) = [entry.id for entry in world.store.read().runs if entry.id != second.run]
    assert f"being built by run {run} (arm slow" in str(second.error)
    assert world.record(second.run).outcome == "refused"
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=60)
    assert world.execute(world.arm("other")).exit_code == 0
    one = world.execute(world.arm("one"), "up")
    two = world.execute(world.arm("two"), "up")
    assert (one.exit_code, two.exit_code) == (0, 0)
    assert lock.state(world.places.cache, only(world).key) == "shared"
    world.ttx("down", one.run)
    assert lock.state(world.places.cache, only(world).key) == "shared"
    world.ttx("down", two.run)
    assert lock.state(world.places.cache, only(world).key) == "free"


def kill(pids: list[int]) -> None:
    """Kill all of them at once: none may see that another is gone."""
    names = [name for pid in pids if (name := process.identify(pid)) is not None]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for name in names:
            process.send(name, number)


def test_an_engine_holds_its_cache_though_its_supervisor_is_gone(world: World) -> None:
    run = world.execute(world.arm(), "up").run
    supervisors = world.supervisors()
    kill(supervisors)
    os.waitpid(supervisors[0], 0)
    key = only(world).key
    assert lock.state(world.places.cache, key) == "shared"
    world.ttx("adopt", run)
    assert lock.state(world.places.cache, key) == "shared"
    world.ttx("down", run)
    assert lock.state(world.places.cache, key) == "free"
    assert only(world).standing == "complete"


def test_a_build_whose_ttx_and_supervisor_were_killed_is_the_engines_then_the_adopters_then_broken(
    world: World,
) -> None:
    world.arm("slow", "hang:kv", boot_timeout_s=600)
    ttx = world.start("run", "slow")
    wait_for(ttx, "boot: cache")
    kill([ttx.pid, *world.supervisors()])
    ttx.communicate(timeout=60)
    entry = only(world)
    assert (entry.standing, lock.state(world.places.cache, entry.key)) == ("building", "exclusive")
    assert entry.marker is not None
    refused = world.execute(world.arm("other"))
    assert refused.exit_code == 3
    world.ttx("adopt", entry.marker.builder.run)
    (supervisor,) = world.supervisors()
    adopted = only(world).marker
    assert adopted is not None
    assert adopted.builder.process.pid == supervisor
    world.ttx("down", "slow")
    assert (only(world).standing, "ttx down" in only(world).text) == ("broken", True)
    assert world.clean()


def test_a_supervisor_settles_the_build_of_a_ttx_that_was_killed(world: World) -> None:
    world.arm("slow", "hang:kv", boot_timeout_s=600)
    ttx = world.start("run", "slow")
    wait_for(ttx, "boot: cache")
    kill([ttx.pid])
    ttx.communicate(timeout=60)
    assert wait_until(world.clean, 30)
    assert only(world).standing == "broken"
    assert "ended without stopping it" in only(world).text


def test_a_supervisor_settles_a_build_whose_engine_does_not_stop(world: World) -> None:
    world.arm("slow", "hang:kv", "ignore-sigterm", boot_timeout_s=600, stop_grace_s=1)
    ttx = world.start("run", "slow")
    wait_for(ttx, "boot: cache")
    kill([ttx.pid])
    ttx.communicate(timeout=60)
    assert wait_until(lambda: world.slots() == ["dirty", "free"], 30)
    assert only(world).standing == "broken"
    assert lock.state(world.places.cache, only(world).key) == "exclusive"


def test_a_build_all_of_whose_processes_were_killed_is_abandoned_and_built_anew(world: World) -> None:
    world.arm("slow", "hang:kv", boot_timeout_s=600)
    ttx = world.start("run", "slow")
    wait_for(ttx, "boot: cache")
    kill([ttx.pid, *world.supervisors(), *world.engines()])
    ttx.communicate(timeout=60)
    assert wait_until(lambda: only(world).standing == "abandoned", 10)
    again = world.execute(world.arm("again"))
    assert again.exit_code == 0, again.error
    assert "is gone" in work_of(world, again)[1].replaced


def test_down_settles_a_build_whose_supervisor_is_gone(world: World) -> None:
    world.arm("slow", "hang:kv", boot_timeout_s=600)
    ttx = world.start("run", "slow")
    wait_for(ttx, "boot: cache")
    kill([ttx.pid, *world.supervisors()])
    ttx.communicate(timeout=60)
    world.ttx("down")
    assert only(world).standing == "broken"
    assert world.clean()


def test_a_file_that_was_cut_is_found_before_the_boot(world: World) -> None:
    assert world.execute(world.arm()).exit_code == 0
    entry = only(world)
    path = next(entry.path.rglob("*.tensorbin"))
    os.truncate(path, path.stat().st_size - 1)
    again = world.execute(world.arm())
    assert again.exit_code == 0, again.error
    warmth, work = work_of(world, again)
    assert warmth == "cold"
    assert path.name in work.replaced
    assert verify(entry.path) == ()
    assert any("removed and built anew" in text for kind, text in world.recorder.told if kind == "detail")


def test_a_changed_checkpoint_is_refused_until_somebody_says_what_it_is(world: World) -> None:
    assert world.execute(world.arm()).exit_code == 0
    part = next((world.base / "model").iterdir())
    os.utime(part, (1, 1))
    refused = world.execute(world.arm())
    assert (refused.exit_code, refused.error.reason) == (3, "checkpoint_changed")  # type: ignore[union-attr]
    assert "revision" in refused.error.hint  # type: ignore[union-attr]
    assert only(world).standing == "complete"
    models = world.base / "arms" / "models.toml"
    models.write_text(models.read_text().replace('revision = "local"', 'revision = "second"'))
    assert world.execute(world.arm()).exit_code == 0
    assert len(caches(world)) == 2


def says(world: World, arm: Path) -> tuple[str, str]:
    """What an arm's engine answers, and the key of the cache that it has."""
    result = world.execute(arm, "up")
    assert result.exit_code == 0, result.error
    assert result.state is not None
    body = json.dumps({"model": "tiny", "prompt": "The cards are", "max_tokens": 24, "temperature": 0}).encode()
    request = urllib.request.Request(  # noqa: S310 - our own engine
        f"{result.state.url}/v1/completions", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - as above
        text = json.load(answer)["choices"][0]["text"]
    launch = json.loads((run_folder(world.places.state, result.run).path / "launch.json").read_text())
    world.ttx("down", result.run)
    return text, launch["launch"]["cache_key"]


def test_a_cache_with_foreign_weights_serves_other_text_so_a_wrong_key_would_be_seen(world: World) -> None:
    mine, other = world.arm("mine"), world.arm("other")
    other.write_text(f'{other.read_text()}\n[env.weights]\nQWEN36_MLP_BF4 = "1"\n')
    text, key = says(world, mine)
    theirs, their_key = says(world, other)
    assert key != their_key
    assert text != theirs
    # What a key that forgets the variable would do: the other's files, under this key, and all else as it should be.
    folder, source = world.places.cache / key, world.places.cache / their_key
    marker = read_marker(folder)
    assert marker is not None
    for path in source.rglob("*.tensorbin"):
        shutil.copyfile(path, folder / path.relative_to(source))
    write_manifest(folder, scan(folder))
    write_marker(folder, replace(marker))
    assert verify(folder) == ()
    assert says(world, mine) == (theirs, key)


def test_files_that_a_hit_adds_are_told_and_kept(world: World) -> None:
    assert world.execute(world.arm()).exit_code == 0
    entry = only(world)
    program = (
        "import os, sys\n"
        "path = os.environ['TT_CACHE_PATH'] + '/empty_kcache'\n"
        "open(path, 'wb').write(b'x' * 5000)\n"
        "print('Generating cache for ' + path, flush=True)\n"
        "sys.argv[0] = 'x'\n"
        "from ttstack.sim.__main__ import entry\n"
        "entry()\n"
    )
    result = world.execute(world.arm(), engine_command=(sys.executable, "-c", program))
    assert result.exit_code == 0, result.error
    warmth, work = work_of(world, result)
    assert (warmth, work.bytes_written) == ("hit", 5000)
    assert work_of(world, world.execute(world.arm()))[0] == "hit"
    assert only(world).marker == entry.marker


def settled(world: World) -> None:
    """All that was started is over; what lives without anybody is ended by hand."""
    assert wait_until(lambda: world.supervisors() == [], 60)
    for run in world.store.read().runs:
        state = run_folder(world.places.state, run.id).read()
        if state is not None and state.phase != "stopped" and world.engines():
            world.ttx("down", run.id)
    assert wait_until(world.clean, 30), (world.engines(), world.slots())


def check_true(world: World, told: str) -> None:
    for entry in survey(world.places.cache):
        if entry.standing == "complete":
            assert entry.marker is not None, told
            assert entry.marker.kind == "jit" or verify(entry.path) == (), told
        else:
            assert entry.standing in {"abandoned", "broken", "trash"}, (told, entry)
    for key in {entry.key for entry in caches(world)}:
        assert lock.state(world.places.cache, key) == "free", told


VICTIMS: list[Callable[[World, int], list[int]]] = [
    lambda _world, ttx: [ttx],
    lambda world, _ttx: world.supervisors(),
    lambda world, _ttx: world.engines(),
    lambda world, ttx: [ttx, *world.supervisors()],
    lambda world, _ttx: [*world.supervisors(), *world.engines()],
    lambda world, ttx: [ttx, *world.supervisors(), *world.engines()],
]


def test_kill_9_at_any_moment_of_a_build_leaves_what_says_what_it_is(world: World) -> None:
    print(f"TTX_TEST_SEED={SEED}")  # noqa: T201 - so that a failure can be repeated
    dice = random.Random(SEED)  # noqa: S311 - moments, not secrets
    seen: dict[str, int] = {}
    for number in range(ROUNDS):
        world.arm()
        ttx = world.start("run", "quick", "--no-wait")
        lines = dice.randrange(LINES)
        for _ in range(lines):
            if not ttx.stderr or not ttx.stderr.readline():
                break
        time.sleep(dice.random() * 0.1)
        which = dice.randrange(len(VICTIMS))
        kill(VICTIMS[which](world, ttx.pid))
        _, err = ttx.communicate(timeout=90)
        told = f"seed {SEED}, round {number}, victims {which} after {lines} lines:\n{err}"
        settled(world)
        check_true(world, told)
        for entry in caches(world):
            seen[entry.standing] = seen.get(entry.standing, 0) + 1
            if entry.standing == "complete":  # so that the next round builds, too
                with locked(world.places.cache):
                    discard(entry.path)
    last = world.execute(world.arm())
    assert last.exit_code == 0, (SEED, last.error)
    assert standing_of(only(world).path).standing == "complete"
    assert world.store.read().faults == ()
    print(seen)  # noqa: T201 - what the moments met
