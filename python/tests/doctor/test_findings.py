from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from doctor_kit import CARD, seen

from ttstack.doctor import cards, disks, engines, slots
from ttstack.doctor.codes import CODES
from ttstack.doctor.disks import DiskSeen
from ttstack.doctor.reference import reference_text
from ttstack.doctor.slots import RunSeen, RunsSeen
from ttstack.doctor.types import LEVELS
from ttstack.host.containers import Answer, Container
from ttstack.host.deadline import Outcome
from ttstack.host.filesystems import Filesystem
from ttstack.host.holders import Holder, Holders
from ttstack.host.types import ProcessId
from ttstack.slots.claim import Claim
from ttstack.slots.view import SlotView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ttstack.doctor.engines import EnginesSeen
    from ttstack.doctor.types import Finding
    from ttstack.run.control import LiveStatus

PACKAGE = Path(cards.__file__).parent
PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "doctor.md"
GB = 1_000_000_000


def test_every_code_is_used_and_in_the_page() -> None:
    source = "\n".join(
        file.read_text() for file in PACKAGE.glob("*.py") if file.name not in {"codes.py", "reference.py"}
    )
    states = {f"slots.{state}" for state in ("free", "held", "dirty", "open", "unknown")}  # SlotState
    used = set(re.findall(r'"((?:cards|slots|runs|containers|disks|kernel|memory|probe)\.[a-z-]+)"', source)) | states
    assert used == set(CODES)
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"\n| `{code}` | {each.level} | {each.meaning} |" in page for code, each in CODES.items())
    assert all(each.way_out for code, each in CODES.items() if each.level == "bad")
    assert {each.level for each in CODES.values()} == set(LEVELS)


def test_the_page_is_fresh() -> None:
    stale = "refresh it, in python/: python -m ttstack.doctor.reference > ../docs/reference/doctor.md"
    assert PAGE.read_text(encoding="utf-8") == reference_text(), stale


def view(state: str, found: Holders = Holders(), *, lives: bool = True) -> SlotView:  # noqa: B008 - frozen
    held = state in {"held", "dirty"}
    claim = Claim("r1", "prod", "root", ProcessId(4711, 1), "b", "2026-01-31T23:59:59Z", state) if held else None  # type: ignore[arg-type]
    return SlotView(CARD, state, claim, found, lives)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("what", "code", "text"),
    [
        (view("free"), "slots.free", "nobody has it"),
        (view("held"), "slots.held", "run r1 (arm prod"),
        (view("held", lives=False), "slots.orphan", "its supervisor is gone"),
        (view("dirty"), "slots.dirty", "DIRTY"),
        (view("open", Holders((Holder(99, "tt-smi"),))), "slots.open", "pid 99 (tt-smi)"),
        (view("unknown", Holders(unseen=2)), "slots.unknown", "2 processes of other users"),
    ],
)
def test_slots(what: SlotView, code: str, text: str) -> None:
    (found,) = slots.judge_slots([what])
    assert found.code == code
    assert text in found.text


def scanned(*views: SlotView, card: Outcome | None = None) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    found = slots.scan(card or Outcome("cards", seen()), Outcome("slots", tuple(views)))
    return found.holders, found.blind, found.cards


def test_every_kind_of_holder_counts() -> None:
    box = Container("docker", "5f" * 32, "/vllm", None, "privileged")
    name = f"card {CARD.id}: "
    assert scanned(view("free")) == ((), (), True)
    assert scanned(view("open", Holders((Holder(99, "tt-smi"),)))) == ((f"{name}pid 99 (tt-smi)",), (), True)
    assert scanned(view("open", Holders((), (box,))))[0] == (f"{name}{box}",)
    assert scanned(view("held"))[0][0].startswith(f"{name}run r1 (arm prod")
    assert scanned(view("dirty"))[0]


def test_what_is_out_of_sight_is_never_nobody() -> None:
    assert scanned(view("unknown", Holders(unseen=2)))[1] == (
        f"card {CARD.id}: 2 processes of other users could not be looked into",
    )
    assert scanned(view("unknown", Holders(troubles=("docker hangs",))))[1] == (f"card {CARD.id}: docker hangs",)
    late = Outcome("x", trouble="did not answer in 5 s", late=True)
    assert scanned(view("free"), card=late)[1:] == (("cards: did not answer in 5 s",), True)
    assert slots.scan(Outcome("cards", seen()), late).blind == ("slots: did not answer in 5 s",)
    nodeless = Outcome("cards", seen(nodeless=("0000:05:00.0",)))
    assert "0000:05:00.0" in scanned(view("free"), card=nodeless)[1][0]


