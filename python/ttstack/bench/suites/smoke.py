"""The smoke suite: whether a server answers as its API promises. Its times are recorded, but it is no benchmark.

Every check also holds for a real model: none depends on what the model says.
"""

from __future__ import annotations

import http.client
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from ttstack.bench.client.types import Ask
from ttstack.bench.completion import (
    PATH,
    Completion,
    complete,
    complete_streamed,
    error_text,
    forced,
    request,
)
from ttstack.bench.errors import BenchError
from ttstack.bench.http import Client
from ttstack.bench.suites.settings import setting
from ttstack.bench.suites.tokenizer import detokenize, tokenize
from ttstack.errors import UsageError
from ttstack.records.types import Measured, MeasuredCheck

if TYPE_CHECKING:
    from collections.abc import Callable

    from ttstack.bench.suites.session import Listener, Target

PROMPT = "Count upwards in words, one after the other: one two three"
# Composed characters only (some tokenizers normalise to NFC) and no space before a stop (some decoders tidy those up).
UNICODE = (
    "naïve Straße, Ελληνικά, Русский, עברית, العربية, हिन्दी, 日本語, 한국어, ไทย, "
    "🦀👩\u200d🔬, \U0001d518\U0001d52b\U0001d526"
)
_ANSWER = 48  # tokens
_ONE = 8  # tokens of the one completion
_FORCED = 17  # tokens; odd, so that nothing rounds to it
_LONG = 4096  # tokens at most
_STOP = 5  # characters
_TOO_LONG = {http.client.BAD_REQUEST, http.client.REQUEST_ENTITY_TOO_LARGE, http.client.UNPROCESSABLE_ENTITY}
_GONE = {"connect", "timeout"}  # reasons after which the other checks would only wait as well
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Smoke:
    """The suite's settings."""

    timeout_s: float = setting(120.0, "of each request", least=0.001)


def run_smoke(target: Target, settings: Smoke, listener: Listener) -> Measured:
    """Run all checks against a server, one request at a time.

    Values: ``request_s`` of every completion, ``ttft_s`` and ``chunk_at_s`` (time of each chunk with text) of the
    streamed one, and of it ``streamed_tokens_per_s`` (usage's tokens over the time to the last byte). Raises UsageError
    when nobody says how long a request may be.
    """
    if target.max_model_len is None:
        hint = "say it: --max-model-len N"
        raise UsageError("the server does not tell how many tokens it takes", hint=hint, reason="no_max_model_len")
    smoke = _Smoke(Client(target.endpoint, settings.timeout_s), target.model, target.max_model_len)
    results: list[MeasuredCheck] = []
    gone = ""
    for name, check in _CHECKS.items():
        listener.interrupted()
        if gone:
            result = MeasuredCheck(name, ok=False, detail=f"not tried, since {gone} had no answer")
        else:
            try:
                result = check(smoke, name)
            except BenchError as error:
                result = MeasuredCheck(name, ok=False, detail=error.message)
                gone = name if error.reason in _GONE else ""
        results.append(result)
        listener.check(result)
    return Measured(
        suite="smoke",
        checks=tuple(results),
        values={what: tuple(samples) for what, samples in smoke.values.items()},
        requests=smoke.requests,
        void=smoke.void,
        settings={"timeout_s": settings.timeout_s},
        outputs={} if smoke.reference is None else {"count": smoke.reference.text},
    )


def one_completion(base_url: str, model: str, *, timeout_s: float = 120.0) -> MeasuredCheck:
    """Say whether the server completes one real request; part of a run's identity, before anything is measured."""
    name, expected = "completion", f"{_ONE} tokens"
    try:
        answer = complete(Client.of(base_url, timeout_s), forced(model, PROMPT, _ONE))
    except BenchError as error:
        return MeasuredCheck(name, ok=False, detail=error.message, expected=expected, found=error.reason)
    ok = bool(answer.text) and answer.usage.completion == _ONE
    found = f"{answer.usage.completion} tokens, {answer.text!r}"
    return MeasuredCheck(name, ok, "" if ok else "not the answer that was asked for", expected, found)


