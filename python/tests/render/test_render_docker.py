"""Launch -> docker command -> Launch is the identity, and nothing but what is written is read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from render_asked import PROD, as_process

from ttstack.render.build import build_launch
from ttstack.render.cards import nominal_cards
from ttstack.render.docker import Mode, docker_argv, parse_docker, process_argv
from ttstack.render.errors import RenderError
from ttstack.render.launch import Device, Launch, Mount, Port

LAUNCH = build_launch(PROD, nominal_cards(PROD))
ARGV = docker_argv(LAUNCH, "unit")

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
paths = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters=',":'), max_size=12).map("/{}".format)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
labels = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="="), min_size=1, max_size=8)
hosts = st.sampled_from(["127.0.0.1", "0.0.0.0", "::1", "fe80::1%eth0", "localhost"])  # noqa: S104 - text, not a bind
numbers = st.integers(0, 65535)


@st.composite
def launches(draw: st.DrawFn) -> Launch:
    env = draw(st.dictionaries(names, texts, max_size=5))
    secrets = draw(st.sets(names.filter(lambda name: name not in env), max_size=3))
    mounts = tuple(draw(st.lists(st.builds(Mount, paths, paths, st.booleans()), max_size=4)))
    mine = draw(st.dictionaries(labels, texts, max_size=4))
    return Launch(
        name=draw(st.from_regex(r"[a-z][a-z0-9_.-]{0,10}", fullmatch=True)),
        runtime=draw(st.sampled_from(["docker", "podman"])),
        image=draw(st.from_regex(r"[a-z][a-z0-9./:@-]{0,20}", fullmatch=True)),
        argv=tuple(draw(st.lists(texts, min_size=1, max_size=5))),
        env=env,
        secrets=tuple(sorted(secrets)),
        devices=tuple(draw(st.lists(st.builds(Device, paths, paths), max_size=3))),
        mounts=mounts,
        ports=tuple(draw(st.lists(st.builds(Port, hosts, numbers, numbers), max_size=2))),
        labels=mine,
        stop_grace_s=draw(st.integers(0, 10000)),
        cache_key=mine.get("ttstack.cache", ""),
        cache_dir=next((mount.source for mount in mounts if mount.target == "/cache/tensors"), ""),
        cache_path=env.get("TT_CACHE_PATH", ""),
        jit_dir=next((mount.source for mount in mounts if mount.target == "/cache/jit"), ""),
    )


@settings(deadline=None)
@given(launches(), st.sampled_from(["unit", "up"]))
def test_parse_undoes_docker_argv(launch: Launch, mode: Mode) -> None:
    argv = docker_argv(launch, mode)
    parsed = parse_docker(argv)
    assert parsed == launch
    assert docker_argv(parsed, mode) == argv


def test_the_launch_of_an_arm_comes_back() -> None:
    assert parse_docker(ARGV) == LAUNCH
    assert parse_docker(["/opt/bin/docker", *ARGV[1:]]) == LAUNCH


def test_parse_takes_attached_values_and_any_order() -> None:
    at = ARGV.index("--stop-timeout")
    moved = (*ARGV[:2], f"--stop-timeout={ARGV[at + 1]}", *ARGV[2:at], *ARGV[at + 2 :])
    assert parse_docker(moved) == LAUNCH


def test_modes_differ_in_one_flag() -> None:
    up = docker_argv(LAUNCH, "up")
    assert (ARGV[2], up[2]) == ("--rm", "--detach")
    assert ARGV[3:] == up[3:]


def test_the_program_is_the_runtimes_own_or_the_given_one() -> None:
    assert docker_argv(replace(LAUNCH, runtime="podman"), "unit")[0] == "podman"
    assert docker_argv(LAUNCH, "unit", "/opt/docker")[0] == "/opt/docker"


def test_labels_environment_and_secrets_are_sorted() -> None:
    mixed = {"Z": "1", "B": "2", "a": "3"}
    argv = docker_argv(replace(LAUNCH, labels=mixed, env=mixed, secrets=("Y", "A")), "unit")
    assert [argv[at + 1] for at, word in enumerate(argv) if word == "--label"] == ["B=2", "Z=1", "a=3"]
    assert [argv[at + 1] for at, word in enumerate(argv) if word == "--env"] == ["B=2", "Z=1", "a=3", "A", "Y"]


def without(option: str) -> tuple[str, ...]:
    at = ARGV.index(option)
    return ARGV[:at] + ARGV[at + 2 :]


def with_value(option: str, value: str) -> tuple[str, ...]:
    at = ARGV.index(option)
    return (*ARGV[: at + 1], value, *ARGV[at + 2 :])


IMAGE_AT = ARGV.index(LAUNCH.image)


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        ((), "does not start"),
        (("docker", "exec", *ARGV[2:]), "does not start"),
        (("nerdctl", *ARGV[1:]), "does not start"),
        ((*ARGV[:2], *ARGV[3:]), "exactly one of --rm"),
        ((*ARGV[:2], "--detach", *ARGV[2:]), "exactly one of --rm"),
        ((*ARGV[:3], "--privileged", *ARGV[3:]), "unknown option --privileged"),
        ((*ARGV[:3], "-v", "/dev:/dev", *ARGV[3:]), "unknown option -v"),
        ((*ARGV[:3], "--cap-add", "ALL", *ARGV[3:]), "unknown option --cap-add"),
        ((*ARGV[:3], "--pull", "always", *ARGV[3:]), "--pull must be never"),
        ((*ARGV[:3], "--log-opt", "max-size=1g", *ARGV[3:]), "--log-opt must be"),
        (without("--ipc"), "--ipc must be host, not nothing"),
        (without("--cap-drop"), "--cap-drop must be ALL"),
        (without("--security-opt"), "--security-opt must be"),
        (without("--name"), "--name must be given once"),
        (without("--stop-timeout"), "--stop-timeout must be given once"),
        (with_value("--stop-timeout", "1m"), "not a number of seconds"),
        (with_value("--stop-timeout", "٣"), "not a number of seconds"),
        (with_value("--name", "-x"), "container's name"),
        (with_value("--mount", "type=volume,src=a,dst=/b"), "--mount"),
        (with_value("--mount", "type=bind,src=/a,dst=/b,readonly=false"), "--mount"),
        (with_value("--publish", "8000:8000"), "--publish"),
        (with_value("--device", "/dev/tenstorrent"), "--device"),
        (with_value("--device", "/dev/a:/dev/b:r"), "--device"),
        (with_value("--label", "novalue"), "--label"),
        (with_value("--env", "A B=1"), "environment variable"),
        ((*ARGV[:3], "--env", "HF_HUB_OFFLINE=0", *ARGV[3:]), "HF_HUB_OFFLINE is given twice"),
        (ARGV[:IMAGE_AT], "no image"),
        (ARGV[: IMAGE_AT + 1], "no engine command"),
        (ARGV[: IMAGE_AT - 1], "has no value"),
    ],
)
def test_parse_refuses_what_is_not_written(argv: tuple[str, ...], why: str) -> None:
    with pytest.raises(RenderError, match=why):
        parse_docker(argv)


@pytest.mark.parametrize(
    ("launch", "why"),
    [
        (replace(LAUNCH, image=""), "no image"),
        (replace(LAUNCH, image="--privileged"), "image's reference"),
        (replace(LAUNCH, image="a b"), "image's reference"),
        (replace(LAUNCH, argv=()), "no command"),
        (replace(LAUNCH, name="a b"), "container's name"),
        (replace(LAUNCH, mounts=(Mount("/a,b", "/c", read_only=True),)), "a comma"),
        (replace(LAUNCH, mounts=(Mount("/a", '/"c', read_only=True),)), "a double quote"),
        (replace(LAUNCH, mounts=(Mount("/a\n", "/c", read_only=True),)), "control character"),
        (replace(LAUNCH, mounts=(Mount("a", "/c", read_only=True),)), "absolute"),
        (replace(LAUNCH, devices=(Device("/dev/a:b", "/dev/c"),)), "a colon"),
        (replace(LAUNCH, env={"A=B": "1"}), "environment variable"),
        (replace(LAUNCH, env={"A": "\0"}), "NUL"),
        (replace(LAUNCH, secrets=("1A",)), "environment variable"),
        (replace(LAUNCH, secrets=("HF_HUB_OFFLINE",)), "is a secret and has a value"),
        (replace(LAUNCH, secrets=("A", "A")), "named twice"),
        (replace(LAUNCH, labels={"a=b": "c"}), "key of a label"),
        (replace(LAUNCH, runtime="process"), "as a process"),
    ],
)
def test_docker_argv_refuses_what_docker_reads_otherwise(launch: Launch, why: str) -> None:
    with pytest.raises(RenderError, match=why):
        docker_argv(launch, "unit")


def test_a_process_is_its_engines_command() -> None:
    asked = as_process()
    launch = build_launch(asked, nominal_cards(asked), engine_command=("/usr/bin/python3", "-m", "ttstack.sim"))
    assert process_argv(launch) == launch.argv
    assert launch.argv[:5] == ("/usr/bin/python3", "-m", "ttstack.sim", "serve", PROD.model.path)
    with pytest.raises(RenderError, match="in a container"):
        process_argv(LAUNCH)
    with pytest.raises(RenderError, match="no command"):
        process_argv(replace(launch, argv=()))
    with pytest.raises(RenderError, match="is a secret"):
        process_argv(replace(launch, secrets=("ARCH_NAME",)))
