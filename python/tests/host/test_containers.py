"""Containers that have cards, over what engines print.

fixtures/containers/docker.json: `docker container inspect` of docker 20.10, cut to what matters, with the nodes of
cards for paths of other devices. podman.json has the shape that podman-inspect(1) describes.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from card_trees import HOSTS, host

from ttstack.host.cards import inventory
from ttstack.host.container_cards import LABEL
from ttstack.host.containers import Answer, Containers, look, run_command
from ttstack.host.types import Card, Roots

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RECORDED = HOSTS.parent / "containers"
DOCKER: list[dict[str, Any]] = json.loads((RECORDED / "docker.json").read_text())
PODMAN: list[dict[str, Any]] = json.loads((RECORDED / "podman.json").read_text())
ROOTS = host("two-p150a-swapped")  # node 1 is b01, node 0 is b02
CARDS = inventory(ROOTS)
ALL = None


class Engines:
    """Engines that answer from what is recorded; ``calls`` are the command lines, as they came."""

    def __init__(self, **told: list[dict[str, Any]] | Answer | Exception | Callable[[Sequence[str]], Answer]) -> None:
        self.told = told
        self.calls: list[list[str]] = []
        self.seconds: set[float] = set()

    def __call__(self, argv: Sequence[str], seconds: float) -> Answer:
        self.calls.append(list(argv))
        self.seconds.add(seconds)
        told = self.told.get(argv[0], FileNotFoundError(argv[0]))
        if isinstance(told, Exception):
            raise told
        if isinstance(told, Answer):
            return told
        if callable(told):
            return told(argv)
        if "inspect" in argv:
            asked = argv[argv.index("inspect") + 1 :]
            return Answer(0, json.dumps([entry for entry in told if entry["Id"] in asked]), "")
        return Answer(0, "".join(f"{entry['Id']}\n" for entry in told), "")


def ask(
    engines: Engines, cards: Sequence[Card] = CARDS, roots: Roots = ROOTS, *, socket: Path = Path("/no"), at: str = ""
) -> Containers:
    return look(cards, roots, run=engines, environ={"DOCKER_HOST": at} if at else {}, socket=socket)


def entry(**parts: object) -> dict[str, Any]:
    return {"Id": "ab" * 32, "Name": "/x", "HostConfig": {}, "Mounts": [], "Config": {}, **parts}


@pytest.mark.parametrize(
    ("name", "cards", "why"),
    [
        ("by-node", {0}, "device /dev/tenstorrent/0"),
        ("by-folder", ALL, "device /dev/tenstorrent"),
        ("by-id", {1}, "device /dev/tenstorrent/by-id/blackhole-5311a70c04e90b01"),
        ("by-mount", ALL, "mount /dev"),
        ("by-node-mount", {1}, "mount /dev/tenstorrent/1"),
        ("root-mount-rules", ALL, "mount /"),
        ("by-label", {0, 1}, f"label {LABEL}=0,1"),
        ("by-bad-label", ALL, f"label {LABEL}=all"),
        ("privileged", ALL, "privileged"),
    ],
)
def test_what_gives_a_container_cards(name: str, cards: set[int] | None, why: str) -> None:
    (recorded,) = [one for one in DOCKER if one["Name"] == f"/{name}"]
    (found,) = ask(Engines(docker=[recorded])).found
    assert (found.engine, found.name, found.cards, found.why) == ("docker", name, cards, why)
    assert [found.has(card) for card in CARDS] == [cards is None or card.number in cards for card in CARDS]


def test_what_gives_it_none() -> None:
    """Other mounts; the whole root, of which the kernel lets it open no device."""
    recorded = [one for one in DOCKER if one["Name"] in {"/plain", "/root-mount"}]
    assert len(recorded) == 2
    told = ask(Engines(docker=recorded))
    assert (told.found, told.troubles) == ((), ())


def test_podman_tells_in_its_own_words() -> None:
    told = ask(Engines(podman=PODMAN))
    (found,) = told.found
    assert (found.engine, found.name, found.cards) == ("podman", "engine", {1})
    assert told.absent == ("no docker here",)
    assert str(found) == "container engine (podman 7d0f4e6f3f4c, device /dev/tenstorrent/1)"


def test_two_engines_and_many_containers_are_all_told() -> None:
    engines = Engines(docker=DOCKER, podman=PODMAN)
    told = ask(engines)
    assert len(told.found) == 10
    assert (told.absent, told.troubles) == ((), ())
    assert [call[:2] for call in engines.calls] == [
        ["docker", "ps"],
        ["docker", "container"],
        ["podman", "ps"],
        ["podman", "container"],
    ]
    assert engines.seconds == {10.0}  # each call has a deadline


def test_every_state_in_which_devices_are_held_is_asked_for() -> None:
    engines = Engines(docker=[], podman=[])
    ask(engines)
    docker, podman = (" ".join(call) for call in engines.calls)  # nothing runs, so nothing is inspected
    assert all(f"status={state}" in docker for state in ("running", "paused", "restarting"))
    assert "status=" not in podman  # of which an older one refuses some


@pytest.mark.parametrize(("state", "found"), [("exited", 0), ("created", 0), ("stopping", 1), ("paused", 1), ("", 1)])
def test_of_podmans_containers_those_count_that_have_their_devices(state: str, found: int) -> None:
    entry = next(dict(each) for each in PODMAN if each["Name"] == "engine")
    entry["State"] = {"Status": state}
    assert len(ask(Engines(podman=[entry])).found) == found


def test_several_claims_of_one_container_add_up() -> None:
    both = entry(
        HostConfig={"Devices": [{"PathOnHost": "/dev/tenstorrent/0"}]},
        Mounts=[{"Type": "bind", "Source": "/dev/tenstorrent/1/"}, {"Type": "volume", "Source": "/dev"}],
    )
    (found,) = ask(Engines(docker=[both])).found
    assert found.cards == {0, 1}
    everything = entry(HostConfig={"Privileged": True, "Devices": [{"PathOnHost": "/dev/tenstorrent/0"}]})
    (found,) = ask(Engines(docker=[everything])).found
    assert (found.cards, found.why) == (None, "privileged")


@pytest.mark.parametrize("path", ["/dev/", "/dev/tenstorrent/by-id", "/dev/tenstorrent/by-id/gone", "/dev/x/.."])
def test_paths_that_may_lead_to_any_card(path: str) -> None:
    (found,) = ask(Engines(docker=[entry(HostConfig={"Devices": [{"PathOnHost": path}]})])).found
    assert found.cards is None


def test_a_link_and_another_node_of_the_same_device_lead_to_the_card(tmp_path: Path) -> None:
    (tmp_path / "mine").symlink_to("/dev/tenstorrent/1")
    mine = entry(HostConfig={"Devices": [{"PathOnHost": str(tmp_path / "mine")}]})
    here = Roots(dev=tmp_path)  # links of the host lead into its /dev, whatever it holds here
    (found,) = ask(Engines(docker=[mine]), roots=here).found
    assert found.cards == {1}
    (tmp_path / "null").symlink_to("/dev/null")  # as a node: the same device number by another path
    cards = (Card("/dev/zero", 0, "a", "", "", ""), Card("/dev/null", 1, "b", "", "", ""))
    other = entry(HostConfig={"Devices": [{"PathOnHost": str(tmp_path / "null")}]})
    (found,) = ask(Engines(docker=[other]), cards, here).found
    assert found.cards == {1}


def test_a_file_is_no_node(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    plain = entry(Mounts=[{"Type": "bind", "Source": str(tmp_path / "file")}, {"Type": "bind", "Source": ""}])
    assert ask(Engines(docker=[plain])).found == ()


def test_a_device_by_its_cdi_name_gives_every_card() -> None:
    by_cdi = entry(HostConfig={"DeviceRequests": [{"Driver": "cdi", "DeviceIDs": ["tenstorrent.com/chip=0"]}]})
    (found,) = ask(Engines(docker=[by_cdi])).found
    assert (found.cards, found.why) == (None, "device tenstorrent.com/chip=0")
    other = entry(HostConfig={"DeviceRequests": [{"Driver": "nvidia", "DeviceIDs": ["0"]}, {"DeviceIDs": None}]})
    assert ask(Engines(docker=[other])).found == ()


def test_no_engine_is_no_container_and_no_cards_are_no_question() -> None:
    told = ask(Engines())
    assert told == Containers(absent=("no docker here", "no podman here"))
    engines = Engines(docker=DOCKER)
    assert ask(engines, cards=()) == Containers()
    assert engines.calls == []


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            Answer(1, "", "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?\n"),
            "docker is installed, but its daemon does not answer (start it: systemctl start docker)",
        ),
        (
            Answer(1, "", "Got permission denied while trying to connect to the Docker daemon socket at unix:///x"),
            "docker may not be asked by this user (join its group, or run ttx as root)",
        ),
        (TimeoutError(), "docker did not answer within 10 s"),
        (PermissionError(13, "Permission denied"), "docker cannot be run: Permission denied"),
        (Answer(2, "", "\nboom\nmore\n"), "docker ps failed with exit 2: boom"),
        (Answer(2, "", ""), "docker ps failed with exit 2: it said nothing"),
    ],
)
def test_an_engine_that_does_not_tell_is_a_trouble(answer: Answer | Exception, sentence: str) -> None:
    told = ask(Engines(docker=answer))
    assert (told.found, told.troubles, told.absent) == ((), (sentence,), ("no podman here",))


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"Name": "x"}]', "[", '[{"Id": ""}]'])
def test_an_answer_that_is_not_understood_is_a_trouble(text: str) -> None:
    told = ask(Engines(docker=lambda argv: Answer(0, text if "inspect" in argv else "ab12\n", "")))
    assert told.troubles == ("docker inspect printed something else than a list of containers",)


def test_a_container_that_ends_meanwhile_is_looked_at_again() -> None:
    rounds = []

    def docker(argv: Sequence[str]) -> Answer:
        if "ps" in argv:
            rounds.append(0)
            return Answer(0, f"{DOCKER[1]['Id']}\n", "")
        if len(rounds) == 1:
            return Answer(1, "[]", f"Error: No such container: {DOCKER[1]['Id']}")
        return Answer(0, json.dumps(DOCKER[1:2]), "")

    told = ask(Engines(docker=docker))
    assert ([one.name for one in told.found], told.troubles, len(rounds)) == (["by-node"], (), 2)


def test_containers_that_come_and_go_without_end_are_a_trouble() -> None:
    engines = Engines(docker=lambda argv: Answer(int("inspect" in argv), "x\n", "Error: No such container: x"))
    assert ask(engines).troubles == ("docker's containers come and go too fast to be looked at",)
    assert len(engines.calls) == 7  # three rounds, and podman


def test_an_inspection_that_fails_is_a_trouble() -> None:
    engines = Engines(docker=lambda argv: Answer(int("inspect" in argv), "x\n", "rpc error"))
    assert ask(engines).troubles == ("docker inspect failed with exit 1: rpc error",)


def test_this_hosts_own_daemon_is_asked_wherever_docker_host_leads(tmp_path: Path) -> None:
    socket = tmp_path / "docker.sock"
    assert _docker_calls(socket, "ssh://elsewhere") == [["docker", "ps"]]  # not here, or we don't know where
    socket.write_text("")
    own = ["docker", "--host", f"unix://{socket}", "ps"]
    assert _docker_calls(socket, "") == [own]
    assert _docker_calls(socket, "ssh://elsewhere") == [own]
    assert _docker_calls(socket, f"unix://{socket}") == [own]
    assert _docker_calls(socket, "unix:///other.sock") == [own, ["docker", "--host", "unix:///other.sock", "ps"]]


def _docker_calls(socket: Path, at: str) -> list[list[str]]:
    engines = Engines(docker=[], podman=FileNotFoundError())
    ask(engines, socket=socket, at=at)
    return [call[: call.index("ps") + 1] for call in engines.calls if call[0] == "docker"]


def test_a_socket_without_a_program_is_a_trouble(tmp_path: Path) -> None:
    (tmp_path / "docker.sock").write_text("")
    told = ask(Engines(), socket=tmp_path / "docker.sock")
    assert told.absent == ("no podman here",)
    assert "no docker program on PATH" in told.troubles[0]


def test_commands_are_run_to_their_end_or_deadline() -> None:
    code = "import sys; sys.stdout.buffer.write(b'out\\xff'); sys.stderr.write('err'); sys.exit(3)"
    assert run_command([sys.executable, "-c", code], 30) == Answer(3, "out\ufffd", "err")
    with pytest.raises(FileNotFoundError):
        run_command(["/no/such/program"], 30)
    with pytest.raises(TimeoutError):
        run_command([sys.executable, "-c", "import time; time.sleep(60)"], 0.2)


def test_an_interrupt_at_the_terminal_does_not_reach_the_engines_program() -> None:
    answer = run_command([sys.executable, "-c", "import os; print(os.getpgid(0))"], 30)
    assert int(answer.out) != os.getpgid(0)
