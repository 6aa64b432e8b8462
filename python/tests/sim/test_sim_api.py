from __future__ import annotations

import json
from typing import Any

import pytest
from sim_engine import Engine, joined

_UNICODE = 'naïve 日本語 👩‍🔬🏽 עברית \u0007\t\\ "quoted" \x7f'


def test_plain_endpoints(live: Engine) -> None:
    assert live.get("/health") == (200, b"")
    assert live.get("/ping") == (200, b"")
    assert live.send("POST", "/ping", b"") == (200, b"")
    assert live.get("/load") == (200, b'{"server_load":0}')
    assert live.get("/version") == (200, b'{"version":"0.25.1"}')


def test_models(live: Engine) -> None:
    status, body = live.get("/v1/models")
    assert status == 200
    answer = json.loads(body)
    assert answer["object"] == "list"
    shown = [(model["id"], model["root"], model["max_model_len"], model["owned_by"]) for model in answer["data"]]
    assert shown == [("sim", live.root, 2048, "vllm"), ("alias", live.root, 2048, "vllm")]


def test_completion(live: Engine) -> None:
    answer = live.complete("hello there", max_tokens=9, ignore_eos=True, model="alias")
    assert (answer["object"], answer["model"]) == ("text_completion", "alias")
    choice = answer["choices"][0]
    assert (choice["index"], choice["finish_reason"], choice["logprobs"]) == (0, "length", None)
    assert answer["usage"]["completion_tokens"] == 9
    assert answer["usage"]["total_tokens"] == answer["usage"]["prompt_tokens"] + 9
    assert answer["id"] != live.complete("hello there")["id"]


def test_sixteen_tokens_are_the_default(live: Engine) -> None:
    assert live.complete("hello", ignore_eos=True)["usage"]["completion_tokens"] == 16


def test_chat(live: Engine) -> None:
    parts = [{"type": "text", "text": "Repeat exactly: a"}, {"type": "text", "text": "b"}]
    messages = [{"role": "system", "content": "x"}, {"role": "user", "content": parts}]
    status, answer = live.post("/v1/chat/completions", {"messages": messages, "temperature": 0})
    assert status == 200
    assert answer["object"] == "chat.completion"
    choice = answer["choices"][0]
    assert choice["message"]["role"] == "assistant"
    assert choice["message"]["content"] == "a\nb"
    assert choice["finish_reason"] == "stop"
    counted = live.post("/tokenize", {"messages": messages})[1]["count"]
    assert answer["usage"]["prompt_tokens"] == counted


def test_temperature(live: Engine) -> None:
    assert live.text("go", max_tokens=40) == live.text("go", max_tokens=40)
    warm = {"temperature": 0.7, "max_tokens": 40}
    assert live.text("go", seed=1, **warm) == live.text("go", seed=1, **warm)
    assert live.text("go", seed=1, **warm) != live.text("go", seed=2, **warm)
    assert live.text("go", **warm) != live.text("go", **warm)
    # The default is vLLM's 1, so the answers differ.
    one, two = (live.text("go", temperature=None, max_tokens=40) for _ in range(2))
    assert one != two


def test_round_trip_by_token_ids(live: Engine) -> None:
    ids = live.post("/tokenize", {"prompt": _UNICODE})[1]
    assert ids["count"] == len(ids["tokens"])
    assert ids["max_model_len"] == 2048
    assert live.post("/detokenize", {"tokens": ids["tokens"]})[1] == {"prompt": _UNICODE}
    by_text, by_ids = (live.complete(prompt, max_tokens=30) for prompt in (_UNICODE, ids["tokens"]))
    assert by_text["choices"] == by_ids["choices"]
    assert by_ids["usage"]["prompt_tokens"] == ids["count"]
    assert live.text([ids["tokens"]], max_tokens=30) == live.text([_UNICODE], max_tokens=30)


def test_echo_is_verbatim(live: Engine) -> None:
    assert live.text(f"Repeat exactly: {_UNICODE}", max_tokens=200) == _UNICODE
    assert joined(live.events({"prompt": f"Repeat exactly: {_UNICODE}", "max_tokens": 200})) == _UNICODE


