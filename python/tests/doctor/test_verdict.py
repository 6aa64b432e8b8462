from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from doctor_kit import PAGE, roots_of

from ttstack.doctor import baseline
from ttstack.doctor.baseline import EARLY_S, baseline_file, keep, load, renew
from ttstack.doctor.memory import judge, judge_limit, reboot_limit
from ttstack.doctor.types import Baseline, Scan
from ttstack.errors import Exit, TtxError
from ttstack.host.memory import Memory, Pins, memory_limit, read_memory

if TYPE_CHECKING:
    from pathlib import Path

GB = 1_000_000_000
LIMIT = 3072 * 1024 * 1024
NOBODY = Scan()
HELD = Scan(("card 1: pid 4711 (vllm serve)",))
BLIND = Scan((), ("card 1: 3 processes of other users could not be looked into",))
BOOT = "6f0d2c1e-58b7-4f6e-9a63-0d5c4e1f7a21"


def host(name: str) -> Memory:
    return read_memory(roots_of(name), page=PAGE)


def lost(size: int, **other: object) -> Memory:
    """Make a memory of which nobody accounts for so much."""
    plain = Memory(100 * GB, 50 * GB, {"MemFree": 100 * GB - size}, {}, (), Pins(0, 0), 60.0)
    return replace(plain, **other)  # type: ignore[arg-type]


def codes(memory: Memory, scan: Scan = NOBODY, known: Baseline | None = None, limit: int = LIMIT) -> list[str]:
    return [found.code for found in judge(memory, scan, known, limit).findings]


def base(residual: int, boot: str = BOOT) -> Baseline:
    return Baseline(boot, residual, 60.0, "2026-01-31T23:59:59Z")


@pytest.mark.parametrize("name", ["healthy", "arc-40gb", "old-kernel"])
def test_a_healthy_host_is_fine(name: str) -> None:
    assert codes(host(name)) == ["memory.fine"]


def test_a_leak_without_a_holder_means_a_reboot() -> None:
    (found,) = judge(host("leak-6gb"), NOBODY, base(275_000_320), LIMIT).findings
    assert (found.code, found.level) == ("memory.reboot", "bad")
    assert found.text == (
        "REBOOT RECOMMENDED: 6.28 GB of memory are unaccounted for (0.28 GB of it are this boot's baseline;"
        " 6.00 GB are pinned for devices), nobody has a card, and the limit is 3.22 GB"
    )
    assert "no baseline is known in this boot" in judge(host("leak-6gb"), NOBODY, None, LIMIT).findings[0].text


def test_a_leak_with_a_holder_is_deferred_and_names_them() -> None:
    (found,) = judge(host("leak-6gb"), HELD, None, LIMIT).findings
    assert (found.code, found.level) == ("memory.holder", "warn")
    assert "pid 4711 (vllm serve)" in found.text
    assert "REBOOT" not in found.text


def test_a_leak_with_an_incomplete_scan_is_deferred_and_says_why() -> None:
    (found,) = judge(host("leak-6gb"), BLIND, None, LIMIT).findings
    assert (found.code, found.level) == ("memory.blind", "warn")
    assert "3 processes of other users" in found.text
    assert codes(host("leak-6gb"), Scan(HELD.holders, BLIND.blind)) == ["memory.holder", "memory.blind"]


def test_missing_keys_give_no_verdict() -> None:
    (found,) = judge(host("missing-keys"), NOBODY, None, LIMIT).findings
    assert (found.code, found.level) == ("memory.unknown", "warn")
    assert "no AnonPages, PageTables" in found.text


@pytest.mark.parametrize(("size", "code"), [(LIMIT - 1, "memory.fine"), (LIMIT, "memory.reboot")])
def test_the_limit_itself_counts(size: int, code: str) -> None:
    assert codes(lost(size)) == [code]
    assert codes(lost(size + 2 * GB), known=base(2 * GB)) == [code]


def test_what_may_be_in_other_lines_recommends_nothing() -> None:
    assert codes(lost(4 * GB, unsure={"SwapCached": GB})) == ["memory.unclear"]
    assert codes(lost(5 * GB, unsure={"SwapCached": GB})) == ["memory.reboot"]
    assert codes(lost(4 * GB, unsure={"SwapCached": GB}), known=base(2 * GB)) == ["memory.fine"]
    assert codes(lost(6 * GB, unsure={"SwapCached": GB}), known=base(2 * GB)) == ["memory.unclear"]


def test_without_a_card_or_its_driver_it_was_another() -> None:
    assert codes(lost(4 * GB), Scan(cards=False)) == ["memory.elsewhere"]


def test_pins_that_no_residual_shows_are_told_once() -> None:
    pinned = Pins(10 * GB, 6 * GB)
    assert codes(lost(0, pins=pinned)) == ["memory.fine", "memory.pins"]
    assert codes(lost(4 * GB, pins=pinned)) == ["memory.reboot"]
    assert codes(lost(0, pins=pinned), HELD) == ["memory.fine"]
    assert codes(lost(0, pins=pinned), BLIND) == ["memory.fine"]
    assert codes(lost(0, pins=Pins(10 * GB, 8 * GB))) == ["memory.fine"]
    assert codes(lost(0, pins=None)) == ["memory.fine"]


