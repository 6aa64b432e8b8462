"""Each protection of gc, taken out in the code that runs, lets a used cache be deleted; with it none is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import gc_scenarios as made
import gc_unit_scenarios as made_units
import pytest
from gc_kit import Host, age
from mutate_kit import mutate

from ttstack.cache import gc, ground, marker, survey, trash, use_runs, use_units, uses
from ttstack.errors import TtxError
from ttstack.host import container_mounts, units

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import ModuleType


class Mutant(NamedTuple):
    """A scenario, and the changes (module, old text, new text) that take its protection out."""

    scenario: Callable[[Host], Path]
    changes: tuple[tuple[ModuleType, str, str], ...]
    keep_days: float = 0

    def __str__(self) -> str:
        return (
            f"{self.scenario.__name__}-{'-'.join(dict.fromkeys(m.__name__.split('.')[-1] for m, _, _ in self.changes))}"
        )


def one(scenario: Callable[[Host], Path], module: ModuleType, old: str, new: str, keep_days: float = 0) -> Mutant:
    return Mutant(scenario, ((module, old, new),), keep_days)


def without(scenario: Callable[[Host], Path], source: str) -> Mutant:
    """Do not ask a source at all."""
    new = f"for ask in (look for name, look in LOOKS.items() if name != {source!r}):"
    return one(scenario, uses, "for ask in LOOKS.values():", new)


DOCKER = ("created", "running", "paused", "restarting", "removing")


def docker_without(state: str) -> Mutant:
    rest = tuple(each for each in DOCKER if each != state)
    old = '"docker": ("created", "running", "paused", "restarting", "removing")'
    return one(made.container_in_state(state), container_mounts, old, f'"docker": {rest!r}')


MUTANTS = [
    without(made_units.unit_names_key, "units"),
    one(made_units.unit_names_key, use_units, "dict.fromkeys(root / key for key in _KEY.findall(text))", "{}"),
    one(
        made_units.unit_by_link,
        use_units,
        "if ground.within(path, root) and not ground.within(root, path):",
        "if False:",
    ),
    one(made_units.unit_mounts_above, use_units, "or ground.within(root, path):", "and not ground.within(root, path):"),
    one(made_units.unit_variable, use_units, "for value in values.get(name, ())]", "for value in (f'/none/{name}',)]"),
    one(made_units.unit_environment_file, units, "*_environment_files(text)", "*()"),
    one(made_units.unit_script, units, "for word in _WORD.findall(commands))", "for word in ())"),
    one(made_units.unit_template, units, "*_files(folders, templates_only=True)", "*()"),
    one(
        made_units.unit_template,
        use_units,
        'path[: unknown.start()].rpartition("/")[0] if unknown else path',
        '"" if unknown else path',
    ),
    one(made_units.unit_not_reloaded, units, 'or "yes" in parts.get("NeedDaemonReload", ())', ""),
    one(made_units.unit_still_runs, units, "if main.isdecimal() and int(main):", "if False:"),
    one(made_units.unit_without_systemd, units, "tuple(_files(folders, templates_only=False))", "()"),
    without(made.arm_installed, "arms"),
    one(made.arm_installed, uses, 'found.append(Use("arm", sources.root / cache_key(asked).key, who))', ""),
    one(
        made.arm_kernels,
        uses,
        'sources.root / JIT / f"{asked.arm.name}-',
        'sources.root / JIT / f"no-{asked.arm.name}-',
    ),
    one(made.arm_named, uses, "(*named, *sources.arms)", "named"),
    without(made.docker_mounts, "containers"),
    without(made.podman_mounts, "containers"),
    *map(docker_without, DOCKER),
    one(made.container_above, uses, "for use in self._at.get(name, ())]", "for use in ()]"),
    one(made.container_below, uses, "for name in chain:", "for name in own:"),
    Mutant(
        made.container_by_link,
        (
            (ground, "return os.path.realpath(path, strict=True)", "return os.path.abspath(path)"),
            (ground, "names.add(self._nodes.get(real) or _node(real))", "pass"),
        ),
    ),
    one(made.container_volume, container_mounts, 'devices.get((command, volume), "")', '""'),
    one(made.container_asked_for, container_mounts, 'yield str(bind).partition(":")[0]', 'yield ""'),
    one(made.container_label, uses, "for who, key in labels if is_key(key)]", "for who, key in labels if not key]"),
    one(
        made.container_late, gc, "self._first if self._dry else uses(replace(self._sources, ours=ours))", "self._first"
    ),
    one(made.engine_fails_late, gc, "        if found.unread:", "        if False:"),
    Mutant(
        made.used_meanwhile,
        (
            (gc, "directory = replace(directory, used=read_used(directory.path))", ""),
            (gc, "            directory = standing_of(directory.path)", "            pass"),
        ),
    ),
    without(made.slot_of_engine, "slots"),
    without(made.slot_dirty, "slots"),
    one(made.slot_of_engine_kernels, use_runs, 'if name.startswith(f"{claim.arm}-"):', "if False:"),
    one(made.slot_of_older_ttx, use_runs, 'unread.append(f"run {claim.run} holds', 'str(f"run {claim.run} holds'),
    one(made.slot_without_name, use_runs, 'unread.append(f"the card of', 'str(f"the card of'),
    one(made.slot_of_program, use_runs, "found += _of_program(claim)", "continue"),
    one(made.card_that_is_gone, use_runs, "sorted(cards | files)", "sorted(cards)"),
    one(made.slots_unreadable, uses, "            unread.append(error.message)\n", "            str(error)\n"),
    without(made.seed_source, "builds"),
    one(made.build_without_lock, survey, '"its builder lives" if builder_lives(marker.builder) else ""', '""'),
    Mutant(
        made.build_by_its_lock,
        (
            (survey, 'if lock.state(root, marker.key) != "free":', "if False:"),
            (gc, "if other is not None:", "if False:"),
        ),
    ),
    one(made.run_by_its_lock, gc, "if other is not None:", "if False:"),
    one(made.just_used, gc, "if age < GRACE_S:", "if False:"),
    one(made.used_in_future, gc, "max(0.0, now - last_touched(directory))", "abs(now - last_touched(directory))"),
    one(made.used_not_long_ago, gc, "age < keep_days * DAY_S", "age < 0", 30),
    one(made.unreadable_marker, gc, 'not in {"complete", "broken", "abandoned", "trash"}', 'in {"not ours"}'),
    Mutant(
        made.marker_of_another,
        (
            (marker, "if marker.key != name:", "if False:"),
            (marker, "and key_of(marker.inputs) != marker.key", "and False"),
        ),
    ),
    one(made.docker_silent, gc, "    if first.unread:", "    if False:"),
    one(made.systemctl_fails, units, "    if answer.code:\n", "    if False:\n"),
    one(made.systemctl_hangs, units, "return Units((), (str(trouble),))", "return Units()"),
    one(made.arm_is_broken, uses, 'unread.append(f"the arm', 'str(f"the arm'),
    one(made.no_arms_at_all, uses, "[sources.no_arms] if sources.no_arms else []", "[]"),
    one(made.trash_is_a_link, trash, "not stat.S_ISDIR(seen.st_mode) or seen.st_dev != above.st_dev", "False"),
]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path)
    yield host
    host.close()


def _collect(host: Host, keep_days: float) -> None:
    try:
        host.gc(keep_days=keep_days)
    except TtxError:
        return  # refused: nothing was deleted


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_protection_that_is_taken_out_costs_a_used_cache(
    host: Host, monkeypatch: pytest.MonkeyPatch, mutant: Mutant
) -> None:
    monkeypatch.setattr(use_runs, "_GUARD_S", 0.01)
    monkeypatch.setitem(units.look.__kwdefaults__, "proc", host.base / "proc")
    used = mutant.scenario(host)
    hook, containers = host.hook, dict(host.containers)
    _collect(host, mutant.keep_days)
    assert used.is_dir(), "with the protection it stays"
    host.hook, host.containers = hook, containers
    if mutant.scenario is made.used_meanwhile:
        age(used, 40)
    mutate(monkeypatch, mutant.changes)
    _collect(host, mutant.keep_days)
    assert not used.exists(), "without it, it goes: else something else keeps it, and the protection is not tested"


def test_every_source_and_every_scenario_has_a_mutant() -> None:
    scenarios = {
        name
        for module in (made, made_units)
        for name, value in vars(module).items()
        if callable(value) and value.__module__ == module.__name__
    }
    told = {mutant.scenario.__name__ for mutant in MUTANTS}
    assert scenarios - {"container_in_state", "folder_that_is_a_link", "marker_that_is_a_link"} == told - {"make"}
    asked = {
        name for name in uses.LOOKS if any(repr(name) in new for mutant in MUTANTS for _, _, new in mutant.changes)
    }
    assert asked == set(uses.LOOKS) - {"mounts"}  # whose tests need root: test_gc_mounts.py
