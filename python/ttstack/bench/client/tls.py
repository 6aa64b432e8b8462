"""TLS to a remote server."""

from __future__ import annotations

import functools
import ssl
from typing import TYPE_CHECKING

from ttstack.bench.errors import BenchError

if TYPE_CHECKING:
    from ttstack.bench.client.endpoint import Endpoint


def tls_context(endpoint: Endpoint) -> ssl.SSLContext:
    """Verify the server's name and certificate, and offer HTTP/1.1 alone. Raises BenchError for a bad ``ca_file``."""
    return _context(endpoint.ca_file)


@functools.cache  # reading the system's certificates takes longer than a handshake
def _context(ca_file: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ValueError) as error:
        raise BenchError(f"cannot read certificates from {ca_file}: {error}", reason="connect") from error
    context.set_alpn_protocols(["http/1.1"])
    return context
