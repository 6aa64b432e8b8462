"""Where an axis has its marks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.records.report.words import number

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDE = 30.0  # largest over smallest value from which on an axis is logarithmic
_DECADES = 2  # from which on a logarithmic axis has a mark at 1, 2 and 5 no more, but at 1 alone
_MOST = 10  # marks of a logarithmic axis
_SAME = 1e-9  # of their size: values nearer than this are drawn as one
_NOTHING = 1e-290  # what a step of an axis cannot be made of
_OFF = 100.0  # pygal draws another line through 0, which is no place of note among logarithms
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis: ``low`` and ``high`` of what is drawn, and its marks, all as values before ``place``."""

    low: float
    high: float
    marks: tuple[float, ...]
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Say where a value is."""
        return math.log10(max(value, self.low)) + _OFF if self.logarithmic else value

    @property
    def range(self) -> tuple[float, float]:
        """Both ends, as places."""
        return self.place(self.low), self.place(self.high)

    @property
    def labels(self) -> list[dict[str, float | str]]:
        """The marks as pygal takes them."""
        return [{"label": number(mark), "value": self.place(mark)} for mark in self.marks]


def scale(values: Sequence[float]) -> Scale:
    """Choose an axis: from 0 on, or logarithmic where the values, all above 0, are far apart."""
    low, high = min(values), max(values)
    if low > _NOTHING and high / low > WIDE:
        return _logarithmic(low, high)
    return linear(min(low, 0.0), max(high, 0.0))


def close_scale(values: Sequence[float]) -> Scale:
    """Choose a linear axis that shows small differences: not from 0 on, and with some room around the values."""
    low, high = min(values), max(values)
    room = max((high - low) * 0.15, abs(high) * 0.02)
    return linear(low - room, high + room)


def linear(low: float, high: float, count: int = 5) -> Scale:
    """Make a linear axis that holds both ends, with about ``count`` marks."""
    if high - low <= max(abs(low), abs(high)) * _SAME or high - low < _NOTHING:
        high = low + max(1.0, abs(low) / 10)
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in _STEPS if each * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    marks = tuple(at * step for at in range(first, last + 1))
    return Scale(marks[0], marks[-1], marks)


def _logarithmic(low: float, high: float) -> Scale:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    digits = (1, 2, 5) if math.log10(high / low) <= _DECADES else (1,)
    every = [digit * 10.0**power for power in decades for digit in digits]
    first = max((mark for mark in every if mark <= low), default=every[0])
    last = min((mark for mark in every if mark >= high), default=every[-1])
    marks = [mark for mark in every if first <= mark <= last]
    each = math.ceil(len(marks) / _MOST)
    return Scale(first, last, (*marks[:-each:each], last), logarithmic=True)
