"""Change the code of a module while it is loaded."""

from __future__ import annotations

from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest


def mutate(monkeypatch: pytest.MonkeyPatch, changes: Sequence[tuple[ModuleType, str, str]]) -> None:
    """Change modules' texts, and give every function what the new text makes of it, wherever the function is held.

    Each change is a module, a text that stands in it once, and what is to stand there.
    """
    for module in dict.fromkeys(module for module, _, _ in changes):
        assert module.__file__
        text = Path(module.__file__).read_text()
        for old, new in ((old, new) for changed, old, new in changes if changed is module):
            assert text.count(old) == 1, f"{module.__name__} has {old!r} {text.count(old)} times"
            text = text.replace(old, new)
        assert _apply(monkeypatch, module, text), "the text was changed and the code was not"


def _apply(monkeypatch: pytest.MonkeyPatch, module: ModuleType, text: str) -> int:
    fresh: dict[str, Any] = {
        "__name__": module.__name__,
        "__package__": module.__package__,
        "__file__": module.__file__,
    }
    exec(compile(text, str(module.__file__), "exec"), fresh)  # noqa: S102 - the module's own text
    changed = 0
    for ours, theirs in [(dict(vars(module)), fresh), *_classes(module, fresh)]:
        for name, value in ours.items():
            mine, yours = _function(value), _function(theirs.get(name))
            if mine is not None and yours is not None and mine.__module__ == module.__name__ and _differ(mine, yours):
                monkeypatch.setattr(mine, "__code__", yours.__code__)
                changed += 1
    for name, value in fresh.items():
        if name.startswith("_") and not name.startswith("__") and _is_plain(value) and value != vars(module)[name]:
            monkeypatch.setattr(module, name, value)
            changed += 1
    return changed


def _is_plain(value: object) -> bool:
    """Whether it is data whose equality says something."""
    return isinstance(value, str | float | tuple | frozenset | dict) and "<" not in repr(value)


def _classes(module: ModuleType, fresh: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    own = [(name, each) for name, each in vars(module).items() if isinstance(each, type)]
    return [(dict(vars(each)), dict(vars(fresh[name]))) for name, each in own if each.__module__ == module.__name__]


def _function(value: object) -> FunctionType | None:
    value = getattr(value, "__wrapped__", value)
    return value if isinstance(value, FunctionType) else None


def _differ(mine: FunctionType, yours: FunctionType) -> bool:
    return _shape(mine.__code__) != _shape(yours.__code__)


def _shape(code: CodeType) -> tuple[object, ...]:
    """Say what a function does, without where it stands."""
    inner = tuple(_shape(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts)
    return (code.co_code, code.co_names, code.co_varnames, code.co_freevars, inner)
