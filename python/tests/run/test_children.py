"""Whoever only watches ends with whoever started him."""

from __future__ import annotations

import signal
import subprocess
import sys

from ttstack.host import process
from ttstack.run.link import python_path
from ttstack.run.waiting import wait_until

STARTS_ONE = """
import sys, time
from ttstack.run.children import start_watcher
child = start_watcher(["sleep", "600"], sys.stderr.fileno())
print(child.pid, flush=True)
time.sleep(600)
"""


def test_a_watcher_is_gone_when_its_supervisor_was_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTS_ONE], stdout=subprocess.PIPE, env={"PYTHONPATH": python_path()}
    ) as supervisor:
        assert supervisor.stdout is not None
        child = process.identify(int(supervisor.stdout.readline()))
        assert child is not None
        seen = process.stat(child.pid)
        assert seen is not None
        assert process.alive(child)
        supervisor.send_signal(signal.SIGKILL)
        supervisor.wait()
        assert wait_until(lambda: not process.alive(child), 10)
