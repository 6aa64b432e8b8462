"""``ttx cache`` as another user, and on a disk that cannot be written."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cache_kit import complete
from desk_kit import PROJECT, Desk, make_desk

from ttstack.cli.main import main
from ttstack.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    return make_desk(tmp_path, monkeypatch, capsys)


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
