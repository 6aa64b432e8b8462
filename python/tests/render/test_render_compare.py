"""The difference of two commands: empty exactly for equal ones, and it names what parts them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from render_asked import PROD

from ttstack.render.build import build_launch
from ttstack.render.cards import nominal_cards
from ttstack.render.compare import differences
from ttstack.render.docker import docker_argv

ARGV = docker_argv(build_launch(PROD, nominal_cards(PROD), hugepages=True), "unit", "/usr/bin/docker")
CONFIG = '{"tt":{"fabric_config":"FABRIC_1D","trace_mode":"all","trace_region_size":900000000}}'


def replaced(old: str, new: str) -> list[str]:
    assert ARGV.count(old) == 1
    return [new if word == old else word for word in ARGV]


def removed(option: str, value: str) -> list[str]:
    at = next(at for at in range(len(ARGV)) if ARGV[at : at + 2] == (option, value))
    return [*ARGV[:at], *ARGV[at + 2 :]]


def test_equal_apart_from_the_programs_folder() -> None:
    assert differences(ARGV, list(ARGV)) == []
    assert differences(ARGV, ("/nix/store/x-docker/bin/docker", *ARGV[1:])) == []
    assert differences((), ()) == []


@pytest.mark.parametrize(
    ("found", "sentences"),
    [
        (removed("--env", "QWEN_FUSED=1"), ['--env QWEN_FUSED: arm has "1", unit has nothing']),
        (replaced("QWEN_FUSED=1", "QWEN_FUSED=2"), ['--env QWEN_FUSED: arm "1", unit "2"']),
        (replaced("QWEN_FUSED=1", "QWEN_FUSED"), ['--env QWEN_FUSED: arm has "1", unit has it without a value']),
        (replaced("HF_TOKEN", "HF_TOKEN=x"), ['--env HF_TOKEN: arm has it without a value, unit has "x"']),
        (replaced("32", "16"), ['engine flag --max-num-seqs: arm "32", unit "16"']),
        (
            replaced("--no-async-scheduling", "--async-scheduling"),
            [
                "engine flag --no-async-scheduling: arm has it without a value, unit has nothing",
                "engine flag --async-scheduling: arm has nothing, unit has it without a value",
            ],
        ),
        (
            replaced(CONFIG, CONFIG.replace("all", "none")),
            ['engine flag --additional-config: tt.trace_mode: arm "all", unit "none"'],
        ),
        (replaced(CONFIG, "{}"), [f"engine flag --additional-config: tt: arm has {CONFIG[6:-1]}, unit has nothing"]),
        (
            replaced(CONFIG, CONFIG.replace("900000000", "true").replace("all", "x")),
            [
                'engine flag --additional-config: tt.trace_mode: arm "all", unit "x"',
                "engine flag --additional-config: tt.trace_region_size: arm 900000000, unit true",
            ],
        ),
        (replaced("ttstack.arm=prod", "ttstack.arm=x"), ['--label ttstack.arm: arm "prod", unit "x"']),
        (removed("--ipc", "host"), ['--ipc: arm has "host", unit has nothing']),
        (replaced("max-file=4", "max-file=5"), ['--log-opt max-file: arm "4", unit "5"']),
        (
            removed("--device", "/dev/tenstorrent/1:/dev/tenstorrent/1"),
            ['--device /dev/tenstorrent/1: arm has "/dev/tenstorrent/1:/dev/tenstorrent/1", unit has nothing'],
        ),
        (
            replaced("127.0.0.1:8000:8000", "0.0.0.0:8000:8000"),
            ['--publish 8000: arm "127.0.0.1:8000:8000", unit "0.0.0.0:8000:8000"'],
        ),
        (
            replaced("--rm", "--detach"),
            [
                "--rm: arm has it without a value, unit has nothing",
                "--detach: arm has nothing, unit has it without a value",
            ],
        ),
        (replaced("vllm", "ttx-sim"), ['engine argument 1: arm "vllm", unit "ttx-sim"']),
        (replaced("/usr/bin/docker", "/usr/bin/podman"), ['program: arm "docker", unit "podman"']),
        (replaced("/usr/bin/docker", "-/usr/bin/docker"), ['program: arm "docker", unit "-/usr/bin/docker"']),
    ],
)
def test_the_difference_is_named(found: list[str], sentences: list[str]) -> None:
    assert differences(ARGV, found) == sentences


def test_true_is_not_one() -> None:
    one, other = (["/bin/vllm", "--x", text] for text in ('{"a":1,"b":1}', '{"a":true,"b":2}'))
    assert differences(one, other) == ["engine flag --x: a: arm 1, unit true", "engine flag --x: b: arm 1, unit 2"]


def test_a_mount_is_named_by_its_target() -> None:
    model = "type=bind,src=/srv/models/qwen3.6-27b,dst=/srv/models/qwen3.6-27b,readonly"
    [sentence] = differences(ARGV, replaced(model, model.removesuffix(",readonly")))
    assert sentence.startswith("--mount /srv/models/qwen3.6-27b: arm ")


def test_the_image_is_named() -> None:
    image = PROD.pin.image
    [sentence] = differences(ARGV, replaced(image, image.replace("ab", "cd")))
    assert sentence.startswith("image: arm ")


def test_an_unknown_option_is_named_and_hides_nothing_behind_it() -> None:
    found = [*ARGV[:3], "--cap-add", "SYS_NICE", "--privileged", *replaced("32", "16")[3:]]
    assert differences(ARGV, found) == [
        'engine flag --max-num-seqs: arm "32", unit "16"',
        '--cap-add: arm has nothing, unit has "SYS_NICE"',
        "--privileged: arm has nothing, unit has it without a value",
    ]


def test_the_sides_can_have_other_names() -> None:
    assert differences(ARGV, replaced("32", "16"), ("prod.toml", "module")) == [
        'engine flag --max-num-seqs: prod.toml "32", module "16"'
    ]


def test_order_and_spelling_are_reported_when_nothing_else_differs() -> None:
    at = ARGV.index("--ipc")
    moved = [*ARGV[:at], *ARGV[at + 2 : at + 4], *ARGV[at : at + 2], *ARGV[at + 4 :]]
    assert differences(ARGV, moved) == [
        f'the same arguments in another order: at argument {at}: arm "--ipc", unit "--cap-drop"'
    ]
    attached = [*ARGV[:at], "--ipc=host", *ARGV[at + 2 :]]
    assert differences(ARGV, attached) == [
        f'the same meaning, written differently: at argument {at}: arm "--ipc", unit "--ipc=host"'
    ]
    spaced = replaced(CONFIG, CONFIG.replace(":", ": "))
    assert len(differences(ARGV, spaced)) == 1


ODD = ("--x", "--env", "-e", "A=1", "A", "", "run", "--x=1", "{}", '{"a": 1}')
words = st.sampled_from([*ARGV, *ODD]) | st.text(max_size=5)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_no_single_mutation_goes_unseen(data: st.DataObject) -> None:
    argv = data.draw(st.just(list(ARGV)) | st.lists(words, max_size=8))
    at = data.draw(st.integers(1, max(1, len(argv) - 1)))
    kind = data.draw(st.sampled_from(["delete", "insert", "replace", "swap", "double"]))
    mutant = list(argv)
    if kind == "insert" or at >= len(argv):
        mutant.insert(at, data.draw(words))
    elif kind == "delete":
        del mutant[at]
    elif kind == "replace":
        mutant[at] = data.draw(words)
    elif kind == "double":
        mutant.insert(at, mutant[at])
    else:
        other = data.draw(st.integers(1, len(argv) - 1))
        mutant[at], mutant[other] = mutant[other], mutant[at]
    assert bool(differences(argv, mutant)) == (argv != mutant)
    assert bool(differences(mutant, argv)) == (argv != mutant)


@settings(deadline=None)
@given(st.lists(words, max_size=8), st.lists(words, max_size=8))
def test_differences_are_empty_exactly_for_equal_commands(one: list[str], other: list[str]) -> None:
    folder = "/usr/bin/docker"
    assert bool(differences([folder, *one], ["/x/docker", *other])) == (one != other)