def test_lines_that_were_not_read_at_one_moment_are_no_leak() -> None:
    verdict = judge(lost(-5 * GB), NOBODY, None, LIMIT)
    assert (verdict.above, [found.code for found in verdict.findings]) == (0, ["memory.fine"])
    assert "0.00 GB of memory are unaccounted for" in verdict.findings[0].text


def test_little_memory_is_told() -> None:
    assert codes(lost(0, available=GB - 1)) == ["memory.fine", "memory.low"]
    assert codes(lost(0, available=None)) == ["memory.fine"]


def test_the_cgroup_that_limits_is_named() -> None:
    memory = host("limited")
    (found,) = judge_limit(memory_limit(roots_of("limited")), memory)
    assert found.code == "memory.limited"
    assert "memory.max of the cgroup /system.slice/ttx.service allows 17.18 GB of the host's 270.22 GB" in found.text
    assert not list(judge_limit(None, memory))
    assert not list(judge_limit(memory_limit(roots_of("limited")), replace(memory, total=8 * GB)))


@pytest.mark.parametrize("text", ["0", "-1", "3 GB", "3072.5", "²", "many"])
def test_a_limit_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(TtxError, match="TTX_LEAK_REBOOT_MB") as caught:
        reboot_limit({"TTX_LEAK_REBOOT_MB": text})
    assert caught.value.exit_code == Exit.USAGE


def test_the_limit_is_in_mebibytes() -> None:
    assert reboot_limit({}) == reboot_limit({"TTX_LEAK_REBOOT_MB": ""}) == LIMIT
    assert reboot_limit({"TTX_LEAK_REBOOT_MB": "8192"}) == 8 << 30


def test_a_baseline_is_taken_early_with_nobody_there() -> None:
    taken = renew(None, host("healthy"), NOBODY, BOOT)
    assert taken
    assert (taken.boot, taken.uptime_s) == (BOOT, 184.52)
    assert taken.residual == pytest.approx(275_000_320, abs=1024)


@pytest.mark.parametrize(
    ("memory", "scan"),
    [
        (lost(GB, uptime_s=EARLY_S + 1), NOBODY),
        (lost(GB, uptime_s=None), NOBODY),
        (lost(GB), HELD),
        (lost(GB), BLIND),
        (lost(GB, pins=Pins(baseline.PINS_ALLOWED + 1, 0)), NOBODY),
        (lost(GB, missing=("Slab",)), NOBODY),
        (lost(GB, foreign="lxcfs"), NOBODY),
    ],
    ids=["late", "no uptime", "held", "not all seen", "pins outstanding", "no residual", "a container's meminfo"],
)
def test_no_baseline_is_taken_when_something_may_have_leaked(memory: Memory, scan: Scan) -> None:
    assert renew(None, memory, scan, BOOT) is None


def test_a_baseline_may_shrink_and_never_grow() -> None:
    late = EARLY_S * 100
    assert renew(base(2 * GB), lost(3 * GB), NOBODY, BOOT) == base(2 * GB)
    smaller = renew(base(2 * GB), lost(GB, uptime_s=late), NOBODY, BOOT)
    assert smaller
    assert (smaller.residual, smaller.uptime_s) == (GB, late)
    assert renew(base(2 * GB), lost(GB), HELD, BOOT) == base(2 * GB)
    assert renew(base(2 * GB), lost(GB), BLIND, BOOT) == base(2 * GB)
    assert renew(base(2 * GB), lost(GB, missing=("Slab",)), NOBODY, BOOT) == base(2 * GB)
    below = renew(base(2 * GB), lost(-GB), NOBODY, BOOT)
    assert below
    assert below.residual == 0


def test_a_baseline_is_kept_for_one_boot(tmp_path: Path) -> None:
    assert load(tmp_path, BOOT) is None
    assert keep(tmp_path, base(GB)) == ""
    assert load(tmp_path, BOOT) == base(GB)
    assert load(tmp_path, "another boot") is None
    assert [path.name for path in baseline_file(tmp_path).parent.iterdir()] == ["baseline.json"]


@pytest.mark.parametrize(
    "note",
    [
        {"boot": BOOT, "residual": "1", "uptime_s": 1.0},
        {"boot": BOOT, "residual": -1, "uptime_s": 1.0},
        {"boot": BOOT, "residual": True, "uptime_s": 1.0},
        {"boot": BOOT, "residual": 1.5, "uptime_s": 1.0},
        {"boot": BOOT, "residual": 1},
        {"boot": BOOT, "residual": 1, "uptime_s": "soon"},
        [],
        "{",
    ],
)
def test_a_baseline_that_is_none_counts_as_unknown(tmp_path: Path, note: object) -> None:
    file = baseline_file(tmp_path)
    file.parent.mkdir()
    file.write_text(note if isinstance(note, str) else json.dumps(note))
    assert load(tmp_path, BOOT) is None


def test_a_baseline_that_cannot_be_kept_says_why(tmp_path: Path) -> None:
    (tmp_path / "doctor").write_text("")
    assert "cannot make the folder" in keep(tmp_path, base(GB))
