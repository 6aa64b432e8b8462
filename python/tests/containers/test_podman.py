"""What is said when podman cannot be used, by the real one."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from containers_kit import Host

pytestmark = pytest.mark.host


def test_a_user_who_may_not_use_it_is_told_so(podman_host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    program = podman_host.base / "wrapped" / "podman"
    program.parent.mkdir()
    real = shutil.which("podman")
    script = f'#!/bin/sh\nHOME=/root exec setpriv --reuid 65534 --regid 65534 --clear-groups {real} "$@"\n'
    program.write_text(script)
    program.chmod(0o755)
    arm = podman_host.arm()
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(program.parent), prepend=":")
        result = podman_host.execute(arm)
    assert (result.exit_code, result.error.reason) == (3, "runtime_denied")  # type: ignore[union-attr]
    assert result.error.message.startswith("this user may not use podman: ")  # type: ignore[union-attr]
    assert "\n" not in result.error.message  # type: ignore[union-attr]
    assert podman_host.clean()


def test_a_service_that_does_not_run_is_told(podman_host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    arm = podman_host.arm()
    with monkeypatch.context() as patch:
        patch.setenv("CONTAINER_HOST", "unix:///nowhere/podman.sock")
        result = podman_host.execute(arm)
    assert (result.exit_code, result.error.reason) == (3, "runtime_down")  # type: ignore[union-attr]
    assert "CONTAINER_HOST" in result.error.message  # type: ignore[union-attr]


def test_folders_that_cannot_be_made_are_told(podman_host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = podman_host.base / "storage.conf"
    settings.write_text('[storage]\ndriver = "vfs"\ngraphroot = "/proc/nowhere"\nrunroot = "/proc/nowhere"\n')
    arm = podman_host.arm()
    with monkeypatch.context() as patch:
        patch.setenv("CONTAINERS_STORAGE_CONF", str(settings))
        result = podman_host.execute(arm)
    assert (result.exit_code, result.error.reason) == (3, "runtime_unusable")  # type: ignore[union-attr]
    assert result.error.message.startswith("podman does not work: ")  # type: ignore[union-attr]
