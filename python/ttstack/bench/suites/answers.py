"""Answers to fixed prompts at temperature 0: what two servers that are compared must have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ttstack.bench.client.types import Ask, Closed
from ttstack.bench.errors import BenchError
from ttstack.records.types import MeasuredCheck

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ttstack.bench.suites.session import Session

FIXED: dict[str, str] = {
    "count": "Count upwards in words, one after the other: one two three",
    "sum": "Seventeen and twenty-five make forty-two. Thirty-eight and fifty-four make",
    "code": "def fibonacci(n):\n    a, b = 0, 1\n    for _ in range(n):\n",
    "list": "The planets of the solar system, from the innermost to the outermost:\n1.",
    "story": "The lighthouse keeper had not spoken to anybody for three weeks when",
    "table": "| country | capital |\n| --- | --- |\n| France |",
}
"""Name -> prompt. A change here makes older records incomparable in this respect: their names must go with it."""
TOKENS = 64


def fixed_answers(session: Session) -> dict[str, str]:
    """Ask for all of them, one at a time, whole: the length is forced. Void ones are left out.

    Raises BenchError when the server cannot be reached.
    """
    length = session.target.max_model_len
    tokens = TOKENS if length is None else max(1, min(TOKENS, length // 4))
    model, extra = session.target.model, session.target.extra
    asks = [Ask(model, prompt, tokens, may_hit_cache=True, extra=extra, label=name) for name, prompt in FIXED.items()]
    load = session.load(asks, Closed(1))
    return {result.ask.label: result.text for result in load.valid}


def keep_answers(session: Session) -> None:
    """Ask, keep the answers in the session's outputs, and check that all came."""
    name = "answers"
    try:
        session.outputs = fixed_answers(session)
    except BenchError as error:
        session.gone = session.gone or name
        session.check(MeasuredCheck(name, ok=False, detail=error.message))
        return
    missing = [what for what in FIXED if not session.outputs.get(what)]
    detail = f"no usable answer to: {', '.join(missing)}" if missing else ""
    session.check(MeasuredCheck(name, ok=not missing, detail=detail, expected=len(FIXED), found=len(session.outputs)))


def compare_answers(session: Session, before: Mapping[str, str]) -> None:
    """Ask once more, and check that the answers are what they were before."""
    name = "same_answers"
    try:
        after = fixed_answers(session)
    except BenchError as error:
        session.check(MeasuredCheck(name, ok=False, detail=error.message))
        return
    other = [what for what in FIXED if not before.get(what) or before.get(what) != after.get(what)]
    detail = f"another answer than before to: {', '.join(other)}" if other else ""
    session.check(MeasuredCheck(name, ok=not other, detail=detail))
