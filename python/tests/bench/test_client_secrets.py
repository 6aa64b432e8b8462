"""TLS, and the token that nobody may see."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

import pytest
from reference_server import Server
from virtual_loop import run

from ttstack.bench.client.connection import connect_fault
from ttstack.bench.client.endpoint import Endpoint
from ttstack.bench.client.load import load
from ttstack.bench.client.tls import tls_context
from ttstack.bench.client.types import Ask, Closed, Limits, LoadResult, VoidReason
from ttstack.bench.errors import BenchError

TLS = Path(__file__).with_name("reference_tls.pem")
ASK = Ask("reference", (101, 102), 4)
LIMITS = Limits(timeout_s=2.0)


def context() -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(TLS)
    return made


async def secured(ca_file: str, server_context: ssl.SSLContext, token: str = "") -> tuple[LoadResult, Server]:
    async with Server(context=server_context) as server:
        endpoint = Endpoint.of(f"{server.url}/pace", token, ca_file)
        return await load(endpoint, [ASK] * 2, Closed(1), LIMITS), server


def test_tls_and_a_token_that_nobody_sees(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    found, server = run(secured(str(TLS), context(), "s3cret-t0ken"))
    assert len(found.valid) == 2
    assert [result.ttft_s for result in found.valid] == pytest.approx([0.05] * 2)
    assert all(b"\r\nAuthorization: Bearer s3cret-t0ken\r\n" in head + b"\r\n" for head in server.heads)
    endpoint = Endpoint.of("https://h", "s3cret-t0ken")
    assert "s3cret" not in repr((found, endpoint)) + caplog.text + endpoint.url


def test_a_token_that_the_server_repeats_is_taken_out() -> None:
    async def work() -> LoadResult:
        async with Server() as server:
            return await load(Endpoint.of(f"{server.url}/refuses", "error"), [ASK], Closed(1), LIMITS)

    (result,) = run(work()).results
    assert result.void is not None
    assert result.void.detail == 'status 422 Unprocessable: {"***": "no"}'


def test_a_token_that_no_header_can_hold_is_refused_and_not_repeated() -> None:
    for token in ("a b", "a\r\nb", "\xe4"):
        with pytest.raises(BenchError, match="token has characters") as told:
            Endpoint.of("http://h", token)
        assert token not in str(told.value)
    for url in ("http://s3cret@h", "http://:s3cret@h"):
        with pytest.raises(BenchError) as told:
            Endpoint.of(url)
        assert "s3cret" not in str(told.value)


def test_a_certificate_that_nobody_signed_is_refused() -> None:
    with pytest.raises(BenchError, match=r"no TLS with .*self-signed") as told:
        run(secured("", context()))
    assert told.value.reason == "tls"
    with pytest.raises(BenchError, match="cannot read certificates"):
        run(secured(str(TLS.with_name("none.pem")), context()))


def test_a_server_that_offers_only_http2_is_named() -> None:
    alert = ssl.SSLError(1, "alert")
    alert.reason = "TLSV1_ALERT_NO_APPLICATION_PROTOCOL"
    void = connect_fault(Endpoint("h", 443, tls=True), alert, 1.0)
    assert (void.reason, "only HTTP/2" in void.detail) == (VoidReason.HTTP2, True)
    assert tls_context(Endpoint("h", 443, tls=True)).verify_mode is ssl.CERT_REQUIRED