def test_stream_is_the_whole_answer(live: Engine) -> None:
    body: dict[str, object] = {"prompt": "long ago", "max_tokens": 120, "ignore_eos": True}
    whole = live.complete(body["prompt"], max_tokens=120, ignore_eos=True)
    events = live.events({**body, "stream_options": {"include_usage": True}})
    assert events[-1] == "[DONE]"
    assert joined(events) == whole["choices"][0]["text"]
    assert not joined(events).isascii()
    assert all("\ufffd" not in event["choices"][0]["text"] for event in events[:-2])
    assert [event["choices"][0]["finish_reason"] for event in events[:-2]] == [None] * (len(events) - 3) + ["length"]
    assert events[-2]["choices"] == []
    assert events[-2]["usage"] == whole["usage"]
    assert not any("usage" in event for event in events[:-2])
    assert len({event["id"] for event in events[:-1]}) == 1
    assert not any("usage" in event for event in live.events(body)[:-1])


def test_continuous_usage(live: Engine) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    events = live.events({"prompt": "x", "max_tokens": 50, "ignore_eos": True, "stream_options": options})
    counts = [event["usage"]["completion_tokens"] for event in events[:-1]]
    assert counts == sorted(counts)
    assert counts[0] == 1
    assert counts[-1] == 50


def test_chat_stream(live: Engine) -> None:
    body: dict[str, object] = {"messages": [{"role": "user", "content": "Repeat exactly: né"}]}
    events = live.events({**body, "stream_options": {"include_usage": True}}, "/v1/chat/completions")
    deltas = [event["choices"][0]["delta"] for event in events[:-2]]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert "".join(delta["content"] for delta in deltas) == "né"
    assert events[0]["object"] == "chat.completion.chunk"
    assert events[-3]["choices"][0]["finish_reason"] == "stop"
    assert events[-2]["usage"]["completion_tokens"] == 4


def test_stop_strings(live: Engine) -> None:
    whole = live.text("tell", max_tokens=60, ignore_eos=True)
    word = whole[20:25]
    answer = live.complete("tell", max_tokens=60, ignore_eos=True, stop=["\x00", word])
    choice = answer["choices"][0]
    assert choice["text"] == whole[: whole.index(word)]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", word)
    assert answer["usage"]["completion_tokens"] < 60
    assert joined(live.events({"prompt": "tell", "max_tokens": 60, "ignore_eos": True, "stop": word})) == choice["text"]


def test_min_tokens(live: Engine) -> None:
    answer = live.complete("Repeat exactly: x", max_tokens=90, min_tokens=90)
    assert answer["usage"]["completion_tokens"] == 90
    assert answer["choices"][0]["text"].startswith("x")


def test_the_context_s_length(live: Engine) -> None:
    prompt = list(range(256)) * 8  # 2048 tokens
    status, answer = live.post("/v1/completions", {"prompt": prompt[:-8], "max_tokens": 9})
    assert status == 400
    error = answer["error"]
    assert (error["type"], error["param"], error["code"]) == ("BadRequestError", None, 400)
    assert "maximum context length is 2048 tokens" in error["message"]
    assert live.complete(prompt[:-8], max_tokens=8, ignore_eos=True)["usage"]["total_tokens"] == 2048
    messages = [{"role": "user", "content": "x" * 2048}]
    assert live.post("/v1/chat/completions", {"messages": messages})[0] == 400
    messages = [{"role": "user", "content": "x"}]
    body = {"messages": messages, "ignore_eos": True, "temperature": 0}
    assert live.post("/v1/chat/completions", body)[1]["usage"]["total_tokens"] == 2048


