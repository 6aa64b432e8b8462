"""docs/reference/launch.md, sentence by sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from render_asked import CARDS, PROD, as_process, with_arm, with_cards, with_engine, with_model

from ttstack.arm.key import cache_key
from ttstack.arm.types import Overlay
from ttstack.render.build import build_launch, engine_argv, flags
from ttstack.render.cards import choose_cards, nominal_cards
from ttstack.render.errors import RenderError
from ttstack.render.launch import Device, Mount, Port

if TYPE_CHECKING:
    from ttstack.arm.types import Value

KEY = cache_key(PROD).key


def flag(value: Value) -> tuple[str, ...]:
    words = flags(with_engine(args={"aa": value}, tt={}))
    return words[: words.index("--host")]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, ("--aa",)),
        (False, ("--no-aa",)),
        ("x y", ("--aa", "x y")),
        ("", ("--aa=",)),
        ("-x", ("--aa=-x",)),
        ("--x", ("--aa=--x",)),
        (7, ("--aa", "7")),
        (1.0, ("--aa", "1")),
        (0.9, ("--aa", "0.9")),
        (-1, ("--aa=-1",)),
        (("a", 1, "-b", ""), ("--aa", "a", "--aa", "1", "--aa=-b", "--aa=")),
        ((True, {"b": 1}), ("--aa", "true", "--aa", '{"b":1}')),
        ((), ()),
        ({}, ("--aa", "{}")),
        ({"ü": "é", "b": (1, 2.5), "a": False}, ("--aa", '{"a":false,"b":[1,2.5],"ü":"é"}')),
    ],
)
def test_a_value_becomes_words(value: Value, words: tuple[str, ...]) -> None:
    assert flag(value) == words


def test_flags_are_sorted_bytewise_together_with_the_derived_ones() -> None:
    words = flags(with_engine(args={"zz": 1, "Z": 1, "portable": 1, "é": 1}, tt={}))
    assert [word for word in words if word.startswith("--")] == [
        *("--Z", "--host", "--port", "--portable", "--served-model-name", "--zz", "--é")
    ]


@pytest.mark.parametrize("name", ["host", "port", "served-model-name", "revision", "additional-config"])
def test_a_derived_flag_may_not_be_set(name: str) -> None:
    with pytest.raises(RenderError, match=rf"engine\.args\.{name} is derived"):
        flags(with_engine(args={name: "x"}, tt={}))


def test_revision_only_with_a_hugging_face_id() -> None:
    assert "--revision" not in flags(PROD)
    by_id = with_model(path="")
    words = flags(by_id)
    assert words[words.index("--revision") + 1] == "0123abcd"
    assert "--revision" not in flags(with_model(path="", revision=""))
    assert engine_argv(by_id)[:3] == ("vllm", "serve", "Qwen/Qwen3.6-27B")


def test_the_host_is_all_addresses_in_a_container_and_the_arms_in_a_process() -> None:
    container, process = flags(PROD), flags(as_process())
    assert container[container.index("--host") + 1] == "0.0.0.0"  # noqa: S104 - what the page says
    assert process[process.index("--host") + 1] == "127.0.0.1"


def test_programs_by_kind() -> None:
    assert engine_argv(with_engine(kind="sim"))[:2] == ("ttx-sim", "serve")
    assert engine_argv(PROD, ("py", "-m", "x"))[:5] == ("py", "-m", "x", "serve", PROD.model.path)
    with pytest.raises(RenderError, match="'asgi' is started is not known"):
        engine_argv(with_engine(kind="asgi"))
    with pytest.raises(RenderError, match="neither a path nor"):
        engine_argv(with_model(path="", hf=""))


def test_environment_groups() -> None:
    asked = with_arm(with_model(env={"A": "model", "B": "model"}), env={"B": "arm", "C": "arm"}, weights_env={"C": "w"})
    env = build_launch(asked, nominal_cards(asked)).env
    assert (env["A"], env["B"], env["C"]) == ("model", "arm", "w")
    derived = {"MESH_DEVICE": "P150x2", "TT_VISIBLE_DEVICES": "0,1", "TT_CACHE_PATH": "/cache/tensors"}
    assert derived.items() <= env.items()
    assert env["TT_METAL_CACHE"] == "/cache/jit"


@pytest.mark.parametrize("name", ["MESH_DEVICE", "TT_VISIBLE_DEVICES", "TT_CACHE_PATH", "TT_METAL_CACHE"])
def test_a_derived_variable_may_not_be_set(name: str) -> None:
    for asked in (with_arm(env={name: "x"}), with_arm(weights_env={name: "x"}), with_model(env={name: "x"})):
        with pytest.raises(RenderError, match=f"{name} is derived"):
            build_launch(asked, nominal_cards(asked))


def test_mounts_of_a_model_with_a_path() -> None:
    launch = build_launch(PROD, nominal_cards(PROD), hugepages=True)
    assert launch.mounts == (
        Mount("/srv/models/qwen3.6-27b", "/srv/models/qwen3.6-27b", read_only=True),
        Mount(f"/var/cache/tenstorrent/{KEY}", "/cache/tensors", read_only=False),
        Mount("/var/cache/tenstorrent/jit/prod-ttnn-0.81.1", "/cache/jit", read_only=False),
        Mount("/dev/hugepages-1G", "/dev/hugepages-1G", read_only=False),
        Mount("/srv/src/qwen36", "/opt/tt-metal/models/demos/qwen36", read_only=True),
    )
    assert (launch.cache_key, launch.cache_dir) == (KEY, f"/var/cache/tenstorrent/{KEY}")


def test_mounts_of_a_model_without_a_path() -> None:
    asked = with_model(path="")
    launch = build_launch(asked, nominal_cards(asked), cache_root="/big")
    assert launch.mounts[0] == Mount("/var/lib/tenstorrent/hf", "/hf", read_only=False)
    assert launch.mounts[1].source.startswith("/big/")
    assert launch.env["HF_HOME"] == "/hf"
    assert all("hugepages" not in mount.source for mount in launch.mounts)


def test_overlays_keep_the_arms_order() -> None:
    overlays = (Overlay(Path("/z"), "b"), Overlay(Path("/a"), "a"))
    launch = build_launch(with_arm(overlays=overlays), nominal_cards(PROD))
    assert [mount.source for mount in launch.mounts[-2:]] == ["/z", "/a"]


def test_labels() -> None:
    launch = build_launch(PROD, CARDS, run_id="r1", slots=("s1", "s2"))
    assert launch.labels == {
        "org.tenstorrent.tt-model.devices": "1,0",
        "ttstack.arm": "prod",
        "ttstack.cache": KEY,
        "ttstack.run": "r1",
        "ttstack.slots": "s1,s2",
    }
    assert sorted(build_launch(PROD, CARDS).labels)[1:] == ["ttstack.arm", "ttstack.cache"]


def test_a_numbered_node_keeps_its_number_and_any_other_gets_its_position() -> None:
    assert build_launch(PROD, CARDS).devices == (
        Device("/dev/tenstorrent/1", "/dev/tenstorrent/1"),
        Device("/dev/tenstorrent/0", "/dev/tenstorrent/0"),
    )
    named = with_cards(2, ("blackhole-b2", "blackhole-a1"))
    launch = build_launch(named, nominal_cards(named))
    assert launch.devices == (
        Device("/dev/tenstorrent/by-id/blackhole-b2", "/dev/tenstorrent/0"),
        Device("/dev/tenstorrent/by-id/blackhole-a1", "/dev/tenstorrent/1"),
    )
    assert "org.tenstorrent.tt-model.devices" not in launch.labels


def test_two_nodes_with_one_target_are_refused() -> None:
    cards = (replace(CARDS[0], node="/elsewhere/0"), CARDS[1])
    with pytest.raises(RenderError, match="would both be /dev/tenstorrent/0"):
        build_launch(PROD, cards)


def test_the_port_is_published_where_the_arm_says() -> None:
    assert build_launch(PROD, CARDS).ports == (Port("127.0.0.1", 8000, 8000),)


def test_a_launch_takes_as_many_cards_as_the_arm() -> None:
    with pytest.raises(RenderError, match=r"takes 2 card\(s\), not 1"):
        build_launch(PROD, CARDS[:1])


def test_a_process_sees_the_host() -> None:
    asked = as_process(with_cards(1, (CARDS[0].bdf,)))
    launch = build_launch(asked, choose_cards(asked, CARDS), hugepages=True, cache_root="/c")
    key = cache_key(asked).key
    assert launch.env["TT_VISIBLE_DEVICES"] == "1"
    assert (launch.cache_dir, launch.cache_path, launch.env["TT_CACHE_PATH"]) == (f"/c/{key}",) * 3
    assert launch.env["TT_METAL_CACHE"] == "/c/jit/prod-ttnn-0.81.1"
    assert launch.devices == (Device("/dev/tenstorrent/1", "/dev/tenstorrent/1"),)
    assert (launch.image, launch.mounts) == ("", ())


def test_a_process_on_real_cards_names_them_by_bdf() -> None:
    asked = with_engine(as_process(with_cards(1, (CARDS[1].serial,))), kind="vllm")
    assert build_launch(asked, choose_cards(asked, CARDS)).env["TT_VISIBLE_DEVICES"] == "0000:41:00.0"
    assert build_launch(asked, nominal_cards(with_cards(1))).env["TT_VISIBLE_DEVICES"] == "0"


def test_a_process_can_have_no_overlays_and_no_unknown_numbers() -> None:
    with pytest.raises(RenderError, match="overlays need a container"):
        build_launch(with_engine(runtime="process"), CARDS)
    asked = as_process(with_cards(1, ("blackhole-a1",)))
    with pytest.raises(RenderError, match="needs the cards' numbers"):
        build_launch(asked, nominal_cards(asked))


# Cards


def test_nominal_cards() -> None:
    assert [card.node for card in nominal_cards(PROD)] == ["/dev/tenstorrent/0", "/dev/tenstorrent/1"]
    named = nominal_cards(with_cards(1, ("blackhole-0b1a",)))
    assert [(card.node, card.asic_id) for card in named] == [("/dev/tenstorrent/by-id/blackhole-0b1a", "0b1a")]


@pytest.mark.parametrize("name", ["0000:01:00.0", "01:00.0", "0000036110007711"])
def test_nominal_cards_do_not_know_bdf_and_serial(name: str) -> None:
    with pytest.raises(RenderError, match="on its host only") as caught:
        nominal_cards(with_cards(1, (name,)))
    assert "--here" in caught.value.hint


@pytest.mark.parametrize(
    "name",
    [*("0000:41:00.0", "41:00.0", "0000036110007722", "blackhole-0b1a5000000000b2", "0B1A5000000000B2")],
)
def test_cards_are_found_by_each_of_their_names(name: str) -> None:
    assert choose_cards(with_cards(1, (name,)), CARDS) == (CARDS[1],)


def test_chosen_cards_keep_the_arms_order_or_else_the_hosts() -> None:
    ids = ("0000036110007722", "0000:01:00.0")
    assert choose_cards(with_cards(2, ids), CARDS) == (CARDS[1], CARDS[0])
    assert choose_cards(PROD, CARDS) == CARDS
    assert choose_cards(with_cards(1), CARDS) == CARDS[:1]


def test_two_cards_that_are_one() -> None:
    with pytest.raises(RenderError, match=r"two cards that are one: '0000:41:00\.0' and 'blackhole-0b1a5000000000b2'"):
        choose_cards(with_cards(2, ("0000:41:00.0", "blackhole-0b1a5000000000b2")), CARDS)
    with pytest.raises(RenderError, match="two cards that are one"):
        nominal_cards(with_cards(2, ("blackhole-0B1A", "blackhole-0b1a")))


def test_unknown_and_too_few_cards_say_what_is_there() -> None:
    with pytest.raises(RenderError, match=r"no card '0000:99:00\.0' here") as caught:
        choose_cards(with_cards(1, ("0000:99:00.0",)), CARDS)
    assert "0000:41:00.0" in caught.value.hint
    with pytest.raises(RenderError, match="wants 3 of the cards here, and there are 2"):
        choose_cards(with_cards(3), CARDS)
    with pytest.raises(RenderError, match="there are 0") as caught:
        choose_cards(with_cards(1), ())
    assert caught.value.hint == "there are no cards here"


def test_an_empty_name_of_a_card_finds_nothing() -> None:
    silent = (replace(CARDS[0], serial="", asic_id=""),)
    with pytest.raises(RenderError, match="no card ''"):
        choose_cards(with_cards(1, ("",)), silent)


def test_a_name_that_fits_two_cards_is_refused() -> None:
    twins = (CARDS[0], replace(CARDS[1], asic_id=CARDS[0].asic_id))
    with pytest.raises(RenderError, match=r"could be 0000:01:00\.0 or 0000:41:00\.0"):
        choose_cards(with_cards(1, (f"blackhole-{CARDS[0].asic_id}",)), twins)


def test_the_count_must_fit_the_ids() -> None:
    for choose in (nominal_cards, lambda asked: choose_cards(asked, CARDS)):
        with pytest.raises(RenderError, match=r"cards\.count is 2, but 1"):
            choose(with_cards(2, ("blackhole-0b1a5000000000a1",)))


@pytest.mark.parametrize("needed", [(False, False), (False, True), (True, True)])
def test_cards_that_need_hugepages_get_them_unless_told_otherwise(needed: tuple[bool, bool]) -> None:
    cards = [replace(card, hugepages_needed=flag) for card, flag in zip(CARDS, needed, strict=True)]
    hugepages = Mount("/dev/hugepages-1G", "/dev/hugepages-1G", read_only=False)
    assert (hugepages in build_launch(PROD, cards).mounts) == any(needed)
    assert hugepages in build_launch(PROD, cards, hugepages=True).mounts
    assert hugepages not in build_launch(PROD, cards, hugepages=False).mounts