def test_a_driver_that_is_in_use_and_has_no_card_hides_who_uses_it() -> None:
    def of(**other: object) -> Outcome:
        return Outcome("cards", cards.CardsSeen(**other))  # type: ignore[arg-type]

    assert scanned(card=of(driver=True, in_use=1))[1] == (
        "tt-kmd has no card here, and somebody uses it (/sys/module/tenstorrent/refcnt)",
    )
    assert scanned(card=of(driver=True)) == ((), (), True)
    assert scanned(card=of()) == ((), (), False)
    assert scanned(card=of(unbound=("0000:05:00.0",)))[2]


@pytest.mark.parametrize(
    ("status", "trouble", "code", "text"),
    [
        ("orphaned", "", "runs.orphaned", "no supervisor"),
        ("orphaned", "docker hangs", "runs.orphaned", "docker hangs"),
        ("lost", "", "runs.lost", "are gone"),
        ("ready", "", "runs.settled", "every run"),
    ],
)
def test_runs(status: LiveStatus, trouble: str, code: str, text: str) -> None:
    run = RunSeen("20260131T235959-4f2a9c", "prod", status, trouble)
    (found,) = slots.judge_runs(RunsSeen((run,)))
    assert found.code == code
    assert text in found.text


def test_a_run_that_cannot_be_read_is_told() -> None:
    (found,) = slots.judge_runs(RunsSeen(left_out=("run x is left out: bad",)))
    assert (found.code, found.text) == ("runs.unread", "run x is left out: bad")


def answers(told: dict[str, Answer | Exception]) -> EnginesSeen:
    def run(argv: Sequence[str], _seconds: float) -> Answer:
        answer = told[argv[0]]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return engines.look(run)


def test_engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttstack.host.containers.DOCKER_SOCKET", tmp_path / "docker.sock")
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    none = Answer(0, "", "")

    def of(**told: Answer | Exception) -> list[Finding]:
        return list(engines.judge(answers(told)))

    absent = of(docker=FileNotFoundError(), podman=none)
    assert [(each.code, each.text) for each in absent] == [
        ("containers.answers", "podman answers and runs 0 container(s)"),
        ("containers.absent", "no docker here"),
    ]
    down = of(docker=Answer(1, "", "Cannot connect to the Docker daemon"), podman=FileNotFoundError())
    assert [each.code for each in down] == ["containers.absent", "containers.unasked"]
    hung = of(docker=TimeoutError(), podman=none)
    assert [(each.code, each.text) for each in hung] == [
        ("containers.answers", "podman answers and runs 0 container(s)"),
        ("containers.hangs", "docker did not answer within 10 s"),
    ]


def disk(**other: object) -> list[str]:
    there = Filesystem("8:1", "ext4", "/var", 100 * GB, 1_000_000, read_only=False)
    role = str(other.pop("role", "caches"))
    what = DiskSeen(role, "/var/cache/tenstorrent", replace(there, **other))  # type: ignore[arg-type]
    return [found.code for found in disks.judge(what)]


def test_disks() -> None:
    assert disk() == ["disks.fine"]
    assert disk(free=20 * GB - 1) == ["disks.low"]
    assert disk(free=2 * GB) == ["disks.low"]
    assert disk(free=2 * GB - 1) == ["disks.full"]
    assert disk(free=GB, role="state") == ["disks.fine"]
    assert disk(free=GB // 2 - 1, role="state") == ["disks.full"]
    assert disk(files_free=999) == ["disks.inodes"]
    assert disk(files_free=1000) == ["disks.fine"]
    assert disk(files_free=None) == ["disks.fine"]
    assert disk(read_only=True, free=0, files_free=0) == ["disks.read-only", "disks.inodes", "disks.full"]


def test_a_disk_is_looked_at_before_its_folder_is_made(tmp_path: Path) -> None:
    read = disks.look("caches", tmp_path / "not" / "yet")
    assert (read.role, read.folder) == ("caches", str(tmp_path / "not/yet"))
    assert read.filesystem.free >= 0
