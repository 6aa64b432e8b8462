"""Random arms, rendered by Python and by the NixOS module: the same arguments, and no loss in systemd's quoting.

Arms are built as objects, so that they can hold what no file of today does. A batch of them goes to one start of Nix.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from module_kit import LIB, ROOT, nix_eval

from ttstack.arm.flags import REFUSED
from ttstack.arm.mesh import MESHES
from ttstack.arm.types import Arm, Asked, Cards, Engine, Expect, Model, Overlay, Pin, Wheel
from ttstack.render.build import build_launch
from ttstack.render.cards import nominal_cards
from ttstack.render.compare import differences
from ttstack.render.systemd import command_line, parse_command_line
from ttstack.render.unit import exec_start

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.host

EXAMPLES = 100
BATCH = 25
DERIVED_ENV = {"MESH_DEVICE", "TT_VISIBLE_DEVICES", "TT_CACHE_PATH", "TT_METAL_CACHE"}

# What some layer between an arm and an engine reads as its own, and what an encoding may lose.
NASTY = [
    "", " ", "%", "%%", "%n", "100%", "$", "$$", "$HOME", "${HOME}", '"', "'", "`", "\\", "\\\\", "\\n", "\\x41",
    ";", "\\;", "#", "=", ",", "--", "-", "-1", "--flag", "\n", "\r\n", "\t", "\x01", "\x08\x0c\x1f", "\x7f", "ä",
    "漢字", "😀", "a b", "{}", "[]", "null", "true", "\u2028", "\ue000\U0001f600",
]  # fmt: skip


def _is_character(letter: str) -> bool:
    code = ord(letter)
    return code != 0 and not 0xFDD0 <= code <= 0xFDEF and code & 0xFFFE != 0xFFFE


letters = st.characters(exclude_categories=["Cs"]).filter(_is_character)
texts = st.lists(st.sampled_from(NASTY) | st.text(letters, max_size=6), max_size=3).map("".join)
some_texts = texts.filter(bool)
plain = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,8}", fullmatch=True)
paths = (
    st.lists(texts.filter(lambda t: "/" not in t), min_size=1, max_size=3)
    .map(lambda parts: "/" + "/".join(parts))
    .filter(lambda path: not any(c in ',"' or ord(c) < 0x20 or ord(c) == 0x7F for c in path))
)
integers = st.integers(-(2**63) + 1, 2**63 - 1)
# Numbers of at most six significant digits, as an arm may have them.
floats = st.builds(
    lambda digits, power: float(f"{digits}e{power}"),
    st.integers(-999999, 999999),
    st.integers(-9, 3) | st.integers(-30, 12),
)
scalars = texts | integers | floats
json_values = st.recursive(
    scalars | st.booleans(),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
tables = st.dictionaries(texts, json_values, max_size=3)
flag_names = st.from_regex(r"[a-z][a-z0-9-]{0,10}", fullmatch=True).filter(
    lambda name: name not in REFUSED and name != "dtype"
)
flag_values = scalars | st.booleans() | st.lists(scalars | st.booleans() | tables, max_size=3).map(tuple) | tables
variables = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(lambda name: name not in DERIVED_ENV)
environments = st.dictionaries(variables, texts, max_size=3)
digests = st.integers(0, 2**40).map("{:x}".format)


@st.composite
def asked(draw: st.DrawFn) -> Asked:
    """An arm that could be rendered, with its pin and its model."""
    mesh, count = draw(st.sampled_from([*MESHES.items(), ("(2,3)", 6), ("(1,2)", 2)]).filter(lambda pair: pair[1] <= 8))
    ids = draw(st.just(()) | st.lists(digests.map("blackhole-{}".format), min_size=count, max_size=count, unique=True))
    secrets = draw(st.lists(variables, max_size=2, unique=True))
    env, weights_env, model_env = draw(environments), draw(environments), draw(environments)
    taken = {*env, *weights_env, *model_env, "ARCH_NAME", "VLLM_PLUGINS", "HF_HOME", "HF_HUB_OFFLINE"}
    hf = draw(st.just("") | some_texts.filter(lambda text: not text.startswith("-")))
    path = draw(paths if not hf else st.just("") | paths)
    args = draw(st.dictionaries(flag_names, flag_values, max_size=4)) | draw(
        st.just({}) | texts.map(lambda text: {"dtype": text})
    )
    tt = draw(st.dictionaries(texts.filter(lambda t: t != "optimizations"), json_values, max_size=3)) | draw(
        st.just({}) | texts.map(lambda text: {"optimizations": text})
    )
    overlays = draw(st.dictionaries(plain, paths, max_size=2))
    name = draw(plain)
    return Asked(
        arm=Arm(
            name=name,
            file=Path("/arms/x.toml"),
            description="",
            pin="p",
            model="m",
            engine=Engine(
                kind="vllm",
                runtime="docker",
                port=draw(st.integers(1, 65535)),
                host=draw(st.sampled_from(["127.0.0.1", "0.0.0.0", "::1", "::", "10.1.2.3"])),  # noqa: S104 - rendered
                args=args,
                tt=tt,
                secrets=tuple(secret for secret in secrets if secret not in taken),
                boot_timeout_s=1,
                stop_grace_s=draw(st.integers(1, 3600)),
            ),
            cards=Cards(count=count, ids=tuple(ids), mesh=mesh),
            env=env,
            weights_env=weights_env,
            overlays=tuple(Overlay(Path(source), target) for target, source in overlays.items()),
            expect=Expect((), "checkpoint", None),
        ),
        pin=Pin(
            name="p",
            file=Path("/pins/p.toml"),
            description="",
            image=draw(
                st.from_regex(
                    r"[a-z0-9]{1,8}(/[a-z0-9]{1,8})?(:[a-z0-9.]{1,5})?(@sha256:[0-9a-f]{64})?", fullmatch=True
                )
            ),
            home=draw(paths),
            wheel=Wheel(draw(plain), draw(plain), "cp310", "0" * 64),
            tt_metal="",
            vllm="",
            plugin="",
            cache_writes_by_rename=True,
        ),
        model=Model(
            name="m",
            hf=hf,
            path=path,
            revision=draw(st.just("") | texts),
            served_name=draw(texts),
            cache_gb=1.0,
            env=model_env,
            weights_env=tuple(draw(st.lists(variables | st.sampled_from([*model_env, "ARCH_NAME"]), max_size=3))),
        ),
    )


def instance_of(asked: Asked) -> Mapping[str, Any]:
    """The same arm as the module's options say it; this table is the only thing that the two sides share."""
    arm, pin, model = asked.arm, asked.pin, asked.model
    return {
        "enable": True,
        "arm": arm.name,
        "image": pin.image,
        "metalHome": pin.home,
        "cacheFormat": pin.cache_format,
        "model": {
            "id": model.hf or None,
            "path": model.path or None,
            "revision": model.revision,
            "servedName": model.served_name,
            "environment": model.env,
            "weightsVariables": model.weights_env,
        },
        "settings": arm.engine.args,
        "tt": arm.engine.tt,
        "mesh": arm.cards.mesh,
        "cards": {"count": arm.cards.count, "ids": arm.cards.ids},
        "environment": arm.env,
        "weightsEnvironment": arm.weights_env,
        "secrets": arm.engine.secrets,
        "environmentFile": "/run/x",
        "overlays": [{"source": str(overlay.source), "target": overlay.target} for overlay in arm.overlays],
        "address": arm.engine.host,
        "port": arm.engine.port,
        "stopGraceSec": arm.engine.stop_grace_s,
    }