@dataclass(slots=True)
class _Smoke:
    """The server, and what was counted so far."""

    client: Client
    model: str
    max_model_len: int
    values: dict[str, list[float]] = field(default_factory=lambda: {"request_s": []})
    requests: int = 0
    void: int = 0
    reference: Completion | None = None

    def counted(self, ask: Callable[[], Found]) -> Found:
        """Count a request; one that raises BenchError is void."""
        self.requests += 1
        try:
            return ask()
        except BenchError:
            self.void += 1
            raise

    def complete(self, body: dict[str, object]) -> Completion:
        answer = self.counted(lambda: complete(self.client, body))
        self.values["request_s"].append(answer.seconds)
        return answer

    def first(self) -> Completion:
        """Return the answer that others are compared with; it is asked for once."""
        if self.reference is None:
            self.reference = self.complete(self.asked())
        return self.reference

    @property
    def length(self) -> int:
        return min(_ANSWER, max(1, self.max_model_len // 4))

    def asked(self, **more: object) -> dict[str, object]:
        return forced(self.model, PROMPT, self.length, **more)


def _deterministic(smoke: _Smoke, name: str) -> MeasuredCheck:
    first, second = smoke.first(), smoke.complete(smoke.asked())
    ok = bool(first.text) and (first.text, first.usage) == (second.text, second.usage)
    detail = "" if ok else "two answers at temperature 0 differ" if first.text else "the answer has no text"
    return MeasuredCheck(name, ok, detail, first.text, second.text)


def _stop(smoke: _Smoke, name: str) -> MeasuredCheck:
    whole = smoke.first()
    stop = stop_within(whole.text)
    if not stop:
        return MeasuredCheck(name, ok=False, detail="the first answer is too short to stop within it", found=whole.text)
    expected = whole.text[: whole.text.index(stop)]
    answer = smoke.complete(smoke.asked(stop=[stop], min_tokens=0))
    faults = []
    if answer.text != expected:
        faults.append(f"the text does not end where {stop!r} begins")
    if answer.finish_reason != "stop":
        faults.append(f"finish_reason is {answer.finish_reason}")
    if answer.usage.completion >= whole.usage.completion:
        faults.append("it went on to make tokens after the stop")
    return MeasuredCheck(name, not faults, "; ".join(faults), expected, answer.text)


def stop_within(text: str) -> str:
    """Find a piece of text whose first place is in the first half and after the start; "" when there is none."""
    half = len(text) // 2
    for at in (*range(half, 0, -1), 0):
        piece = text[at : at + _STOP]
        if len(piece) == _STOP and "\ufffd" not in piece and text.index(piece) == at and at + _STOP < len(text):
            return piece
    return ""


def _unicode(smoke: _Smoke, name: str) -> MeasuredCheck:
    tokens = smoke.counted(lambda: tokenize(smoke.client, smoke.model, UNICODE))
    back = smoke.counted(lambda: detokenize(smoke.client, smoke.model, tokens))
    answer = smoke.complete(request(smoke.model, UNICODE, 16))
    faults = []
    if unicodedata.normalize("NFC", back) != unicodedata.normalize("NFC", UNICODE):
        faults.append("the text did not come back from its tokens")
    if answer.usage.prompt < len(tokens):
        faults.append(f"a prompt of {len(tokens)} tokens was counted as {answer.usage.prompt}")
    # The last character may be cut in half by the token limit; inside the text there is no excuse.
    if "\ufffd" in answer.text.rstrip("\ufffd"):
        faults.append(f"the answer has broken characters: {answer.text!r}")
    return MeasuredCheck(name, not faults, "; ".join(faults), UNICODE, back)


def _long_prompt(smoke: _Smoke, name: str) -> MeasuredCheck:
    size = max(1, min(_LONG, smoke.max_model_len // 2))
    answer = smoke.complete(forced(smoke.model, plain_tokens(size), 1))
    ok = answer.usage.prompt == size
    detail = "" if ok else "the prompt was not taken as it was sent"
    return MeasuredCheck(name, ok, detail, size, answer.usage.prompt)


def plain_tokens(size: int) -> list[int]:
    """Make a prompt of exact length from ids that are ordinary tokens in any vocabulary of more than 256."""
    return [100 + (7 * number) % 97 for number in range(size)]


def _streaming(smoke: _Smoke, name: str) -> MeasuredCheck:
    whole = smoke.first()
    # What it says is compared with the whole answer; the stream by itself is only void when it is broken.
    extra = {"min_tokens": smoke.length, "ignore_eos": True}
    ask = Ask(smoke.model, PROMPT, smoke.length, forced=False, may_hit_cache=True, counts=False, extra=extra)
    answer = smoke.counted(lambda: complete_streamed(smoke.client, ask))
    smoke.values["request_s"].append(answer.seconds)
    if answer.text_at:
        smoke.values["ttft_s"] = [answer.text_at[0]]
        smoke.values["chunk_at_s"] = list(answer.text_at)
        smoke.values["streamed_tokens_per_s"] = [answer.usage.completion / answer.seconds]
    parts = {
        "text": (whole.text, answer.text),
        "usage": (whole.usage, answer.usage),
        "finish_reason": (whole.finish_reason, answer.finish_reason),
    }
    faults = [f"{what}: {one} whole, {two} streamed" for what, (one, two) in parts.items() if one != two]
    return MeasuredCheck(name, not faults, "; ".join(faults), whole.text, answer.text)


def _exact_length(smoke: _Smoke, name: str) -> MeasuredCheck:
    size = max(1, min(_FORCED, smoke.max_model_len // 4))
    answer = smoke.complete(forced(smoke.model, PROMPT, size))
    expected, found = f"{size} tokens, length", f"{answer.usage.completion} tokens, {answer.finish_reason}"
    detail = "" if expected == found else "the answer does not have the length that was forced"
    return MeasuredCheck(name, expected == found, detail, expected, found)


def _oversize(smoke: _Smoke, name: str) -> MeasuredCheck:
    """Last, since a server that does not survive it can answer nothing more."""
    size = smoke.max_model_len + 1
    body = request(smoke.model, plain_tokens(size), 1)
    answer = smoke.counted(lambda: smoke.client.post(PATH, body))
    expected = "refused with 400, 413 or 422"
    if answer.status not in _TOO_LONG:
        detail = f"a prompt of {size} tokens was answered with {answer.status}"
        return MeasuredCheck(name, ok=False, detail=detail, expected=expected, found=answer.status)
    try:
        after = smoke.complete(smoke.asked())
    except BenchError as error:
        detail = f"after it was refused the server is no longer well: {error.message}"
        return MeasuredCheck(name, ok=False, detail=detail, expected=expected, found=answer.status)
    ok = after.text == smoke.first().text
    detail = error_text(answer.body) if ok else "after it was refused the server answers otherwise than before"
    return MeasuredCheck(name, ok, detail, expected, answer.status)


_CHECKS: dict[str, Callable[[_Smoke, str], MeasuredCheck]] = {
    "deterministic": _deterministic,
    "stop": _stop,
    "unicode": _unicode,
    "long_prompt": _long_prompt,
    "streaming": _streaming,
    "exact_length": _exact_length,
    "oversize": _oversize,
}
