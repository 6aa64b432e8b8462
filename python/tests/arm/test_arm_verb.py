from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from arm_kit import ARM, PIN, ROOT, make_shelf

from ttstack.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

ARMS = str(ROOT / "arms")


def test_ls(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--arms", ARMS, "arm", "ls"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == ["NAME", "KIND", "CARDS", "PIN", "MODEL", "DESCRIPTION"]
    prod, sim = (next(row for row in rows if row.startswith(f"{name} ")) for name in ("prod", "sim"))
    assert prod.split()[:6] == ["prod", "vllm", "2", "P150x2", "current", "qwen3.6-27b"]
    assert sim.endswith("boots in about two seconds")


def test_ls_shows_broken_arms_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shelf = make_shelf(tmp_path, good=ARM, bad="schema = 1\n")
    assert main(["--arms", str(shelf.arms), "arm", "ls"]) == 2
    said = capsys.readouterr()
    assert "4 problem(s)" in said.out
    assert "ttx arm check bad" in said.err
    assert main(["--arms", str(shelf.arms), "arm", "ls", "--json"]) == 2
    bad, good = json.loads(capsys.readouterr().out)
    assert (bad["name"], len(bad["problems"])) == ("bad", 4)
    assert (good["name"], good["cards"], good["mesh"], good["problems"]) == ("good", 2, "P150x2", [])


def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--arms", ARMS, "arm", "show", "prod-prefix"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["engine.args.enable-prefix-caching", "true", "prod-prefix.toml:5"] in lines
    assert ["engine.host", '"127.0.0.1"', "default"] in lines
    assert ["cards.count", "2", "prod.toml:15"] in lines
    assert main(["--arms", ARMS, "arm", "show", "prod-prefix", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert {len(shown[name]) for name in ("digest", "pin_digest", "model_digest")} == {64}
    assert len(shown["cache_key"]) == 16
    assert shown["cache_inputs"]["mesh"] == "P150x2"
    values = {value["key"]: value for value in shown["values"]}
    assert values["engine.port"] == {"key": "engine.port", "value": 8000, "file": f"{ARMS}/prod.toml", "line": 10}
    assert values["engine.host"]["line"] is None


def test_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--arms", ARMS, "arm", "check"]) == 0
    assert "pin sim: ok" in capsys.readouterr().out.splitlines()
    shelf = make_shelf(tmp_path, good=ARM, bad=ARM.replace("port = 8000", "port = 0\nprot = 1"))
    (shelf.pins / "unused.toml").write_text(PIN.replace("schema = 1", "schema = 2"))
    arms = ["--arms", str(shelf.arms), "arm", "check"]
    assert main([*arms, "good"]) == 0
    capsys.readouterr()
    assert main(arms) == 2
    out = capsys.readouterr().out.splitlines()
    assert out[:2] == ["arm bad: 2 problem(s)", "arm good: ok"]
    assert "pin unused: 1 problem(s)" in out
    file = shelf.arms / "bad.toml"
    assert f"{file}:6: engine.port: expected an integer from 1 to 65535, not the number 0" in out
    assert f"{file}:7: engine.prot: unknown key (did you mean port)" in out
    assert main([*arms, "bad", "good", "--json"]) == 2
    report = json.loads(capsys.readouterr().out)
    assert not report["ok"]
    assert [(arm["name"], arm["ok"], [p["line"] for p in arm["problems"]]) for arm in report["arms"]] == [
        ("bad", False, [6, 7]),
        ("good", True, []),
    ]


@pytest.mark.parametrize(("arm", "code"), [("nope", 2), ("./nope.toml", 2)])
def test_no_such_arm(arm: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("show", "check"):
        assert main(["--arms", ARMS, "arm", command, arm]) == code
    assert capsys.readouterr().out == ""


def test_a_problem_of_the_catalogue_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shelf = make_shelf(tmp_path, models="schema = 1\nx = 1\n", a=ARM, b=ARM)
    assert main(["--arms", str(shelf.arms), "arm", "check"]) == 2
    out = capsys.readouterr().out
    assert out.count("models.toml:2: x: expected a table") == 1


def test_render_for_a_shell_is_the_argument_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--arms", ARMS, "arm", "render", "prod", "--as", "argv"]) == 0
    argv = json.loads(capsys.readouterr().out)
    assert main(["--arms", ARMS, "arm", "render", "prod", "--as", "docker"]) == 0
    text = capsys.readouterr().out
    assert argv[:2] == ["docker", "run"]
    assert pasted(text) == argv[1:]
    lines = text.splitlines()
    assert "  --publish 127.0.0.1:8000:8000 \\" in lines
    assert "  --no-async-scheduling \\" in lines
    assert [line for line in lines if line.startswith("  tt-serve:current vllm serve ")]


def pasted(text: str) -> list[str]:
    """What a shell gives to docker when the text is pasted into it."""
    done = subprocess.run(
        ["sh", "-c", f"docker() {{ printf '%s\\0' \"$@\"; }}\n{text}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.split("\0")[:-1]


def test_what_a_shell_would_change_is_quoted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = ["", " ", "'", '"', "$HOME", "`id`", "a\nb", "\\", "--rm", "--x=y z", "*", "#", "~", "é%n"]
    env = "".join(f"V{index} = {json.dumps(value)}\n" for index, value in enumerate(values))
    shelf = make_shelf(tmp_path, x=f"{ARM}[env]\n{env}[engine.args]\ndtype = '--dtype'\nchat-template = ''\n")
    assert main(["--arms", str(shelf.arms), "arm", "render", "x", "--as", "docker"]) == 0
    words = pasted(capsys.readouterr().out)
    assert [f"V{index}={value}" for index, value in enumerate(values)] == [
        word
        for word in sorted(words, key=lambda word: (len(word.partition("=")[0]), word))
        if word.startswith("V") and word[1].isdigit()
    ]
    assert {"--dtype=--dtype", "--chat-template="} <= set(words)


def test_render_for_systemd_and_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    from ttstack.render.systemd import decode  # noqa: PLC0415 - a room above this one

    assert main(["--arms", ARMS, "arm", "render", "prod", "--as", "argv", "--hugepages"]) == 0
    argv = json.loads(capsys.readouterr().out)
    assert any("/dev/hugepages-1G" in word for word in argv)
    assert main(["--arms", ARMS, "arm", "render", "prod", "--as", "execstart", "--hugepages"]) == 0
    assert list(decode(capsys.readouterr().out.rstrip("\n"))) == argv
    assert main(["--arms", ARMS, "arm", "render", "sim", "--as", "json"]) == 0
    launch = json.loads(capsys.readouterr().out)
    assert (launch["name"], launch["runtime"], launch["image"]) == ("ttx-sim", "process", "")
    assert launch["env"]["MESH_DEVICE"] == "P150"


def test_a_process_has_no_docker_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--arms", ARMS, "arm", "render", "sim", "--as", "docker"]) == 2
    said = capsys.readouterr()
    assert (said.out, "process" in said.err) == ("", True)


def test_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--arms", ARMS, "arm", "render", "prod", "--as", "argv"]) == 0
    argv = json.loads(capsys.readouterr().out)
    file = tmp_path / "exec.json"
    compare = ["--arms", ARMS, "arm", "compare", "prod", str(file)]
    file.write_text(json.dumps(["/nix/store/x/bin/docker", *argv[1:]]))
    assert main(compare) == 0
    capsys.readouterr()
    file.write_text(json.dumps([word.replace("65536", "32768") for word in argv]))
    assert main(compare) == 1
    assert "--max-model-len" in capsys.readouterr().out
    assert main([*compare, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["equal"] is False
    for text in ("{", "[1]", "[]", '"x"'):
        file.write_text(text)
        assert main(compare) == 2
    file.unlink()
    assert main(compare) == 2


def test_rendering_loads_nothing_heavy() -> None:
    code = (
        "import sys; from ttstack.cli.main import main; "
        f"main(['--arms', {ARMS!r}, 'arm', 'render', 'prod', '--as', 'docker']); "
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    heavy = {"tomlkit", "jinja2", "rich", "asyncio", "fastjsonschema", "subprocess", "hypothesis"}
    assert not heavy & set(done.stderr.split())
    assert "ttstack.render.docker" in done.stderr.split()
