"""The JSON of answers, as vLLM gives them."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ttstack.sim.asks import Call
    from ttstack.sim.errors import ApiError


def dump(value: object) -> str:
    """JSON, compact, as in vLLM's streams."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def error(fault: ApiError) -> dict[str, object]:
    """Give the body of a refusal."""
    about = {"message": fault.message, "type": fault.kind, "param": fault.param, "code": fault.status}
    return {"error": about}


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one answer. ``cached`` is None when it is not told."""

    prompt: int
    completion: int
    cached: int | None

    def json(self) -> dict[str, object]:
        """Give vLLM's ``usage``."""
        details = None if self.cached is None else {"cached_tokens": self.cached}
        return {
            "prompt_tokens": self.prompt,
            "total_tokens": self.prompt + self.completion,
            "completion_tokens": self.completion,
            "prompt_tokens_details": details,
        }


@dataclass(frozen=True, slots=True)
class Shape:
    """The form of the answers to one call."""

    call: Call
    id: str = field(default_factory=lambda: os.urandom(16).hex())
    created: int = field(default_factory=lambda: int(time.time()))

    def _base(self, kind: str) -> dict[str, object]:
        prefix = "chatcmpl-" if self.call.chat else "cmpl-"
        return {"id": prefix + self.id, "object": kind, "created": self.created, "model": self.call.model}

    def whole(self, text: str, finish: str, stop: str | None, usage: Usage | None) -> dict[str, object]:
        """Give the answer without streaming."""
        end = {"logprobs": None, "finish_reason": finish, "stop_reason": stop}
        told = usage.json() if usage else None
        if self.call.chat:
            message: dict[str, object] = {
                "role": "assistant",
                "content": text,
                "refusal": None,
                "tool_calls": [],
                "reasoning": None,
            }
            choice = {"index": 0, "message": message, **end}
            return {**self._base("chat.completion"), "choices": [choice], "usage": told}
        choice = {"index": 0, "text": text, **end, "prompt_logprobs": None}
        return {**self._base("text_completion"), "choices": [choice], "usage": told}

    def _chunk(self, choices: list[dict[str, object]], usage: Usage | None) -> dict[str, object]:
        kind = "chat.completion.chunk" if self.call.chat else "text_completion"
        chunk = {**self._base(kind), "choices": choices}
        return {**chunk, "usage": usage.json()} if usage else chunk

    def role(self, usage: Usage | None) -> dict[str, object]:
        """Give the first event of a chat: the role, and no text."""
        choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
        return self._chunk([choice], usage)

    def delta(self, text: str, finish: str | None, stop: str | None, usage: Usage | None) -> dict[str, object]:
        """Give an event with text; ``finish`` is set in the last one."""
        end: dict[str, object] = {"logprobs": None, "finish_reason": finish}
        if finish is not None or not self.call.chat:
            end["stop_reason"] = stop
        if self.call.chat:
            return self._chunk([{"index": 0, "delta": {"content": text}, **end}], usage)
        return self._chunk([{"index": 0, "text": text, **end}], usage)

    def usage(self, usage: Usage) -> dict[str, object]:
        """Give the event after the last: no choices, only the usage."""
        return self._chunk([], usage)


def models(names: tuple[str, ...], root: str, max_model_len: int, created: int) -> dict[str, object]:
    """Give /v1/models."""
    data: list[dict[str, object]] = [
        {
            "id": name,
            "object": "model",
            "created": created,
            "owned_by": "vllm",
            "root": root,
            "parent": None,
            "max_model_len": max_model_len,
            "permission": [],
        }
        for name in names
    ]
    return {"object": "list", "data": data}
