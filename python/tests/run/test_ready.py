from __future__ import annotations

import socket

from ttstack.run.ready import healthy


def test_a_server_that_does_not_answer_is_not_healthy() -> None:
    with socket.socket() as bound:  # it has the port and does not listen
        bound.bind(("127.0.0.1", 0))
        assert not healthy(f"http://127.0.0.1:{bound.getsockname()[1]}", timeout_s=5)
