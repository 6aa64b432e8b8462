"""What the measuring client is asked and what it answers.

Times are seconds of the monotonic clock since the load began (``LoadResult.began`` is that moment), unless a name says
that it is a difference. A request with ``void`` set is counted, and none of its times may enter a statistic.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ttstack.records.types import Json

    Message = Mapping[str, Json]
    Prompt = tuple[int, ...] | str | tuple[Message, ...]

MAX_CPU_SHARE = 0.5  # of one core; above it the client disturbs what it measures
MAX_LAG_S = 0.005  # 99th percentile of the client's own loop


class Api(Enum):
    """Where a request goes."""

    COMPLETIONS = "/v1/completions"
    CHAT = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Ask:
    """One request to be measured.

    A prompt of token ids goes to /v1/completions and has an exact length, which is checked against the server's usage;
    text goes to either; messages go to chat. ``forced``: the answer must have ``max_tokens`` tokens (min_tokens and
    ignore_eos are sent), which is checked, too.
    """

    model: str
    prompt: Prompt
    max_tokens: int
    api: Api = Api.COMPLETIONS
    forced: bool = True
    prompt_tokens: int | None = None  # expected; None: the number of ids, or unknown for text
    may_hit_cache: bool = False  # where a prefix cache is what is measured
    counts: bool = True  # ask for the count of tokens in each chunk (continuous_usage_stats)
    token_ids: bool = False  # ask for the ids in each chunk (return_token_ids)
    extra: Mapping[str, Json] = field(default_factory=dict)  # more fields of the body
    label: str = ""  # free, for the caller: the cell that the request belongs to, the seed of its prompt

    @property
    def expected_prompt(self) -> int | None:
        """Tokens that the server must count in the prompt; None when that is not known."""
        if self.prompt_tokens is not None:
            return self.prompt_tokens
        ids = isinstance(self.prompt, tuple) and bool(self.prompt) and isinstance(self.prompt[0], int)
        return len(self.prompt) if ids else None


class VoidReason(Enum):
    """Why a request may not be used; the value is the stable code for records."""

    CONNECT = "connect"  # refused, unreachable, no such host
    TLS = "tls"  # the certificate or the handshake
    TIMEOUT = "timeout"
    NOT_HTTP = "not_http"  # not HTTP, or HTTP whose framing is broken
    HTTP2 = "http2"  # a server that speaks only HTTP/2
    REDIRECT = "redirect"
    COMPRESSED = "compressed"
    STATUS = "status"  # any status but 200
    NOT_A_STREAM = "not_a_stream"  # 200, but no text/event-stream
    TOO_LARGE = "too_large"
    DROPPED = "dropped"  # the connection ended before the answer did
    SERVER_ERROR = "server_error"  # an error event inside a stream of status 200
    BAD_EVENT = "bad_event"  # not UTF-8, not JSON, not of the API's shape, or after [DONE]
    NO_DONE = "no_done"
    NO_TOKENS = "no_tokens"  # no chunk with text, reasoning, a tool call or token ids
    NO_USAGE = "no_usage"
    MISCOUNT = "miscount"  # the server's own counts contradict each other
    PROMPT_LENGTH = "prompt_length"
    OUTPUT_LENGTH = "output_length"
    FINISH_REASON = "finish_reason"  # forced length, but another reason than "length"
    CACHE_HIT = "cache_hit"


@dataclass(frozen=True, slots=True)
class Void:
    """Why a request is void, with a sentence that holds the particulars."""

    reason: VoidReason
    detail: str


class Chunk(NamedTuple):
    """One event of a stream that carries part of the answer."""

    at: float  # when its last byte was read from the socket
    tokens: int | None  # how many it brought by the server's own count; None: not told
    shown: bool  # it has text, reasoning, a tool call or token ids


@dataclass(frozen=True, slots=True)
class Usage:
    """The server's own counts, tokens."""

    prompt: int
    completion: int
    cached: int | None  # of the prompt; None: not told


