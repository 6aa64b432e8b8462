"""``ttx cache``: the tensor caches of this host: which, whose, why, and whether they are whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ttstack.cli.arms import ARM, add_arm, asked_for
from ttstack.cli.command import add_json, leaf, note, print_json, print_table
from ttstack.cli.verbs.cache_gc import add_gc
from ttstack.errors import Exit, UsageError

if TYPE_CHECKING:
    import argparse

    from ttstack.arm.types import Asked
    from ttstack.cli.cache_view import RootView, Seen
    from ttstack.cli.command import Context

EXAMPLES = """\
  ttx cache ls --du
  ttx cache why prod
  ttx cache verify
"""
_LS = """\
  ttx cache ls
  ttx cache ls --du
  ttx cache ls --json
"""
_SHOW = """\
  ttx cache show 0123456789abcdef
  ttx cache show jit/prod-ttnn-0.81.1 --json
"""
_WHY = """\
  ttx cache why prod
  ttx cache why ./try.toml --json
"""
_VERIFY = """\
  ttx cache verify
  ttx cache verify 0123456789abcdef --full
"""
_REBUILD = """\
  ttx cache rebuild-registry
"""
_ADOPT = """\
  ttx cache adopt 0123456789abcdef --arm prod
"""
_TRUST = """\
  ttx cache trust 0123456789abcdef
  ttx cache trust 0123456789abcdef --arm prod
