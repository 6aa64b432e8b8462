"""``ttx cache``, as a person types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cache_kit import FIXTURES, age, builder, building, complete, fill, inputs_of, marker_of

from ttstack.arm.key import CacheKey, cache_key
from ttstack.arm.load import load
from ttstack.arm.shelf import Shelf
from ttstack.cache.checkpoint import signature
from ttstack.cache.lock import KeyLock
from ttstack.cache.marker import key_of, read_marker, write_marker
from ttstack.cache.sizes import Sizes
from ttstack.cache.survey import standing_of
from ttstack.cache.types import LOCKS, MARKER, REGISTRY, TRASH, USED, Use
from ttstack.cache.verify import Report, verify
from ttstack.cli import cache_check, cache_view
from ttstack.cli.human import ago, size
from ttstack.cli.main import main
from ttstack.errors import Exit
from ttstack.host.places import find_places

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ttstack.arm.types import Asked

PROJECT = Path(__file__).resolve().parents[3]
MODELS = """\
schema = 1
[one]
hf = "org/one"
path = "{model}"
cache_gb = 1
[bare]
hf = "org/bare"
revision = "main"
cache_gb = 1
"""
FIRST = "P150/layers.0_dtype_BFLOAT8_B_layout_TILE.tensorbin"


@dataclass
class Desk:
    """A host with no cards and no engines, and what ttx says there."""

    root: Path
    simulated: Path
    shelf: Shelf
    capsys: pytest.CaptureFixture[str]
    err: str = ""

    def ttx(self, *words: str, code: Exit = Exit.DONE) -> str:
        got = main(["--arms", str(self.shelf.arms), "cache", *words])
        out, self.err = self.capsys.readouterr()
        assert got == code, f"{out}\n{self.err}"
        return out

    def json(self, *words: str, code: Exit = Exit.DONE) -> Any:  # noqa: ANN401 - what it prints
        return json.loads(self.ttx(*words, "--json", code=code))

    def asked(self, name: str) -> Asked:
        return load(name, self.shelf)

    def key(self, name: str) -> CacheKey:
        return cache_key(self.asked(name))


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr("ttstack.host.containers.DOCKER_SOCKET", tmp_path / "docker.sock")
    for name in ("state", "cache", "locks"):
        monkeypatch.setenv(f"TTX_{name.upper()}", str(tmp_path / name))
    model = tmp_path / "model"
    model.mkdir()
    (model / "weights").write_text("w")
    arms = tmp_path / "arms"
    arms.mkdir()
    (tmp_path / "pins").mkdir()
    (tmp_path / "pins/current.toml").write_text((PROJECT / "pins/current.toml").read_text())
    (arms / "models.toml").write_text(MODELS.format(model=model))
    arm = 'schema = 1\npin = "current"\nmodel = "{}"\n[engine]\nkind = "vllm"\nport = {}\n[cards]\ncount = 1\n{}'
    (arms / "try.toml").write_text(arm.format("one", 8001, ""))
    (arms / "env.toml").write_text(arm.format("one", 8002, '[env.weights]\nMLP_BF4 = "1"\n'))
    (arms / "bare.toml").write_text(arm.format("bare", 8003, ""))
    return Desk(tmp_path / "cache", tmp_path / "state/sim-host/cache", Shelf(arms, tmp_path / "pins"), capsys)


def columns(text: str) -> list[list[str]]:
    head, *lines = text.splitlines()
    starts = [head.index(name) for name in ("CACHE", "STATE", "SIZE", "ARM", "USED", "WHAT")]
    return [[line[start:end].strip() for start, end in zip(starts, [*starts[1:], None], strict=True)] for line in lines]


def test_no_caches(desk: Desk) -> None:
    assert desk.ttx("ls") == ""
    assert desk.err == f"there are no caches under {desk.root}\n"
    assert desk.json("ls")[0]["directories"] == []
    assert desk.ttx("verify") == ""
    assert desk.ttx("rebuild-registry") == ""
    assert not desk.root.exists()


def test_all_that_lies_there_is_listed(desk: Desk) -> None:
    whole = complete(desk.root, inputs_of(env={"A": "1"}))
    os.utime(whole / USED, (0, 0))
    building(desk.root, inputs_of(mesh="P300"), expected=28_700_000_000, builder=builder(alive=True))
    fill(desk.root / "0123456789abcdef")
    (desk.root / "tt_metal_cache").mkdir()
    (desk.root / TRASH / "x").mkdir(parents=True)
    rows = columns(desk.ttx("ls"))
    assert sorted(row[1] for row in rows) == ["building", "complete", "not ours", "trash", "unmarked"]
    assert next(row for row in rows if row[0] == whole.name)[1:] == [
        "complete",
        "224 B",
        "try",
        ago(time.time()),
        "org/name main P150 ttnn-0.81.1 A=1",
    ]
    assert next(row for row in rows if row[1] == "building")[2] == "of 28.7 GB"
    assert "ttx cache adopt" in next(row for row in rows if row[1] == "unmarked")[5]
    assert {one["standing"] for one in desk.json("ls")[0]["directories"]} == {row[1] for row in rows}
    assert not (desk.root / REGISTRY).exists()  # looking writes nothing


def test_the_simulated_hosts_caches_are_beside_them(desk: Desk) -> None:
    (desk.simulated.parent / "tree").mkdir(parents=True)
    complete(desk.root)
    complete(desk.simulated)
    key = key_of(inputs_of())
    assert [row[0] for row in columns(desk.ttx("ls"))] == [key, key]
    assert ["simulated; " in row[5] for row in columns(desk.ttx("ls"))] == [False, True]
    assert [entry["simulated"] for entry in desk.json("show", key)] == [False, True]
    assert len(desk.json("verify", key)) == 2
    assert [entry["root"] for entry in desk.json("rebuild-registry")] == [str(desk.root), str(desk.simulated)]


def test_who_has_its_lock_uses_it(desk: Desk) -> None:
    folder = complete(desk.root)
    handle = KeyLock(desk.root, folder.name).shared()
    assert handle is not None
    assert columns(desk.ttx("ls"))[0][5].startswith("in use: somebody who has its lock, shared; org/name")
    os.close(handle)
    assert columns(desk.ttx("ls"))[0][5].startswith("org/name")
    (desk.root / LOCKS / folder.name).unlink()
    (desk.root / LOCKS / folder.name).symlink_to("guard")
    assert columns(desk.ttx("ls"))[0][5].startswith("in use: it cannot be told: ")


def test_what_is_built_is_in_use_and_so_is_what_it_began_with(desk: Desk) -> None:
    seed = complete(desk.root)
    live = building(desk.root, inputs_of(mesh="P300"), builder=builder(alive=True), seeded_from=seed.name)
    used = {row[0]: row[5].split("; ")[0] for row in columns(desk.ttx("ls"))}
    who = "in use: run 20260101T000000-aaaaaa builds "
    assert used == {live.name: f"{who}{live.name}", seed.name: f"{who}{live.name} from it"}


def test_an_arm_names_it_and_does_not_use_it_now(desk: Desk) -> None:
    folder = complete(desk.root, dict(desk.key("try").inputs))
    (row,) = columns(desk.ttx("ls"))
    assert "in use" not in row[5]
    assert desk.json("ls")[0]["directories"][0]["used_by"][0]["source"] == "arm"
    assert "named by" in desk.ttx("show", folder.name)


def test_why_one_is_broken_is_told_before_what_it_was_made_from(desk: Desk) -> None:
    building(desk.root, state="broken", reason="the disk was full")
    assert columns(desk.ttx("ls"))[0][1::4] == ["broken", "the disk was full; org/name main P150 ttnn-0.81.1"]


def test_on_a_terminal_a_line_is_as_wide_as_that(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    building(desk.root, state="broken", reason="x" * 100)
    whole = desk.ttx("ls").splitlines()
    assert len(whole[1]) > 100  # what is no terminal gets all of it
    for columns_there, cut in ((80, True), (72, True), (50, False), (0, False), (500, False)):
        monkeypatch.setattr("ttstack.cli.command.terminal_width", lambda columns_there=columns_there: columns_there)
        lines = desk.ttx("ls").splitlines()
        assert lines == ([whole[0], f"{whole[1][: columns_there - 3]}..."] if cut else whole)


def test_du_counts_shared_files_once(desk: Desk) -> None:
    one = complete(desk.root)
    two = complete(desk.root, inputs_of(mesh="P300"), seeded_from=one.name)
    (two / FIRST).unlink()
    (two / FIRST).hardlink_to(one / FIRST)
    block = (one / FIRST).stat().st_blocks * 512
    (view,) = desk.json("ls", "--du")
    sizes = {entry["name"]: entry["on_disk"] for entry in view["directories"]}
    assert [sizes[folder.name]["shared"] for folder in (one, two)] == [block, block]
    assert view["on_disk"] == sum(entry["own"] for entry in sizes.values()) + block
    out = desk.ttx("ls", "--du")
    assert f"{size(block)} shared" in out
    assert out.endswith(f"{size(view['on_disk'])} on the disk under {desk.root}\n")
    assert desk.json("ls")[0]["on_disk"] is None


def test_a_registry_that_cannot_be_believed_is_told_and_rebuilt(desk: Desk) -> None:
    folder = complete(desk.root)
    (desk.root / REGISTRY).write_text("")
    assert columns(desk.ttx("ls"))[0][1] == "complete"
    assert "ttx cache rebuild-registry" in desk.err
    out = desk.ttx("rebuild-registry")
    assert out.startswith(f"{desk.root}: 1 directories, 1 measured sizes; the one that was there is now ")
    desk.ttx("ls")
    assert "registry" not in desk.err
    assert folder.exists()


def test_a_registry_of_one_root_does_not_keep_the_other_from_its_own(desk: Desk) -> None:
    (desk.simulated.parent / "tree").mkdir(parents=True)
    complete(desk.simulated)
    desk.root.mkdir()
    (desk.root / LOCKS).write_text("no folder")
    out = desk.ttx("rebuild-registry", code=Exit.FAILED)
    assert out.startswith(f"{desk.simulated}: 1 directories")
    assert f"cannot make the folder of locks {desk.root / LOCKS}" in desk.err


def test_show_tells_all_of_one(desk: Desk) -> None:
    folder = complete(desk.root, inputs_of(env={"A": "1"}), checkpoint="abc", seeded_from="0" * 16)
    (folder / USED).touch()
    os.utime(folder / USED, (0, 0))
    page = dict(line.split("  ", 1) for line in desk.ttx("show", folder.name).splitlines())
    shown = {name.strip(): value.strip() for name, value in page.items()}
    assert shown["path"] == str(folder)
    assert shown["state"] == "complete"
    assert shown["used"].startswith("1970-01-01T00:00:00Z, ")
    assert shown["input env.A"] == "1"
    assert (shown["checkpoint"], shown["seeded from"]) == ("abc", "0" * 16)
    assert shown["files"] == "2 with 224 bytes (224 B)"
    (entry,) = desk.json("show", folder.name)
    assert entry["marker"]["inputs"] == inputs_of(env={"A": "1"})


def test_a_cache_that_is_not_there(desk: Desk) -> None:
    folder = complete(desk.root)
    for verb in ("show", "verify"):
        desk.ttx(verb, folder.name[:6], code=Exit.USAGE)
        assert f"did you mean {folder.name}" in desk.err
        desk.ttx(verb, "../cache", code=Exit.USAGE)


def test_odd_names_are_written_out(desk: Desk) -> None:
    (desk.root / "\x1b[31mred").mkdir(parents=True)
    assert "\x1b" not in desk.ttx("ls") + desk.ttx("show", "\x1b[31mred")


def test_why_tells_the_key_and_how_others_differ(desk: Desk) -> None:
    key = desk.key("try")
    assert f"has the key {key.key}, which is absent" in desk.ttx("why", "try")
    assert "there is no other cache of org/one" in desk.ttx("why", "try")
    own = complete(desk.root, dict(key.inputs))
    other = complete(desk.root, {**key.inputs, "mesh": "P300", "env": {"B": "1"}})
    complete(desk.root, inputs_of())  # of another model
    table = desk.json("why", "try")
    assert (table["key"], table["standing"], table["inputs"]) == (own.name, "complete", key.inputs)
    (seen,) = table["others"]
    assert seen["key"] == other.name
    assert [one["name"] for one in seen["differences"]] == ["env.B", "mesh"]
    lines = desk.ttx("why", "try").splitlines()
    assert lines[0] == f"arm try has the key {own.name}, which is complete"
    assert lines[-1].split() == ["mesh", str(key.inputs["mesh"]), "here,", "P300", "there"]
    desk.ttx("why", "absent", code=Exit.USAGE)


def test_verify_looks_at_all_that_are_complete(desk: Desk) -> None:
    one, two = complete(desk.root), complete(desk.root, inputs_of(mesh="P300"))
    building(desk.root, inputs_of(mesh="P150x2"))
    assert [line.split("  ")[1] for line in desk.ttx("verify").splitlines()] == ["whole: 2 files, 224 B"] * 2
    os.truncate(two / FIRST, 3)
    out = desk.ttx("verify", code=Exit.FAILED)
    assert f"  {FIRST}: it has 3 bytes, and had 112" in out
    marker = read_marker(two)
    assert marker is not None
    assert (marker.state, marker.reason) == ("broken", f"{FIRST}: it has 3 bytes, and had 112")
    assert json.loads((desk.root / REGISTRY).read_text())["caches"][two.name][1]["state"] == "broken"
    assert desk.ttx("verify").startswith(f"{one.name}  whole")  # a broken one is no longer among them
    (entry,) = desk.json("verify", two.name, code=Exit.FAILED)
    assert (entry["standing"], entry["whole"]) == ("broken", False)


def test_a_full_one_finds_a_changed_byte_and_remembers_the_rest(desk: Desk) -> None:
    folder = complete(desk.root, files=1)
    data = (FIXTURES / "one_dtype_BFLOAT8_B_layout_TILE.tensorbin").read_bytes()
    (folder / "later.tensorbin").write_bytes(data)
    assert "  2 file(s) hashed for the first time\n" in desk.ttx("verify", folder.name, "--full")
    assert "2 file(s) as they were the last time\n" in desk.ttx("verify", folder.name, "--full")
    (folder / "later.tensorbin").write_bytes(data[:-1] + b"!")
    assert desk.ttx("verify")
    assert "its content was changed" in desk.ttx("verify", "--full", code=Exit.FAILED)
    marker = read_marker(folder)
    assert marker is not None
    assert marker.state == "broken"


def test_what_a_running_engine_writes_just_now_is_no_fault(desk: Desk) -> None:
    folder = complete(desk.root)
    (folder / f"{FIRST}.tmp.1.0").write_bytes(b"half")
    handle = KeyLock(desk.root, folder.name).shared()
    assert handle is not None
    (entry,) = desk.json("verify", folder.name)
    assert (entry["faults"], entry["later"]) == ([], [f"{FIRST}.tmp.1.0"])
    os.close(handle)
    (entry,) = desk.json("verify", folder.name, code=Exit.FAILED)
    assert [fault["kind"] for fault in entry["faults"]] == ["leftover"]
    assert entry["marked"].startswith("it stays complete")  # as a start would use it
    marker = read_marker(folder)
    assert marker is not None
    assert marker.state == "complete"
    (folder / "P150" / "later").touch()
    (entry,) = desk.json("verify", folder.name, code=Exit.FAILED)
    assert "marked as broken" in entry["marked"]


@pytest.mark.parametrize("full", [True, False])
def test_what_an_engine_wrote_as_it_was_looked_at_is_looked_at_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, *, full: bool
) -> None:
    folder = complete(desk.root)
    later = folder / "P150" / "later"
    later.touch()
    examine = cache_check.examine

    def ends(path: Path, **more: Any) -> Report:  # noqa: ANN401 - as it is called
        report = examine(path, **more)
        later.write_bytes(b"whole")
        return report

    monkeypatch.setattr(cache_check, "examine", ends)
    (entry,) = desk.json("verify", folder.name, *(["--full"] * full))
    assert (entry["faults"], entry["later"], entry["marked"]) == ([], ["P150/later"], "")


def test_verify_of_what_has_nothing_to_verify(desk: Desk) -> None:
    (desk.root / "other").mkdir(parents=True)
    desk.ttx("verify", "other", code=Exit.USAGE)
    folder = desk.root / "jit/try-x"
    folder.mkdir(parents=True)
    write_marker(folder, replace(marker_of(), kind="jit", key="try-x", state="complete"))
    desk.ttx("verify", "jit/try-x", code=Exit.USAGE)
    assert "a kernel cache" in desk.err
    live = building(desk.root, builder=builder(alive=True))
    desk.ttx("verify", live.name, code=Exit.REFUSED)
    (live / MARKER).write_text("{}")
    assert "not known: " in desk.ttx("verify", live.name, code=Exit.FAILED)
    assert (live / MARKER).read_text() == "{}"


def test_an_unmarked_one_is_looked_at_and_stays_as_it_is(desk: Desk) -> None:
    folder = desk.root / "0123456789abcdef"
    fill(folder)
    assert "whole, unmarked" in desk.ttx("verify", folder.name, "--full")
    assert sorted(path.name for path in folder.iterdir()) == ["P150"]


def adoptable(desk: Desk, arm: str = "try") -> Path:
    folder = desk.root / desk.key(arm).key
    fill(folder, 3)
    age(folder, 1000)
    return folder


def test_adopt_makes_a_complete_cache_of_what_was_there(desk: Desk) -> None:
    folder = adoptable(desk)
    before = {path: path.read_bytes() for path in folder.rglob("*.tensorbin")}
    assert desk.ttx("adopt", folder.name, "--arm", "try") == f"cache {folder.name} is complete: 3 files, 336 bytes\n"
    marker = read_marker(folder)
    assert marker is not None
    assert (marker.state, marker.files, marker.inputs) == ("complete", 3, desk.key("try").inputs)
    assert marker.checkpoint == signature(Path(desk.asked("try").model.path))
    assert verify(folder) == ()
    assert {path: path.read_bytes() for path in before} == before
    assert folder.name in json.loads((desk.root / REGISTRY).read_text())["history"]
    desk.ttx("adopt", folder.name, "--arm", "try", code=Exit.REFUSED)
    assert "is complete: only an unmarked one can be adopted" in desk.err


def test_adopt_refuses_another_arms_key(desk: Desk) -> None:
    folder = adoptable(desk)
    desk.ttx("adopt", folder.name, "--arm", "env", code=Exit.USAGE)
    assert "ttx cache why env" in desk.err
    assert read_marker(folder) is None


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda folder: os.truncate(folder / FIRST, 9), "is not whole: "),
        (lambda folder: (folder / f"{FIRST}.tmp.1").touch(), "was written to 0 s ago"),
        (lambda folder: _old(folder / f"{FIRST}.tmp.1"), "a temporary file that was left over"),
        (lambda folder: (folder / "x.tensorbin").touch(), "was written to 0 s ago"),
        (lambda folder: [path.unlink() for path in folder.rglob("*.tensorbin")], "is empty"),
        (lambda folder: (folder / MARKER).write_text(""), "is unreadable"),
        (lambda folder: folder.rename(folder.with_name("x")), "there is no "),
    ],
    ids=["cut", "being written", "leftover", "new", "empty", "unreadable", "absent"],
)
def test_adopt_refuses_what_is_not_whole_and_still(desk: Desk, spoil: Any, text: str) -> None:  # noqa: ANN401
    folder = adoptable(desk)
    spoil(folder)
    if text.startswith("is not whole"):
        age(folder, 1000)
    desk.ttx("adopt", folder.name, "--arm", "try", code=Exit.USAGE if text == "there is no " else Exit.REFUSED)
    assert text in desk.err
    assert not (folder / MARKER).exists() or (folder / MARKER).read_text() == ""


def _old(path: Path) -> None:
    path.write_bytes(b"x")
    os.utime(path, (1, 1))


def test_adopt_refuses_what_a_run_holds(desk: Desk) -> None:
    folder = adoptable(desk)
    handle = KeyLock(desk.root, folder.name).shared()
    assert handle is not None
    desk.ttx("adopt", folder.name, "--arm", "try", code=Exit.REFUSED)
    assert "is in use by a run" in desk.err
    os.close(handle)
    desk.ttx("adopt", folder.name, "--arm", "try")


def test_adopt_says_what_it_could_not_look_at(desk: Desk) -> None:
    folder = adoptable(desk)
    (folder / "notes.bin").write_bytes(b"x")
    age(folder, 1000)
    desk.ttx("adopt", folder.name, "--arm", "try")
    assert "of 1 of 4 files nothing but the size can be looked at" in desk.err


def test_trust_takes_the_checkpoint_as_it_is(desk: Desk) -> None:
    folder = complete(desk.root, dict(desk.key("try").inputs), checkpoint="old")
    assert desk.ttx("trust", folder.name) == f"cache {folder.name} is trusted with the checkpoint as it is now\n"
    marker = read_marker(folder)
    assert marker is not None
    assert marker.checkpoint == signature(Path(desk.asked("try").model.path))
    assert desk.json("trust", folder.name, "--arm", "try") == {"key": folder.name, "changed": False}


def test_trust_is_for_complete_caches_of_a_known_arm(desk: Desk) -> None:
    inputs = dict(desk.key("try").inputs)
    folder = building(desk.root, inputs)
    desk.ttx("trust", folder.name, code=Exit.REFUSED)
    assert "is building: only a complete tensor cache" in desk.err
    desk.ttx("trust", "0" * 16, code=Exit.USAGE)
    assert "no arm in" in desk.err
    desk.ttx("trust", desk.key("env").key, code=Exit.USAGE)
    assert "there is no cache" in desk.err
    desk.ttx("trust", folder.name, "--arm", "env", code=Exit.USAGE)
    desk.ttx("trust", desk.key("bare").key, code=Exit.USAGE)
    assert "has no checkpoint folder" in desk.err


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (28_700_000_000, "28.7 GB"), (5e15, "5000.0 TB")],
)
def test_sizes_for_people(count: float, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0 s ago"), (59, "59 s ago"), (60, "1 min ago"), (3600, "1 h ago"), (86400 * 3, "3 d ago")],
)
def test_times_for_people(seconds: float, text: str) -> None:
    assert ago(seconds) == text


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Make a folder that every user may look into; pytest's own are closed again by each pytest that starts."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.host
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_another_user_can_look_and_writes_nothing(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("state", "cache", "locks"):
        monkeypatch.setenv(f"TTX_{name.upper()}", str(open_folder / name))
    folder = complete(open_folder / "cache")
    assert main(["cache", "rebuild-registry"]) == Exit.DONE
    capsys.readouterr()
    before = sorted(open_folder.rglob("*"))
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        code = 99
        try:
            os.setresuid(65534, 65534, 65534)
            with os.fdopen(write, "w") as pipe, redirect_stdout(pipe), redirect_stderr(pipe):
                code = _looks(folder)
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, said
    assert sorted(open_folder.rglob("*")) == before


@pytest.mark.host
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts")
def test_on_a_read_only_root_all_that_looks_works_and_says_what_it_could_not_write(desk: Desk, tmp_path: Path) -> None:
    folder = complete(desk.root)
    desk.ttx("rebuild-registry")
    script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
    code = "import sys; from ttstack.cli.main import entry; sys.argv[0] = 'ttx'; entry()"
    words = ["unshare", "-m", "--propagation", "private", "sh", "-ec", script, "sh", str(desk.root)]
    words += [sys.executable, "-c", code, "cache"]
    environ = {**os.environ, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": str(PROJECT / "python")}
    before = sorted(tmp_path.rglob("*"))
    for line, code_wanted in (
        (["ls", "--du"], 0),
        (["show", folder.name], 0),
        (["verify"], 0),
        (["verify", "--full"], 0),
        (["rebuild-registry"], 1),
    ):
        done = subprocess.run([*words, *line], env=environ, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code_wanted, done.stderr
        if "--full" in line:
            assert "the hashes could not be kept for the next time" in done.stdout
    assert sorted(tmp_path.rglob("*")) == before


def _looks(folder: Path) -> int:
    words = [["ls"], ["ls", "--du"], ["show", folder.name], ["verify"], ["verify", "--full"]]
    return sum(main(["cache", *line]) for line in words)


def test_a_run_that_builds_is_named_once(desk: Desk) -> None:
    folder = building(desk.root, builder=builder(alive=True))
    places = replace(find_places(simulated=False, environ=os.environ), cache=desk.root)
    standing = standing_of(folder)
    build = Use("build", folder, "run 1 builds it")
    slot = Use("slot", folder, "run 1 (arm try)")
    from_it = Use("build", folder.with_name("0" * 16), "run 1 builds it from it")
    for uses, told in (
        ((build,), "in use: run 1 builds it"),
        ((slot, build), "in use: run 1 (arm try)"),
        ((slot, from_it), "in use: run 1 (arm try), run 1 builds it from it"),
    ):
        assert cache_view.row(cache_view.Seen(places, standing, uses), Sizes({}, 0))[5].split("; ")[0] == told
