from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttstack.sim import tokens
from ttstack.sim.generate import Ask, Twist, answer
from ttstack.sim.prefix import PrefixCache

_PRINT = hashlib.sha256(b"weights").digest()


def _ask(**more: object) -> Ask:
    about: dict[str, object] = {
        "text": "",
        "max_tokens": 400,
        "min_tokens": 0,
        "ignore_eos": False,
        "stop": (),
        "salt": b"",
    }
    return Ask(**{"prompt": (1, 2, 3), **about, **more})  # type: ignore[arg-type]


@given(st.text())
def test_text_comes_back(text: str) -> None:
    ids = tokens.encode(text)
    assert all(0 <= token < tokens.VOCABULARY for token in ids)
    assert tokens.decode(ids) == text


@given(st.lists(st.integers(0, tokens.VOCABULARY - 1)))
def test_every_token_has_bytes(ids: list[int]) -> None:
    assert len(tokens.decode_bytes(ids)) >= sum(token not in range(256, 260) for token in ids)


def test_words_make_fewer_tokens_than_bytes() -> None:
    assert tokens.encode("balo mire") == tokens.encode("balo") + tokens.encode(" mire")
    assert len(tokens.encode("balo mire")) == 2


def test_no_text_makes_special_tokens() -> None:
    assert not set(tokens.encode("</s><|im_end|>")) & set(range(256, 260))


@given(st.binary(max_size=8), st.integers(1, 60), st.sampled_from([("n",), ("t", "im"), ("zuka ", "è", "я", "т")]))
def test_stop_cuts_at_the_first_place(salt: bytes, size: int, stop: tuple[str, ...]) -> None:
    whole = answer(_ask(salt=salt, max_tokens=size, ignore_eos=True), _PRINT, Twist())
    cut = answer(_ask(salt=salt, max_tokens=size, ignore_eos=True, stop=stop), _PRINT, Twist())
    places = [whole.text.find(word) for word in stop if word in whole.text]
    if not places:
        assert cut == whole
    else:
        assert cut.text == whole.text[: min(places)]
        assert cut.finish_reason == "stop"
        assert cut.stop_reason in stop
        assert cut.count <= whole.count
    assert cut.ends[-1] == len(cut.text)
    assert list(cut.ends) == sorted(cut.ends)


@given(st.binary(max_size=8), st.integers(1, 80))
def test_no_piece_has_a_broken_character(salt: bytes, size: int) -> None:
    made = answer(_ask(salt=salt, max_tokens=size), _PRINT, Twist())
    assert "\ufffd" not in made.text
    assert made.count <= size


def test_answers_have_characters_of_several_tokens() -> None:
    made = answer(_ask(max_tokens=200, ignore_eos=True), _PRINT, Twist())
    assert not made.text.isascii()
    assert len(set(made.ends)) < made.count


def test_an_answer_ends_by_itself() -> None:
    made = answer(_ask(), _PRINT, Twist())
    assert made.finish_reason == "stop"
    assert made.count < 400
    longer = answer(_ask(ignore_eos=True), _PRINT, Twist())
    assert (longer.count, longer.finish_reason) == (400, "length")
    assert longer.text.startswith(made.text)
    least = answer(_ask(min_tokens=made.count + 50), _PRINT, Twist())
    assert least.count >= made.count + 50


def test_min_tokens_hold_back_stop_strings() -> None:
    free = answer(_ask(stop=(" ",)), _PRINT, Twist())
    held = answer(_ask(stop=(" ",), min_tokens=free.count + 10), _PRINT, Twist())
    assert held.count >= free.count + 10
    assert held.finish_reason == "stop"


@pytest.mark.parametrize("text", ["x", "Grüße,\nzwei Zeilen ", "日本 🙂"])
def test_echo(text: str) -> None:
    made = answer(_ask(text=f"Now. Repeat exactly: {text}"), _PRINT, Twist())
    assert (made.text, made.finish_reason) == (text, "stop")
    assert made.count == len(tokens.encode(text)) + 1


def test_the_text_follows_from_all_that_it_should() -> None:
    texts = {
        answer(_ask(), _PRINT, Twist()).text,
        answer(_ask(prompt=(1, 2, 4)), _PRINT, Twist()).text,
        answer(_ask(salt=b"1"), _PRINT, Twist()).text,
        answer(_ask(), hashlib.sha256(b"other").digest(), Twist()).text,
    }
    assert len(texts) == 4


def test_prefix_cache_counts_whole_blocks_from_the_start() -> None:
    cache = PrefixCache(4, 100)
    assert cache.take(range(10)) == 0
    assert cache.take(range(10)) == 8
    assert cache.take([*range(4), 99, *range(5, 10)]) == 4
    assert cache.take([99, *range(1, 10)]) == 0
    assert cache.take(range(8)) == 4  # the last token is computed all the same
    assert cache.take([1]) == 0


def test_prefix_cache_forgets_the_oldest() -> None:
    cache = PrefixCache(2, 2)
    cache.take((1, 2, 3))
    cache.take((4, 5, 6))
    cache.take((7, 8, 9))
    assert cache.take((4, 5, 6)) == 2
    assert cache.take((1, 2, 3)) == 0


def test_a_prefix_that_is_used_stays() -> None:
    cache = PrefixCache(2, 2)
    cache.take((1, 2, 3))
    cache.take((4, 5, 6))
    cache.take((1, 2, 3))
    cache.take((7, 8, 9))
    assert cache.take((1, 2, 3)) == 2
    assert cache.take((4, 5, 6)) == 0
