"""How the bootstrap script calls Nix."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest
from bootstrap_machine import NIX

if TYPE_CHECKING:
    from bootstrap_machine import Machine

OVERRIDE = "--override-input nixpkgs path:"
# What Nix lays into a sandbox by itself (nix.conf(5), sandbox-paths; the certificates since 2.20), emptying it first.
NIX_OWN = ("/etc/ssl/certs/ca-certificates.crt", "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/passwd")


@pytest.fixture
def offline(ready: Machine) -> Machine:
    """Return a machine on which the stand-in is used; its host tools count as installed, whatever is here."""
    ready.env["TTX_NIXPKGS"] = "offline"
    ready.distribution("ID=debian\n")
    ready.program("apt-get", 'echo "apt-get $*" >>"$CALLS"\n')
    return ready


def _nix(machine: Machine, *words: str) -> str:
    done = machine.run("nix", *words)
    assert done.returncode == 0, done.stderr
    return machine.calls("nix")[-1]


@pytest.mark.parametrize(
    ("words", "call"),
    [
        (["build", ".#x"], "nix build {o} {f}#x"),
        (["path-info", ".#x"], "nix path-info {o} {f}#x"),
        (["run", "nixpkgs#x", "--", "build"], "nix run {o} nixpkgs#x -- build"),
        (["flake", "show", "."], "nix flake show {o} {f}"),
        (["flake", "check"], "nix flake check {o}"),
        (["store", "gc"], "nix store gc"),
        (["--version"], "nix --version"),
    ],
)
def test_the_override_stands_where_the_subcommand_takes_it(offline: Machine, words: list[str], call: str) -> None:
    flake = f"git+file://{offline.root}?shallow=1"
    seen = re.sub(
        rf"{OVERRIDE}{offline.env['HOME']}/.cache/ttstack/\d+/stand-in-[0-9.]+-\d+", "{o}", _nix(offline, *words)
    )
    assert seen == call.format(o="{o}", f=flake)


def test_the_stand_in_is_a_copy_that_knows_this_machines_python(offline: Machine) -> None:
    places = {re.search(rf"{OVERRIDE}(\S+)", _nix(offline, "build", ".#x"))[1] for _ in range(2)}  # type: ignore[index]
    assert len(places) == 1
    copy = Path(places.pop())
    minor = subprocess.run(
        ["/usr/bin/python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        text=True,
        capture_output=True,
        check=True,
    ).stdout.strip()
    assert (copy / "python-minor.nix").read_text() == f'"{minor}"\n'
    assert (copy / "wheels/fetch.sh").read_text() == (offline.root / "pkgs/offline/wheels/fetch.sh").read_text()
    (offline.root / "pkgs/offline/wheels/fetch.sh").write_text("changed\n")
    changed = re.search(rf"{OVERRIDE}(\S+)", _nix(offline, "build", ".#x"))[1]  # type: ignore[index]
    assert (Path(changed) / "wheels/fetch.sh").read_text() == "changed\n"


def test_a_cache_folder_that_nix_cannot_open_leaves_the_whole_stand_in(offline: Machine) -> None:
    offline.env["XDG_CACHE_HOME"] = f"{offline.env['HOME']}/my cache"
    assert f"{OVERRIDE}{offline.root}/pkgs/offline " in _nix(offline, "build", ".#x")


@pytest.mark.parametrize(("verb", "user", "wanted"), [("check", 0, True), ("check", 1000, False), ("nix", 0, False)])
def test_what_makes_disks_is_for_the_checks_of_root(offline: Machine, verb: str, user: int, *, wanted: bool) -> None:
    """Its programs are looked for outside PATH, so the script is told of places where nothing is."""
    script = offline.root / "bootstrap"
    script.write_text(script.read_text().replace("/usr/sbin/mkfs.", "/nowhere/mkfs."))
    offline.program("id", f"echo {user}\n")
    offline.program("sudo", 'exec "$@"\n')
    offline.run(verb)
    installed = " ".join(offline.calls("apt-get"))
    assert ("e2fsprogs xfsprogs" in installed) is wanted


@pytest.mark.parametrize(
    ("verb", "distribution", "wanted"),
    [("check", "ID=debian\n", True), ("check", "ID=ubuntu\nID_LIKE=debian\n", False), ("nix", "ID=debian\n", False)],
)
def test_a_browser_is_for_the_checks_where_there_is_a_package(
    offline: Machine, verb: str, distribution: str, *, wanted: bool
) -> None:
    script = offline.root / "bootstrap"
    script.write_text(script.read_text().replace("/usr/bin/chromium ]", "/nowhere/chromium ]"))
    offline.distribution(distribution)
    said = offline.run(verb).stderr
    assert ("chromium" in " ".join(offline.calls("apt-get"))) is wanted
    assert ("chromium: opens reports" in said) is wanted
    assert ("in a browser are skipped" in said) is (verb == "check" and not wanted)


def test_in_another_folder_a_dot_is_that_folder(ready: Machine, tmp_path: Path) -> None:
    ready.run("nix", "build", ".#x", cwd=tmp_path)
    assert ready.calls("nix")[-1] == "nix build .#x"


def test_the_locked_nixpkgs_needs_no_override_and_no_settings_of_the_stand_in(ready: Machine) -> None:
    assert _nix(ready, "build", "nixpkgs#x") == "nix build nixpkgs#x"
    assert set(ready.config()) == {"extra-experimental-features", "warn-dirty"}


def test_the_users_settings_are_kept(offline: Machine) -> None:
    offline.run("nix", "build", NIX_CONFIG="cores = 1")
    assert offline.config()["cores"] == "1"
    assert offline.config()["substitute"] == "false"


def test_no_folder_in_the_sandbox_holds_a_path_of_nix_own(offline: Machine) -> None:
    _nix(offline, "build", ".#x")
    assert "extra-sandbox-paths" not in offline.config()
    paths = [PurePosixPath(path) for path in offline.config()["sandbox-paths"].split()]
    assert paths
    for own in map(PurePosixPath, NIX_OWN):
        assert not [path for path in paths if path in own.parents], own


def test_without_root_only_nix_goes_through_sudo(offline: Machine, tmp_path: Path) -> None:
    offline.program("id", "echo 1000\n")
    offline.program("sudo", 'echo "sudo $1 $2" >>"$CALLS"\nshift\nexec "$@"\n')
    done = offline.run("--version", NIX_STATE_DIR=str(tmp_path / "absent"))
    assert done.stdout == "ttx --version\n", done.stderr
    assert [call for call in offline.calls("sudo") if "-H env" in call] == ["sudo -H env"]
    assert "sandbox-paths" in offline.config()


def test_a_user_without_sudo_who_cannot_write_the_store_is_told(offline: Machine, tmp_path: Path) -> None:
    offline.program("id", "echo 1000\n")
    done = offline.run("--version", NIX_STATE_DIR=str(tmp_path / "absent"))
    assert done.returncode == 1


def test_what_can_be_had_is_asked_once(ready: Machine) -> None:
    del ready.env["TTX_NIXPKGS"]
    for _ in range(2):
        assert ready.run("--version", PING="0").stdout == "ttx --version\n"
    pings = [call for call in ready.calls("nix") if "store ping" in call]
    assert len(pings) == 1
    assert pings[0].endswith("--store https://cache.example.org/")
    assert not [call for call in ready.calls("nix") if OVERRIDE in call]


def test_another_lock_is_asked_again(ready: Machine) -> None:
    del ready.env["TTX_NIXPKGS"]
    ready.run("--version", PING="0")
    lock = json.loads((ready.root / "flake.lock").read_text())
    lock["nodes"]["nixpkgs"]["locked"]["rev"] = "0" * 40
    (ready.root / "flake.lock").write_text(json.dumps(lock))
    ready.run("--version", PING="0")
    assert len([call for call in ready.calls("nix") if "store ping" in call]) == 2


def test_without_a_cache_the_stand_in_is_used_and_said(offline: Machine) -> None:
    del offline.env["TTX_NIXPKGS"]
    done = offline.run("--version")
    assert "cannot be had here: using pkgs/offline" in done.stderr
    assert OVERRIDE in offline.calls("nix")[-1]


def test_a_wrong_choice_is_refused(ready: Machine) -> None:
    done = ready.run("--version", TTX_NIXPKGS="offlien")
    assert done.returncode == 2
    assert "'offlien'" in done.stderr


def test_it_works_from_any_folder(ready: Machine, tmp_path: Path) -> None:
    done = ready.run("run", "sim", "--json", "a b", cwd=tmp_path)
    assert done.stdout == "ttx run sim --json a b\n"
    assert f"git+file://{ready.root}?shallow=1#ttx" in ready.calls("nix")[-1]


def test_a_folder_with_a_space_is_given_to_nix_as_a_copy(ready: Machine, tmp_path: Path) -> None:
    spaced = tmp_path / "my proj\u00e9ct"
    shutil.move(ready.root, spaced)
    ready.root.symlink_to(spaced)
    look = 'for word; do place=${word#path:}; [ -e "${place%#ttx}/flake.lock" ] && echo "saw $place" >>"$CALLS"; done\n'
    ready.program("nix", look + NIX)
    done = ready.run("--version")
    assert (done.returncode, done.stdout) == (0, "ttx --version\n"), done.stderr
    (seen,) = ready.calls("saw")
    assert " " not in seen.removeprefix("saw ")
    assert not list((tmp_path / "home").rglob("flake.lock")), "the copy stayed behind"


def test_what_nix_does_not_see_is_said_in_one_line(ready: Machine) -> None:
    ready.program("git", 'case "$*" in *ls-files*) seq -f "new%g.py" 5 ;; esac\n')
    (ready.programs / "seq").symlink_to(str(shutil.which("seq")))
    done = ready.run("--version")
    assert done.stderr.count("\n") == 2  # and that it builds
    assert "5 files are not in git" in done.stderr
    assert "git add new1.py new2.py new3.py ..." in done.stderr


def test_a_tree_that_git_refuses_is_copied_whole(ready: Machine) -> None:
    ready.program("git", "exit 128\n")
    done = ready.run("--version")
    assert done.returncode == 0
    assert "git refuses" in done.stderr
    assert f"path:{ready.root}#ttx" in ready.calls("nix")[-1]


def test_usage(ready: Machine) -> None:
    page = ready.run("--help")
    assert (page.returncode, page.stderr) == (0, "")
    assert "./bootstrap check" in page.stdout
    nothing = ready.run()
    assert (nothing.returncode, nothing.stdout) == (2, "")
    assert nothing.stderr == page.stdout
    assert ready.run("check", "all").returncode == 2
    assert ready.calls("nix") == []
