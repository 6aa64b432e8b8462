"""Runs in real containers, of docker and of podman."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from containers_kit import FIRST, SECOND

from ttstack.arm.load import load
from ttstack.arm.shelf import find_shelf
from ttstack.host.cards import inventory
from ttstack.render.build import build_launch
from ttstack.run.errors import RunError
from ttstack.run.runtime import find_runtime
from ttstack.run.state import run_folder
from ttstack.run.waiting import wait_until

if TYPE_CHECKING:
    from containers_kit import Host


@pytest.fixture
def host(any_host: Host) -> Host:
    return any_host


def test_a_whole_run_ends_with_a_record_and_leaves_nothing(host: Host) -> None:
    result = host.execute(host.arm())
    assert result.exit_code == 0, result.error
    closed = host.record(result.run).closed
    assert closed is not None
    assert closed.quotable, closed.quotable_reasons
    assert closed.identity is not None
    assert closed.observed is not None
    assert {"environment", "image", "listener", "cache_dir"} <= {check.name for check in closed.identity.checks}
    assert closed.observed.image == host.engine(
        "image", "inspect", "-f", "{{.Id}}", "ttstack/sim:0.1.0"
    ).strip().removeprefix("sha256:")
    assert closed.observed.cache_dir is not None
    assert closed.observed.cache_dir.startswith("/cache/tensors/")
    log = host.log(result.run)
    assert log.index("Opening user mode device driver") < log.index("Closing device 0")
    assert host.clean()
    again = host.execute(host.arm())
    assert again.exit_code == 0, again.error
    warm = host.record(again.run).closed
    assert warm is not None
    assert warm.observed is not None
    assert warm.observed.cache == "hit"


def test_the_verb_runs_it_on_the_simulated_hosts_cards(host: Host) -> None:
    host.arm()
    arms = ("--arms", str(host.base / "arms"))
    closed = json.loads(host.ttx(*arms, "run", "quick", "--json"))
    assert (closed["outcome"], closed["quotable"]) == ("ok", True)
    (card,) = closed["observed"]["cards"]
    assert "sim-host" in card["node"]
    run = json.loads(host.ttx(*arms, "up", "quick", "--json"))["run"]
    (container,) = host.containers()
    assert json.loads(host.engine("inspect", "-f", "{{json .HostConfig.Devices}}", container)) == []
    (shown,) = [line for line in host.ttx("status").splitlines() if run in line]
    assert "ready" in shown
    (entry,) = json.loads(host.ttx("status", "--json"))
    assert entry["memory_bytes"] > 1_000_000
    assert entry["cache_bytes"] > 0
    assert entry["disk_free_bytes"] > 0
    assert entry["age_s"] >= 0
    assert entry["last_line"] == host.log(run).splitlines()[-1]
    host.ttx("down", run)
    assert host.containers() == []


def test_two_arms_run_on_two_cards_and_a_mesh_waits_for_both(host: Host) -> None:
    one = host.execute(host.arm("one", cards=FIRST), "up")
    two = host.execute(host.arm("two", cards=SECOND), "up")
    assert (one.exit_code, two.exit_code) == (0, 0), (one.error, two.error)
    assert host.slots() == ["held", "held"]
    assert len(host.containers()) == 2
    devices = [host.engine("inspect", "-f", "{{json .HostConfig.Devices}}", each) for each in host.containers()]
    assert len(set(devices)) == 2
    pair = host.start("up", host.arm("pair", cards="count = 2"), wait_s=120)
    assert not wait_until(lambda: pair.poll() is not None, 0.5)
    host.ttx("down", one.run)
    assert not wait_until(lambda: pair.poll() is not None, 0.5)
    host.ttx("down", two.run)
    out, err = pair.communicate(timeout=120)
    assert pair.returncode == 0, out + err
    run = json.loads(out)["run"]
    assert "multidevice with 2 devices" in host.log(run)
    host.ttx("down", run)
    assert host.clean()
    assert [host.record(each).outcome for each in (one.run, two.run, run)] == ["ok"] * 3


def test_an_engine_that_ignores_sigterm_is_killed_by_docker_and_says_so(host: Host) -> None:
    result = host.execute(host.arm("stubborn", "ignore-sigterm", stop_grace_s=1), "up")
    assert result.exit_code == 0, result.error
    host.ttx("down", result.run)
    closed = host.record(result.run).closed
    assert closed is not None
    assert (closed.outcome, closed.reason) == ("failed", "killed")
    assert "may need a reset" in closed.text
    assert host.clean()


def test_an_engine_that_dies_is_told_with_how(host: Host) -> None:
    result = host.execute(host.arm("weak", "die:model"))
    assert (result.exit_code, result.error.reason) == (1, "engine_failed")  # type: ignore[union-attr]
    killed = host.execute(host.arm(), "up")
    (container,) = host.containers()
    host.engine("kill", container)
    assert wait_until(lambda: host.record(killed.run).closed is not None, 30)
    closed = host.record(killed.run).closed
    assert closed is not None
    assert (closed.reason, closed.outcome) == ("engine_died", "failed")
    assert "SIGKILL" in closed.text
    assert host.clean()


def test_a_killed_supervisor_leaves_a_card_that_is_not_free_until_down(host: Host) -> None:
    run = host.execute(host.arm(cards=FIRST), "up").run
    host.kill_supervisor(run)
    assert host.slots()[0] == "open"
    assert host.live(run).status == "orphaned"
    refused = host.execute(host.arm("other", cards=FIRST))
    assert (refused.exit_code, refused.error.reason) == (3, "busy")  # type: ignore[union-attr]
    assert "container ttx-quick" in str(refused.error)
    host.ttx("down")
    assert host.clean()
    closed = host.record(run).closed
    assert closed is not None
    assert (closed.outcome, closed.reason) == ("aborted", "supervisor_died")


@pytest.mark.parametrize("supervised", [True, False])
def test_a_kill_ends_what_a_stop_did_not(host: Host, supervised: bool) -> None:  # noqa: FBT001 - a parameter of pytest
    run = host.execute(host.arm("stubborn", "ignore-sigterm", stop_grace_s=60), "up").run
    if not supervised:
        host.kill_supervisor(run)
    host.ttx("down", run, "--kill")
    assert "may need a reset" in host.stderr
    assert wait_until(lambda: host.record(run).closed is not None, 30)
    closed = host.record(run).closed
    assert closed is not None
    assert closed.outcome in {"failed", "aborted"}
    assert host.clean()
    assert host.live(run).status == "stopped"


def test_an_adopted_container_is_held_followed_and_closed(host: Host) -> None:
    run = host.execute(host.arm(), "up").run
    before = host.log(run)
    host.kill_supervisor(run)
    host.ttx("adopt", run)
    assert host.slots() == ["held", "free"]
    assert host.live(run).status == "ready"
    host.ttx("adopt", run, code=2)
    host.ttx("down", run)
    log = host.log(run)
    assert log.startswith(before)
    assert log.count("Opening user mode device driver") == 1
    assert log.count("Closing device 0") == 1
    closed = host.record(run).closed
    assert closed is not None
    assert (closed.outcome, closed.reason) == ("ok", "")
    assert host.clean()


def test_a_name_that_is_taken_is_told_with_who_has_it(host: Host) -> None:
    foreign = host.engine("create", "--name", "ttx-quick", "ttstack/sim:0.1.0").strip()
    try:
        result = host.execute(host.arm())
    finally:
        host.engine("rm", foreign)
    assert (result.exit_code, result.error.reason) == (3, "name_taken")  # type: ignore[union-attr]
    assert "not ttx's" in str(result.error)
    run = host.execute(host.arm(cards=FIRST), "up").run
    second = host.execute(host.arm(cards=SECOND))  # the same arm on the other card
    assert (second.exit_code, second.error.reason) == (3, "name_taken")  # type: ignore[union-attr]
    assert f"ttx down {run}" in str(second.error)
    host.ttx("down", run)
    assert host.clean()


def test_what_cannot_start_is_refused_and_leaves_nothing(host: Host) -> None:
    missing = host.arm()
    pin = host.base / "pins" / "sim-image.toml"
    text = pin.read_text()
    pin.write_text(text.replace("sim:0.1.0", "sim:none"))
    result = host.execute(missing)
    assert (result.exit_code, result.error.reason) == (3, "image_missing")  # type: ignore[union-attr]
    assert f"{host.runtime} load" in str(result.error)
    pin.write_text(text)
    asked = load(str(missing), find_shelf(host.base / "arms", {}, host.base))
    folder = run_folder(host.places.state, "R")
    folder.path.mkdir(parents=True)
    cards = [replace(card, node="/dev/no-such-node") for card in inventory(host.places.roots)[:1]]
    launch = build_launch(asked, cards, run_id="R", cache_root=str(host.places.cache))
    runtime = find_runtime(host.runtime)
    runtime.prepare(launch, host.places.cache)
    with pytest.raises(RunError, match="/dev/no-such-node is not there"):
        runtime.start(launch, folder, {}, ())
    assert host.engine("ps", "-aq", "--filter", "label=ttstack.run=R") == ""
    assert host.clean()


def test_a_secret_is_in_the_container_and_nowhere_else(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    arm = host.arm()
    arm.write_text(arm.read_text().replace("[engine.args]", 'secrets = ["HF_TOKEN"]\n[engine.args]'))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    result = host.execute(arm)
    assert (result.exit_code, result.error.reason) == (1, "secret_missing")  # type: ignore[union-attr]
    monkeypatch.setenv("HF_TOKEN", "hf_very-secret")
    run = host.execute(arm, "up").run
    (container,) = host.containers()
    assert "HF_TOKEN=hf_very-secret" in host.engine("inspect", "-f", "{{json .Config.Env}}", container)
    host.ttx("down", run)
    told = [file for file in host.base.rglob("*") if file.is_file() and b"hf_very-secret" in file.read_bytes()]
    assert told == []
    assert run_folder(host.places.state, run).log.exists()