@dataclass(frozen=True, slots=True)
class Result:
    """One request. The properties are None where the request is void, or has too few tokens for them."""

    ask: Ask
    number: int  # in the order of the load
    sent: float | None  # just before the first byte was written; None: nothing was sent
    scheduled: float | None = None  # open loop only
    void: Void | None = None
    head_at: float | None = None  # the answer's head was whole
    chunks: tuple[Chunk, ...] = ()  # those with tokens, in order
    end_at: float | None = None  # the last byte of the answer, or the moment of the fault
    text: str = ""
    reasoning: str = ""
    finish_reason: str = ""
    usage: Usage | None = None
    server: Mapping[str, Json] = field(default_factory=dict)  # its own ``timings`` (llama.cpp) or ``metrics`` (vLLM)
    resent: int = 0  # times that a kept connection turned out to be closed; ``sent`` is the last time

    @property
    def _first(self) -> int | None:
        shows = (number for number, chunk in enumerate(self.chunks) if chunk.shown)
        return next(shows, None) if self.void is None else None

    @property
    def first_at(self) -> float | None:
        """When the first chunk with text, reasoning, a tool call or token ids was read."""
        return None if self._first is None else self.chunks[self._first].at

    @property
    def last_at(self) -> float | None:
        """When the last token was read."""
        return None if self._first is None else self.chunks[-1].at

    @property
    def ttft_s(self) -> float | None:
        """Time to first token, from the send."""
        return None if self.first_at is None or self.sent is None else self.first_at - self.sent

    @property
    def ttft_scheduled_s(self) -> float | None:
        """Time to first token from when it should have been sent; open loop only."""
        return None if self.first_at is None or self.scheduled is None else self.first_at - self.scheduled

    @property
    def e2e_s(self) -> float | None:
        """From the send to the last token."""
        return None if self.last_at is None or self.sent is None else self.last_at - self.sent

    @property
    def e2e_scheduled_s(self) -> float | None:
        """From when it should have been sent to the last token; open loop only."""
        return None if self.last_at is None or self.scheduled is None else self.last_at - self.scheduled

    @property
    def late_s(self) -> float | None:
        """How much later than scheduled it was sent; open loop only."""
        return None if self.sent is None or self.scheduled is None else self.sent - self.scheduled

    @property
    def counted(self) -> bool:
        """Whether the server told how many tokens each chunk brought."""
        return bool(self.chunks) and all(chunk.tokens is not None for chunk in self.chunks)

    @property
    def first_tokens(self) -> int | None:
        """Tokens that were there with the read that showed the first; 1 a chunk where nothing was counted."""
        at = self.first_at
        if at is None:
            return None
        return sum(chunk.tokens if chunk.tokens is not None else 1 for chunk in self.chunks if chunk.at <= at)

    @property
    def tpot_exact(self) -> bool:
        """Whether ``first_tokens`` is known: the server counted, or it made as many chunks as tokens."""
        return self.counted or (self.usage is not None and len(self.chunks) == self.usage.completion)

    @property
    def tpot_s(self) -> float | None:
        """Time per output token after the first chunk: (t_last - t_first) / (n - n_first)."""
        if self.first_at is None or self.last_at is None or self.first_tokens is None or self.usage is None:
            return None
        made = sum(chunk.tokens or 0 for chunk in self.chunks) if self.counted else self.usage.completion
        more = made - self.first_tokens
        return (self.last_at - self.first_at) / more if more > 0 else None

    @property
    def gaps_s(self) -> tuple[float, ...]:
        """Times between chunks, which are not times between tokens: a chunk may bring several, see ``Chunk.tokens``."""
        if self._first is None:
            return ()
        return tuple(after.at - before.at for before, after in pairwise(self.chunks[self._first :]))

    @property
    def prefill_tokens_per_s(self) -> float | None:
        """Prompt tokens over TTFT, end to end: queue, HTTP and first decode step are inside."""
        return self.usage.prompt / self.ttft_s if self.usage is not None and self.ttft_s else None


@dataclass(frozen=True, slots=True)
class Closed:
    """So many requests at a time; the next one starts when one ends. The wait before it is not in any time."""

    concurrency: int


@dataclass(frozen=True, slots=True)
class Open:
    """Requests start when it is time, whatever the others do."""

    rate: float  # requests/s
    arrivals: Literal["poisson", "constant"] = "poisson"
    seed: int = 0  # of the Poisson gaps
    connections: int = 0  # opened before the first request; 0: as many as there are requests, at most 256


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop, in seconds."""

    timeout_s: float = 600.0  # of each request, from its send to the last byte of its answer
    duration_s: float | None = None  # after that no more are sent
    connect_s: float = 30.0
    watch_cache: bool = True  # read the server's /metrics before and after


@dataclass(frozen=True, slots=True)
class Lag:
    """How late the client's own loop woke up, seconds; ``samples`` is how often that was looked at."""

    median: float
    p99: float
    largest: float
    samples: int


@dataclass(frozen=True, slots=True)
class LoadResult:
    """All requests of one load, and what the client itself did meanwhile."""

    results: tuple[Result, ...]  # in the order of their numbers; empty when they went to ``on_result``
    pattern: Closed | Open
    began: float  # time.monotonic() at zero of all times
    wall_began: float  # time.time() at the same moment
    seconds: float  # until the last byte of the last request
    lag: Lag
    cpu_s: float  # of this process, meanwhile
    requests: int
    voids: Mapping[VoidReason, int]
    cache_hits: float | None = None  # prompt tokens from a prefix cache, by the server's /metrics; None: not told
    may_hit_cache: bool = False  # whether all asks allow that

    @property
    def valid(self) -> tuple[Result, ...]:
        """The requests that may be used."""
        return tuple(result for result in self.results if result.void is None)

    @property
    def cpu_share(self) -> float:
        """Of one core."""
        return self.cpu_s / self.seconds if self.seconds > 0 else 0.0

    @property
    def against(self) -> tuple[str, ...]:
        """Why the load as a whole is not quotable: the client was too busy, or requests are void. Empty: it may be."""
        reasons = []
        if self.cpu_share > MAX_CPU_SHARE:
            reasons.append(f"the client used {self.cpu_share:.0%} of a core; at most {MAX_CPU_SHARE:.0%} may be")
        if self.lag.p99 > MAX_LAG_S:
            reasons.append(f"the client's loop was {self.lag.p99 * 1e3:.1f} ms late (p99)")
        if self.cache_hits and not self.may_hit_cache:
            reasons.append(f"{self.cache_hits:g} prompt tokens came from a prefix cache meanwhile")
        reasons += [f"{count} of {self.requests} void: {reason.value}" for reason, count in self.voids.items()]
        return tuple(reasons)

    @property
    def output_tokens(self) -> int:
        """Tokens of the valid answers, by the server's count."""
        return sum(result.usage.completion for result in self.valid if result.usage is not None)

    @property
    def output_tokens_per_s(self) -> float | None:
        """Output tokens over the time from the first send to the last token."""
        times = [(result.sent, result.last_at) for result in self.valid]
        sent, last = [a for a, _ in times if a is not None], [b for _, b in times if b is not None]
        return self.output_tokens / (max(last) - min(sent)) if sent and last and max(last) > min(sent) else None
