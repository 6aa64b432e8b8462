"""What is said when docker does not do as it is asked, and which calls are made at all."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from fake_docker import FakeDocker, entry, inspected, words

from ttstack.errors import Exit, TtxError
from ttstack.render.launch import Device, Launch, Mount, Port
from ttstack.run import client as client_module
from ttstack.run.client import Client, Seen, first_line
from ttstack.run.containers import ContainerRuntime, end_of, with_simulated_nodes
from ttstack.run.errors import RunError, RunRefusedError
from ttstack.run.mounts import make_mounts, owner_of
from ttstack.run.runtime import ContainerId

if TYPE_CHECKING:
    from pathlib import Path

ID = "c" * 64
DOWN = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n"
DENIED = (
    "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock:"
    " Get http://%2Fvar%2Frun%2Fdocker.sock/v1.24/version: dial unix /var/run/docker.sock: connect: permission denied\n"
)
LAUNCH = Launch(
    name="ttx-quick",
    runtime="docker",
    image="ttstack/sim:0.1.0",
    argv=("ttx-sim", "serve", "/model"),
    env={"A": "1"},
    secrets=(),
    devices=(Device("/dev/tenstorrent/0", "/dev/tenstorrent/0"),),
    mounts=(),
    ports=(Port("127.0.0.1", 18000, 18000),),
    labels={"ttstack.run": "R"},
    stop_grace_s=3,
    cache_key="0" * 16,
    cache_dir="/nowhere",
    cache_path="/cache/tensors",
    jit_dir="/cache/jit/arm",
)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDocker:
    made = FakeDocker(tmp_path)
    monkeypatch.setenv("PATH", made.path())
    return made


@pytest.mark.parametrize(
    ("err", "reason", "sentence"),
    [
        (DOWN, "runtime_down", "docker is installed, but its daemon does not run"),
        (DENIED, "runtime_denied", "this user may not talk to docker"),
        ("Error: something odd\n", "runtime_unusable", "docker does not work: something odd"),
    ],
)
def test_an_engine_that_cannot_be_asked_is_one_sentence(fake: FakeDocker, err: str, reason: str, sentence: str) -> None:
    fake.answer(("^version", 1, "", err))
    with pytest.raises(RunRefusedError) as caught:
        ContainerRuntime("docker").check("image")
    assert (caught.value.reason, caught.value.exit_code) == (reason, Exit.REFUSED)
    assert caught.value.message == sentence
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("program", ["docker", "podman"])
def test_an_engine_that_is_not_installed_is_one_sentence(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    runtime = ContainerRuntime(program)
    for ask in (lambda: runtime.check("image"), lambda: runtime.find("R", None)):
        with pytest.raises(RunRefusedError, match=f"{program} is not installed") as caught:
            ask()
        assert (caught.value.reason, caught.value.exit_code) == ("runtime_missing", Exit.REFUSED)


def test_an_engine_that_hangs_is_left(fake: FakeDocker, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(argv: object, seconds: float) -> None:
        del argv, seconds
        raise TimeoutError

    monkeypatch.setattr(client_module, "run_command", late)
    with pytest.raises(RunRefusedError, match="did not answer `docker ps` within") as caught:
        Client("docker").of_run("R")
    assert caught.value.reason == "runtime_slow"
    assert fake.calls() == []


def test_an_image_that_is_missing_is_told_with_how_to_load_it(fake: FakeDocker) -> None:
    fake.answer(("^version", 0, "28.2.2", ""), ("^image", 1, "[]\n", "Error: No such image: a:1\n"))
    with pytest.raises(RunRefusedError, match="no image a:1") as caught:
        ContainerRuntime("docker").check("a:1")
    assert caught.value.reason == "image_missing"
    assert "docker load" in caught.value.hint
    assert not [call for call in fake.calls() if "pull" in call]


CONFLICT = (
    'docker: Error response from daemon: Conflict. The container name "/ttx-quick" is already in use by container'
    f' "{ID}". You have to remove (or rename) that container to be able to reuse that name.\n'
)
NO_NODE = (
    "docker: Error response from daemon: error gathering device information while adding custom device"
    ' "/dev/tenstorrent/0": no such file or directory.\n'
)
ALLOCATED = (
    "docker: Error response from daemon: driver failed programming external connectivity on endpoint ttx-quick: Bind"
    " for 127.0.0.1:18000 failed: port is already allocated.\n"
)


@pytest.mark.parametrize(
    ("err", "reason", "sentence"),
    [
        (CONFLICT, "name_taken", "the container ttx-quick belongs to run OTHER"),
        (NO_NODE, "node_missing", "the device node /dev/tenstorrent/0 is not there any more"),
        (ALLOCATED, "port_busy", "port 18000 on 127.0.0.1 is in use"),
        ("docker: Error response from daemon: No such image: ttstack/sim:0.1.0.\n", "image_missing", "docker has no"),
        (
            "docker: Error response from daemon: odd thing.\n",
            "engine_not_started",
            "docker did not start the container",
        ),
        (DOWN, "runtime_down", "its daemon does not run"),
    ],
)
def test_a_start_that_fails_says_why_and_removes_what_it_made(
    fake: FakeDocker, bare_folder: object, err: str, reason: str, sentence: str
) -> None:
    ours = entry("a" * 64, state={"Status": "created"})
    theirs = entry(config={"Labels": {"ttstack.run": "OTHER"}})
    fake.answer(
        ("^run", 125, "", err),
        ("^ps", 0, f"{'a' * 64}\n", ""),
        ("^container inspect a", 0, inspected(ours), ""),
        ("^container inspect", 0, inspected(theirs), ""),
        ("^rm", 0, "", ""),
    )
    with pytest.raises(TtxError) as caught:
        ContainerRuntime("docker").start(LAUNCH, bare_folder, {}, ())  # type: ignore[arg-type]
    assert caught.value.reason == reason
    assert sentence in caught.value.message
    if reason != "runtime_down":
        assert fake.called("rm") == [["rm", "a" * 64]]


@pytest.fixture
def bare_folder(tmp_path: Path) -> object:
    from ttstack.run.state import run_folder  # noqa: PLC0415

    folder = run_folder(tmp_path, "R")
    folder.path.mkdir(parents=True)
    return folder


def test_a_name_that_is_taken_is_refused_before_the_start(fake: FakeDocker, tmp_path: Path) -> None:
    for labels, status, said in (
        ({"ttstack.run": "OTHER"}, "exited", "is left over from run OTHER"),
        ({"ttstack.run": "OTHER"}, "running", "belongs to run OTHER"),
        ({}, "running", f"a container that is not ttx's has the name ttx-quick ({ID[:12]}, running)"),
    ):
        fake.answer(("^container", 0, inspected(entry(state={"Status": status}, config={"Labels": labels})), ""))
        with pytest.raises(RunRefusedError) as caught:
            ContainerRuntime("docker").prepare(LAUNCH, tmp_path)
        assert said in caught.value.message
        assert ("ttx down OTHER" in caught.value.hint) == bool(labels)


def test_a_secret_that_is_not_set_is_refused(fake: FakeDocker, bare_folder: object, tmp_path: Path) -> None:
    launch = replace(LAUNCH, secrets=("NO_SUCH_SECRET_HERE",))
    with pytest.raises(RunError, match="NO_SUCH_SECRET_HERE"):
        ContainerRuntime("docker").prepare(launch, tmp_path)
    with pytest.raises(RunError, match="NO_SUCH_SECRET_HERE"):
        ContainerRuntime("docker").start(launch, bare_folder, {}, ())  # type: ignore[arg-type]
    assert fake.calls() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_stop_is_by_id_with_the_containers_own_grace_and_never_removes(
    fake: FakeDocker, number: signal.Signals
) -> None:
    fake.answer(("^container", 0, inspected(entry()), ""), ("^(stop|kill|wait)", 0, "0\n", ""))
    ContainerRuntime("docker").stop([ContainerId(ID)], number)
    first = f"stop -t 3 {ID}" if number == signal.SIGTERM else f"kill {ID}"
    assert words(fake.calls())[1:] == [first, f"wait {ID}"]


def test_what_is_over_is_removed_but_never_by_force(fake: FakeDocker) -> None:
    fake.answer(("^rm", 1, "", "Error response from daemon: You cannot remove a running container\n"))
    assert not Client("docker").remove(ID)
    fake.answer(("^rm", 1, "", f"Error: No such container: {ID}\n"))
    assert Client("docker").remove(ID)
    fake.answer(("^rm", 0, ID, ""))
    assert Client("docker").remove(ID)
    ContainerRuntime("docker").clear([ContainerId(ID)])
    assert words(fake.calls()) == [f"rm {ID}"] * 4


def test_a_runs_containers_are_found_by_label_whatever_their_state(fake: FakeDocker) -> None:
    fake.answer(("^ps", 0, f"{ID}\n", ""))
    assert ContainerRuntime("docker").find("R", None) == (ContainerId(ID),)
    assert words(fake.calls()) == ["ps --all --no-trunc --quiet --filter label=ttstack.run=R"]


def _seen(**state: object) -> Seen:
    (made,) = [client_module._seen(entry(state=state))]
    return made


def test_how_a_container_ended() -> None:
    assert end_of(_seen(Status="exited", ExitCode=3)).code == 3
    assert end_of(_seen(Status="exited", ExitCode=137)).code == -signal.SIGKILL
    assert end_of(_seen(Status="exited", ExitCode=143)).code == -signal.SIGTERM
    assert end_of(_seen(Status="exited", ExitCode=255)).code == 255
    assert "OOMKilled" in end_of(_seen(Status="exited", ExitCode=137, OOMKilled=True)).note
    assert end_of(_seen(Status="created", ExitCode=127, Error="no such program")).note == "no such program"


def test_ports_of_both_families_are_read() -> None:
    bound = [{"HostIp": "127.0.0.1", "HostPort": "18000"}, {"HostIp": "::1", "HostPort": "18000"}]
    made = client_module._seen(entry(NetworkSettings={"Ports": {"18000/tcp": bound, "9/udp": None}}))
    assert made.ports == (("127.0.0.1", 18000, 18000), ("::1", 18000, 18000))
    assert (made.image, made.name) == ("feed", "ttx-quick")


def test_a_line_of_an_error_is_without_its_frame() -> None:
    assert first_line("docker: Error response from daemon: odd.\nSee 'docker run --help'.\n") == "odd."
    assert first_line("WARN: x\nError: y\n") == "y"
    assert first_line("WARNING: Error loading config file\nit is odd\n") == "it is odd"
    assert first_line("") == "it said nothing"


def test_a_simulated_node_is_mounted_and_a_real_one_is_a_device(tmp_path: Path) -> None:
    plain = tmp_path / "0"
    plain.touch()
    devices = (Device(str(plain), "/dev/tenstorrent/0"), Device("/dev/full", "/dev/tenstorrent/1"))
    made = with_simulated_nodes(replace(LAUNCH, devices=devices))
    assert made.devices == devices[1:]
    assert made.mounts == (Mount(str(plain), "/dev/tenstorrent/0", read_only=False),)


def test_whose_a_cache_is() -> None:
    assert [owner_of(user) for user in ("", "0", "1234", "1234:5", "vllm", "vllm:5")] == [0, 0, 1234, 1234, 1000, 1000]


def test_caches_are_made_and_what_else_is_missing_is_refused(tmp_path: Path) -> None:
    cache, owner = tmp_path / "cache", os.geteuid()
    mounts = (Mount(str(cache / "k"), "/cache/tensors", read_only=False),)
    make_mounts(replace(LAUNCH, mounts=mounts), cache, owner)
    assert (cache / "k").is_dir()
    for mount in (Mount(str(tmp_path / "no"), "/x", read_only=False), Mount(str(cache / "no"), "/x", read_only=True)):
        with pytest.raises(RunRefusedError, match="is not there") as caught:
            make_mounts(replace(LAUNCH, mounts=(mount,)), cache, owner)
        assert caught.value.reason == "mount_missing"


@pytest.mark.host
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_a_cache_of_another_user_is_refused(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    mounts = (Mount(str(cache / "k"), "/cache/tensors", read_only=False),)
    make_mounts(replace(LAUNCH, mounts=mounts), cache, 1234)
    assert (cache / "k").stat().st_uid == 1234
    with pytest.raises(RunRefusedError, match="cannot write") as caught:
        make_mounts(replace(LAUNCH, mounts=mounts), cache, 0)
    assert caught.value.reason == "cache_unwritable"
    (cache / "k").chmod(0o777)
    make_mounts(replace(LAUNCH, mounts=mounts), cache, 0)