EXPRESSION = """
{ file, harness, lib, module }:
let
  evaluate = import (/. + harness) { lib = import (/. + lib); };
  one = instance:
    let
      result = evaluate [ (/. + module) { services.tenstorrent-serving.instances.i = instance; } ];
    in
    {
      inherit (result) failing;
      start = result.config.systemd.services.tenstorrent-serving-i.serviceConfig.ExecStart;
    };
in
map one (builtins.fromJSON (builtins.readFile file))
"""


def by_module(arms: list[Asked], file: Path) -> list[dict[str, Any]]:
    file.write_text(json.dumps([instance_of(arm) for arm in arms]), encoding="utf-8")
    results: list[dict[str, Any]] = nix_eval(
        EXPRESSION,
        file=str(file),
        harness=str(ROOT / "checks/eval/harness.nix"),
        lib=str(LIB),
        module=str(ROOT / "modules/tenstorrent-serving.nix"),
    )
    return results


def drawn(count: int) -> list[Asked]:
    """Draw arms one by one: a list of them would be one huge example, and slow."""
    arms: list[Asked] = []

    @settings(max_examples=count, deadline=None, database=None, phases=[Phase.generate])
    @given(asked())
    def collect(arm: Asked) -> None:
        arms.append(arm)

    collect()
    return arms


def test_the_module_renders_what_python_renders(tmp_path: Path) -> None:
    arms = drawn(EXAMPLES)
    for at in range(0, len(arms), BATCH):
        batch = arms[at : at + BATCH]
        for arm, unit in zip(batch, by_module(batch, tmp_path / "arms.json"), strict=True):
            assert unit["failing"] == [], arm
            expected = exec_start(build_launch(arm, nominal_cards(arm)))
            found = parse_command_line(unit["start"])
            assert differences(expected, found) == [], arm
            assert found[1:] == expected[1:], arm
            # and both quotings are read back to the same arguments
            assert parse_command_line(command_line(found)) == found, arm
    assert len(arms) >= EXAMPLES // 2, "hypothesis found few arms: the strategies refuse too much"
