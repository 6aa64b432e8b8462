from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from doctor_kit import FIXTURES, PAGE, host, program, roots_of

from ttstack.cli.diagnosis import show, waited
from ttstack.cli.main import main
from ttstack.doctor import checkup
from ttstack.doctor.baseline import baseline_file
from ttstack.doctor.checkup import Report, examine
from ttstack.doctor.codes import finding
from ttstack.doctor.types import Scan
from ttstack.errors import Exit
from ttstack.host.memory import read_memory
from ttstack.host.types import Places
from ttstack.sim.host import make_host
from ttstack.slots.lock import try_lock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ttstack.host.deadline import Probe

GB = 1_000_000_000
SERIAL = "0000040511940a01"


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Places]:
    """Make a made-up host this host: without engines of containers, with a quiet journal and cards that live."""
    program(tmp_path / "bin", "journalctl", (FIXTURES / "doctor/kernel/quiet.journal").read_text())
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("ttstack.host.containers.DOCKER_SOCKET", tmp_path / "docker.sock")
    monkeypatch.setattr(
        "ttstack.doctor.cards.beating", lambda cards, _roots: dict.fromkeys([c.id for c in cards], True)
    )
    monkeypatch.setattr("ttstack.doctor.checkup._AGAIN_S", 0.0)
    monkeypatch.setattr("ttstack.doctor.checkup._SHORT_S", 100.0)  # a busy machine fails no test
    monkeypatch.setattr("ttstack.doctor.checkup._LOG_S", 100.0)
    monkeypatch.setattr("ttstack.cli.diagnosis.SILENT_S", 1000.0)
    monkeypatch.setattr("ttstack.doctor.checkup.container_root", lambda *_: None)
    monkeypatch.setattr("ttstack.doctor.disks.LOW", 0)

    def put(name: str, cards: str = "one-p150a") -> Places:
        places = host(tmp_path, name, cards)
        monkeypatch.setattr("ttstack.cli.hosts.all_places", lambda _environ: [places])
        return places

    return put


def told(capsys: pytest.CaptureFixture[str], code: Exit) -> dict[str, Any]:
    """Ask for JSON."""
    assert main(["doctor", "--json"]) == code
    out, err = capsys.readouterr()
    assert err == ""
    value: dict[str, Any] = json.loads(out)
    return value


def codes(report: dict[str, Any]) -> list[str]:
    return [found["code"] for found in report["findings"]]


def test_a_healthy_host(put: Callable[..., Places], capsys: pytest.CaptureFixture[str]) -> None:
    places = put("healthy")
    assert main(["doctor"]) == Exit.DONE
    out, err = capsys.readouterr()
    assert err == ""
    assert "REBOOT" not in out
    assert "\x1b" not in out
    assert "\n  ok    p150a 0000:01:00.0: firmware 19.13.1.0 is alive\n" in out
    assert out.endswith("\nnothing is wrong\n")
    assert json.loads(baseline_file(places.state).read_text())["residual"] == pytest.approx(275_000_320, abs=1024)


def test_json_has_all_of_it(put: Callable[..., Places], capsys: pytest.CaptureFixture[str]) -> None:
    put("healthy")
    report = told(capsys, Exit.DONE)
    assert (report["level"], report["scan"]) == ("note", {"holders": [], "blind": [], "cards": True})
    assert codes(report) == [
        *("cards.healthy", "cards.dma", "slots.free", "runs.settled", "containers.absent", "containers.absent"),
        *("disks.fine", "disks.fine", "kernel.quiet", "memory.fine"),
    ]
    assert report["findings"][0] == {
        "section": "cards",
        "code": "cards.healthy",
        "level": "ok",
        "text": "p150a 0000:01:00.0: firmware 19.13.1.0 is alive",
        "hint": "",
        "subject": SERIAL,
    }
    assert list(report["probes"]) == [
        *("cards", "slots", "disk caches", "runs", "containers", "disk state", "disk docker", "disk podman"),
        *("kernel", "memory"),
    ]
    memory = report["memory"]
    assert memory["residual"] - memory["baseline"]["residual"] == memory["above"] == memory["pinned"] == 0
    assert memory["reboot_limit"] == 3 << 30
    assert report["probes"]["memory"]["value"]["memory"]["parts"]["AnonPages"] == 7_012_340 * 1024
    assert report["probes"]["cards"]["value"]["cards"][0]["bdf"] == "0000:01:00.0"


