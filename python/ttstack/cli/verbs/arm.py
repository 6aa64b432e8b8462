"""``ttx arm``: list, show, check, render and compare arms."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ttstack.arm.errors import ArmFileError
from ttstack.arm.load import load, resolve
from ttstack.arm.shelf import arm_names
from ttstack.cli.arms import ARM, add_arm, add_host, asked_for, cards_for, shelf_of
from ttstack.cli.command import add_json, leaf, note, print_json, print_table
from ttstack.errors import Exit, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from ttstack.arm.shelf import Shelf
    from ttstack.cli.command import Context
    from ttstack.errors import Problem
    from ttstack.render.launch import Launch

EXAMPLES = """\
  ttx arm ls
  ttx arm show prod
  ttx arm check
  ttx arm render prod --as docker
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add_json(leaf(commands, "ls", "list the arms", "  ttx arm ls\n", _ls))
    show = leaf(commands, "show", "show what an arm resolves to, and where each value stands", _SHOW, _show)
    add_arm(show)
    add_json(show)
    check = leaf(commands, "check", "report every problem of arms and of the files that they need", _CHECK, _check)
    check.add_argument("arms", metavar="ARM", nargs="*", help=f"{ARM}; all arms and pins when none is given")
    add_json(check)
    render = leaf(commands, "render", "print the command that an arm becomes", _RENDER, _render)
    add_arm(render)
    render.add_argument("--as", dest="form", required=True, choices=("docker", "execstart", "argv", "json"), help=_FORM)
    compare = leaf(commands, "compare", "compare an arm's command with another one", _COMPARE, _compare)
    add_arm(compare)
    compare.add_argument("file", metavar="FILE", type=Path, help="JSON list of the other command's words")
    add_json(compare)
    for command in (render, compare):
        add_host(command)


_FORM = "a command for a shell, systemd's ExecStart, a JSON list of words, or the whole launch as JSON"
_SHOW = "  ttx arm show prod-prefix\n  ttx arm show ./my-arm.toml --json\n"
_CHECK = "  ttx arm check\n  ttx arm check prod ./my-arm.toml\n"
_RENDER = "  ttx arm render prod --as docker\n  ttx arm render prod --as execstart --hugepages\n"
_COMPARE = "  ttx arm compare prod exec-start.json\n"


def _ls(context: Context, args: argparse.Namespace) -> int:
    shelf = shelf_of(context)
    entries = [_entry(name, shelf) for name in arm_names(shelf)]
    if args.json:
        print_json(entries)
    else:
        rows = [
            (e["name"], "broken", "", "", "", f"{len(e['problems'])} problem(s)")
            if e["problems"]
            else (e["name"], e["kind"], f"{e['cards']} {e['mesh']}", e["pin"], e["model"], e["description"])
            for e in entries
        ]
        print_table(("NAME", "KIND", "CARDS", "PIN", "MODEL", "DESCRIPTION"), rows)
    broken = [entry["name"] for entry in entries if entry["problems"]]
    if broken:
        note(f"ttx: {len(broken)} arm(s) are broken; see: ttx arm check {' '.join(broken)}")
    return Exit.USAGE if broken else Exit.DONE


def _entry(name: str, shelf: Shelf) -> dict[str, Any]:
    try:
        asked = load(name, shelf)
    except ArmFileError as error:
        return {"name": name, "problems": _problems(error.problems)}
    arm = asked.arm
    return {
        "name": name,
        "description": arm.description,
        "kind": arm.engine.kind,
        "runtime": arm.engine.runtime,
        "cards": arm.cards.count,
        "mesh": arm.cards.mesh,
        "pin": arm.pin,
        "model": arm.model,
        "file": str(arm.file),
        "problems": [],
    }


def _show(context: Context, args: argparse.Namespace) -> int:
    from ttstack.arm.digest import arm_digest, model_digest, pin_digest  # noqa: PLC0415 - only this command needs it
    from ttstack.arm.explain import explain  # noqa: PLC0415
    from ttstack.arm.key import cache_key  # noqa: PLC0415

    resolved = resolve(args.arm, shelf_of(context))
    asked, key, rows = resolved.asked, cache_key(resolved.asked), explain(resolved)
    facts: dict[str, Any] = {
        "name": asked.arm.name,
        "file": str(asked.arm.file),
        "digest": arm_digest(asked),
        "pin_digest": pin_digest(asked.pin),
        "model_digest": model_digest(asked.model),
        "cache_key": key.key,
    }
    if args.json:
        values = [
            {
                "key": row.key,
                "value": row.value,
                "file": str(row.place.file) if row.place else None,
                "line": row.place.line if row.place else None,
            }
            for row in rows
        ]
        print_json({**facts, "cache_inputs": key.inputs, "root": asked.model.root, "values": values})
        return Exit.DONE
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):<12}  {value}")
    print()
    table = [
        (
            row.key,
            json.dumps(row.value, ensure_ascii=False),
            f"{row.place.file.name}:{row.place.line}" if row.place else "default",
        )
        for row in rows
    ]
    print_table(("KEY", "VALUE", "FROM"), table)
    return Exit.DONE


