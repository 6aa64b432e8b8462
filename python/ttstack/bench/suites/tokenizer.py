"""A server's own tokenizer: /tokenize and /detokenize as vLLM has them, or as llama.cpp does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ttstack.bench.completion import error_text, get
from ttstack.bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ttstack.bench.http import Client


def tokenize(client: Client, model: str, text: str, *, special: bool = False) -> tuple[int, ...]:
    """Ask for the ids of a text, with the tokens that go before any text or without. Raises BenchError."""
    # vLLM reads the first three, llama.cpp the others.
    body = {"model": model, "prompt": text, "add_special_tokens": special, "content": text, "add_special": special}
    ids = tuple(token for token in get(_asked(client, "/tokenize", body), "tokens", list) if type(token) is int)
    if not ids:
        raise BenchError("/tokenize told no token ids", reason="answer")
    return ids


def detokenize(client: Client, model: str, ids: Sequence[int]) -> str:
    """Ask for the text of ids. Raises BenchError."""
    answer = _asked(client, "/detokenize", {"model": model, "tokens": list(ids)})
    return get(answer, "content" if isinstance(answer, dict) and "prompt" not in answer else "prompt", str)


def _asked(client: Client, path: str, body: Mapping[str, object]) -> Any:  # noqa: ANN401 - any JSON value
    answer = client.post(path, body)
    if answer.status != 200:  # noqa: PLR2004 - OK
        raise BenchError(f"{path} answered {answer.status}: {error_text(answer.body)}", reason="status")
    return answer.body
