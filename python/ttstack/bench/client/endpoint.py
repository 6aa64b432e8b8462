"""Which server is asked, and with which token."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ttstack.bench.errors import BenchError

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server. ``token`` is sent as a bearer token and shown nowhere."""

    host: str
    port: int
    prefix: str = ""  # path before /v1; no slash at its end
    tls: bool = False
    token: str = field(default="", repr=False)
    ca_file: str = ""  # certificates to trust instead of the system's

    @classmethod
    def of(cls, url: str, token: str = "", ca_file: str = "") -> Endpoint:
        """Read ``http[s]://host[:port][/prefix]``. Raises BenchError for another URL or a bad token."""
        try:
            parts = urlsplit(url)
            port = parts.port or _PORTS.get(parts.scheme, 0)
        except ValueError as error:
            raise BenchError(f"{url!r} is not a URL: {error}", reason="connect") from error
        if not port or not parts.hostname or parts.query or parts.fragment or "@" in parts.netloc:
            hint = "give it as http://127.0.0.1:8000; a token comes apart from it"
            raise BenchError(
                f"cannot use {parts._replace(netloc='...').geturl()!r} as a server", hint=hint, reason="connect"
            )
        if not (token.isascii() and token.isprintable()) or " " in token:
            raise BenchError("the bearer token has characters that cannot be sent", reason="connect")
        return cls(parts.hostname, port, parts.path.rstrip("/"), parts.scheme == "https", token, ca_file)

    @property
    def authority(self) -> str:
        """Host and port as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL, never with the token."""
        return f"http{'s' if self.tls else ''}://{self.authority}{self.prefix}"
