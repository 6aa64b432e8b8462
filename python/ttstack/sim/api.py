"""The endpoints."""

from __future__ import annotations

import hmac
import itertools
import time
from typing import TYPE_CHECKING

from ttstack.sim import asks, fields, shapes, tokens
from ttstack.sim.banners import VLLM_VERSION
from ttstack.sim.errors import ApiError, EngineDeadError, GoneError
from ttstack.sim.generate import Twist, answer
from ttstack.sim.routes import ROUTES
from ttstack.sim.serve import Server

if TYPE_CHECKING:
    from collections.abc import Callable

    from ttstack.sim.boot import Loaded
    from ttstack.sim.flags import Settings
    from ttstack.sim.generate import Answer
    from ttstack.sim.schedule import Schedule
    from ttstack.sim.wire import Reply, Request


def _dead(fault: EngineDeadError) -> ApiError:
    return ApiError(500, fault.message, kind="InternalServerError")


class Api(Server):
    """Answers requests: 503 for all of them until ``open`` is called."""

    def __init__(self, settings: Settings, access: Callable[[str], None]) -> None:
        super().__init__(access)
        self._settings = settings
        self._faults = settings.faults
        self._created = int(time.time())
        self._live: tuple[Loaded, Schedule] | None = None
        self._calls = itertools.count(1)
        self.answered: Callable[[int], None] = lambda _: None  # told the number of completions after each

    def open(self, loaded: Loaded, schedule: Schedule) -> None:
        """Begin to serve."""
        self._live = (loaded, schedule)

    def _ready(self) -> tuple[Loaded, Schedule]:
        if self._live is None:
            raise ApiError(503, "The engine is not ready yet.", kind="ServiceUnavailable")
        return self._live

    async def route(self, request: Request, reply: Reply) -> None:
        """Answer one request. Raises ApiError, GoneError."""
        _, schedule = self._ready()
        methods = ROUTES.get(request.path)
        if methods is None:
            raise ApiError(404, "Not Found", kind="Not Found")
        if request.method not in methods:
            raise ApiError(405, "Method Not Allowed", kind="Method Not Allowed")
        if request.path.startswith("/v1/") and not self._allowed(request.headers.get("authorization", "")):
            await reply.send(401, b'{"error":"Unauthorized"}')
            return
        try:
            if request.method == "POST" and request.path != "/ping":
                await self._post(request, reply)
            else:
                await self._get(request.path, reply)
        except EngineDeadError as fault:
            if not reply.status:
                raise _dead(fault) from fault
            # As real vLLM does it: the stream is 200 already, so the error becomes an event, and DONE follows.
            await reply.event(shapes.dump(shapes.error(_dead(fault))))
            await reply.event("[DONE]")
            await reply.end()
        except GoneError:
            schedule.metrics.finished["abort"] += 1
            raise

    def _allowed(self, authorization: str) -> bool:
        keys = self._settings.api_keys
        given = authorization.removeprefix("Bearer ").encode(errors="replace")
        return not keys or any([hmac.compare_digest(given, key.encode()) for key in keys])  # noqa: C419 - no early end

    async def _get(self, path: str, reply: Reply) -> None:
        loaded, schedule = self._ready()
        if path in {"/health", "/ping"}:
            await reply.send(503 if schedule.dead else 200, b"")
        elif path == "/metrics":
            text = schedule.metrics.text(self._settings.names[0])
            await reply.send(200, text.encode(), "text/plain; version=0.0.4; charset=utf-8")
        else:
            await self._json(reply, self._about(path, loaded, schedule))

    def _about(self, path: str, loaded: Loaded, schedule: Schedule) -> dict[str, object]:
        if path == "/version":
            return {"version": VLLM_VERSION}
        if path == "/load":
            return {"server_load": schedule.metrics.running + schedule.metrics.waiting}
        wrong_root, wrong_len = "wrong-root" in self._faults, "wrong-max-len" in self._faults
        root = f"{self._settings.root}-another" if wrong_root else self._settings.root
        length = loaded.max_model_len // 2 if wrong_len else loaded.max_model_len
        return shapes.models(self._settings.names, root, length, self._created)

    async def _json(self, reply: Reply, value: object) -> None:
        await reply.send(200, shapes.dump(value).encode(errors="replace"))

    async def _post(self, request: Request, reply: Reply) -> None:
        loaded, _ = self._ready()
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            text = "Unsupported Media Type: Only 'application/json' is allowed"
            raise ApiError(415, text, kind="Unsupported Media Type")
        body, names = fields.read(request.body), self._settings.names
        if request.path == "/tokenize":
            ids = asks.tokenize(body, names)
            told = {"count": len(ids), "max_model_len": loaded.max_model_len, "tokens": ids, "token_strs": None}
            await self._json(reply, told)
        elif request.path == "/detokenize":
            ids = asks.detokenize(body, names)
            # Token by token no character of several tokens comes out whole.
            broken = "bad-unicode" in self._faults
            text = "".join(tokens.decode((token,)) for token in ids) if broken else tokens.decode(ids)
            await self._json(reply, {"prompt": text})
        else:
            limits = asks.Limits(names, loaded.max_model_len, enforced="no-limit" not in self._faults)
            call = asks.call(body, limits, chat=request.path == "/v1/chat/completions")
            await self._complete(call, reply)

    async def _complete(self, call: asks.Call, reply: Reply) -> None:
        loaded, schedule = self._ready()
        seed = loaded.fingerprint
        if "not-deterministic" in self._faults:
            seed += next(self._calls).to_bytes(8, "little")
        twist = Twist(
            no_stop="no-stop" in self._faults,
            bad_unicode="bad-unicode" in self._faults,
            other_start=("stream-differs" in self._faults and call.stream) or len(seed) > len(loaded.fingerprint),
        )
        began = time.monotonic()
        async with schedule.place():
            cached = await schedule.prefill(call.ask.prompt, reply.gone)
            schedule.metrics.first_token.add(time.monotonic() - began)
            made = answer(call.ask, seed, twist)
            shape = shapes.Shape(call)
            usage = self._usage(call, cached)
            await (self._stream if call.stream else self._whole)(shape, made, usage, reply)
        schedule.metrics.finished[made.finish_reason] += 1
        self.answered(schedule.metrics.served)

    def _usage(self, call: asks.Call, cached: int) -> Callable[[int], shapes.Usage | None]:
        told = cached if self._settings.prompt_details else None
        if "no-usage" in self._faults:
            return lambda _: None
        return lambda count: shapes.Usage(len(call.ask.prompt), count, told)

    async def _whole(
        self, shape: shapes.Shape, made: Answer, usage: Callable[[int], shapes.Usage | None], reply: Reply
    ) -> None:
        async for _ in self._ready()[1].steps(made.count, reply.gone):
            pass
        value = shape.whole(made.text, made.finish_reason, made.stop_reason, usage(made.count))
        await self._json(reply, value)

    async def _stream(
        self, shape: shapes.Shape, made: Answer, usage: Callable[[int], shapes.Usage | None], reply: Reply
    ) -> None:
        call, shown = shape.call, 0
        each: Callable[[int], shapes.Usage | None] = usage if call.continuous_usage else lambda _: None
        if call.chat:
            await reply.event(shapes.dump(shape.role(each(0))))
        async for _, end in self._ready()[1].steps(made.count, reply.gone):
            if end > made.count // 2 and await self._break(reply):
                return
            text, last = made.text[shown : made.ends[end - 1]], end == made.count
            shown = made.ends[end - 1]
            # An event without text comes only at the end: bytes of a character that is not whole yet show nothing.
            if text or last:
                finish, stop = (made.finish_reason, made.stop_reason) if last else (None, None)
                await reply.event(shapes.dump(shape.delta(text, finish, stop, each(end))))
        total = usage(made.count)
        if call.include_usage and total is not None:
            await reply.event(shapes.dump(shape.usage(total)))
        await reply.event("[DONE]")
        await reply.end()

    async def _break(self, reply: Reply) -> bool:
        """Carry out the faults of a stream's middle; tell whether the stream is over."""
        if "stream-cut" in self._faults:
            raise GoneError("the stream was cut")
        if "stream-error" not in self._faults:
            return False
        fault = ApiError(500, "EngineCore encountered an issue.", kind="InternalServerError")
        await reply.event(shapes.dump(shapes.error(fault)))
        await reply.event("[DONE]")
        await reply.end()
        return True
