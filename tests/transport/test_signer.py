"""Signatures by themselves: what they cover, and what they do not show."""

from __future__ import annotations

import hmac
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.transport.replay_window import WINDOW, Gone, ReplayWindows, UsedOnce
from scrapy_ubi.transport.signer import ROOM, Signer, bare, bare_bytes, is_signed

SECRET = "a secret of some length"
OURS = Signer(SECRET, "bot:spider")
TEXTS = st.text("ab.~, 1\n\x00\u00e4\u4e2d\U0001f577\ud800", max_size=20)
FIELDS = st.dictionaries(st.text("ab.2", min_size=1, max_size=4), TEXTS, max_size=5)


def raw(fields: dict[str, str]) -> dict[bytes, bytes]:
    return {
        name.encode("utf-8", "backslashreplace"): text.encode("utf-8", "backslashreplace")
        for name, text in fields.items()
    }


def test_it_is_hmac_of_what_was_signed() -> None:
    root = blake2b(SECRET.encode(), digest_size=64, person=b"scrapy-ubi 1").digest()
    key = blake2b(b"bot:spider", key=root, digest_size=64, person=b"crawl").digest()
    expected = hmac.digest(key, b"beat\na1\na1\nall is well", "sha256").hex()[:24]
    assert OURS.text("beat", "a1", "a1", "all is well") == f"all is well ~{expected}"


@given(FIELDS, st.data())
def test_any_changed_byte_of_an_entry_is_refused(fields: dict[str, str], data: st.DataObject) -> None:
    signed = raw(OURS.entry("letter", "b", "st.1.inc", fields))
    assert OURS.bound("letter", "b", signed) == ["st", "1", "inc"]
    name = data.draw(st.sampled_from(sorted(signed)))
    value = bytearray(signed[name])
    if value:
        place, other = data.draw(st.integers(0, len(value) - 1)), data.draw(st.integers(1, 255))
        value[place] ^= other
    else:
        value += b"x"
    assert OURS.bound("letter", "b", {**signed, name: bytes(value)}) is None


@given(FIELDS, st.data())
def test_an_entry_that_lacks_a_field_or_has_one_more_is_refused(fields: dict[str, str], data: st.DataObject) -> None:
    signed = raw(OURS.entry("seed", "", "token", fields))
    name = data.draw(st.sampled_from(sorted(signed)))
    assert OURS.bound("seed", "", {key: value for key, value in signed.items() if key != name}) is None
    assert OURS.bound("seed", "", {**signed, b"\x00more": b""}) is None


@given(TEXTS, st.data())
def test_any_changed_character_of_a_text_is_refused(text: str, data: st.DataObject) -> None:
    signed = OURS.text("control", "run", "set:x", text)
    assert OURS.checked("control", "run", "set:x", signed) == text
    assert bare(signed) == text and is_signed(signed)
    assert bare_bytes(signed.encode("utf-8", "backslashreplace")) == text.encode("utf-8", "backslashreplace")
    place = data.draw(st.integers(0, len(signed) - 1))
    other = data.draw(st.sampled_from([one for one in "abcdefgh~ \u00e4" if one != signed[place]]))
    assert OURS.checked("control", "run", "set:x", signed[:place] + other + signed[place + 1 :]) is None
    assert OURS.checked("control", "run", "set:x", signed[:place]) is None


@pytest.mark.parametrize(
    "signer, kind, whose, name",
    [
        (OURS, "ack", "run", "set:x"),
        (OURS, "control", "other", "set:x"),
        (OURS, "control", "run", "set:y"),
        (OURS, "control", "runs", "et:x"),
        (Signer(SECRET, "bot:other"), "control", "run", "set:x"),
        (Signer(SECRET + "!", "bot:spider"), "control", "run", "set:x"),
    ],
    ids=["kind", "run", "field", "parts", "crawl", "secret"],
)
def test_what_was_signed_for_one_place_does_not_hold_in_another(
    signer: Signer, kind: str, whose: str, name: str
) -> None:
    assert signer.checked(kind, whose, name, OURS.text("control", "run", "set:x", "1")) is None


def test_a_signature_is_no_longer_than_the_room_for_it() -> None:
    fields = {"body": "\ud800"}  # as an agent sends it
    signed = raw(OURS.entry("letter", "b" * 64, "0123abcd.999999999999.0123abcd", fields))
    assert OURS.bound("letter", "b" * 64, signed) is not None
    assert sum(map(len, signed)) + sum(map(len, signed.values())) - len(b"body\\ud800") <= ROOM


def test_the_secret_is_not_shown() -> None:
    assert SECRET not in repr(OURS) and not hasattr(OURS, "__dict__")


def test_a_number_is_good_once_in_whatever_order() -> None:
    windows = ReplayWindows()
    assert [windows.is_new("a", number) for number in (1, 3, 2, 3, 1, 4, 2)] == [True] * 3 + [False] * 2 + [True, False]
    assert windows.is_new("b", 1)
    assert windows.is_new("a", 5 + WINDOW)
    assert not windows.is_new("a", 5)  # too old to be known
    assert windows.is_new("a", 6) and not windows.is_new("a", 6)


def test_streams_that_are_not_used_are_forgotten() -> None:
    windows = ReplayWindows(streams=2)
    assert windows.is_new("a", 1) and windows.is_new("b", 1)
    assert not windows.is_new("b", 1) and windows.is_new("c", 1)
    assert windows.is_new("a", 1)


def test_a_token_is_used_under_one_name() -> None:
    tokens = UsedOnce(2)
    assert tokens.use_token("t", "1-0") and tokens.use_token("t", "1-0") and not tokens.use_token("t", "2-0")
    tokens.give_back("t")
    assert tokens.use_token("t", "2-0")
    assert tokens.use_token("u", "3-0") and tokens.use_token("v", "4-0") and tokens.use_token("t", "5-0")


def test_what_has_gone_does_not_come_again() -> None:
    gone = Gone(10)
    assert gone.come_again({"x"}) == set() == gone.come_again({"x"})
    assert gone.come_again(set()) == set()
    assert gone.come_again({"x", "y"}) == {"x"}
    assert gone.come_again({"x", "y"}) == {"x"}
