"""A machine for the bootstrap script: a folder of programs as PATH, some of which only say that they were called."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]
TOOLS = (
    *("cat", "cksum", "cut", "dirname", "env", "find", "mkdir", "mv", "readlink", "sed", "sh"),
    *("rm", "tail", "tar", "timeout", "tr", "uname", "wc"),
)
# Says each call on one line of calls.log; `nix build --out-link P` makes a ttx that says its arguments.
NIX = """\
echo "nix $*" >>"$CALLS"
printf '%s\\n' "$NIX_CONFIG" >"$CALLS.config"
case "$*" in
"show-config") echo "substituters = https://cache.example.org/ https://other.example.org/" ;;
*"store ping"*) exit "$PING" ;;
*--out-link*)
  while [ "$1" != --out-link ]; do shift; done
  mkdir -p "$2/bin"
  printf '#!/bin/sh\\necho "ttx $*"\\n' >"$2/bin/ttx"
  chmod +x "$2/bin/ttx"
  ;;
esac
"""


@dataclass(frozen=True)
class Machine:
    """A project folder and a PATH."""

    root: Path
    programs: Path
    calls_file: Path
    env: dict[str, str]

    def program(self, name: str, text: str) -> None:
        """Put a shell script on PATH."""
        file = self.programs / name
        file.unlink(missing_ok=True)
        file.write_text(f"#!/bin/sh\n{text}")
        file.chmod(0o755)

    def distribution(self, text: str) -> None:
        """Say which distribution this is."""
        Path(self.env["TTX_OS_RELEASE"]).write_text(text)

    def run(self, *words: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        """Call the script."""
        return subprocess.run(
            [str(self.root / "bootstrap"), *words],
            cwd=cwd or self.root,
            env=self.env | env,
            text=True,
            capture_output=True,
            timeout=30,
            check=False,
        )

    def calls(self, program: str) -> list[str]:
        """Return the command lines of a program so far."""
        lines = self.calls_file.read_text().splitlines() if self.calls_file.exists() else []
        return [line for line in lines if line.startswith(f"{program} ")]

    def config(self) -> dict[str, str]:
        """Return the settings that the last nix was given."""
        text = Path(f"{self.calls_file}.config").read_text()
        pairs = (line.split("=", 1) for line in text.splitlines() if line)
        return {name.strip(): value.strip() for name, value in pairs}


@pytest.fixture
def bare(tmp_path: Path) -> Machine:
    """Return a Debian machine with neither nix nor git, on which apt-get works and brings both."""
    root, programs, calls = tmp_path / "project", tmp_path / "bin", tmp_path / "calls.log"
    (root / ".git").mkdir(parents=True)
    programs.mkdir()
    for name in ("bootstrap", "flake.lock"):
        shutil.copy(PROJECT / name, root / name)
    (root / "pkgs/offline/wheels").mkdir(parents=True)
    for name, text in (("flake.nix", "{ }"), ("python-minor.nix", "null"), ("wheels/fetch.sh", "true")):
        (root / "pkgs/offline" / name).write_text(f"{text}\n")
    for name in TOOLS:
        where = shutil.which(name)
        assert where, name
        (programs / name).symlink_to(where)
    env = {
        "PATH": str(programs),
        "HOME": str(tmp_path / "home"),
        "TTX_OS_RELEASE": str(tmp_path / "os-release"),
        "NIX_SSL_CERT_FILE": "/given",
        "NIX_STATE_DIR": str(tmp_path),
        "TTX_NIXPKGS": "locked",
        "CALLS": str(calls),
        "PING": "1",
    }
    machine = Machine(root, programs, calls, env)
    machine.distribution('ID=debian\nVERSION_ID="13"\n')
    (tmp_path / "nix").write_text(f"#!/bin/sh\n{NIX}")
    bring = "".join(
        f'case "$*" in *{package}*) cp {tmp_path}/{name} {programs}/{name}; chmod +x {programs}/{name} ;; esac\n'
        for package, name in (("nix-bin", "nix"), ("git", "git"))
    )
    (tmp_path / "git").write_text("#!/bin/sh\n")
    for name in ("chmod", "cp"):
        (programs / name).symlink_to(str(shutil.which(name)))
    machine.program("id", "echo 0\n")
    machine.program("apt-get", f'echo "apt-get $*" >>"$CALLS"\n{bring}')
    return machine


@pytest.fixture
def ready(bare: Machine) -> Machine:
    """Return a machine that has nix and git (which sees no untracked file)."""
    bare.program("nix", NIX)
    bare.program("git", "")
    return bare
