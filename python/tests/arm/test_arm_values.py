from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from arm_kit import ARM, MODELS, PIN, load_text, make_shelf, problems_of

from ttstack.arm.digest import arm_digest, model_digest, pin_digest
from ttstack.arm.environment import resulting_env
from ttstack.arm.key import cache_key
from ttstack.arm.load import load

if TYPE_CHECKING:
    from pathlib import Path


def test_defaults(tmp_path: Path) -> None:
    arm = load_text(tmp_path, ARM).arm
    engine = arm.engine
    assert (engine.runtime, engine.host, engine.boot_timeout_s, engine.stop_grace_s) == (
        "docker",
        "127.0.0.1",
        5400,
        120,
    )
    assert (engine.args, engine.tt, engine.secrets, arm.env, arm.overlays) == ({}, {}, (), {}, ())
    assert (arm.expect.banners, arm.expect.served_root, arm.expect.max_model_len) == ((), "checkpoint", None)
    sim = ARM.replace('"vllm"', '"sim"').replace('"current"', '"bare"')
    assert load_text(tmp_path, sim).arm.engine.runtime == "process"


@pytest.mark.parametrize(("count", "mesh"), [(1, "P150"), (2, "P150x2"), (4, "P150x4"), (8, "P150x8")])
def test_the_mesh_follows_from_the_count(tmp_path: Path, count: int, mesh: str) -> None:
    assert load_text(tmp_path, ARM.replace("count = 2", f"count = {count}")).arm.cards.mesh == mesh


@pytest.mark.parametrize(
    ("mesh", "count"), [("P300", 2), ("(1,2)", 2), ("(2,2)", 4), ("P300x2", 4), ("T3K", 8), ("TG", 32), ("(3,1)", 3)]
)
def test_meshes_that_fit(tmp_path: Path, mesh: str, count: int) -> None:
    cards = load_text(tmp_path, ARM.replace("count = 2", f"count = {count}\nmesh = '{mesh}'")).arm.cards
    assert (cards.mesh, cards.count) == (mesh, count)


def test_the_count_follows_from_the_ids(tmp_path: Path) -> None:
    ids = "ids = ['0000:0A:00.0', '01234567890ABCDE', 'blackhole-1F', '0000:01:00.0']"
    cards = load_text(tmp_path, ARM.replace("count = 2", ids)).arm.cards
    assert cards.ids == ("0000:0a:00.0", "01234567890abcde", "blackhole-1f", "0000:01:00.0")
    assert (cards.count, cards.mesh) == (4, "P150x4")


def test_values_are_read_only_all_the_way_down(tmp_path: Path) -> None:
    args = load_text(tmp_path, ARM + "[engine.args]\nhf-overrides = { a = [1, { b = 2 }] }\n").arm.engine.args
    assert args == {"hf-overrides": {"a": (1, {"b": 2})}}
    with pytest.raises(TypeError):
        args["hf-overrides"]["a"] = 1  # type: ignore[index]
    with pytest.raises(TypeError):
        args["x"] = 1  # type: ignore[index]


def test_what_env_may_hold(tmp_path: Path) -> None:
    text = ARM + '[env]\n_A1 = "tab\\t, line\\nreturn\\r"\nB = ""\nARCH_NAME = "x"\n[env.weights]\nC = "%$\\u00fc"\n'
    arm = load_text(tmp_path, text).arm
    assert arm.env == {"_A1": "tab\t, line\nreturn\r", "B": "", "ARCH_NAME": "x"}
    assert arm.weights_env == {"C": "%$ü"}


def test_environment_in_three_groups(tmp_path: Path) -> None:
    asked = load_text(tmp_path, ARM)
    assert resulting_env(asked) == {
        "ARCH_NAME": "blackhole",
        "VLLM_PLUGINS": "tt,tt_model_registry",
        "VLLM_TARGET_DEVICE": "tt",
        "VLLM_USE_V2_MODEL_RUNNER": "0",
        "HF_HUB_OFFLINE": "1",
        "QWEN_SAFE": "1",
    }
    by_id = load_text(tmp_path, ARM.replace("qwen3.6-27b", "by-id"))
    assert resulting_env(by_id)["HF_HOME"] == "/hf"
    assert "HF_HUB_OFFLINE" not in resulting_env(by_id)
    process = replace(by_id, arm=replace(by_id.arm, engine=replace(by_id.arm.engine, runtime="process")))
    assert "HF_HOME" not in resulting_env(process)
    own = load_text(tmp_path, ARM + "[env]\nARCH_NAME = 'a'\nQWEN_SAFE = 'b'\n[env.weights]\nHF_HUB_OFFLINE = 'c'\n")
    assert [resulting_env(own)[name] for name in ("ARCH_NAME", "QWEN_SAFE", "HF_HUB_OFFLINE")] == ["a", "b", "c"]


