from __future__ import annotations

import json
from pathlib import Path

import pytest

from ttstack.arm.flags import SIM
from ttstack.errors import UsageError
from ttstack.sim.faults import FAULTS, STEPS
from ttstack.sim.flags import FLAGS, parse

_PAGE = Path(__file__).parents[3] / "docs" / "reference" / "sim.md"


def test_defaults() -> None:
    settings = parse(["serve", "/m"], {})
    assert (settings.host, settings.port, settings.names) == ("127.0.0.1", 8000, ("/m",))
    assert (settings.max_model_len, settings.max_num_seqs, settings.max_batch, settings.block_size) == (
        None,
        32,
        32,
        64,
    )
    assert settings.prefix_caching
    assert settings.async_scheduling
    assert settings.given == {"model": "/m"}


def test_every_form_of_a_flag() -> None:
    config = json.dumps({"tt": {"trace_mode": "none"}})
    argv = [
        "serve",
        "/m",
        "--port=0",
        "--no-async-scheduling",
        "--no-enable-prefix-caching",
        "--served-model-name",
        "a",
    ]
    argv += ["--served-model-name=b", "--additional-config", config, "--enable-auto-tool-choice", "--middleware", "x"]
    argv += ["--middleware", "y", "--chat-template=-t", "--empty=", "--sim-token-ms", "0.5", "--no-enable-log-requests"]
    settings = parse(argv, {})
    assert settings.port == 0
    assert settings.names == ("a", "b")
    assert not settings.async_scheduling
    assert not settings.prefix_caching
    assert settings.tt == {"trace_mode": "none"}
    assert settings.timing.token_ms == 0.5
    assert settings.given == {
        "model": "/m",
        "port": 0,
        "async_scheduling": False,
        "enable_prefix_caching": False,
        "served_model_name": ["a", "b"],
        "additional_config": {"tt": {"trace_mode": "none"}},
        "enable_auto_tool_choice": True,
        "middleware": ["x", "y"],
        "chat_template": "-t",
        "empty": "",
        "enable_log_requests": False,
    }


def test_an_arm_can_ask_for_every_flag_of_the_simulation() -> None:
    kinds = {"number": {"float", "int"}, "count": {"int"}, "list": {"append"}}
    ours = {flag.name: flag.kind for flag in FLAGS if flag.name.startswith("sim-")}
    assert ours.keys() == SIM.keys()
    assert all(SIM[name] in kinds[kind] for name, kind in ours.items())


def test_batch_is_at_most_the_sequences() -> None:
    assert parse(["serve", "/m", "--max-num-seqs", "4", "--sim-max-batch", "9"], {}).max_batch == 4
    assert parse(["serve", "/m", "--max-num-seqs", "4", "--sim-max-batch", "2"], {}).max_batch == 2


def test_keys_are_not_shown() -> None:
    settings = parse(["serve", "/m", "--api-key", "secret"], {"VLLM_API_KEY": "other"})
    assert settings.api_keys == ("secret",)
    assert settings.given["api_key"] == "***"
    assert parse(["serve", "/m"], {"VLLM_API_KEY": "other"}).api_keys == ("other",)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "serve ROOT"),
        (["serve"], "serve ROOT"),
        (["serve", "--port", "1"], "serve ROOT"),
        (["bench", "/m"], "serve ROOT"),
        (["serve", "/m", "more"], "'more'"),
        (["serve", "/m", "-p", "1"], "'-p'"),
        (["serve", "/m", "--"], "'--'"),
        (["serve", "/m", "--port"], "--port: expected one argument"),
        (["serve", "/m", "--port", "x"], "--port: invalid int value: 'x'"),
        (["serve", "/m", "--port", "65536"], "65536 is not a port"),
        (["serve", "/m", "--port=-1"], "invalid int value"),
        (["serve", "/m", "--block-size", "0"], "--block-size: must be at least 1"),
        (["serve", "/m", "--sim-tokens-per-chunk", "0"], "must be at least 1"),
        (["serve", "/m", "--sim-token-ms=-1"], "--sim-token-ms"),
        (["serve", "/m", "--sim-boot-ms", "nan"], "--sim-boot-ms"),
        (["serve", "/m", "--sim-boot-ms", "soon"], "--sim-boot-ms"),
        (["serve", "/m", "--additional-config", "{"], "cannot be converted to JSON"),
        (["serve", "/m", "--additional-config", "[]"], "JSON object"),
        (["serve", "/m", "--additional-config", '{"tt":1}'], '"tt" must be a JSON object'),
        (["serve", "/m", "--enable-prefix-caching=yes"], "takes no value"),
        (["serve", "/m", "--no-seed"], "unrecognized argument: --no-seed"),
        (["serve", "/m", "--sim-fault", "dye:plugin"], "unknown fault 'dye'"),
        (["serve", "/m", "--sim-fault", "wrong-rot"], "did you mean wrong-root"),
        (["serve", "/m", "--sim-fault", "die"], "needs its STEP"),
        (["serve", "/m", "--sim-fault", "die:lunch"], "'lunch' is not a step of the boot"),
        (["serve", "/m", "--sim-fault", "die-serving:x"], "not a whole number"),
        (["serve", "/m", "--sim-fault", "missing-banner:"], "needs its TEXT"),
        (["serve", "/m", "--sim-fault", "no-stop:1"], "takes no argument"),
    ],
)
def test_bad_command_lines(words: list[str], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(words, {})
    assert told in str(caught.value)


def test_faults_may_be_repeated() -> None:
    argv = [
        "serve",
        "/m",
        *(word for text in ("die:kv", "missing-banner:a:b", "missing-banner:c") for word in ("--sim-fault", text)),
    ]
    faults = parse(argv, {}).faults
    assert faults.args("missing-banner") == ("a:b", "c")
    assert faults.args("die") == ("kv",)
    assert "no-stop" not in faults


def _table(heading: str) -> list[list[str]]:
    section = _PAGE.read_text().split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def test_the_page_has_every_flag() -> None:
    kinds = [[f"`--{flag.name}`", flag.kind, flag.default or "none", flag.meaning] for flag in FLAGS]
    assert _table("Flags") == kinds


def test_the_page_has_every_fault() -> None:
    faults = [[f"`{f.name}:{f.argument}`" if f.argument else f"`{f.name}`", f.effect] for f in FAULTS]
    assert _table("Faults") == faults


def test_the_page_has_every_step() -> None:
    assert ", ".join(f"`{step}`" for step in STEPS) in " ".join(_PAGE.read_text().split())