_REFUSED: list[tuple[str, dict[str, Any], int, str]] = [
    ("/v1/completions", {}, 400, "prompt"),
    ("/v1/completions", {"prompt": ""}, 400, "empty"),
    ("/v1/completions", {"prompt": []}, 400, "empty"),
    ("/v1/completions", {"prompt": 5}, 400, "string"),
    ("/v1/completions", {"prompt": [1, "a"]}, 400, "integers"),
    ("/v1/completions", {"prompt": [True]}, 400, "integers"),
    ("/v1/completions", {"prompt": [22520]}, 400, "out of vocabulary"),
    ("/v1/completions", {"prompt": [-1]}, 400, "out of vocabulary"),
    ("/v1/completions", {"prompt": ["a", "b"]}, 400, "one prompt"),
    ("/v1/completions", {"prompt": "\ud800"}, 400, "lone surrogates"),
    ("/v1/completions", {"prompt": "x", "model": "y"}, 404, "does not exist"),
    ("/v1/completions", {"prompt": "x", "model": 1}, 400, "string"),
    ("/v1/completions", {"prompt": "x", "max_tokens": 0}, 400, "at least 1"),
    ("/v1/completions", {"prompt": "x", "max_tokens": "9"}, 400, "integer"),
    ("/v1/completions", {"prompt": "x", "max_tokens": True}, 400, "integer"),
    ("/v1/completions", {"prompt": "x", "max_tokens": 10**400}, 400, "maximum context length"),
    ("/v1/completions", {"prompt": "x", "max_tokens": 2, "min_tokens": 3}, 400, "min_tokens"),
    ("/v1/completions", {"prompt": "x", "min_tokens": -1}, 400, "at least 0"),
    ("/v1/completions", {"prompt": "x", "temperature": -1}, 400, "non-negative"),
    ("/v1/completions", {"prompt": "x", "temperature": "hot"}, 400, "number"),
    ("/v1/completions", {"prompt": "x", "temperature": float("nan")}, 400, "non-negative"),
    ("/v1/completions", {"prompt": "x", "seed": 1.5}, 400, "integer"),
    ("/v1/completions", {"prompt": "x", "n": 2}, 400, "n is not supported"),
    ("/v1/completions", {"prompt": "x", "logprobs": 0}, 400, "logprobs is not supported"),
    ("/v1/completions", {"prompt": "x", "logprobs": 5}, 400, "logprobs is not supported"),
    ("/v1/completions", {"prompt": "x", "echo": True}, 400, "echo is not supported"),
    ("/v1/completions", {"prompt": "x", "best_of": 2}, 400, "best_of is not supported"),
    ("/v1/completions", {"prompt": "x", "stop": ""}, 400, "empty string"),
    ("/v1/completions", {"prompt": "x", "stop": [1]}, 400, "string"),
    ("/v1/completions", {"prompt": "x", "stream": "yes"}, 400, "boolean"),
    ("/v1/completions", {"prompt": "x", "ignore_eos": 1}, 400, "boolean"),
    ("/v1/completions", {"prompt": "x", "stream_options": {}}, 400, "stream=True"),
    ("/v1/completions", {"prompt": "x", "stream": True, "stream_options": 1}, 400, "dictionary"),
    ("/v1/chat/completions", {}, 400, "messages"),
    ("/v1/chat/completions", {"messages": []}, 400, "messages"),
    ("/v1/chat/completions", {"messages": ["x"]}, 400, "dictionary"),
    ("/v1/chat/completions", {"messages": [{"content": "x"}]}, 400, "string"),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "text parts"),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "logprobs": True}, 400, "logprobs"),
    ("/tokenize", {"prompt": 1}, 400, "string"),
    ("/detokenize", {"tokens": "x"}, 400, "list"),
    ("/detokenize", {"tokens": [1, 99999]}, 400, "out of vocabulary"),
]


@pytest.mark.parametrize(("path", "body", "status", "told"), _REFUSED)
def test_refusals(live: Engine, path: str, body: dict[str, Any], status: int, told: str) -> None:
    got, answer = live.post(path, body)
    assert (got, answer["error"]["code"]) == (status, status)
    assert told in answer["error"]["message"]
    assert set(answer["error"]) == {"message", "type", "param", "code"}


def test_what_asks_for_nothing_is_taken(live: Engine) -> None:
    idle = {"n": 1, "logprobs": None, "echo": False, "best_of": 1, "suffix": None, "stop": None, "unknown_field": 7}
    assert live.text("x", **idle) == live.text("x")


def test_keep_alive(live: Engine) -> None:
    connection = live.connect()
    for _ in range(3):
        connection.request("GET", "/version")
        answer = connection.getresponse()
        assert answer.read() == b'{"version":"0.25.1"}'
        assert not answer.will_close
    socket = connection.sock
    connection.request("POST", "/v1/completions", b'{"prompt":"x","stream":true}', {"content-type": "application/json"})
    assert connection.getresponse().read().endswith(b"data: [DONE]\n\n")
    assert connection.sock is socket
    connection.close()
