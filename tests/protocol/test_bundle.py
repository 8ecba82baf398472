"""Letters that leave together are one entry, and are the same letters when it is opened."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.protocol.bundle import MOST, gathered, opened

NAMES = ("from", "store", "lane", "seq", "body")
values = st.text("ab", max_size=6)
letters = st.tuples(st.sampled_from("xyz"), st.fixed_dictionaries(dict.fromkeys(NAMES, values)))


def letter(lane: str, body: str = "[]", sender: str = "a") -> dict[str, str]:
    return {"from": sender, "store": "s", "lane": lane, "seq": "1", "body": body}


def as_bytes(fields: Mapping[str, str]) -> dict[bytes, bytes]:
    return {name.encode(): value.encode() for name, value in fields.items()}


def test_what_differs_follows_the_first_letter() -> None:
    entries = gathered([("x", letter("discovery")), ("y", letter("state")), ("x", letter("state", "[1]"))], 1000)
    assert entries == (
        ("x", {**letter("discovery"), "lane.2": "state", "body.2": "[1]"}),
        ("y", letter("state")),
    )


@given(st.lists(letters, max_size=30), st.integers(0, 60))
def test_each_receiver_gets_the_same_letters_in_their_order(sent: list[tuple[str, dict[str, str]]], most: int) -> None:
    entries = gathered(sent, most)
    for receiver in "xyz":
        got = [one for to, entry in entries if to == receiver for one in opened(as_bytes(entry))]
        assert got == [as_bytes(fields) for to, fields in sent if to == receiver]


@given(st.lists(letters, max_size=30), st.integers(0, 60))
def test_an_entry_is_no_larger_than_a_letter_may_be(sent: list[tuple[str, dict[str, str]]], most: int) -> None:
    for _, entry in gathered(sent, most):
        several = len(opened(as_bytes(entry))) > 1
        assert not several or sum(map(len, entry.values())) <= most


def test_letters_of_other_fields_are_entries_of_their_own() -> None:
    odd = {**letter("state"), "more": "1"}
    assert len(gathered([("x", letter("state")), ("x", odd)], 1000)) == 2


@given(st.dictionaries(st.binary(max_size=4) | st.sampled_from([b"body.2", b"from.9", b".2", b"a.1"]), st.binary()))
def test_whatever_comes_is_taken_apart(entry: dict[bytes, bytes]) -> None:
    found = opened(entry)
    assert 1 <= len(found) <= MOST
    assert {value for one in found for value in one.values()} == set(entry.values())
