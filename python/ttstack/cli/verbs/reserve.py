"""``ttx reserve``: whether an arm's tensor cache could be built now, and what could make room for it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ttstack.cli.arms import add_arm, asked_for
from ttstack.cli.command import add_json, note, print_json, print_table
from ttstack.errors import Exit

if TYPE_CHECKING:
    import argparse

    from ttstack.arm.types import Asked
    from ttstack.cache.gc import Report
    from ttstack.cache.reserve import Reservation
    from ttstack.cache.room import Share
    from ttstack.cache.types import Directory
    from ttstack.cli.command import Context
    from ttstack.host.types import Places
    from ttstack.render.launch import Launch

EXAMPLES = """\
  ttx reserve prod
  ttx reserve ./try.toml --json
"""
_COLUMNS = ("DISK", "THIS BUILD", "OTHER BUILDS", "MARGIN", "FREE", "INODES", "INODES FREE", "")
_GC_COLUMNS = ("A GC WOULD REMOVE", "FREES", "WHY")
_BASIS = {
    "measured": "as it was measured",
    "similar": "as one of the same model and mesh was measured",
    "catalogue": "as models.toml says",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    add_arm(parser)
    add_json(parser)
    parser.set_defaults(func=_reserve)


def _reserve(context: Context, args: argparse.Namespace) -> int:
    from ttstack.cli.hosts import places_for  # noqa: PLC0415 - help and completion need not wait for the rooms

    asked = asked_for(context, args.arm)
    places = places_for(os.environ, simulated=asked.arm.engine.kind == "sim")
    launch = _launch(asked, places)
    seen = _there(Path(launch.cache_dir))
    if seen is not None and seen.standing == "complete":
        if args.json:
            print_json(_document(launch, seen, None, None))
        else:
            note(f"cache {launch.cache_key} is complete: a start builds nothing")
        return Exit.DONE
    found = _count(asked, launch, places)
    report = None if found.fits else _could_go(context, places)
    if args.json:
        print_json(_document(launch, seen, found, report))
    else:
        _show(found, report)
    return _conclude(found, seen)


def _launch(asked: Asked, places: Places) -> Launch:
    """Render the arm without its cards: caches do not depend on which they are."""
    from ttstack.render.build import build_launch  # noqa: PLC0415 - see _reserve
    from ttstack.render.cards import nominal_cards  # noqa: PLC0415

    anywhere = replace(asked, arm=replace(asked.arm, cards=replace(asked.arm.cards, ids=())))
    return build_launch(anywhere, nominal_cards(anywhere), cache_root=str(places.cache))


def _there(folder: Path) -> Directory | None:
    from ttstack.cache.errors import NoSuchCacheError  # noqa: PLC0415 - see _reserve
    from ttstack.cache.survey import standing_of  # noqa: PLC0415

    try:
        return standing_of(folder)
    except NoSuchCacheError:
        return None


def _count(asked: Asked, launch: Launch, places: Places) -> Reservation:
    from ttstack.cache.registry import read_only  # noqa: PLC0415 - see _reserve
    from ttstack.cache.reserve import reserve, wanted  # noqa: PLC0415
    from ttstack.cache.roots import known_roots  # noqa: PLC0415
    from ttstack.host.container_root import container_root, settings_of  # noqa: PLC0415

    folder = container_root(launch.runtime, settings_of(os.environ))
    want = wanted(asked, launch, read_only(places.cache), container_root=folder)
    return reserve(places.cache, want, roots=known_roots(places.locks))


def _could_go(context: Context, places: Places) -> Report:
    from ttstack.cache.gc import collect  # noqa: PLC0415 - see _reserve
    from ttstack.cli.cache_sources import sources_for  # noqa: PLC0415

    return collect(sources_for(context, places), keep_days=0, dry_run=True)


def _show(found: Reservation, report: Report | None) -> None:
    print_table(_COLUMNS, [_row(share) for share in found.shares])
    if report is not None and report.count("delete"):
        from ttstack.cache.room import gigabytes  # noqa: PLC0415 - see _reserve

        rows = [entry for entry in report.entries if entry.verdict.decision == "delete"]
        print()
        print_table(
            _GC_COLUMNS,
            [(str(entry.directory.path), gigabytes(entry.weight.freed), entry.verdict.reason) for entry in rows],
        )
        note(f"ttx: `ttx cache gc --keep-days 0` would free {gigabytes(report.freed)}")
    elif report is not None and report.unread:
        note(f"ttx: what a gc would free cannot be told: {'; '.join(report.unread)}")
    elif report is not None:
        note("ttx: a gc would free nothing: everything is in use or not ours")


def _row(share: Share) -> tuple[str, ...]:
    from ttstack.cache.room import gigabytes  # noqa: PLC0415 - see _reserve

    return (
        share.mount,
        gigabytes(share.needed),
        gigabytes(share.others),
        gigabytes(share.margin),
        gigabytes(share.free),
        str(share.files_needed),
        "no limit" if share.files_free is None else str(share.files_free),
        "short" if share.short else "fits",
    )


def _conclude(found: Reservation, seen: Directory | None) -> int:
    from ttstack.cache.errors import CacheRefusedError  # noqa: PLC0415 - see _reserve
    from ttstack.cache.reserve import check  # noqa: PLC0415
    from ttstack.cache.room import gigabytes  # noqa: PLC0415

    for build in found.siblings:
        left = f"{gigabytes(build.left)} of {gigabytes(build.expected)}"
        note(f"ttx: run {build.run} (arm {build.arm}) builds {build.path} and has {left} to write")
    if seen is not None and seen.standing == "building" and seen.marker is not None:
        note(f"ttx: cache {found.wanted.key} is being built by run {seen.marker.builder.run}")
    try:
        check(found)
    except CacheRefusedError as error:
        note(f"ttx: {error.message}")
        return Exit.REFUSED
    size = gigabytes(found.wanted.expected)
    note(f"cache {found.wanted.key} of {size} ({_BASIS[found.wanted.basis]}) can be built")
    return Exit.DONE


def _document(
    launch: Launch, seen: Directory | None, found: Reservation | None, report: Report | None
) -> dict[str, Any]:
    return {
        "arm": launch.name.removeprefix("ttx-"),
        "key": launch.cache_key,
        "path": launch.cache_dir,
        "standing": None if seen is None else seen.standing,
        "fits": found is None or found.fits,
        "reservation": None if found is None else _counted(found),
        "gc": None if report is None else _freed(report),
    }


def _counted(found: Reservation) -> dict[str, Any]:
    from ttstack.records.build import jsonable  # noqa: PLC0415 - see _reserve

    return {
        "expected": found.wanted.expected,
        "basis": found.wanted.basis,
        "present": found.present,
        "disks": [
            {**vars_of, "total": share.total, "short": share.short}
            for share in found.shares
            if isinstance(vars_of := jsonable(share), dict)
        ],
        "builds": jsonable(found.siblings),
        "unread": list(found.unread),
    }


def _freed(report: Report) -> dict[str, Any]:
    return {
        "freed": report.freed,
        "unread": list(report.unread),
        "entries": [
            {"path": str(entry.directory.path), "freed": entry.weight.freed, "reason": entry.verdict.reason}
            for entry in report.entries
            if entry.verdict.decision == "delete"
        ],
    }
