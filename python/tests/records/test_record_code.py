"""Which code wrote a record."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ttstack import __version__
from ttstack.records import code
from ttstack.records.code import this_tool, tool_of
from ttstack.records.context import Tool


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Make a package in a work tree, committed."""
    folder = tmp_path / "tree" / "python" / "ttstack"
    folder.mkdir(parents=True)
    for name in ("__init__.py", "a.py", "naïve file.py"):
        (folder / name).write_text(name)
    (tmp_path / "tree" / "elsewhere").write_text("")
    (tmp_path / "tree" / ".gitignore").write_text("*.pyc\nvenv\n")
    _git(tmp_path / "tree", "init", "-q")
    _git(tmp_path / "tree", "add", ".")
    _git(tmp_path / "tree", "commit", "-qm", "one")
    return folder


@pytest.mark.host
def test_a_clean_work_tree_is_told_by_its_commit(package: Path) -> None:
    top = package.parents[1]
    (top / "elsewhere").write_text("changed, and no code of ttx")
    (package / "a.pyc").write_text("ignored")
    assert tool_of(package) == Tool("ttx", __version__, "git", str(top), _git(top, "rev-parse", "HEAD"), "")


@pytest.mark.host
def test_every_change_of_the_code_has_a_digest_of_its_own(package: Path) -> None:
    changes = {
        "changed": lambda: (package / "a.py").write_text("x"),
        "changed otherwise": lambda: (package / "a.py").write_text("y"),
        "new": lambda: (package / "new.py").write_text("x"),
        "new with other content": lambda: (package / "new.py").write_text("y"),
        "odd name": lambda: (package / "naïve file.py").write_text("y"),
        "gone": (package / "a.py").unlink,
        "link": lambda: (package / "link.py").symlink_to("a.py"),
        "staged": lambda: _git(package, "rm", "-q", "__init__.py", "--cached"),
    }
    seen = [tool_of(package).dirty]
    for change in changes.values():
        change()
        tool = tool_of(package)
        if tool.source == "git":
            seen.append(tool.dirty)
    assert seen[0] == ""
    assert len(seen) == len(set(seen)) == len(changes)  # when its __init__ is not listed, it is no longer of the tree
    assert all(len(digest) == 64 for digest in seen[1:])
    assert tool_of(package).source == "files"


@pytest.mark.host
def test_the_same_change_has_the_same_digest_and_an_empty_tree_has_no_commit(package: Path, tmp_path: Path) -> None:
    (package / "a.py").write_text("x")
    first = tool_of(package)
    assert tool_of(package) == first
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    (fresh / "__init__.py").write_text("")
    _git(fresh, "init", "-q")
    _git(fresh, "add", ".")
    tool = tool_of(fresh)
    assert (tool.source, tool.place, tool.commit) == ("git", str(fresh), "")


@pytest.mark.host
def test_a_venv_inside_somebodys_work_tree_is_not_of_its_commit(package: Path) -> None:
    site = package.parents[1] / "venv" / "site-packages"
    (site / "ttstack").mkdir(parents=True)
    (site / "ttstack" / "__init__.py").write_text("")
    assert tool_of(site / "ttstack") == Tool("ttx", __version__, "files", str(site / "ttstack"))
    (site / "ttstack-0.1.0.dist-info").mkdir()
    assert tool_of(site / "ttstack") == Tool("ttx", __version__, "wheel", str(site / "ttstack"))


@pytest.mark.host
def test_variables_that_name_another_repository_do_not_count(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tool_of(package)
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    assert tool_of(package) == before


def test_a_store_path_is_told_as_it_is() -> None:
    store = "/nix/store/0123456789abcdfghijklmnpqrsvwxyz-ttx-0.1.0"
    assert tool_of(Path(store) / "lib/python3.12/site-packages/ttstack") == Tool("ttx", __version__, "store", store)


def test_without_git_it_is_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tool_of(tmp_path) == Tool("ttx", __version__, "files", str(tmp_path))


def test_it_is_looked_at_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    first = this_tool()
    monkeypatch.setattr(code, "tool_of", lambda _: pytest.fail("looked again"))
    assert this_tool() is first