def test_a_leak_without_a_holder(put: Callable[..., Places], capsys: pytest.CaptureFixture[str]) -> None:
    places = put("leak-6gb")
    assert main(["doctor"]) == Exit.FAILED
    out, _ = capsys.readouterr()
    assert "\n  BAD   REBOOT RECOMMENDED: 6.28 GB of memory are unaccounted for (no baseline is known in" in out
    assert out.endswith("\nREBOOT RECOMMENDED; 1 to mend, 0 to look at\n")
    assert not baseline_file(places.state).exists()  # a day after boot
    report = told(capsys, Exit.FAILED)
    assert (report["level"], codes(report)[-1], report["memory"]["baseline"]) == ("bad", "memory.reboot", None)


def test_a_leak_with_a_process_that_has_the_card(
    put: Callable[..., Places], capsys: pytest.CaptureFixture[str]
) -> None:
    places = put("leak-6gb")
    (places.roots.proc / "driver/tenstorrent/0/pids").write_text("0\n")
    report = told(capsys, Exit.DONE)
    assert codes(report)[-1] == "memory.holder"
    assert f"card {SERIAL}: a process outside this pid namespace" in report["findings"][-1]["text"]


def test_a_leak_with_a_slot_that_is_held(put: Callable[..., Places], capsys: pytest.CaptureFixture[str]) -> None:
    places = put("leak-6gb")
    places.locks.mkdir()
    lock = try_lock(places.locks / f"{SERIAL}.lock")
    assert lock is not None
    try:
        report = told(capsys, Exit.DONE)
    finally:
        os.close(lock)
    assert codes(report)[-1] == "memory.holder"


