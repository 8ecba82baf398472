"""Text from outside made fit for a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.ground.untrusted.terminal_text import cut, cut_middle, plain, width


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("http://h1.example/a?b=c", "http://h1.example/a?b=c"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("a\r\nb\tc", "a\\x0d\\x0ab\\x09c"),
        ("\x9b31m", "\\x9b31m"),
        ("abc\u202egpj.exe", "abc\\u202egpj.exe"),
        ("z\u0301\u0302", "z\\u0301\\u0302"),
        ("no\u200bwhere\ufeff", "no\\u200bwhere\\ufeff"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("münchen.example/größe", "münchen.example/größe"),
        (b"\xff\x1b]0;title\x07", "\\xff\\x1b]0;title\\x07"),
    ],
)
def test_plain_escapes_what_a_terminal_would_act_on(raw: str | bytes, shown: str) -> None:
    assert plain(raw) == shown


@given(st.one_of(st.text(alphabet=st.characters()), st.binary()), st.integers(1, 60))
def test_plain_is_printable_and_fits(raw: str | bytes, limit: int) -> None:
    text = plain(raw, limit)
    assert text.isprintable()
    assert width(text) <= limit
    assert not any(unicodedata.category(character).startswith(("M", "C")) for character in text)


@given(st.text(alphabet="ab日本é", max_size=30), st.integers(1, 40))
def test_cut_keeps_the_beginning(text: str, limit: int) -> None:
    shown = cut(text, limit)
    assert shown == text or (shown.endswith("…") and text.startswith(shown[:-1]))
    assert width(shown) <= limit


@given(st.text(alphabet="ab日本é", max_size=30), st.integers(3, 40))
def test_cut_middle_keeps_both_ends(text: str, limit: int) -> None:
    shown = cut_middle(text, limit)
    head, _, tail = shown.partition("…")
    assert shown == text or (text.startswith(head) and text.endswith(tail))
    assert width(shown) <= limit


def test_cut_middle_tells_agents_of_one_machine_apart() -> None:
    assert cut_middle("crawler-017.example.net-1a2b3c4d", 20) == "crawler-01…-1a2b3c4d"
