from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from doctor_kit import FIXTURES

from ttstack.doctor.kernel import judge_log, judge_release
from ttstack.host.deadline import Outcome
from ttstack.host.errors import HostError
from ttstack.host.kernel_log import KEPT, Said, read_kernel_log

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HINT = "Hint: You are currently not seeing messages from other users and the system."
NO_FILES = "No journal files were found."
RESTRICTED = "dmesg: read kernel buffer failed: Operation not permitted"


def fixture(name: str) -> list[str]:
    return (FIXTURES / "doctor/kernel" / name).read_text().splitlines()


def programs(**said: Said | Exception) -> Callable[[Sequence[str]], Said]:
    """Stand in for journalctl (``any``: asked for one line of any priority) and dmesg."""

    def run(argv: Sequence[str]) -> Said:
        name = "any" if "--lines=1" in argv else argv[0]
        answer = said.get(name, FileNotFoundError())
        if isinstance(answer, Exception):
            raise answer
        return answer

    return run


def test_messages_that_matter_are_found_in_the_journal() -> None:
    log = read_kernel_log(programs(journalctl=Said(0, fixture("busy.journal"), "")))
    assert log.source == "journalctl"
    assert log.counts == {"oom_kill": 2, "pin_failure": 5, "driver": 1, "hung_task": 1}
    killed = log.messages[0]
    assert (killed.kind, killed.at_s) == ("oom_kill", 912.1002)
    assert killed.text.startswith("Out of memory: Killed process 4711 (VLLM::EngineCor)")
    assert not any("mlx5_core" in message.text for message in log.messages)  # another driver's failure


def test_a_quiet_boot() -> None:
    log = read_kernel_log(programs(journalctl=Said(0, fixture("quiet.journal"), "")))
    assert (log.messages, log.counts) == ((), {})
    (found,) = judge_log(Outcome("kernel", log))
    assert (found.code, found.text) == ("kernel.quiet", "nothing of note in this boot's messages (journalctl)")


def test_an_old_kernels_words_in_dmesg() -> None:
    log = read_kernel_log(programs(dmesg=Said(0, fixture("old.dmesg"), "")))
    assert (log.source, log.counts) == ("dmesg", {"oom_kill": 1})


@pytest.mark.parametrize("journal", [Said(0, ["-- No entries --"], NO_FILES), Said(1, [], NO_FILES)])
def test_a_journal_without_the_kernels_log_says_nothing(journal: Said) -> None:
    log = read_kernel_log(programs(journalctl=journal, any=journal, dmesg=Said(0, fixture("old.dmesg"), "")))
    assert log.source == "dmesg"


def test_a_journal_without_warnings_is_enough() -> None:
    """dmesg is often for root alone: a journal that has any line of the kernel has all of them."""
    line = "[    0.000000] cardhost kernel: Linux version 6.12.30"
    said = programs(journalctl=Said(0, [], ""), any=Said(0, [line], ""), dmesg=Said(1, [], RESTRICTED))
    log = read_kernel_log(said)
    assert (log.source, log.counts) == ("journalctl", {})


def test_who_may_not_read_is_told() -> None:
    """Journalctl exits with 0 although it left out what matters, and what it prints may look like a quiet boot."""
    hidden = Said(0, fixture("quiet.journal"), HINT)
    with pytest.raises(HostError, match="this user may not read") as caught:
        read_kernel_log(programs(journalctl=hidden, any=hidden, dmesg=Said(1, [], RESTRICTED)))
    assert caught.value.reason == "denied"
    assert "systemd-journal" in caught.value.hint
    (found,) = judge_log(Outcome("kernel", trouble=caught.value.message, hint=caught.value.hint))
    assert (found.code, found.level) == ("kernel.unread", "warn")
    assert "systemd-journal" in found.hint
    assert RESTRICTED in found.text


def test_a_denied_journal_is_no_reason_not_to_ask_dmesg() -> None:
    denied = Said(1, [], "No journal files were opened due to insufficient permissions.")
    log = read_kernel_log(programs(journalctl=denied, any=denied, dmesg=Said(0, fixture("old.dmesg"), "")))
    assert log.source == "dmesg"


def test_neither_program() -> None:
    with pytest.raises(HostError, match="no journalctl here; no dmesg here") as caught:
        read_kernel_log(programs())
    assert caught.value.reason == "host"
    with pytest.raises(HostError, match="dmesg failed with exit 1: dmesg: no such option"):
        read_kernel_log(programs(dmesg=Said(1, [], "\ndmesg: no such option\n")))
    with pytest.raises(HostError, match="dmesg cannot be run: Exec format error"):
        read_kernel_log(programs(dmesg=OSError(8, "Exec format error")))


def test_only_the_newest_are_kept_and_all_are_counted() -> None:
    lines = [f"[{at:5}.000000] Out of memory: Killed process {at} (x) total-vm:1kB" for at in range(1, 100)]
    log = read_kernel_log(programs(dmesg=Said(0, lines, "")))
    assert log.counts == {"oom_kill": 99}
    assert [message.at_s for message in log.messages] == [float(at) for at in range(100 - KEPT, 100)]
    (found,) = judge_log(Outcome("kernel", log))
    assert found.text.startswith("99 time(s) since boot, last at 99 s: Out of memory: Killed process 99 (x)")


def test_what_a_process_calls_itself_cannot_write_to_the_terminal() -> None:
    line = "[    1.000000] Out of memory: Killed process 5 (\x1b[2Jx) total-vm:1kB"
    (message,) = read_kernel_log(programs(dmesg=Said(0, [line], ""))).messages
    assert "\x1b" not in message.text


def test_a_log_that_is_too_long_to_read_in_time_is_no_fault_of_the_host() -> None:
    (found,) = judge_log(Outcome("kernel", trouble="did not answer in 10 s", late=True))
    assert (found.code, found.level, found.text) == (
        "kernel.unread",
        "warn",
        "kernel messages: did not answer in 10 s",
    )


@pytest.mark.parametrize(
    ("release", "leaks"),
    [
        *(("6.10.14", False), ("6.11.0", True), ("6.11.0-29-generic", True), ("6.11.11", True), ("6.12.0", True)),
        *(("6.12.0-rc7", True), ("6.12", True), ("6.12.1", False), ("6.12.1-arch1-1", False), ("6.12.30", False)),
        *(("6.13.0", False), ("6.1.0-37-amd64", False), ("5.15.0-139-generic", False), ("7.0.0", False), ("", False)),
    ],
)
def test_kernels_that_leak_are_named(release: str, leaks: bool) -> None:  # noqa: FBT001 - a table
    assert [found.code for found in judge_release(release)] == (["kernel.leaks-pins"] if leaks else [])
