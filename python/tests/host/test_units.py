"""What systemd's services run, as systemctl or their files tell."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from ttstack.host.containers import Answer
from ttstack.host.units import Units, look

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

SHOWN = """\
Id=ttx-prod.service
LoadState=loaded
NeedDaemonReload=no
MainPID=0
ExecStart={ path=/usr/bin/docker ; argv[]=/usr/bin/docker run --rm image ; ignore_errors=no ; pid=0 }
"""


class Systemd:
    """Answers as systemctl does. ``shown``: what show prints of each unit."""

    def __init__(self, **shown: str) -> None:
        self.shown = {f"{name}.service": text for name, text in shown.items()}
        self.calls: list[list[str]] = []
        self.instead: dict[str, Answer | Exception] = {}

    def __call__(self, argv: Sequence[str], seconds: float) -> Answer:
        assert argv[0] == "systemctl"
        assert seconds <= 10
        self.calls.append(list(argv))
        for word, told in self.instead.items():
            if word in argv:
                if isinstance(told, Exception):
                    raise told
                return told
        if "show" in argv:
            names = argv[argv.index("--") + 1 :]
            return Answer(0, "\n".join(self.shown.get(name, f"Id={name}\nLoadState=not-found\n") for name in names), "")
        return Answer(0, "".join(f"{name} loaded active running Text\n" for name in self.shown), "")


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    made = tmp_path / "etc", tmp_path / "lib"
    for folder in made:
        folder.mkdir()
    return made


def texts(units: Units) -> dict[str, str]:
    assert units.troubles == ()
    return {unit.name: unit.text for unit in units.found}


@pytest.fixture
def ask(tmp_path: Path, folders: tuple[Path, Path]) -> Callable[[Systemd], Units]:
    (tmp_path / "booted").mkdir()

    def asked(systemd: Systemd) -> Units:
        return look(run=systemd, folders=folders, booted=tmp_path / "booted", proc=tmp_path / "proc")

    return asked


def test_the_effective_command_is_told(ask: Callable[[Systemd], Units], folders: tuple[Path, Path]) -> None:
    (folders[0] / "ttx-prod.service").write_text("[Service]\nExecStart=/stale\n")
    found = texts(ask(Systemd(**{"ttx-prod": SHOWN})))
    assert "/usr/bin/docker run --rm image" in found["ttx-prod.service"]
    assert "/stale" not in found["ttx-prod.service"]


def test_both_lists_count_and_no_name_is_asked_twice(ask: Callable[[Systemd], Units]) -> None:
    systemd = Systemd(**{"ttx-prod": SHOWN})
    systemd.instead["list-unit-files"] = Answer(
        0, "idle.service disabled enabled\na@.service static -\nx.timer a b\n", ""
    )
    ask(systemd)
    (shown,) = (call for call in systemd.calls if "show" in call)
    assert shown[shown.index("--") + 1 :] == ["idle.service", "ttx-prod.service"]
    assert all("--system" in call for call in systemd.calls)


def test_a_template_is_told_by_its_files(ask: Callable[[Systemd], Units], folders: tuple[Path, Path]) -> None:
    (folders[1] / "a@.service").write_text("[Service]\n# ExecStart=/old\nExecStart=/new \\\n  %i\n")
    (folders[0] / "a@.service.d").mkdir()
    (folders[0] / "a@.service.d" / "x.conf").write_text("[Service]\nEnvironment=B=1\n")
    text = texts(ask(Systemd()))["a@.service"]
    assert "ExecStart=/new    %i" in text
    assert "B=1" in text
    assert "/old" not in text


@pytest.mark.parametrize(
    ("word", "told", "trouble"),
    [
        ("list-units", Answer(1, "", "Failed to connect to bus"), "systemctl list-units failed with exit 1: Failed to"),
        ("list-unit-files", Answer(2, "", ""), "systemctl list-unit-files failed with exit 2: it said nothing"),
        ("show", Answer(1, "", "x"), "systemctl show failed with exit 1: x"),
        ("show", Answer(0, "", ""), "systemctl show told of 0 units, not of 1"),
        ("show", TimeoutError(), "systemctl did not answer within 10 s"),
        ("list-units", FileNotFoundError(), "systemd runs here, but there is no systemctl on PATH"),
        ("list-units", PermissionError(13, "Permission denied"), "systemctl cannot be run: Permission denied"),
    ],
)
def test_no_answer_is_no_empty_answer(
    ask: Callable[[Systemd], Units], word: str, told: Answer | Exception, trouble: str
) -> None:
    systemd = Systemd(**{"ttx-prod": SHOWN})
    systemd.instead[word] = told
    units = ask(systemd)
    assert units.found == ()
    assert len(units.troubles) == 1
    assert units.troubles[0].startswith(trouble)


def test_many_units_are_asked_for_in_parts(ask: Callable[[Systemd], Units]) -> None:
    names = [f"u{at}" for at in range(450)]
    systemd = Systemd(**{name: f"Id={name}.service\nLoadState=loaded\n" for name in names})
    assert len(texts(ask(systemd))) == 450
    assert sum("show" in call for call in systemd.calls) == 3


def test_without_systemd_the_files_are_the_answer(tmp_path: Path, folders: tuple[Path, Path]) -> None:
    (folders[1] / "ttx-prod.service").write_text("[Service]\nExecStart=/lib/one\n")
    (folders[0] / "ttx-prod.service").write_text("[Service]\nExecStart=/etc/two\n")
    (folders[0] / "none.socket").write_text("[Socket]\n")

    def nobody(_argv: Sequence[str], _seconds: float) -> Answer:
        raise AssertionError("nobody is asked")

    found = texts(look(run=nobody, folders=(*folders, tmp_path / "no"), booted=tmp_path / "no"))
    assert set(found) == {"ttx-prod.service"}
    assert "/lib/one" in found["ttx-prod.service"]
    assert "/etc/two" in found["ttx-prod.service"]


def test_a_link_to_a_unit_is_followed_and_a_masked_one_is_empty(tmp_path: Path, folders: tuple[Path, Path]) -> None:
    (tmp_path / "store").write_text("[Service]\nExecStart=/run/it\n")
    (folders[0] / "a.service").symlink_to(tmp_path / "store")
    (folders[0] / "b.service").symlink_to(os.devnull)
    (folders[0] / "c.service").symlink_to(tmp_path / "gone")
    found = texts(look(run=Systemd(), folders=folders, booted=tmp_path / "no"))
    assert "/run/it" in found["a.service"]
    assert found["b.service"] == found["c.service"] == ""


@pytest.mark.parametrize(
    "line", ["EnvironmentFiles={} (ignore_errors=no)", "EnvironmentFile=-{}", 'EnvironmentFile="{}"']
)
def test_files_of_environment_are_read(tmp_path: Path, folders: tuple[Path, Path], line: str) -> None:
    (tmp_path / "a b.env").write_text("CACHE=/x\n")
    (folders[0] / "a.service").write_text(f"[Service]\n{line.format(tmp_path / 'a b.env')}\n")
    assert "CACHE=/x" in texts(look(run=Systemd(), folders=folders, booted=tmp_path / "no"))["a.service"]


def test_scripts_are_read_and_programs_are_not(tmp_path: Path, folders: tuple[Path, Path]) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\nCACHE=/y\n")
    (tmp_path / "program").write_bytes(b"\x7fELF /z")
    (folders[0] / "a.service").write_text(f"[Service]\nExecStart={tmp_path}/script {tmp_path}/program\n")
    text = texts(look(run=Systemd(), folders=folders, booted=tmp_path / "no"))["a.service"]
    assert "CACHE=/y" in text
    assert "/z" not in text


def test_what_runs_still_counts(ask: Callable[[Systemd], Units], tmp_path: Path) -> None:
    (tmp_path / "proc" / "44").mkdir(parents=True)
    (tmp_path / "proc" / "44" / "environ").write_bytes(b"TT_CACHE_PATH=/old\0B=1\0")
    (tmp_path / "proc" / "44" / "cmdline").write_bytes(b"vllm\0--flag\0")
    plain = "Id={}.service\nLoadState=loaded\nMainPID=44\nExecStart={{ argv[]={} }}\n"
    found = texts(ask(Systemd(a=plain.format("a", "/new"), b=plain.format("b", "/usr/bin/docker run x"))))
    assert "TT_CACHE_PATH=/old\nB=1" in found["a.service"]
    assert "vllm\n--flag" in found["b.service"]
    assert "TT_CACHE_PATH" not in found["b.service"]  # the client's, not the container's


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_what_may_not_be_read_is_told(tmp_path: Path, folders: tuple[Path, Path]) -> None:
    (tmp_path / "secret.env").write_text("x")
    (tmp_path / "secret.env").chmod(0)
    (folders[0] / "a.service").write_text(f"[Service]\nEnvironmentFile={tmp_path}/secret.env\n")
    (unit,) = look(run=Systemd(), folders=folders, booted=tmp_path / "no").found
    assert unit.hidden == (f"{tmp_path}/secret.env: Permission denied",)


def test_a_folder_that_cannot_be_listed_is_a_trouble(
    tmp_path: Path, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: object) -> None:
        raise PermissionError(13, "Permission denied", str(folders[0]))

    monkeypatch.setattr("ttstack.host.units._units_in", refused)
    units = look(run=Systemd(), folders=folders, booted=tmp_path / "no")
    assert units.troubles == (f"cannot read {folders[0]}: Permission denied",)