def test_the_key_is_over_what_the_reference_lists(tmp_path: Path) -> None:
    text = ARM + "[env]\nQWEN_BF4 = '1'\nOTHER = '1'\n[env.weights]\nMINE = '2'\n"
    key = cache_key(load_text(tmp_path, text))
    assert key.inputs == {
        "version": 1,
        "model": "Qwen/Qwen3.6-27B",
        "revision": "local",
        "mesh": "P150x2",
        "dtype": "auto",
        "optimizations": "default",
        "format": "ttnn-0.81.1",
        "env": {"MINE": "2", "QWEN_BF4": "1", "QWEN_SAFE": "1"},
    }
    # sha256sum of the canonical JSON, made by hand from docs/reference/launch.md
    assert key.key == "998a8e9efaf3374a"


WEIGHT_CHANGES = {
    "mesh": ("count = 2", "count = 2\nmesh = '(2,1)'"),
    "dtype": ("port = 8000", "port = 8000\nargs.dtype = 'float16'"),
    "optimizations": ("port = 8000", "port = 8000\ntt.optimizations = 'accuracy'"),
    "model": ("qwen3.6-27b", "tiny"),
    "format": ("current", "other"),
    "env.weights": ("[cards]", "[env.weights]\nA = '1'\n[cards]"),
    "env that the model names": ("[cards]", "[env]\nQWEN_BF4 = '1'\n[cards]"),
    "the model's own, overridden": ("[cards]", "[env]\nQWEN_SAFE = '0'\n[cards]"),
}
OTHER_CHANGES = {
    "port": ("8000", "8001"),
    "flag": ("port = 8000", "port = 8000\nargs.max-model-len = 9"),
    "option": ("port = 8000", "port = 8000\ntt.trace_mode = 'none'"),
    "env": ("[cards]", "[env]\nA = '1'\n[cards]"),
    "runtime": ("port = 8000", "port = 8000\nruntime = 'podman'"),
    "host": ("port = 8000", "port = 8000\nhost = '0.0.0.0'"),
    "secret": ("port = 8000", "port = 8000\nsecrets = ['A']"),
    "boot": ("port = 8000", "port = 8000\nboot_timeout_s = 7"),
    "grace": ("port = 8000", "port = 8000\nstop_grace_s = 7"),
    "ids": ("count = 2", "ids = ['0000:01:00.0', '0000:02:00.0']"),
    "banner": ("[cards]", "[expect]\nbanners = ['a']\n[cards]"),
    "root": ("[cards]", "[expect]\nserved_root = 'a'\n[cards]"),
    "length": ("[cards]", "[expect]\nmax_model_len = 9\n[cards]"),
    "overlay": ("[cards]", "[[overlay]]\nsource = '.'\ntarget = 'a'\n[cards]"),
}


@pytest.mark.parametrize("name", [*WEIGHT_CHANGES, *OTHER_CHANGES])
def test_every_change_of_meaning_changes_the_digest_and_only_weights_change_the_key(tmp_path: Path, name: str) -> None:
    old, new = (WEIGHT_CHANGES | OTHER_CHANGES)[name]
    assert old in ARM
    shelf = make_shelf(tmp_path, a=ARM, b=ARM.replace(old, new, 1))
    (shelf.pins / "other.toml").write_text(PIN.replace("0.81.1", "0.82.0"))
    before, after = load("a", shelf), load("b", shelf)
    assert arm_digest(before) != arm_digest(after)
    assert (cache_key(before).key != cache_key(after).key) is (name in WEIGHT_CHANGES)


def test_order_comments_format_place_and_description_do_not_count(tmp_path: Path) -> None:
    shelf = make_shelf(
        tmp_path,
        a=ARM + "[engine.args]\nseed = 1\nwatermark = 1.0\n[[overlay]]\nsource = '.'\ntarget = 'a'\n",
        b='cards.count = 2 # two\ndescription = "b"\nmodel = \'qwen3.6-27b\'\npin = "current"\nschema = 1\n'
        '[[overlay]]\ntarget = "a"\nsource = "."\n'
        '[engine]\nhost = "127.0.0.1"\nport = 8_000\nkind = "vllm"\nargs = { watermark = 1, seed = 0x1 }\n',
    )
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    moved = make_shelf(elsewhere, c=(shelf.arms / "a.toml").read_text())
    assert arm_digest(load("a", shelf)) == arm_digest(load("b", shelf)) == arm_digest(load("c", moved))


