from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ttstack.cli.main import main
from ttstack.errors import Exit
from ttstack.host.types import Places, Roots
from ttstack.sim.host import make_host

if TYPE_CHECKING:
    from collections.abc import Callable

TESTS = Path(__file__).resolve().parents[1]
ARMS = str(TESTS.parents[1] / "arms")


def trees(folder: Path) -> Roots:
    return Roots(folder / "sys", folder / "proc", folder / "dev")


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Roots]:
    """Make one of the fixture hosts this host: a copy of it, without engines of containers."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr("ttstack.host.containers.DOCKER_SOCKET", tmp_path / "docker.sock")

    def put(name: str) -> Roots:
        shutil.copytree(TESTS / "fixtures/cards" / name, tmp_path / "host", symlinks=True)
        roots = trees(tmp_path / "host")
        places = Places(tmp_path / "state", tmp_path / "locks", tmp_path / "cache", roots, simulated=False)
        monkeypatch.setattr("ttstack.cli.hosts.all_places", lambda _environ: [places])
        monkeypatch.setattr("ttstack.host.types.Roots", lambda: roots)
        return roots

    return put


@pytest.fixture
def dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the counters of the fixtures stand still without a wait."""
    monkeypatch.setattr("ttstack.host.cards._BEAT_S", 0)


def listed(capsys: pytest.CaptureFixture[str]) -> tuple[list[dict[str, str]], str]:
    """Run ``ttx card ls``; return its rows by column, and what it says on stderr."""
    assert main(["card", "ls"]) == Exit.DONE
    out, err = capsys.readouterr()
    head, *lines = out.splitlines()
    columns = [(name, head.index(f" {name}") + 1 if at else 0) for at, name in enumerate(head.split())]
    ends = [start for _, start in columns[1:]] + [200]
    rows = [{name: line[start:end].strip() for (name, start), end in zip(columns, ends, strict=True)} for line in lines]
    return rows, err


def test_no_card(put: Callable[[str], Roots], capsys: pytest.CaptureFixture[str]) -> None:
    put("none")
    assert main(["card", "ls"]) == Exit.DONE
    out, err = capsys.readouterr()
    assert (out, err) == ("", "this host has no cards; `ttx run sim` makes simulated ones\n")
    assert main(["card", "ls", "--json"]) == Exit.DONE
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.usefixtures("dead")
def test_swapped_cards_for_people(put: Callable[[str], Roots], capsys: pytest.CaptureFixture[str]) -> None:
    put("two-p150a-swapped")
    rows, err = listed(capsys)
    assert rows[0] == {
        "NODE": "1",
        "BDF": "0000:41:00.0",
        "BOARD": "p150a",
        "SERIAL": "0000040511940b01",
        "FIRMWARE": "19.13.1.0",
        "DRIVER": "2.10.1",
        "NUMA": "0",
        "IOMMU": "identity",
        "HUGEPAGES": "needed",
        "HEARTBEAT": "STOPPED",
        "SLOT": "free",
    }
    assert [row["NODE"] for row in rows] == ["1", "0"]
    assert "need 2 hugepage(s) of 1 GiB, and 1 are reserved: boot with hugepagesz=1G hugepages=2" in err


def test_an_old_driver_tells_less_and_lacks_no_hugepages(
    put: Callable[[str], Roots], capsys: pytest.CaptureFixture[str]
) -> None:
    put("old-driver")
    (row,), err = listed(capsys)
    assert (row["HEARTBEAT"], row["IOMMU"], row["NUMA"], row["SLOT"]) == ("not told", "none", "-", "free")
    assert err == ""


@pytest.mark.usefixtures("dead")
def test_json_has_all_of_it(put: Callable[[str], Roots], capsys: pytest.CaptureFixture[str]) -> None:
    roots = put("p300")
    (roots.proc / "driver/tenstorrent/1/pids").write_text("0\n")
    assert main(["card", "ls", "--json"]) == Exit.DONE
    entries: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    assert [entry["id"] for entry in entries] == ["0000:03:00.0", "0000:04:00.0"]
    assert [entry["slot"]["state"] for entry in entries] == ["free", "open"]
    assert entries[0]["slot"]["looked"] == "nobody (no docker here, no podman here)"
    assert entries[1]["slot"]["who"] == "a process outside this pid namespace"
    assert (entries[0]["alive"], entries[0]["hugepages_reserved"], entries[0]["simulated"]) == (False, 0, False)
    card = entries[0]["card"]
    assert (card["serial"], card["shared_serial"], card["asic_id"]) == ("0000046511940c01", True, "5311a70c04e90c01")
    assert (card["iommu"], card["hugepages_needed"], card["numa_node"], card["heartbeat"]) == ("DMA", False, 0, 401)


def test_a_simulated_card_has_no_heart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:  # noqa: ANN401
    places = Places(tmp_path, tmp_path / "locks", tmp_path / "cache", make_host(tmp_path / "sim", 1), simulated=True)
    monkeypatch.setattr("ttstack.cli.hosts.all_places", lambda _environ: [places])
    monkeypatch.setattr("ttstack.host.cards.beating", lambda *_: pytest.fail("there is nothing to wait for"))
    (row,), err = listed(capsys)
    assert (row["NODE"], row["HEARTBEAT"], row["FIRMWARE"], row["IOMMU"]) == (
        "0 (simulated)",
        "simulated",
        "19.13.1.0",
        "DMA-FQ",
    )
    assert (row["HUGEPAGES"], row["NUMA"], row["DRIVER"], err) == ("no", "0", "2.10.1", "")


def rendered(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[bool, str]:
    """Render production; return whether it mounts hugepages, and what is said on stderr."""
    assert main(["--arms", ARMS, "arm", "render", "prod", "--as", "argv", *options]) == Exit.DONE
    out, err = capsys.readouterr()
    return "type=bind,src=/dev/hugepages-1G,dst=/dev/hugepages-1G" in json.loads(out), err


def test_here_the_iommu_says_whether_hugepages_are_mounted(
    put: Callable[[str], Roots], capsys: pytest.CaptureFixture[str]
) -> None:
    roots = put("two-p150a-swapped")
    mounted, err = rendered(capsys, "--here")
    assert mounted
    assert "1 are reserved" in err
    assert rendered(capsys, "--here", "--no-hugepages")[0] is False
    assert rendered(capsys) == (False, "")
    assert rendered(capsys, "--hugepages") == (True, "")
    for group in (roots.sys / "kernel/iommu_groups").iterdir():
        (group / "type").write_text("DMA-FQ\n")
    assert rendered(capsys, "--here") == (False, "")
    assert rendered(capsys, "--here", "--hugepages") == (True, "")


def test_a_unit_made_here_mounts_what_the_host_needs(
    put: Callable[[str], Roots], capsys: pytest.CaptureFixture[str]
) -> None:
    put("two-p150a-swapped")
    assert main(["--arms", ARMS, "unit", "prod", "--here"]) == Exit.DONE
    assert "src=/dev/hugepages-1G" in capsys.readouterr().out
    assert main(["--arms", ARMS, "unit", "prod"]) == Exit.DONE
    assert "hugepages-1G" not in capsys.readouterr().out
