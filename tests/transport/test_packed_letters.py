"""Letters in few bytes: what is packed comes back, and nothing else is believed."""

from __future__ import annotations

import zlib

from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.transport.packed_letters import LEAST, PACKED, packed, unpacked
from scrapy_ubi.transport.wire_text import encode, size_of

MOST = 100_000
NAMES = st.text(st.characters(exclude_characters=" \n"), max_size=10)


@given(st.dictionaries(NAMES, st.text(max_size=300), max_size=8), st.integers(0, 3000))
def test_what_is_packed_comes_back(fields: dict[str, str], more: int) -> None:
    fields |= {"body": "x" * more}
    raw = {encode(name): encode(value) for name, value in fields.items()}
    found = packed(fields)
    assert size_of(found) <= size_of(raw)
    assert unpacked(found, MOST) == raw


def test_a_letter_is_packed_where_that_is_shorter_and_names_its_sender() -> None:
    letter = {"from": "a", "body": "http://h.example/" * 100}
    assert packed(letter).keys() == {b"from", PACKED}
    assert packed(letter)[b"from"] == b"a"
    assert PACKED not in packed({"from": "a", "body": "x" * (LEAST // 2)})
    assert PACKED not in packed({"a b": "x" * 2 * LEAST}), "a name that cannot be told from its end"


def test_no_more_is_unpacked_than_a_letter_may_have() -> None:
    assert unpacked({PACKED: zlib.compress(b"body 1000000\n" + b"x" * 1_000_000)}, MOST) is None
    whole = packed({"from": "a", "body": "x" * 5000})
    assert unpacked(whole, 4000) is None


@given(st.binary(max_size=200))
def test_what_is_not_packed_so_stays_as_it_is(junk: bytes) -> None:
    for text in (junk, zlib.compress(junk), zlib.compress(b"body 3\nxx"), zlib.compress(b"body\nxx"), b""):
        fields = {b"from": b"a", PACKED: text}
        found = unpacked(fields, MOST)
        assert found == fields or size_of(found or {}) <= MOST
    assert unpacked({b"from": b"a", PACKED: zlib.compress(b"body 3\nxx")}, MOST) == {
        b"from": b"a",
        PACKED: zlib.compress(b"body 3\nxx"),
    }
    assert unpacked({b"z": junk, b"body": b""}, MOST) == {b"z": junk, b"body": b""}, (
        "a field of that name beside others"
    )
