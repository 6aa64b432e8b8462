"""A run's tensor cache as its supervisor has it: the lock, for the life of the run, and the end of a build."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from ttstack.errors import TtxError
from ttstack.host.errors import HostError
from ttstack.run.plan import read_plan

if TYPE_CHECKING:
    from ttstack.run.plan import Plan
    from ttstack.run.state import RunFolder
    from ttstack.slots.claim import Claim


class BuildMinded:
    """The lock of a run's cache, if it is ours: a process engine that was adopted has it alone.

    No fault of a cache keeps an engine from being stopped or cards from being given back: what cannot be written down
    is seen by whoever looks next, as the lock is let go.
    """

    def __init__(self, plan: Plan, lock: int | None) -> None:
        self._root = plan.cache_root
        self._key = plan.launch.cache_key
        self._run = plan.run
        self._building = plan.building
        self._lock = lock
        if lock is not None:
            os.set_inheritable(lock, False)  # noqa: FBT003 - os has it positional only

    @property
    def fds(self) -> tuple[int, ...]:
        """What an engine gets a copy of."""
        return () if self._lock is None else (self._lock,)

    def settle(self, reason: str, *, started: bool) -> None:
        """Settle a build that is not complete: broken, or taken back when no engine was started on it."""
        if not self._building:
            return
        from ttstack.cache import settle  # noqa: PLC0415 - a boot does not wait for what it may not need

        with suppress(TtxError):
            if started:
                settle.fail(self._root, self._key, self._run, reason)
            else:
                settle.withdraw(self._root, self._key, self._run)

    def take_over(self, claim: Claim) -> None:
        """Say in the marker of a build that we mind it now."""
        if not self._building:
            return
        from ttstack.cache import settle  # noqa: PLC0415 - as above
        from ttstack.cache.build import builder_of  # noqa: PLC0415

        with suppress(TtxError):
            settle.take_over(self._root, self._key, builder_of(claim))

    def let_go(self) -> None:
        """Close our copy of the lock."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def settle_left(folder: RunFolder, reason: str) -> None:
    """Settle the build of a run whose supervisor is gone, after its engine was stopped."""
    try:
        plan = read_plan(folder)
    except (HostError, KeyError, TypeError):
        return  # it never came to a plan, or an older ttx wrote it
    BuildMinded(plan, None).settle(reason, started=True)
