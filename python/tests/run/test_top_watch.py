"""What is seen of cards, runs and their servers, whatever these do."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from top_kit import Server, serving, simulated_places, write_run

from ttstack.bench.client.endpoint import Endpoint
from ttstack.bench.client.types import Ask
from ttstack.bench.http import Client
from ttstack.host import process
from ttstack.host.types import Card, Places, Roots
from ttstack.run.control import look_at
from ttstack.run.state import run_folder
from ttstack.run.top import asking
from ttstack.run.top import watch as watching
from ttstack.run.top.asking import Asker
from ttstack.run.top.cards import Heartbeats, look_at_cards
from ttstack.run.top.runs import Runs, _can_see, age_s, memory_bytes, telling_line
from ttstack.run.top.watch import Watch
from ttstack.run.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import World

    from ttstack.run.control import LiveRun
    from ttstack.run.state import RunFolder
    from ttstack.run.top.types import RunNow

CARDS = Path(__file__).resolve().parents[1] / "fixtures" / "cards"
EVERY_S = 0.05


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as told:
        yield told


def watch_of(base: Path, every_s: float = EVERY_S) -> Watch:
    return Watch(lambda: [simulated_places(base)], base / "state", every_s)


def row(watch: Watch) -> RunNow:
    (found,) = watch.overview().runs
    return found


def comes(watch: Watch, wanted: Callable[[RunNow], bool], seconds: float = 20) -> RunNow:
    found: list[RunNow] = []

    def there() -> bool:
        found[:] = watch.overview().runs
        return len(found) == 1 and wanted(found[0])

    assert wait_until(there, seconds), found
    return found[0]


def test_a_run_that_serves(tmp_path: Path, server: Server) -> None:
    write_run(tmp_path, server.port)
    with watch_of(tmp_path) as watch:
        assert wait_until(watch.settled, 20)
        seen = watch.overview()
        found = row(watch)
        assert found.metrics.asking == "answered"
        traffic = found.metrics.traffic
        assert traffic is not None
        assert traffic.generation_tokens_per_s is not None
        assert traffic.generation_tokens_per_s > 0
        assert (traffic.running, traffic.waiting, traffic.kv_use) == (3, 1, 0.25)
        assert found.age_s == pytest.approx(90, abs=60)
        assert found.memory_bytes is not None
        assert found.memory_bytes > 1_000_000
        assert found.last_line == "model loaded"
        assert [card.slot and card.slot.state for card in seen.cards] == ["free", "free"]
        assert all(card.simulated and card.beats is None for card in seen.cards)
        assert seen.troubles == ()
        assert seen.memory_available_bytes is not None
        assert seen.memory_bytes is not None
        assert 0 < seen.memory_available_bytes <= seen.memory_bytes
    asked = server.asked
    assert wait_until(lambda: all(not part._thread.is_alive() for part in watch._askers.values()), 20)
    assert server.asked <= asked + 1


def test_the_first_overview_is_there_before_anything_is_known(tmp_path: Path) -> None:
    watch = watch_of(tmp_path)
    assert watch.overview().cards == watch.overview().runs == ()
    assert not watch.settled()


def test_a_server_that_hangs_is_said_not_to_answer_and_comes_back(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_LATE_S", 0.1)
    folder, _ = write_run(tmp_path, server.port)
    with watch_of(tmp_path) as watch:
        comes(watch, lambda run: run.metrics.asking == "answered")
        server.go.clear()
        found = comes(watch, lambda run: run.metrics.asking == "no_answer")
        assert found.metrics.traffic is None  # not what it was doing before
        folder.log.write_text("while it hangs\n")
        comes(watch, lambda run: run.last_line == "while it hangs")  # and nothing else hangs
        assert wait_until(watch.settled, 20)
        server.go.set()
        comes(watch, lambda run: run.metrics.asking == "answered")


def test_who_does_not_answer_in_time_is_asked_again(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "TIMEOUT_S", 0.05)
    server.go.clear()
    write_run(tmp_path, server.port)
    with watch_of(tmp_path) as watch:
        assert "did not answer" in comes(watch, lambda run: run.metrics.asking == "no_answer").metrics.detail
        assert wait_until(watch.settled, 20)
        server.go.set()
        comes(watch, lambda run: run.metrics.asking == "answered")


def test_a_restart_gives_no_negative_and_no_huge_rate(tmp_path: Path, server: Server) -> None:
    write_run(tmp_path, server.port)
    server.served, server.step = 10_000_000, 1
    rates: list[float | None] = []

    def note(run: RunNow) -> bool:
        rates.append(run.metrics.traffic and run.metrics.traffic.generation_tokens_per_s)
        return run.metrics.traffic is not None and run.metrics.traffic.generation_tokens == goal[0]

    goal = [10_000_003]
    with watch_of(tmp_path) as watch:
        comes(watch, note)
        server.restart()
        goal[0] = 2
        comes(watch, note)
    known = [rate for rate in rates if rate is not None]
    assert known
    assert all(0 < rate < 1000 for rate in known)


@pytest.mark.parametrize(
    ("status", "text", "detail"),
    [
        (404, "no such page", "/metrics answers 404"),
        (200, "llamacpp:tokens_predicted_total 5\n", "/metrics has none of vLLM's"),
        (200, "vllm:generation_tokens_total 5\n" + "#" * (9 << 20), "/metrics is too long"),
    ],
)
def test_who_has_no_metrics_is_left_alone_for_a_while(server: Server, status: int, text: str, detail: str) -> None:
    server.status, server.text = status, text
    now = [0.0]
    asker = Asker(f"http://127.0.0.1:{server.port}", lambda: True, lambda: now[0])
    for now[0] in (1.0, 2.0, 30.0):
        told = asker.look()
        assert (told.asking, told.detail, server.asked) == ("no_metrics", detail, 1)
    now[0] = 31.5
    asker.look()
    assert server.asked == 2


def test_a_run_that_does_not_serve_is_not_asked(tmp_path: Path, server: Server) -> None:
    folder, state = write_run(tmp_path, server.port, phase="booting", step="weights")
    with watch_of(tmp_path) as watch:
        assert comes(watch, lambda run: run.live.status == "booting").metrics.asking == "not_asked"
        assert wait_until(watch.settled, 20)
        assert server.asked == 0
        folder.write(dataclasses.replace(state, phase="ready"))
        comes(watch, lambda run: run.metrics.asking == "answered")
        folder.write(dataclasses.replace(state, phase="stopping"))
        assert comes(watch, lambda run: run.live.status == "stopping").metrics.asking == "not_asked"
        folder.write(dataclasses.replace(state, phase="stopped"))
        assert wait_until(lambda: watch.overview().runs == (), 20)


@pytest.fixture
def sleeper() -> Iterator[process.ProcessId]:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    name = process.identify(child.pid)
    assert name is not None
    yield name
    child.kill()
    child.wait()


def test_another_program_on_the_port_is_not_ours(tmp_path: Path, server: Server, sleeper: process.ProcessId) -> None:
    write_run(tmp_path, server.port, engine=sleeper)
    with watch_of(tmp_path) as watch:
        found = comes(watch, lambda run: run.metrics.asking == "foreign")
        assert f"port {server.port} is that of pid {os.getpid()}" in found.metrics.detail
        assert found.metrics.traffic is None
        assert server.asked == 0


def test_an_engine_that_cannot_be_looked_into_is_not_taken_for_another(
    tmp_path: Path, server: Server, sleeper: process.ProcessId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of another user is: nobody is seen to have the port."""
    write_run(tmp_path, server.port, engine=sleeper)
    monkeypatch.setattr("ttstack.run.top.runs.ports.owners", lambda _inodes, _among=None: ())
    (found,) = Runs(tmp_path / "state").look().found
    assert "a process that cannot be seen" in found.foreign
    monkeypatch.setattr("ttstack.run.top.runs._can_see", lambda pid: pid != sleeper.pid)
    (found,) = Runs(tmp_path / "state").look().found
    assert found.foreign == ""


