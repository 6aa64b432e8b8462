"""``ttx cache gc`` from its command line, with programs named docker, podman and systemctl on PATH."""

from __future__ import annotations

import functools
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from gc_kit import Host, entry

from ttstack.cache.lock import KeyLock
from ttstack.cache.uses import Sources
from ttstack.cli.cache_sources import shelves_for
from ttstack.cli.command import Context
from ttstack.cli.main import main
from ttstack.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Iterator


class Machine:
    """A host whose programs are scripts: each prints a file that is called as its arguments begin."""

    def __init__(self, host: Host, bin_: Path) -> None:
        self.host, self.bin = host, bin_
        bin_.mkdir()

    def program(self, name: str, script: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def docker(self, *containers: dict[str, object]) -> None:
        told = self.host.base / "told.json"
        told.write_text(json.dumps(containers))
        ids = "".join(f"echo {each['Id']};" for each in containers)
        self.program("docker", f'case "$*" in *inspect*) cat {told} ;; *) true; {ids} ;; esac')


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    host = Host(tmp_path)
    made = Machine(host, tmp_path / "bin")
    (made.bin / "cat").symlink_to(shutil.which("cat") or "/bin/cat")
    monkeypatch.setenv("PATH", str(made.bin))
    monkeypatch.setenv("TTX_CACHE", str(host.root))
    monkeypatch.setenv("TTX_LOCKS", str(tmp_path / "locks"))
    monkeypatch.setenv("TTX_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("TTX_ARMS", str(tmp_path / "arms"))
    monkeypatch.delenv("TTX_SHARE", raising=False)
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ttstack.host.containers.DOCKER_SOCKET", tmp_path / "docker.sock")
    own = functools.partial(Sources, booted=host.sources.booted, unit_folders=host.sources.unit_folders)
    monkeypatch.setattr("ttstack.cli.cache_sources.Sources", own)
    yield made
    host.close()


def gc(*words: str) -> int:
    return main(["cache", "gc", *words])


def test_a_table_says_what_goes_and_why_the_rest_stays(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = machine.host.cache("old", days=31), machine.host.cache("new", days=3)
    held = machine.host.cache("held", days=50)
    machine.docker(entry(str(held)))
    assert gc("--keep-days", "30", "--dry-run") == Exit.DONE
    dry = capsys.readouterr()
    assert old.is_dir()
    assert "1 would be deleted, which frees " in dry.err
    assert gc("--keep-days", "30") == Exit.DONE
    told = capsys.readouterr()
    assert not old.exists()
    assert new.is_dir()
    assert "1 deleted, " in told.err
    rows = {line.split()[0]: line for line in told.out.splitlines()}
    assert "deleted" in rows[old.name]
    assert rows[new.name].endswith("last used 3 days ago")
    assert rows[held.name].endswith("used by container engine (docker abababababab)")
    assert [line.replace("would delete", "deleted").split() for line in dry.out.splitlines()] == [
        line.split() for line in told.out.splitlines()
    ]


def test_json_has_it_all(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    folder = machine.host.cache(days=31)
    held = machine.host.cache("held", days=31)
    machine.host.keep(KeyLock(machine.host.root, held.name).shared())
    assert gc("--keep-days", "30", "--json") == Exit.DONE
    told = json.loads(capsys.readouterr().out)
    assert (told["dry_run"], told["keep_days"], told["unread"]) == (False, 30, [])
    entries = {Path(each["path"]).name: each for each in told["entries"]}
    assert entries[folder.name]["decision"] == "deleted"
    assert entries[folder.name]["freed"] == told["freed"] > 0
    assert entries[held.name] | {"bytes": 0} == {
        "path": str(held),
        "standing": "complete",
        "kind": "tensors",
        "decision": "keep",
        "reason": "a run uses it",
        "uses": [{"source": "lock", "path": str(held), "who": "a run uses it"}],
        "bytes": 0,
        "freed": 0,
    }


@pytest.mark.parametrize("words", [(), ("--json",), ("--dry-run",)])
def test_a_docker_that_does_not_answer_refuses(
    machine: Machine, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    folder = machine.host.cache()
    machine.program("docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    assert gc("--keep-days", "0", *words) == Exit.REFUSED
    told = capsys.readouterr()
    assert folder.is_dir()
    assert "nothing was deleted, as it cannot be learned who uses the caches" in told.err
    assert "docker is installed, but its daemon does not answer (start it: systemctl start docker)" in told.err
    if "--json" in words:
        assert json.loads(told.out)["unread"]


def test_systemd_is_asked_for_the_effective_command(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    mine, stale = machine.host.cache("mine"), machine.host.cache("stale")
    machine.host.boot_systemd()
    machine.host.unit_file("ttx-prod.service", f"[Service]\nExecStart=docker run -v {stale}:/x image\n")
    (machine.host.base / "shown").write_text(
        "Id=ttx-prod.service\nLoadState=loaded\nNeedDaemonReload=no\n"
        f"ExecStart={{ path=/usr/bin/docker ; argv[]=docker run -v {mine}:/x image ; ignore_errors=no }}\n"
    )
    show, listed = f"cat {machine.host.base}/shown", 'echo "ttx-prod.service enabled -"'
    machine.program("systemctl", f'case "$*" in *" show "*) {show} ;; *) {listed} ;; esac')
    assert gc("--keep-days", "0") == Exit.DONE
    assert mine.is_dir()
    assert not stale.exists()
    assert "used by unit ttx-prod.service" in capsys.readouterr().out


def test_named_arms_are_kept(machine: Machine) -> None:
    from ttstack.arm.key import cache_key  # noqa: PLC0415 - here alone
    from ttstack.arm.load import load  # noqa: PLC0415

    (machine.host.base / "elsewhere").mkdir()
    file = machine.host.arm("mine", folder=machine.host.base / "elsewhere")
    inputs = dict(cache_key(load(str(file), machine.host.sources.shelves[0])).inputs)
    folder = machine.host.cache(inputs=inputs)
    assert gc("--keep-days", "0", "--arm", str(file)) == Exit.DONE
    assert folder.is_dir()
    assert gc("--keep-days", "0") == Exit.DONE
    assert not folder.exists()


def test_without_a_folder_of_arms_nothing_goes(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = machine.host.cache()
    monkeypatch.delenv("TTX_ARMS")
    monkeypatch.chdir(machine.bin)
    (machine.host.base / "arms" / "models.toml").rename(machine.host.base / "models")
    assert gc("--keep-days", "0") == Exit.REFUSED
    assert folder.is_dir()
    assert "there is no folder of arms here (name it: ttx --arms DIR ...)" in capsys.readouterr().err


def test_all_shelves_count_not_the_first_alone(tmp_path: Path) -> None:
    folders = [tmp_path / name / "arms" for name in ("named", "set", "here", "share")]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "models.toml").write_text("schema = 1\n")
    environ = {"TTX_ARMS": str(folders[1]), "TTX_SHARE": str(folders[3].parent)}
    found = shelves_for(Context(arms=folders[0]), environ, folders[2].parent)
    assert [shelf.arms for shelf in found] == folders
    assert [shelf.arms for shelf in shelves_for(Context(), {}, folders[2])] == [folders[2]]
    assert shelves_for(Context(), {}, tmp_path) == ()


@pytest.mark.parametrize("days", ["-1", "nan", "inf", "soon", ""])
def test_a_number_of_days_is_needed(machine: Machine, capsys: pytest.CaptureFixture[str], days: str) -> None:
    folder = machine.host.cache()
    assert gc(f"--keep-days={days}") == Exit.USAGE
    assert "is no number of days, such as 30" in capsys.readouterr().err
    assert gc() == Exit.USAGE
    assert gc("--keep-days", "3", "--arm", "/nowhere.toml") == Exit.USAGE
    assert folder.is_dir()


def test_no_caches_is_no_fault(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert gc("--keep-days", "30") == Exit.DONE
    assert f"there are no caches in {machine.host.root}" in capsys.readouterr().err


def test_what_cannot_be_deleted_fails(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = machine.host.cache()

    def busy(*_: object) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(os, "rename", busy)
    assert gc("--keep-days", "0") == Exit.FAILED
    assert folder.is_dir()
    assert "Device or resource busy" in capsys.readouterr().out
