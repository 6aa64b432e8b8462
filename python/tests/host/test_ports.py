from __future__ import annotations

import os
import socket

import pytest

from ttstack.host import ports
from ttstack.host.errors import HostError


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_the_listener_is_found_and_the_port_is_busy(family: int, host: str) -> None:
    with socket.socket(family) as server:
        try:
            server.bind((host, 0))
        except OSError:
            pytest.skip(f"no {host} here")
        port = server.getsockname()[1]
        assert ports.listening_inodes(port) == frozenset()  # bound, not yet listening
        server.listen()
        inodes = ports.listening_inodes(port)
        assert len(inodes) == 1
        assert os.getpid() in ports.owners(inodes)
        assert ports.owners(inodes, among=[1]) == ()
        assert ports.busy(host, port)
    assert not ports.busy(host, port)


def test_a_connection_is_no_listener() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            there, _ = server.accept()
            server.close()
            assert ports.listening_inodes(port) == frozenset()
            there.close()


def test_a_connection_that_lingers_does_not_make_a_port_busy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            there, _ = server.accept()
            there.close()  # the server's side closes first: TIME_WAIT stays with the port
    assert not ports.busy("127.0.0.1", port)


def test_an_address_that_is_not_ours_is_an_error() -> None:
    with pytest.raises(HostError, match=r"192\.0\.2\.1"):
        ports.busy("192.0.2.1", 0)


def test_no_table_at_all_is_an_error(tmp_path: object) -> None:
    with pytest.raises(HostError):
        ports.listening_inodes(80, tmp_path)  # type: ignore[arg-type]
