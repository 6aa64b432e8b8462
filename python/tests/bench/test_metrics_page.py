"""The text of /metrics: whatever it holds is read as Prometheus reads it, or not at all."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ttstack.bench.metrics import bucket_quantile, increase, largest, mean, quantile, read_page, total

NAMES = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,8}", fullmatch=True)
KEYS = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,6}", fullmatch=True)
LABELS = st.dictionaries(KEYS, st.text(max_size=12), max_size=4)
VALUES = st.floats(allow_nan=False)
COUNTS = st.floats(min_value=0, max_value=1e12)


def quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def line(name: str, labels: dict[str, str], value: float, more: str = "") -> str:
    inner = ",".join(f'{key}="{quoted(text)}"' for key, text in labels.items())
    return f"{name}{f'{{{inner}}}' if labels else ''} {value!r}{more}\n"


def key(labels: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


@settings(deadline=None)
@given(
    st.lists(st.tuples(NAMES, LABELS, VALUES, st.sampled_from(["", " 1395066363000", ' # {trace_id="x"} 0.67 1.5']))),
    st.lists(st.sampled_from(["# HELP a b\n", "# TYPE a counter\n", "\n", "# EOF\n", "rubbish{\n", "}\n"])),
)
def test_what_is_written_is_read(samples: list[tuple[str, dict[str, str], float, str]], between: list[str]) -> None:
    wanted: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    text = ""
    for at, (name, labels, value, more) in enumerate(samples):
        wanted.setdefault(name, {})[key(labels)] = value
        text += line(name, labels, value, more) + (between[at] if at < len(between) else "")
    assert read_page(text, wanted.keys()) == wanted


@settings(deadline=None)
@given(st.text(), st.text(alphabet='ab{}",=\\ 1.n\n#'))
def test_no_text_breaks_it(text: str, likely: str) -> None:
    for page in (read_page(text, {"a"}), read_page(likely, {"a", "b"})):
        assert all(isinstance(value, float) for series in page.values() for value in series.values())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a 1", 1.0),
        ("a\t 1e3", 1000.0),
        ('a{x="1"}2', 2.0),
        ('a { x = "1" , } 2', 2.0),
        ("a{} +Inf", math.inf),
        ("a -Inf", -math.inf),
        ("a 5\r", 5.0),
    ],
)
def test_forms_that_are_allowed(text: str, value: float) -> None:
    assert list(read_page(text, {"a"})["a"].values()) == [value]


@pytest.mark.parametrize(
    "text",
    [
        "a", "a ", "a one", "a 1_000", "a 0x10", "a ٣", 'a{x="1} 2', 'a{x="1"', "a{x=1} 2", "a{1 2", 'a{x="1"y="2"} 2',
        'a{"x"} 2', "# a 1", "aa 1", "a_created 1.7e9", " a 1",
    ],
)  # fmt: skip
def test_what_is_no_sample_is_passed_over(text: str) -> None:
    assert read_page(text, {"a"}) == {}


def test_a_name_within_another_is_another() -> None:
    page = read_page("tokens_total 5\ntokens_total_extra 7\ntokens_created 1.7e9\n", {"tokens_total"})
    assert total(page, "tokens_total") == 5


def test_the_first_name_that_is_there_counts() -> None:
    page = read_page('new{e="0"} 1\nnew{e="1"} 2\nold 9\n', {"new", "old"})
    assert total(page, "new", "old") == 3
    assert total(page, "none", "old") == 9
    assert largest(page, "new") == 2
    assert total(page, "none") is None
    assert total(read_page("a NaN", {"a"}), "a") is largest(read_page("a Inf", {"a"}), "a") is None


@settings(deadline=None)
@given(st.dictionaries(LABELS.map(key), st.tuples(COUNTS, COUNTS), min_size=1, max_size=5))
def test_a_rise_is_that_of_all_series_or_not_known(
    series: dict[tuple[tuple[str, str], ...], tuple[float, float]],
) -> None:
    before = {"a": {labels: pair[0] for labels, pair in series.items()}}
    after = {"a": {labels: pair[1] for labels, pair in series.items()}}
    rise = increase(before, after, "a")
    if any(new < old for old, new in series.values()):
        assert rise is None
    else:
        assert rise == sum(new - old for old, new in series.values())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('a{e="0"} 1', 'a{e="0"} 2\na{e="1"} 5'),
        ('a{e="0"} 1\na{e="1"} 1', 'a{e="0"} 9'),
        ('a{e="0"} 1', 'a{e="1"} 9'),
        ("b 1", "a 9"),
        ("a 1", "b 9"),
        ("a 1", "a NaN"),
        ("a NaN", "a 1"),
        ("a 1", "a Inf"),
        ("a Inf", "a Inf"),
    ],
)
def test_between_two_different_servers_no_rise_is_known(before: str, after: str) -> None:
    assert increase(read_page(before, {"a", "b"}), read_page(after, {"a", "b"}), "a") is None


@pytest.mark.parametrize(
    ("buckets", "share", "value"),
    [
        ([(0.1, 10), (0.2, 20), (math.inf, 20)], 0.5, 0.1),
        ([(0.1, 10), (0.2, 20), (math.inf, 20)], 0.75, 0.15),
        ([(0.1, 10), (0.2, 20), (math.inf, 20)], 0.25, 0.05),  # the first bucket begins at 0
        ([(0.1, 0), (0.2, 4), (math.inf, 4)], 0.0, 0.1),
        ([(0.1, 1), (0.2, 1), (math.inf, 4)], 0.9, 0.2),  # beyond the last bound nothing is known
        ([(-1.0, 4), (1.0, 4), (math.inf, 4)], 0.5, -1.0),
        ([(math.inf, 4)], 0.5, None),
        ([(0.1, 0), (math.inf, 0)], 0.5, None),
        ([(0.1, 3)], 0.5, None),
        ([], 0.5, None),
    ],
)
def test_quantiles_as_prometheus_has_them(
    buckets: list[tuple[float, float]], share: float, value: float | None
) -> None:
    found = bucket_quantile(buckets, share)
    assert found == (None if value is None else pytest.approx(value))


@settings(deadline=None)
@example([2.0], [1.8900428370329614, 34.22685794996148])  # rounding must not lead out of the bucket
@given(
    st.lists(st.floats(0.001, 100, allow_nan=False), min_size=1, max_size=60),
    st.lists(st.floats(0.01, 50, allow_nan=False), min_size=1, max_size=12, unique=True),
)
def test_a_quantile_lies_in_the_bucket_of_the_true_one(values: list[float], bounds: list[float]) -> None:
    bounds.sort()
    buckets = [(bound, float(sum(value <= bound for value in values))) for bound in [*bounds, math.inf]]
    edges = [0.0, *bounds]
    found = [bucket_quantile(buckets, share / 10) for share in range(11)]
    for share, value in enumerate(found):
        assert value is not None
        true = sorted(values)[max(0, math.ceil(share / 10 * len(values) - 1e-9) - 1)]
        if true > bounds[-1]:
            assert value == bounds[-1]
        elif share:
            low, high = next((low, high) for low, high in pairwise(edges) if low < true <= high)
            assert low <= value <= high
    assert found == sorted(found)  # type: ignore[type-var]


def test_no_share_is_refused() -> None:
    with pytest.raises(ValueError, match="no share"):
        bucket_quantile([(1.0, 1), (math.inf, 1)], 1.5)


HISTOGRAM = """\
t_bucket{{engine="0",le="0.5"}} {0}
t_bucket{{engine="0",le="+Inf"}} {1}
t_count{{engine="0"}} {1}
t_sum{{engine="0"}} {2}
t_bucket{{engine="1",le="0.5"}} {3}
t_bucket{{engine="1",le="+Inf"}} {4}
t_count{{engine="1"}} {4}
t_sum{{engine="1"}} {5}
"""
PARTS = {"t_bucket", "t_count", "t_sum"}


def test_a_histogram_is_what_was_counted_between_two_readings_in_all_engines() -> None:
    before = read_page(HISTOGRAM.format(100, 100, 10.0, 0, 50, 500.0), PARTS)
    after = read_page(HISTOGRAM.format(104, 104, 11.0, 2, 54, 504.0), PARTS)
    assert quantile(before, after, 0.25, "t") == pytest.approx(0.5 * 2 / 6)
    assert quantile({}, after, 1.0, "t") == 0.5
    assert mean(before, after, "none", "t") == pytest.approx(5.0 / 8)
    assert quantile(before, before, 0.5, "t") is mean(before, before, "t") is mean({}, {}, "t") is None
    assert quantile(after, before, 0.5, "t") is mean(after, before, "t") is None


def test_bounds_that_are_none_say_nothing() -> None:
    for bound in ("NaN", "x", ""):
        page = read_page(f't_bucket{{le="{bound}"}} 1\nt_bucket{{le="+Inf"}} 1\n', PARTS)
        assert quantile({}, page, 0.5, "t") is None


def test_buckets_that_do_not_rise_are_mended() -> None:
    page = read_page('t_bucket{le="1"} 5\nt_bucket{le="2"} 4\nt_bucket{le="+Inf"} 5\n', PARTS)
    assert quantile({}, page, 1.0, "t") == 1.0
