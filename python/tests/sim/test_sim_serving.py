from __future__ import annotations

import json
import re
import threading
from typing import TYPE_CHECKING

from sim_engine import Engine, joined

if TYPE_CHECKING:
    from pathlib import Path


def _metric(engine: Engine, name: str) -> float:
    status, text = engine.get("/metrics")
    assert status == 200
    found = re.search(rf"^vllm:{name}{{[^}}]*}} (\S+)$", text.decode(), re.MULTILINE)
    assert found is not None, text
    return float(found[1])


def test_counters(live: Engine) -> None:
    names = ("prompt_tokens_total", "generation_tokens_total", "prefix_cache_queries_total", "prefix_cache_hits_total")
    before = {name: _metric(live, name) for name in names}
    prompt = [77, *range(199)]
    live.complete(prompt, max_tokens=7, ignore_eos=True)
    live.complete(prompt, max_tokens=7, ignore_eos=True)
    grown = {name: _metric(live, name) - before[name] for name in names}
    assert grown == {
        "prompt_tokens_total": 400,
        "generation_tokens_total": 14,
        "prefix_cache_queries_total": 400,
        "prefix_cache_hits_total": 192,  # three blocks of 64
    }
    assert _metric(live, "num_requests_running") == 0


def test_cached_tokens_are_told_when_asked_for(tmp_path: Path) -> None:
    flags = ("--enable-prompt-tokens-details", "--block-size", "16")
    with Engine(tmp_path, flags) as engine:
        engine.ready()
        cached = [engine.complete(list(range(40)))["usage"]["prompt_tokens_details"] for _ in range(2)]
    assert cached == [{"cached_tokens": 0}, {"cached_tokens": 32}]


def test_without_prefix_caching_there_are_no_hits(tmp_path: Path) -> None:
    with Engine(tmp_path, ("--no-enable-prefix-caching", "--enable-prompt-tokens-details")) as engine:
        engine.ready()
        for _ in range(2):
            assert engine.complete(list(range(200)))["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
        assert _metric(engine, "prefix_cache_queries_total") == 0


def test_tokens_per_chunk(tmp_path: Path) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    with Engine(tmp_path, ("--sim-tokens-per-chunk", "4")) as engine:
        engine.ready()
        text = engine.text("x", max_tokens=10, ignore_eos=True)
        events = engine.events({"prompt": "x", "max_tokens": 10, "ignore_eos": True, "stream_options": options})
    assert [event["usage"]["completion_tokens"] for event in events[:-2]] == [4, 8, 10]
    assert joined(events) == text


def test_the_batch_is_limited(tmp_path: Path) -> None:
    """With room for one, requests run one after the other: the second waits while the first runs."""
    with Engine(tmp_path, ("--sim-max-batch", "1", "--sim-token-ms", "20")) as engine:
        engine.ready()
        body = {"prompt": "x", "max_tokens": 400, "ignore_eos": True, "stream": True}
        holder = engine.connect()
        holder.request("POST", "/v1/completions", json.dumps(body), {"content-type": "application/json"})
        first = holder.getresponse()
        assert first.readline().startswith(b"data: ")
        waiter = threading.Thread(target=engine.complete, args=("y",), kwargs={"max_tokens": 1})
        waiter.start()
        while _metric(engine, "num_requests_waiting") < 1:
            assert waiter.is_alive()
        assert _metric(engine, "num_requests_running") == 1
        assert engine.get("/load") == (200, b'{"server_load":2}')
        # The first one's client hangs up; that ends its request and gives the place to the second.
        first.close()
        holder.close()
        waiter.join(20)
        assert not waiter.is_alive()
        status = engine.get("/metrics")[1].decode()
        assert 'finished_reason="abort"} 1.0' in status
        assert 'finished_reason="length"} 1.0' in status


def test_pace(tmp_path: Path) -> None:
    """Lower bounds only: 100 tokens of prompt at 1000 a second, then nine times 10 ms."""
    with Engine(tmp_path, ("--sim-token-ms", "10", "--sim-prefill-rate", "1000")) as engine:
        engine.ready()
        engine.complete(list(range(100)), max_tokens=10, ignore_eos=True)
        text = engine.get("/metrics")[1].decode()
        total = re.search(r"^vllm:time_to_first_token_seconds_sum{.*} (\S+)$", text, re.MULTILINE)
        assert total is not None
        assert float(total[1]) >= 0.1


def test_api_key(tmp_path: Path) -> None:
    with Engine(tmp_path, env={"VLLM_API_KEY": "secret"}) as engine:
        engine.ready()
        assert engine.get("/health")[0] == 200
        assert engine.get("/v1/models") == (401, b'{"error":"Unauthorized"}')
        assert engine.get("/v1/models", authorization="Bearer wrong")[0] == 401
        assert engine.get("/v1/models", authorization="Bearer secret")[0] == 200
        assert "secret" not in engine.log


def test_access_log(live: Engine, tmp_path: Path) -> None:
    live.get("/version")
    live.wait_for('"GET /version HTTP/1.1" 200 OK')
    with Engine(tmp_path, ("--disable-uvicorn-access-log",)) as engine:
        engine.ready().get("/version")
        assert engine.stop() == 0
        assert '"GET' not in engine.log