def test_what_may_be_looked_into(sleeper: process.ProcessId, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _can_see(sleeper.pid)
    assert _can_see(2**22 + 1)

    def refuse(_: str) -> list[str]:
        raise PermissionError(13, "not yours")

    monkeypatch.setattr("ttstack.run.top.runs.os.listdir", refuse)
    assert not _can_see(sleeper.pid)


def test_nobody_is_asked_once_the_engine_is_gone(
    tmp_path: Path, server: Server, sleeper: process.ProcessId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ttstack.run.top.runs._foreign", lambda _run, _processes: "")
    write_run(tmp_path, server.port, engine=sleeper)
    with watch_of(tmp_path) as watch:
        comes(watch, lambda run: run.metrics.asking == "answered")
        process.send(sleeper, signal.SIGKILL)
        comes(watch, lambda run: run.metrics.asking == "not_asked")
        asked = server.asked
        for _ in range(5):
            assert row(watch).metrics.asking == "not_asked"
            time.sleep(EVERY_S)
        assert server.asked <= asked + 1


def test_an_engine_whose_supervisor_died_is_asked_on(
    tmp_path: Path, server: Server, sleeper: process.ProcessId
) -> None:
    write_run(tmp_path, server.port, supervisor=sleeper)
    with watch_of(tmp_path) as watch:
        comes(watch, lambda run: run.metrics.asking == "answered")
        process.send(sleeper, signal.SIGKILL)
        found = comes(watch, lambda run: run.live.status == "orphaned")
        assert found.metrics.asking == "answered"


def test_a_run_that_comes_is_seen_without_waiting_for_the_next_thorough_look(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "THOROUGH_S", 3600.0)
    write_run(tmp_path, server.port)
    with watch_of(tmp_path) as watch:
        comes(watch, lambda run: run.metrics.asking == "answered")
        write_run(tmp_path, server.port, "b")
        assert wait_until(lambda: len(watch.overview().runs) == 2, 20)


def test_a_state_that_is_none_is_said_and_hides_no_other(tmp_path: Path, server: Server) -> None:
    write_run(tmp_path, server.port)
    broken, _ = write_run(tmp_path, server.port, "broken")
    (broken.path / "state.json").write_text("{}")
    with watch_of(tmp_path) as watch:
        comes(watch, lambda run: run.live.state.arm == "arm-a")
        (trouble,) = watch.overview().troubles
        assert "run 20260131T235959-broken is left out" in trouble
        first, _ = write_run(tmp_path, server.port, "b")
        assert wait_until(lambda: len(watch.overview().runs) == 2, 20)
        (first.path / "state.json").write_text("{}")
        (tmp_path / "state/runs/20260131T235959-a/engine.log").write_text("still seen\n")
        assert wait_until(lambda: watch.overview().runs[0].last_line == "still seen", 20)


def test_a_folder_that_cannot_be_listed_is_said_and_waited_for_by_nobody(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state/runs").symlink_to(tmp_path / "state/runs")
    with watch_of(tmp_path) as watch:
        assert wait_until(watch.settled, 20)
        assert watch.overview().cards != ()


def test_what_is_over_is_read_once(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = process.ProcessId(2**22 + 1, 1)
    for number in range(5):
        write_run(tmp_path, server.port, str(number), phase="stopped", supervisor=gone, engine=None)
    write_run(tmp_path, server.port)
    runs, read = Runs(tmp_path / "state"), []

    def look(folder: RunFolder) -> LiveRun | None:
        if folder.path.is_relative_to(tmp_path):  # a look of the test before may not be over yet
            read.append(folder.run)
        return look_at(folder)

    monkeypatch.setattr("ttstack.run.top.runs.look_at", look)
    assert [found.live.state.arm for found in runs.look().found] == ["arm-a"]
    assert len(read) == 6
    runs.look()
    assert read[6:] == ["20260131T235959-a"]


def test_looking_that_hangs_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hang = threading.Event()
    monkeypatch.setattr(watching, "look_at_slots", lambda _places: hang.wait(20) and {})
    monkeypatch.setattr(watching, "THOROUGH_S", 0.1)
    with watch_of(tmp_path) as watch:
        assert wait_until(lambda: any("who has the cards" in text for text in watch.overview().troubles), 20)
        assert wait_until(lambda: len(watch.overview().cards) == 2, 20)
        assert [card.slot for card in watch.overview().cards] == [None, None]
        assert not watch.settled()
        hang.set()


def test_heartbeats_are_told_from_looks_that_are_far_enough_apart() -> None:
    now = [0.0]
    beats = Heartbeats(lambda: now[0])
    card = Card("/dev/tenstorrent/0", 0, "0000:01:00.0", "0000000000000001", "1", "p150a")

    def said(at: float, counter: int | None) -> bool | None:
        now[0] = at
        return beats.note(dataclasses.replace(card, heartbeat=counter))

    assert said(0, 5) is None
    assert said(0.3, 5) is None  # too early to say
    assert said(0.5, 6) is True
    assert said(1.0, 6) is True
    assert said(1.2, 6) is False
    assert said(1.3, 7) is True
    assert said(1.4, None) is None
    assert said(9.0, 7) is None  # it has just begun to tell again


def test_cards_of_a_real_tree_with_what_they_tell(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(CARDS / "one-p150a", tree, symlinks=True)
    roots = Roots(tree / "sys", tree / "proc", tree / "dev")
    entry = tree / "sys/class/tenstorrent/tenstorrent!0"
    places = Places(tmp_path, tmp_path / "locks", tmp_path / "cache", roots, simulated=False)
    beats = Heartbeats()
    (first,) = look_at_cards([places], beats)
    assert first.beats is None
    (entry / "tt_aiclk").write_text("1350\n")
    (entry / "tt_heartbeat").write_text("99999\n")
    (second,) = look_at_cards([places], beats)
    assert (second.beats, second.telemetry.clock_mhz) == (True, 1350)


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (["one", "two"], "two"),
        (["one", 'INFO:     127.0.0.1:5 - "GET /metrics HTTP/1.1" 200 OK'], "one"),
        (["one", '"GET /health HTTP/1.1" 200', "  ", ""], "one"),
        (['"GET /metrics HTTP/1.1" 500 Internal Server Error'], '"GET /metrics HTTP/1.1" 500 Internal Server Error'),
        (['"POST /v1/completions HTTP/1.1" 200'], '"POST /v1/completions HTTP/1.1" 200'),
        (['"GET /metrics HTTP/1.1" 200'], None),
        ([], None),
    ],
)
def test_a_line_about_our_own_asking_tells_nothing(lines: list[str], line: str | None) -> None:
    assert telling_line(lines) == line


def test_a_line_that_scrolled_away_is_kept(tmp_path: Path, server: Server) -> None:
    folder, _ = write_run(tmp_path, server.port)
    with watch_of(tmp_path) as watch:
        comes(watch, lambda run: run.last_line == "model loaded")
        folder.log.write_text('"GET /metrics HTTP/1.1" 200\n' * 2000)
        time.sleep(2 * EVERY_S)
        assert row(watch).last_line == "model loaded"


def test_what_is_not_known_is_none(tmp_path: Path) -> None:
    assert memory_bytes([process.ProcessId(2**22 + 1, 1)]) is None
    folder, _ = write_run(tmp_path, 1, since="yesterday")
    (found,) = Runs(tmp_path / "state").look().found
    assert age_s(found.live) is None
    assert folder.log.exists()


def test_the_simulated_engine_under_load_shows_its_true_rate(world: World) -> None:
    arm = world.arm()
    arm.write_text(arm.read_text().replace("sim-token-ms = 0", "sim-token-ms = 10"))
    done = world.execute(arm, "up")
    assert done.error is None
    state = run_folder(world.places.state, done.run).read()
    assert state is not None
    client = Client(Endpoint("127.0.0.1", state.port), 60)
    took: list[tuple[float, float]] = []

    def ask(number: int) -> None:
        began = time.monotonic()
        result = client.measure(Ask("tiny", tuple(range(number, number + 8)), 250))
        assert result.void is None, result.void
        took.append((began + result.chunks[0].at, began + result.chunks[-1].at))

    threads = [threading.Thread(target=ask, args=(100 * number,)) for number in range(1, 5)]
    rates: list[float] = []
    with Watch(lambda: [world.places], world.places.state, 0.3) as watch:
        comes(watch, lambda run: run.metrics.traffic is not None)
        for thread in threads:
            thread.start()

        def over() -> bool:
            (run,) = watch.overview().runs
            traffic = run.metrics.traffic
            if traffic is not None and traffic.running == 4 and traffic.generation_tokens_per_s:
                rates.append(traffic.generation_tokens_per_s)
            return not any(thread.is_alive() for thread in threads)

        assert wait_until(over, 60)
    for thread in threads:
        thread.join()
    true = 4 * 249 / (max(end for _, end in took) - min(begin for begin, _ in took))
    middle = sorted(rates)[len(rates) // 2]
    assert middle == pytest.approx(true, rel=0.15)
    world.ttx("down")