def test_a_leak_with_containers_that_cannot_be_seen(
    put: Callable[..., Places], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put("leak-6gb")
    program(tmp_path / "bin", "docker", "", code=1)
    report = told(capsys, Exit.DONE)
    assert codes(report)[-1] == "memory.blind"
    assert "docker ps failed with exit 1" in report["findings"][-1]["text"]


def test_a_baseline_of_this_boot_counts_and_that_of_another_does_not(
    put: Callable[..., Places], capsys: pytest.CaptureFixture[str]
) -> None:
    places = put("healthy")
    assert main(["doctor"]) == Exit.DONE
    for name in ("meminfo", "vmstat", "uptime"):
        shutil.copy(roots_of("leak-6gb").proc / name, places.roots.proc / name)
    capsys.readouterr()
    report = told(capsys, Exit.FAILED)
    assert "0.28 GB of it are this boot's baseline; 6.00 GB are pinned" in report["findings"][-1]["text"]
    assert report["memory"]["above"] == pytest.approx(6 * GB, abs=2048)
    (places.roots.proc / "sys/kernel/random/boot_id").write_text("another\n")
    assert told(capsys, Exit.FAILED)["memory"]["baseline"] is None


def test_a_card_that_hangs_is_reported_and_nothing_is_recommended(
    put: Callable[..., Places], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipe that nobody writes stands for an attribute whose read never comes back."""
    places = put("leak-6gb")
    probes = checkup.probes

    def impatient(*args: Any) -> list[Probe]:  # noqa: ANN401 - of what it wraps
        return [replace(each, seconds=1.0 if each.name in {"cards", "slots"} else 100.0) for each in probes(*args)]

    monkeypatch.setattr(checkup, "probes", impatient)
    attribute = (places.roots.sys / "class/tenstorrent/tenstorrent!0").resolve() / "tt_fw_bundle_ver"
    attribute.unlink()
    os.mkfifo(attribute)
    report = told(capsys, Exit.FAILED)
    late = [found["text"] for found in report["findings"] if found["code"] == "probe.late"]
    assert late == ["cards: did not answer in 1 s", "slots: did not answer in 1 s"]
    assert codes(report)[-1] == "memory.blind"
    assert {"runs.settled", "disks.fine", "kernel.quiet"} <= set(codes(report))


def test_a_host_with_simulated_cards_alone(
    put: Callable[..., Places], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = put("healthy", "none")
    simulated = Places(
        real.state, tmp_path / "sim/locks", tmp_path / "sim/cache", make_host(tmp_path / "sim/tree", 2), simulated=True
    )
    monkeypatch.setattr("ttstack.cli.hosts.all_places", lambda _environ: [real, simulated])
    report = told(capsys, Exit.DONE)
    assert codes(report)[:5] == ["cards.none", *["cards.simulated"] * 2, *["slots.free"] * 2]
    assert report["findings"][4]["text"] == "simulated p150a 0000:02:00.0: nobody has it"
    assert len(report["probes"]["simulated slots"]["value"]) == 2
    assert report["scan"]["cards"] is False


def test_a_leak_on_a_host_without_cards_was_another(
    put: Callable[..., Places], capsys: pytest.CaptureFixture[str]
) -> None:
    put("leak-6gb", "none")
    assert codes(told(capsys, Exit.DONE))[-1] == "memory.elsewhere"


def test_no_meminfo_is_no_end(put: Callable[..., Places], capsys: pytest.CaptureFixture[str]) -> None:
    places = put("healthy")
    (places.roots.proc / "meminfo").unlink()
    report = told(capsys, Exit.DONE)
    assert (report["memory"], codes(report)[-1]) == (None, "probe.failed")
    places = put_again(places, "missing-keys")
    report = told(capsys, Exit.DONE)
    assert (report["memory"]["residual"], codes(report)[-1]) == (None, "memory.unknown")


def put_again(places: Places, name: str) -> Places:
    shutil.copy(roots_of(name).proc / "meminfo", places.roots.proc / "meminfo")
    return places


def test_what_the_kernel_said_and_is(
    put: Callable[..., Places], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = put("healthy")
    program(tmp_path / "bin", "journalctl", (FIXTURES / "doctor/kernel/busy.journal").read_text())
    (places.roots.proc / "sys/kernel/osrelease").write_text("6.11.0-29-generic\n")
    report = told(capsys, Exit.DONE)
    assert [code for code in codes(report) if code.startswith("kernel.")] == [
        *("kernel.leaks-pins", "kernel.oom-kill", "kernel.pin-failure", "kernel.driver", "kernel.hung-task"),
    ]
    assert report["probes"]["kernel"]["value"]["counts"]["pin_failure"] == 5


def test_a_residual_of_a_moment_is_no_leak(put: Callable[..., Places], monkeypatch: pytest.MonkeyPatch) -> None:
    places = put("healthy")
    leaked, fine = (read_memory(roots_of(name), page=PAGE) for name in ("leak-6gb", "healthy"))
    more = replace(leaked, total=leaked.total + GB)
    for first, second, expected in ((leaked, fine, fine), (leaked, more, leaked), (fine, leaked, fine)):
        looks = iter((first, second))
        monkeypatch.setattr(checkup, "read_memory", lambda _roots, looks=looks: next(looks))
        assert checkup._look_at_memory(places.roots, 3 << 30).memory == expected


def test_a_limit_that_is_none(
    put: Callable[..., Places], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put("leak-6gb")
    monkeypatch.setenv("TTX_LEAK_REBOOT_MB", "lots")
    assert main(["doctor"]) == Exit.USAGE
    assert "TTX_LEAK_REBOOT_MB is 'lots'" in capsys.readouterr().err
    monkeypatch.setenv("TTX_LEAK_REBOOT_MB", "7000")
    assert codes(told(capsys, Exit.DONE))[-1] == "memory.fine"


def test_a_baseline_that_cannot_be_kept_changes_no_verdict(put: Callable[..., Places]) -> None:
    places = put("healthy")
    places.state.mkdir()
    (places.state / "doctor").write_text("in the way")
    report = examine([places], {})
    assert report.level == "note"
    assert "cannot make the folder" in report.baseline_kept


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    found = (finding("disks.full", "state /x[bold]: 0.1 GB free \x1b[2J"), finding("memory.fine", "all is well"))
    report = Report(found, {}, None, None, "", Scan(), 0.1)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    colours, plain, none = Terminal(), StringIO(), Terminal()
    show(report, colours)
    show(report, plain)
    monkeypatch.setenv("NO_COLOR", "1")
    show(report, none)
    assert "\x1b[1;31m" in colours.getvalue()
    assert "\x1b[31m" not in none.getvalue()
    assert "1;31" not in none.getvalue()
    assert "\x1b" not in plain.getvalue()
    assert "  BAD   state /x[bold]: 0.1 GB free \\x1b[2J\n        see: ttx cache ls --du\n" in plain.getvalue()


def test_what_takes_long_shows_what_it_waits_for(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, *[1.9], *[2.0] * 2, *[3.0] * 2, *[4.0] * 2])
    with waited(StringIO(), lambda: next(times)) as waiting:
        waiting(["cards", "kernel"])
        assert capsys.readouterr().err == ""
        waiting(["cards", "kernel"])
        waiting(["cards", "kernel"])
        waiting(["kernel"])
    assert capsys.readouterr().err == "ttx: 2 s, waiting for: cards, kernel\nttx: 4 s, waiting for: kernel\n"


def test_a_terminal_shows_it_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    stream, times = Terminal(), iter([0.0, 5.0, 5.0])
    with waited(stream, lambda: next(times)) as waiting:
        waiting(["cards\x1b[2J"])
    assert "5 s, waiting for: cards\\x1b[2J" in stream.getvalue()
