"""Every bad input: which file, which line, which key, what is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from arm_kit import ARM, in_section, load_text, problems_of
from hypothesis import given, settings
from hypothesis import strategies as st

from ttstack.arm.errors import ArmFileError

if TYPE_CHECKING:
    from pathlib import Path

    from ttstack.errors import Problem

E = "engine"
A = "engine.args"
T = "engine.tt"
C = "cards"
X = "expect"
W = "env.weights"

# section, line, key, message, hint (parts of them)
LINES = [
    # unknown keys, at every level
    ("", 'pinn = "x"', "pinn", "unknown key", "did you mean pin"),
    (E, "prt = 1", "engine.prt", "unknown key", "did you mean port"),
    (C, "cuont = 1", "cards.cuont", "unknown key", "did you mean count"),
    (X, "max-model-len = 4", "expect.max-model-len", "unknown key", "did you mean max_model_len"),
    ("zzzzzz", "", "zzzzzz", "unknown key", "known: schema, description, extends"),
    # flags
    (A, "max_model_length = 4", "engine.args.max_model_length", "unknown flag", "did you mean max-model-len"),
    (A, "max_model_len = 4", "engine.args.max_model_len", "unknown flag", "did you mean max-model-len"),
    (A, "sim-token-ms = 4", "engine.args.sim-token-ms", "unknown flag of vllm serve", ""),
    (A, "max-model-len = '4'", "engine.args.max-model-len", "expected an integer, not the text '4'", ""),
    (A, "max-model-len = 4.0", "engine.args.max-model-len", "expected an integer, not the number 4.0", ""),
    (A, "max-num-seqs = true", "engine.args.max-num-seqs", "expected an integer, not true", ""),
    (A, "enforce-eager = 1", "engine.args.enforce-eager", "expected true or false", ""),
    (A, "disable-log-stats = false", "engine.args.disable-log-stats", "no negative form", ""),
    (A, "dtype = 1", "engine.args.dtype", "expected text", ""),
    (A, "gpu-memory-utilization = '1'", "engine.args.gpu-memory-utilization", "expected a number", ""),
    (A, "hf-overrides = '{}'", "engine.args.hf-overrides", "expected a table", ""),
    (A, "ignore-patterns = ['a', 'b']", "engine.args.ignore-patterns", "only the last", ""),
    (A, "middleware = [1]", "engine.args.middleware", "expected text or a list of texts", ""),
    (A, "port = 1", "engine.args.port", "may not be set here", "engine.port"),
    (A, "host = 'x'", "engine.args.host", "may not be set here", "engine.host"),
    (A, "served-model-name = 'x'", "engine.args.served-model-name", "may not be set here", "models.toml"),
    (A, "revision = 'x'", "engine.args.revision", "may not be set here", "models.toml"),
    (A, "additional-config = {}", "engine.args.additional-config", "may not be set here", "engine.tt"),
    (A, "model = 'x'", "engine.args.model", "may not be set here", "model"),
    (A, "api-key = 'x'", "engine.args.api-key", "may not be set here", "engine.secrets"),
    (A, "hf-token = 'x'", "engine.args.hf-token", "may not be set here", "engine.secrets"),
    (A, "uds = '/x'", "engine.args.uds", "may not be set here", "engine.port"),
    (A, "config = 'x.yaml'", "engine.args.config", "may not be set here", "hide"),
    # values that have no exact form
    (A, "watermark = 0.1234567", "engine.args.watermark", "more than 6 significant digits", "write 0.123457"),
    (A, "watermark = nan", "engine.args.watermark", "not a number that JSON carries", ""),
    (A, "watermark = -inf", "engine.args.watermark", "not a number that JSON carries", ""),
    (A, "seed = 9007199254740993", "engine.args.seed", "2**53", ""),
    (A, "dtype = 'a\x7fb'", "", "is not TOML", ""),
    (A, 'dtype = "a\\u007fb"', "engine.args.dtype", "control character '\\x7f'", ""),
    (
        A,
        "hf-overrides = { a = [1, { b = 1979-05-27 }] }",
        "engine.args.hf-overrides.a[1].b",
        "the date or time",
        '"1979',
    ),
    (A, "hf-overrides = { a.b = inf }", "engine.args.hf-overrides.a.b", "not a number that JSON carries", ""),
    (A, 'hf-overrides = { "a\\u0001" = 1 }', 'engine.args.hf-overrides."a\x01"', "control character", ""),
    (E, "port2 = 07:32:00", "engine.port2", "unknown key", "did you mean port"),
    # the plugin's options
    (T, "trace_modes = 'all'", "engine.tt.trace_modes", "unknown option", "did you mean trace_mode"),
    (T, "trace_mode = 'some'", "engine.tt.trace_mode", "one of all, decode_only, none", ""),
    (T, "fabric_config = 'fabric_1d'", "engine.tt.fabric_config", "expected one of", "did you mean FABRIC_1D"),
    (T, "trace_region_size = '1'", "engine.tt.trace_region_size", "expected an integer", ""),
    (T, "enable_model_warmup = 'no'", "engine.tt.enable_model_warmup", "expected true or false", ""),
    # the engine's own keys
    (E, "runtime = 'dockr'", "engine.runtime", "one of docker, podman, process", "did you mean docker"),
    (E, "host = 'a b'", "engine.host", "an address", ""),
    (E, "host = 1", "engine.host", "not the number 1", ""),
    (E, "boot_timeout_s = 0", "engine.boot_timeout_s", "an integer from 1 to 86400", ""),
    (E, "stop_grace_s = 1.5", "engine.stop_grace_s", "an integer from 1 to 3600", ""),
    (E, "stop_grace_s = true", "engine.stop_grace_s", "not true", ""),
    (E, "secrets = 'HF_TOKEN'", "engine.secrets", "names of environment variables", ""),
    (E, "secrets = [1]", "engine.secrets[0]", "expected text", ""),
    (E, "secrets = ['A', 'A-B']", "engine.secrets[1]", "names of environment variables", ""),
    (E, "secrets = ['MESH_DEVICE']", "engine.secrets[0]", "may not be passed on", "cards.mesh"),
    # cards
    (C, "mesh = 'P150X2'", "cards.mesh", "unknown mesh 'P150X2' (case matters)", "did you mean P150x2"),
    (C, "mesh = 'P150'", "cards.mesh", "the mesh P150 has 1 card, but the arm asks for 2", "the mesh of 2 is P150x2"),
    (C, "mesh = '(2,2)'", "cards.mesh", "has 4 cards, but the arm asks for 2", ""),
    (C, "mesh = '(1, 2)'", "cards.mesh", "unknown mesh", "(1,2)"),
    (C, "mesh = '(1,2)x'", "cards.mesh", "unknown mesh", ""),
    (C, "mesh = '(0,2)'", "cards.mesh", "unknown mesh", ""),
    (C, "mesh = 2", "cards.mesh", "expected text", ""),
    (C, "ids = ['0000:01:00.0']", "cards.ids", "1 ids, but cards.count is 2", ""),
    (C, "ids = []", "cards.ids", "0 ids, but cards.count is 2", ""),
    (C, "ids = ['0000:01:00.0', '0000:01:00.0']", "cards.ids[1]", "two cards that are one", ""),
    (C, "ids = ['0000:0a:00.0', '0000:0A:00.0']", "cards.ids[1]", "two cards that are one", ""),
    (C, "ids = ['01:00.0', '0000:01:00.0']", "cards.ids[0]", "expected BDF (0000:01:00.0), serial", ""),
    (C, "ids = ['/dev/tenstorrent/0', 'blackhole-1f']", "cards.ids[0]", "udev's name", ""),
    # environment
    ("env", "A = 1", "env.A", "expected text, not the number 1", 'write it in quotes: "1"'),
    ("env", "A = true", "env.A", "expected text, not true", 'write it in quotes: "true"'),
    ("env", "A = {}", "env.A", "expected text, not a table", ""),
    ("env", "A-B = 'x'", "env.A-B", "not a name that an environment variable can have", ""),
    ("env", "1A = 'x'", "env.1A", "not a name", ""),
    ("env", 'A = "x\\u0000"', "env.A", "control character", ""),
    ("env", "MESH_DEVICE = 'P150x2'", "env.MESH_DEVICE", "may not be set here", "cards.mesh"),
    ("env", "TT_VISIBLE_DEVICES = '0'", "env.TT_VISIBLE_DEVICES", "may not be set here", "cards.count"),
    ("env", "TT_METAL_VISIBLE_DEVICES = '0'", "env.TT_METAL_VISIBLE_DEVICES", "may not be set here", ""),
    ("env", "TT_CACHE_PATH = '/x'", "env.TT_CACHE_PATH", "may not be set here", "cache key"),
    (W, "TT_METAL_CACHE = '/x'", "env.weights.TT_METAL_CACHE", "may not be set here", ""),
    (W, "HF_TOKEN = 'x'", "env.weights.HF_TOKEN", "secret", "engine.secrets"),
    (W, "A = 2.5", "env.weights.A", "expected text", 'write it in quotes: "2.5"'),
    ("env", "weights = 'x'", "env.weights", "expected a table", ""),
    # expectations
    (X, "banners = 'x'", "expect.banners", "expected a list of texts", ""),
    (X, "banners = ['ok', 're:(']", "expect.banners[1]", "not a regular expression", ""),
    (X, "banners = ['re:']", "expect.banners[0]", "is empty", ""),
    (X, "max_model_len = 0", "expect.max_model_len", "an integer from 1", ""),
    (X, "served_root = 1", "expect.served_root", "expected text", ""),
    # names of other files
    ("", "extends = 3", "extends", "expected text, not the number 3", ""),
    ("", "extends = ''", "extends", "unknown arm ''", ""),
    ("", "extends = 'prodd'", "extends", "unknown arm 'prodd'", ""),
    ("", "extends = 'models'", "extends", "unknown arm 'models'", ""),
    ("", "extends = './none.toml'", "extends", "unknown arm './none.toml'", ""),
]


@pytest.mark.parametrize("row", LINES, ids=[row[1] or row[0] for row in LINES])
def test_one_bad_line(tmp_path: Path, row: tuple[str, str, str, str, str]) -> None:
    section, line, key, message, hint = row
    text = in_section(section, line)
    at = text.split("\n").index(line or f"[{section}]") + 1
    found = problems_of(tmp_path, text)
    assert [(p.file, p.line, p.key) for p in found] == [(tmp_path / "arms" / "x.toml", at, key)], found
    assert message in found[0].message
    assert hint in found[0].hint
    assert bool(found[0].hint) >= bool(hint)


def test_the_good_arm_is_good(tmp_path: Path) -> None:
    assert load_text(tmp_path, ARM).arm.cards.mesh == "P150x2"


toml_values = st.recursive(
    st.sampled_from(["1", "-1", "2.5", "true", "'x'", "''", "1979-05-27", "nan", "'re:('"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2).map(lambda items: f"[{', '.join(items)}]"),
        st.lists(inner, max_size=2).map(
            lambda items: "{" + ", ".join(f"{name} = {item}" for name, item in zip("ab", items, strict=False)) + "}"
        ),
    ),
    max_leaves=4,
)
KEYS = """
schema pin model description extends engine engine.kind engine.runtime engine.port engine.host engine.args
engine.args.dtype engine.args.seed engine.tt engine.tt.trace_mode engine.secrets cards cards.count cards.ids
cards.mesh env env.weights env.A overlay expect expect.banners expect.max_model_len expect.served_root
""".split()  # noqa: SIM905 - a list of one per line says no more


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), toml_values, min_size=1, max_size=6))
def test_whatever_stands_in_a_file_is_a_problem_and_not_a_crash(
    tmp_path_factory: pytest.TempPathFactory, pairs: dict[str, str]
) -> None:
    folder = tmp_path_factory.getbasetemp() / "fuzz"
    folder.mkdir(exist_ok=True)
    # what is not drawn is good, so that one bad value at a time is seen as well
    good = {"schema": "1", "pin": "'current'", "model": "'tiny'", "engine.kind": "'vllm'", "engine.port": "1"}
    good["cards.count"] = "1"
    whole = {key for key in pairs if any(other.startswith(f"{key}.") for other in pairs | good)}
    lines = {**good, **pairs}
    kept = {key: value for key, value in lines.items() if not any(key.startswith(f"{name}.") for name in whole)}
    text = "".join(f"{key} = {value}\n" for key, value in kept.items())
    problems: tuple[Problem, ...] = ()
    try:
        load_text(folder, text)
    except ArmFileError as error:
        problems = error.problems
    assert all(problem.message and problem.line and "\n" not in str(problem) for problem in problems)
