"""Containers that are not ttx's and have a card, however they came to it: the card is not free."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from containers_kit import FIRST

from ttstack.host import holders as holders_module
from ttstack.host.cards import inventory
from ttstack.host.container_cards import LABEL
from ttstack.host.containers import Containers
from ttstack.host.process import alive, family, identify
from ttstack.run.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from containers_kit import Host

IMAGE = "ttstack/sim:0.1.0"
NAP = ("python3", "-c", "import time; time.sleep(600)")
OPEN = (
    "python3",
    "-c",
    "import os, time; node = os.open('/dev/card', os.O_RDWR); print('open', flush=True); time.sleep(600)",
)


class Foreign:
    """Containers of somebody else's; killed and removed at the end."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._ids: list[str] = []

    def start(self, *options: str, command: tuple[str, ...] = NAP) -> str:
        self._ids.append(self._host.engine("create", "--network", "none", *options, IMAGE, *command).split()[-1])
        self._host.engine("start", self._ids[-1])
        return self._ids[-1]

    def end(self) -> None:
        while self._ids:
            at_once = ("--time", "0") if self._host.runtime == "podman" else ()
            self._host.engine("rm", "--force", *at_once, self._ids.pop(), check=False)


@pytest.fixture
def foreign(any_host: Host) -> Iterator[Foreign]:
    made = Foreign(any_host)
    yield made
    made.end()


def _node(host: Host) -> str:
    return str(host.places.roots.dev / "tenstorrent" / "0")


@pytest.mark.parametrize("way", ["node", "another name", "/dev", "label"])
def test_a_container_with_a_card_makes_it_not_free(any_host: Host, foreign: Foreign, way: str) -> None:
    another = any_host.base / "another"
    os.mknod(another, stat.S_IFCHR | 0o666, Path(_node(any_host)).stat().st_rdev)
    options, both = {
        "node": (("--device", f"{_node(any_host)}:/dev/tenstorrent/0"), False),
        "another name": (("--device", f"{another}:/dev/other"), False),
        "/dev": (("--volume", "/dev:/host-dev:ro"), True),
        "label": (("--label", f"{LABEL}=0"), False),
    }[way]
    container = foreign.start(*options)
    assert any_host.slots() == ["open", "open" if both else "free"]
    refused = any_host.execute(any_host.arm(cards=FIRST))
    assert (refused.exit_code, refused.error.reason) == (3, "busy")  # type: ignore[union-attr]
    assert container[:12] in str(refused.error)
    foreign.end()
    assert any_host.clean()


def test_a_privileged_container_has_every_card(any_host: Host, foreign: Foreign) -> None:
    try:
        foreign.start("--privileged")
    except AssertionError as error:
        pytest.skip(f"no privileged container can be started here: {str(error).splitlines()[-1]}")
    assert any_host.slots() == ["open", "open"]


def test_its_process_is_found_by_the_nodes_number_where_no_driver_lists_it(any_host: Host, foreign: Foreign) -> None:
    """The container's node is another inode, of the same device."""
    roots = replace(any_host.places.roots, proc=Path("/proc"))
    cards = inventory(any_host.places.roots)
    container = foreign.start("--device", f"{_node(any_host)}:/dev/card", command=OPEN)
    assert wait_until(lambda: any_host.engine("logs", container) == "open\n", 20)
    leader = identify(int(any_host.engine("inspect", "--format", "{{.State.Pid}}", container)))
    assert leader is not None
    found = holders_module.holders(cards, roots, simulated=False, ask=lambda *_: Containers())
    first, second = (found[card.id] for card in cards)
    assert {holder.pid for holder in first.found} == {process.pid for process in family(leader)}
    assert not second.found
    foreign.end()
    assert wait_until(lambda: not alive(leader), 20)
    assert not holders_module.holders(cards, roots, simulated=False, ask=lambda *_: Containers())[cards[0].id].found