def test_digests_of_pin_and_model(tmp_path: Path) -> None:
    change: dict[str, Any]
    asked = load_text(tmp_path, ARM)
    pin, model = asked.pin, asked.model
    assert pin_digest(replace(pin, name="n", description="d", file=tmp_path)) == pin_digest(pin)
    for change in (
        {"image": "a"},
        {"home": "/a"},
        {"wheel": None},
        {"tt_metal": "a"},
        {"vllm": "1"},
        {"plugin": "a"},
        {"cache_writes_by_rename": True},
        {"extra_flags": {"a": "int"}},
    ):
        assert pin_digest(replace(pin, **change)) != pin_digest(pin), change
    assert model_digest(replace(model, name="n", cache_gb=1, weights_env=model.weights_env[::-1])) == model_digest(
        model
    )
    for change in (
        {"hf": "a/b"},
        {"path": "/a"},
        {"revision": "a"},
        {"served_name": "a"},
        {"env": {}},
        {"weights_env": ()},
        {"weights_env_in_name": model.weights_env},
    ):
        assert model_digest(replace(model, **change)) != model_digest(model), change


def test_a_model_says_which_variables_go_into_names(tmp_path: Path) -> None:
    assert load_text(tmp_path, ARM).model.weights_env_in_name == ()
    models = MODELS.replace("[tiny]", 'weights_env_in_name = ["QWEN_BF4"]\n[tiny]')
    assert load_text(tmp_path, ARM, models=models).model.weights_env_in_name == ("QWEN_BF4",)


def test_a_models_path_is_relative_to_the_catalogue(tmp_path: Path) -> None:
    model = load_text(tmp_path, ARM.replace("qwen3.6-27b", "tiny")).model
    assert (model.path, model.root) == (str(tmp_path / "arms" / "tiny"),) * 2
    assert (model.served_name, model.revision) == ("tiny", "local")
    assert load_text(tmp_path, ARM, models=MODELS.replace('"/models/qwen"', "'../../m'")).model.path == str(
        tmp_path.parent / "m"
    )


FLAGS = "[engine.args]\nnew-flag = 3\n[engine.tt]\nnew_option = true\n"


def test_a_pin_extends_the_flags(tmp_path: Path) -> None:
    pin = PIN + '[extra-flags]\nnew-flag = "int"\n"tt.new_option" = "bool"\n'
    assert load_text(tmp_path, ARM + FLAGS, pin=pin).arm.engine.args == {"new-flag": 3}
    keys = [p.key for p in problems_of(tmp_path, ARM + FLAGS)]
    assert keys == ["engine.args.new-flag", "engine.tt.new_option"]
    (problem,) = problems_of(tmp_path, ARM + '[engine.args]\n"tt.new_option" = true\n', pin=pin)
    assert problem.key == 'engine.args."tt.new_option"'
    wrong = pin.replace('"int"', '"str"').replace('"bool"', '"int"')
    messages = [p.message for p in problems_of(tmp_path, ARM + FLAGS, pin=wrong)]
    assert messages == ["expected text, not the number 3", "expected an integer, not true"]


@pytest.mark.parametrize(
    "line",
    [
        "async-scheduling = false",
        "enable-prefix-caching = true",
        "disable-log-stats = true",
        "max-model-len = -1",
        "gpu-memory-utilization = 1",
        "watermark = 0.123456",
        "ignore-patterns = 'a'",
        "ignore-patterns = ['a']",
        "cudagraph-capture-sizes = [8]",
        "middleware = ['a', 'b']",
        "hf-overrides = { a = { b = [1, 2.5, true, 'x'] } }",
        'chat-template = "{{ x }}\\n"',
    ],
)
def test_flags_that_fit(tmp_path: Path, line: str) -> None:
    assert len(load_text(tmp_path, ARM + f"[engine.args]\n{line}\n").arm.engine.args) == 1


def test_the_simulated_engine_takes_its_own_flags_and_vllms(tmp_path: Path) -> None:
    args = "seed = 1\nsim-prefill-rate = 2.5\nsim-token-ms = 1\nsim-fault = ['a', 'b']\nsim-boot-ms = 1\n"
    sim = ARM.replace('"vllm"', '"sim"') + "[engine.args]\n"
    assert len(load_text(tmp_path, sim + args).arm.engine.args) == 5
    (problem,) = problems_of(tmp_path, sim + "sim-boot-ms = 1.5\n")
    assert problem.key == "engine.args.sim-boot-ms"


def test_engines_whose_flags_are_not_known_take_any_but_derived_ones(tmp_path: Path) -> None:
    asgi = ARM.replace('"vllm"', '"asgi"') + "[engine.args]\n"
    assert load_text(tmp_path, asgi + "anything = [1, 2]\n").arm.engine.args == {"anything": (1, 2)}
    found = problems_of(tmp_path, asgi + "port = 1\nAny_thing = 1\n")
    assert [(p.line, p.key) for p in found] == [(10, "engine.args.port"), (11, "engine.args.Any_thing")]