"""
_KEY = "its key, or its path from the root, as `ttx cache ls` shows it"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    ls = leaf(commands, "ls", "list the caches, who uses them, and what lies beside them", _LS, _ls)
    ls.add_argument("--du", action="store_true", help="add up what they take on the disk, shared files once")
    add_json(ls)
    show = leaf(commands, "show", "show all that is known of one cache", _SHOW, _show)
    show.add_argument("key", metavar="KEY", help=_KEY)
    add_json(show)
    why = leaf(commands, "why", "show an arm's key, and why other caches of its model have others", _WHY, _why)
    add_arm(why)
    add_json(why)
    verify = leaf(
        commands, "verify", "look for files that are missing, cut off, changed or left over", _VERIFY, _verify
    )
    verify.add_argument("key", metavar="KEY", nargs="?", help=f"{_KEY} (default: all that are complete)")
    verify.add_argument("--full", action="store_true", help="read every byte, and compare with the last time")
    add_json(verify)
    rebuild = leaf(
        commands, "rebuild-registry", "make the registry anew from the caches' own markers", _REBUILD, _rebuild
    )
    add_json(rebuild)
    adopt = leaf(commands, "adopt", "make ours what an engine wrote before there was ttx", _ADOPT, _adopt)
    adopt.add_argument("key", metavar="KEY", help=_KEY)
    adopt.add_argument("--arm", metavar="ARM", required=True, help=f"the arm whose engine wrote it: {ARM}")
    add_json(adopt)
    trust = leaf(commands, "trust", "say that a checkpoint whose files look new has the same bytes", _TRUST, _trust)
    trust.add_argument("key", metavar="KEY", help=_KEY)
    trust.add_argument(
        "--arm", metavar="ARM", help=f"the arm whose checkpoint it is (default: one with this key): {ARM}"
    )
    add_json(trust)
    add_gc(commands)


def _ls(context: Context, args: argparse.Namespace) -> int:
    from ttstack.cli.cache_view import COLUMNS, entry, roots, row  # noqa: PLC0415 - help need not wait for the rooms
    from ttstack.cli.human import size  # noqa: PLC0415

    views = list(roots(context, sizes=args.du))
    if args.json:
        print_json(
            [
                {
                    "root": str(view.places.cache),
                    "simulated": view.places.simulated,
                    "on_disk": view.sizes.total if args.du else None,
                    "unread": list(view.unread),
                    "registry": view.trouble,
                    "directories": [entry(seen, view.sizes) for seen in view.seen],
                }
                for view in views
            ]
        )
    else:
        rows = [row(seen, view.sizes) for view in views for seen in view.seen]
        if rows:
            print_table(COLUMNS, rows, cut=True)
        else:
            note(f"there are no caches under {', '.join(str(view.places.cache) for view in views)}")
        for view in views if args.du else ():
            if view.seen:
                print(f"{size(view.sizes.total)} on the disk under {view.places.cache}")
    _warn(views)
    return Exit.DONE


def _warn(views: list[RootView]) -> None:
    for view in views:
        if view.trouble:
            note(f"ttx: {view.trouble}")
        for text in view.unread:
            note(f"ttx: who uses them is not known in full: {text}")


def _found(context: Context, key: str, *, ask: bool = True) -> tuple[list[RootView], list[Seen]]:
    """Find a cache by its key or path. Raises NoSuchCacheError."""
    from ttstack.cache.errors import NoSuchCacheError  # noqa: PLC0415 - as above
    from ttstack.cli.cache_view import roots  # noqa: PLC0415
    from ttstack.near import nearest  # noqa: PLC0415

    views = list(roots(context, ask=ask))
    found = [seen for view in views for seen in view.seen if seen.name == key.rstrip("/")]
    if not found:
        names = [seen.name for view in views for seen in view.seen]
        near = next((name for name in names if key and name.startswith(key)), "") or nearest(key, names)
        where = " and ".join(str(view.places.cache) for view in views)
        raise NoSuchCacheError(
            f"there is no cache {key!r} under {where}", hint=f"did you mean {near}" if near else "see: ttx cache ls"
        )
    return views, found


def _show(context: Context, args: argparse.Namespace) -> int:
    from ttstack.cache.sizes import measure  # noqa: PLC0415 - as above
    from ttstack.cli.cache_view import entry, page  # noqa: PLC0415
    from ttstack.printable import printable  # noqa: PLC0415

    views, found = _found(context, args.key)
    if args.json:
        print_json([entry(seen, measure([seen.directory.path])) for seen in found])
    else:
        for at, seen in enumerate(found):
            print("\n".join([*([""] if at else []), *map(printable, page(seen, measure([seen.directory.path])))]))
    _warn([view for view in views if {id(seen) for seen in view.seen} & {id(seen) for seen in found}])
    return Exit.DONE


def _why(context: Context, args: argparse.Namespace) -> int:
    from ttstack.cli.cache_why import lines, table  # noqa: PLC0415 - as above

    asked = asked_for(context, args.arm)
    if args.json:
        print_json(table(asked))
    else:
        print("\n".join(lines(asked)))
    return Exit.DONE


def _verify(context: Context, args: argparse.Namespace) -> int:
    from ttstack.cli.cache_check import check, told  # noqa: PLC0415 - as above
    from ttstack.cli.cache_view import roots  # noqa: PLC0415

    if args.key is None:
        seen = [one for view in roots(context, ask=False) for one in view.seen if one.directory.standing == "complete"]
        seen = [one for one in seen if one.directory.marker is not None and one.directory.marker.kind == "tensors"]
    else:
        seen = _found(context, args.key, ask=False)[1]
    checked = [check(one, full=args.full) for one in seen]
    if args.json:
        print_json([one.table() for one in checked])
    elif checked:
        for one in checked:
            print("\n".join(told(one)))
    else:
        note("there are no complete caches")
    return Exit.DONE if all(one.whole for one in checked) else Exit.FAILED


def _rebuild(_context: Context, args: argparse.Namespace) -> int:
    import os  # noqa: PLC0415 - as above

    from ttstack.cache.registry import rebuild  # noqa: PLC0415
    from ttstack.cli.hosts import all_places  # noqa: PLC0415
    from ttstack.errors import TtxError  # noqa: PLC0415

    done: list[dict[str, Any]] = []
    faults: list[TtxError] = []
    for places in all_places(os.environ):
        if not places.cache.is_dir():
            continue
        try:
            registry, aside = rebuild(places.cache)
        except TtxError as error:
            faults.append(error)
            continue
        done.append(
            {
                "root": str(places.cache),
                "directories": len(registry.markers),
                "measurements": len(registry.history),
                "moved_aside": None if aside is None else str(aside),
            }
        )
    if args.json:
        print_json(done)
    for one in done if not args.json else ():
        moved = f"; the one that was there is now {one['moved_aside']}" if one["moved_aside"] else ""
        print(f"{one['root']}: {one['directories']} directories, {one['measurements']} measured sizes{moved}")
    for other in faults[1:]:
        note(f"ttx: {other}")
    if faults:
        raise faults[0]
    if not done and not args.json:
        note("there are no caches on this host")
    return Exit.DONE


def _adopt(context: Context, args: argparse.Namespace) -> int:
    from ttstack.cli.cache_change import adopt_as  # noqa: PLC0415 - as above

    marker = adopt_as(asked_for(context, args.arm), args.key)
    _say(args, f"cache {args.key} is complete: {marker.files} files, {marker.bytes} bytes", {"key": args.key})
    return Exit.DONE


def _trust(context: Context, args: argparse.Namespace) -> int:
    from ttstack.cli.cache_change import arm_with_key, trust_for  # noqa: PLC0415 - as above

    asked: Asked = asked_for(context, args.arm) if args.arm else arm_with_key(context, args.key)
    if not asked.model.path:
        raise UsageError(
            f"the model {asked.model.name} of arm {asked.arm.name} has no checkpoint folder on this host",
            hint="only a model with a `path` has files that can change",
        )
    changed = trust_for(asked, args.key)
    what = "is trusted with the checkpoint as it is now" if changed else "was made from the checkpoint as it is now"
    _say(args, f"cache {args.key} {what}", {"key": args.key, "changed": changed})
    return Exit.DONE


def _say(args: argparse.Namespace, text: str, table: dict[str, Any]) -> None:
    if args.json:
        print_json(table)
    else:
        print(text)
