"""What the bootstrap script installs, and when it refuses to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bootstrap_machine import Machine


def test_what_is_missing_is_installed_and_each_thing_has_a_reason(bare: Machine) -> None:
    done = bare.run("--version")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ttx --version\n"
    assert "nix-bin: builds ttx" in done.stderr
    assert "git: tells Nix" in done.stderr
    (install,) = [line for line in bare.calls("apt-get") if " install " in line]
    assert install.endswith("--no-install-recommends nix-bin git")


def test_nothing_is_installed_twice(bare: Machine) -> None:
    bare.run("--version")
    before = bare.calls("apt-get")
    done = bare.run("--version")
    assert (done.returncode, bare.calls("apt-get")) == (0, before)
    assert "installing" not in done.stderr


def test_an_unknown_distribution_gets_the_list_and_exit_2(bare: Machine) -> None:
    bare.distribution("ID=plan9\n")
    done = bare.run("--version")
    assert done.returncode == 2
    assert "plan9" in done.stderr
    assert "nix-bin: " in done.stderr
    assert "git: " in done.stderr
    assert bare.calls("apt-get") == []


def test_a_relative_of_debian_is_known(bare: Machine) -> None:
    bare.distribution('ID=linuxmint\nID_LIKE="ubuntu debian"\n')
    assert bare.run("--version").returncode == 0


def test_an_unknown_distribution_that_has_everything_just_works(ready: Machine) -> None:
    ready.distribution("ID=nixos\n")
    assert ready.run("--version").stdout == "ttx --version\n"


def test_no_network_and_something_missing_says_which_and_exits_1(bare: Machine) -> None:
    bare.program("git", "")
    bare.program("apt-get", 'echo "E: Could not resolve the mirror"; exit 100\n')
    done = bare.run("--version")
    assert done.returncode == 1
    assert "E: Could not resolve the mirror" in done.stderr
    assert "still missing:\n  nix-bin: " in done.stderr
    assert "  git: " not in done.stderr


def test_an_index_that_cannot_be_renewed_is_no_failure_when_the_packages_are_there(bare: Machine) -> None:
    apt = (bare.programs / "apt-get").read_text()
    bare.program("apt-get", 'case "$*" in *update*) exit 100 ;; esac\n' + apt)
    assert bare.run("--version").returncode == 0


def test_without_root_and_sudo_installing_is_refused(bare: Machine) -> None:
    bare.program("id", "echo 1000\n")
    done = bare.run("--version")
    assert done.returncode == 1
    assert "needs root" in done.stderr
    assert bare.calls("apt-get") == []


def test_without_root_sudo_installs(bare: Machine) -> None:
    bare.program("id", "echo 1000\n")
    bare.program("sudo", 'echo "sudo $*" >>"$CALLS"\nexec "$@"\n')
    assert bare.run("--version").returncode == 0
    assert all(" apt-get " in line for line in bare.calls("sudo"))
    assert len(bare.calls("sudo")) == len(bare.calls("apt-get")) == 2
