from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from bench_kit import DONE, Fake, Handler, frame
from suite_kit import target

from ttstack.bench.client.endpoint import Endpoint
from ttstack.bench.suites import needle
from ttstack.bench.suites.needle import Needles, find_needle, haystack, needle_rule, prepare
from ttstack.bench.suites.session import Listener, Session

if TYPE_CHECKING:
    from collections.abc import Iterator

NEEDLES = Needles((9,), ((1, 2, 3), (4, 5)), (7, 8))


def test_a_prompt_has_exactly_the_size_and_the_needle_whole() -> None:
    for size in (20, 21, 100, 1000):
        prompt = haystack(NEEDLES, (60, 61, 62), size, "seed")
        assert prompt is not None
        assert len(prompt) == size
        assert (prompt[0], prompt[-2:]) == (9, (7, 8))
        at = prompt.index(60)
        assert prompt[at : at + 3] == (60, 61, 62)
        assert prompt.count(60) == 1
        assert 0.2 < at / size < 0.6
    assert haystack(NEEDLES, (60, 61, 62), 8, "seed") is None
    assert haystack(NEEDLES, (60,), 100, "seed") != haystack(NEEDLES, (60,), 100, "another seed")


class Reader(Handler):
    """A model that reads: it goes on with the number of the archive, unless it is beyond what it can remember."""

    def complete(self, body: dict[str, Any]) -> None:
        wrong, ids = self.fake.wrong, body["prompt"]
        text = bytes(ids[1:] if wrong == "bos" else ids).decode()
        assert text.endswith("The number of the archive, as it was told above, is")
        found = re.search(r"The number of the archive is (\d+)\.", text[-2000:] if wrong == "forgets" else text)
        said = f" {found[1]}, and so on" if found and wrong != "lies" else " 000000, and so on"
        count = 24
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        usage = {"prompt_tokens": len(ids) - (wrong == "clips"), "completion_tokens": count}
        self.piece(frame({"choices": [{"text": said, "finish_reason": "length"}]}))
        self.piece(frame({"choices": [], "usage": usage}))
        self.piece(DONE)
        self.wfile.write(b"0\r\n\r\n")

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        if self.path == "/tokenize" and self.fake.wrong == "bos":
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            lead = [2] if body["add_special_tokens"] and body["add_special"] else []
            self.answer(200, {"tokens": [*lead, *body["prompt"].encode()]})
        else:
            super().do_POST()


@contextmanager
def reading(wrong: str = "") -> Iterator[str]:
    fake = Fake.__new__(Fake)
    ThreadingHTTPServer.__init__(fake, ("127.0.0.1", 0), Reader)
    fake.wrong, fake.seen, fake.dead, fake.muddled = wrong, {}, False, False
    thread = threading.Thread(target=fake.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield fake.url
    finally:
        fake.shutdown()
        thread.join()
        fake.server_close()


def session_of(url: str, *, simulated: bool = False) -> Session:
    return Session(
        target(simulated=simulated).__class__(Endpoint.of(url), "m", 65536, simulated=simulated), Listener(), 30.0
    )


@pytest.mark.parametrize("wrong", ["", "bos"])
def test_a_model_that_reads_finds_it_at_each_length(wrong: str) -> None:
    with reading(wrong) as url:
        session = session_of(url)
        needles = prepare(session.target, 30.0)
        assert needles.lead == ((2,) if wrong else ())
        found = [find_needle(session, needles, size) for size in (1024, 8192)]
    assert [check.ok for check in found] == [True, True]
    assert [check.name for check in found] == ["needle-1024", "needle-8192"]
    assert all(str(check.expected) in str(check.found) for check in found)
    assert session.requests == 2


@pytest.mark.parametrize(
    ("wrong", "said"),
    [("lies", "not found"), ("forgets", "not found"), ("clips", "not told: prompt_length")],
)
def test_a_needle_that_is_not_found_or_not_told_never_passes(wrong: str, said: str) -> None:
    with reading(wrong) as url:
        session = session_of(url)
        check = find_needle(session, prepare(session.target, 30.0), 8192)
    assert not check.ok
    assert said in check.detail
    assert session.void == (wrong == "clips")


def test_without_a_tokenizer_it_is_not_told() -> None:
    check = find_needle(session_of("http://127.0.0.1:1"), "/tokenize answered 404", 1024)
    assert not check.ok
    assert check.detail == "not told: /tokenize answered 404"


def test_a_prompt_too_short_for_the_question_is_not_told() -> None:
    with reading() as url:
        session = session_of(url)
        check = find_needle(session, prepare(session.target, 30.0), 60)
    assert not check.ok
    assert "too few" in check.detail


def test_only_a_server_that_is_known_to_be_simulated_is_asked_to_repeat() -> None:
    assert needle_rule(target()) == "question"
    assert "Repeat" not in needle.sentence(target(), "1")
    assert needle_rule(target(simulated=True)) == "echo"
    assert "Repeat exactly: 1" in needle.sentence(target(simulated=True), "1")