def _check(context: Context, args: argparse.Namespace) -> int:
    from ttstack.arm.catalogue import load_pin  # noqa: PLC0415 - only this command needs it
    from ttstack.arm.shelf import pin_names  # noqa: PLC0415

    shelf = shelf_of(context)
    results: dict[str, dict[str, tuple[Problem, ...]]] = {"arms": {}, "pins": {}}
    for name in args.arms or arm_names(shelf):
        results["arms"][name] = _problems_of(partial(load, name, shelf))
    for name in () if args.arms else pin_names(shelf):
        results["pins"][name] = _problems_of(partial(load_pin, name, shelf))
    found = [problem for part in results.values() for problems in part.values() for problem in problems]
    if args.json:
        print_json(
            {
                "ok": not found,
                **{
                    part: [
                        {"name": name, "ok": not them, "problems": _problems(them)} for name, them in entries.items()
                    ]
                    for part, entries in results.items()
                },
            }
        )
    else:
        for part, entries in results.items():
            for name, problems in entries.items():
                print(f"{part[:-1]} {name}: {f'{len(problems)} problem(s)' if problems else 'ok'}")
        for problem in dict.fromkeys(found):  # one file can be wrong for many arms: say it once
            print(problem)
    return Exit.USAGE if found else Exit.DONE


def _problems_of(read: Callable[[], object]) -> tuple[Problem, ...]:
    try:
        read()
    except ArmFileError as error:
        return error.problems
    return ()


def _problems(problems: tuple[Problem, ...]) -> list[dict[str, Any]]:
    return [{"file": str(p.file), "line": p.line, "key": p.key, "message": p.message, "hint": p.hint} for p in problems]


def _render(context: Context, args: argparse.Namespace) -> int:
    launch = _launch(context, args)
    if args.form == "json":
        from ttstack.records.build import jsonable  # noqa: PLC0415 - only this form needs it

        print_json(jsonable(launch))
        return Exit.DONE
    argv = _argv(launch)
    if args.form == "argv":
        print_json(argv)
    elif args.form == "execstart":
        from ttstack.render.systemd import command_line  # noqa: PLC0415 - only this form needs it

        print(command_line(argv))
    else:
        print(_shell(argv, launch))
    return Exit.DONE


def _launch(context: Context, args: argparse.Namespace) -> Launch:
    from ttstack.render.build import build_launch  # noqa: PLC0415 - ls, show and check do without

    asked = asked_for(context, args.arm)
    return build_launch(asked, cards_for(asked, here=args.here), hugepages=args.hugepages)


def _argv(launch: Launch) -> tuple[str, ...]:
    from ttstack.render.docker import docker_argv, process_argv  # noqa: PLC0415 - ls, show and check do without

    return process_argv(launch) if launch.runtime == "process" else docker_argv(launch, "unit")


def _shell(argv: tuple[str, ...], launch: Launch) -> str:
    """Write words for a shell, one option per line."""
    from shlex import quote  # noqa: PLC0415 - only this form needs it

    if launch.runtime == "process":
        from ttstack.render.docker import docker_argv  # noqa: PLC0415

        docker_argv(launch, "unit")  # says that there is no container
    command = len(argv) - len(launch.argv) - 1  # the image, where the options of docker end
    lines: list[list[str]] = [[]]
    for at, word in enumerate(argv):
        if at == command or (word.startswith("--") and lines[-1]):
            lines.append([])
        lines[-1].append(quote(word))
    return " \\\n  ".join(" ".join(line) for line in lines)


def _compare(context: Context, args: argparse.Namespace) -> int:
    from ttstack.render.compare import differences  # noqa: PLC0415 - only this command needs it

    found = differences(_argv(_launch(context, args)), _words(args.file), (args.arm, str(args.file)))
    if args.json:
        print_json({"equal": not found, "differences": found})
    else:
        for line in found or (f"{args.arm} and {args.file} are the same command",):
            print(line)
    return Exit.FAILED if found else Exit.DONE


def _words(file: Path) -> list[str]:
    """Read a JSON list of texts."""
    hint = 'FILE holds a JSON list of texts, such as ["/usr/bin/docker", "run", "--rm", ...]'
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", hint=hint) from None
    except ValueError as error:  # bad JSON and bad UTF-8
        raise UsageError(f"{file} is not JSON: {error}", hint=hint) from None
    if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
        raise UsageError(f"{file} is not a JSON list of texts", hint=hint)
    return value
