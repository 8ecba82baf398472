"""Bodies of WARC files that other programs have written: chunks that hold, that were cut, that are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.outputs.warc.foreign import unchunked

PIECES = st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=6)


def chunked(pieces: list[bytes], last: bytes = b"0\r\n\r\n") -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + last


@given(PIECES)
def test_chunks_are_taken_out(pieces: list[bytes]) -> None:
    assert unchunked(chunked(pieces)) == b"".join(pieces)


@given(PIECES, st.data())
def test_a_body_that_was_cut_is_what_came_of_it(pieces: list[bytes], data: st.DataObject) -> None:
    first = len(chunked(pieces[:1], b""))
    whole = chunked(pieces)
    cut = whole[: data.draw(st.integers(first, len(whole)))]
    found = unchunked(cut)
    assert b"".join(pieces).startswith(found)
    came = sum(len(piece) for number, piece in enumerate(pieces) if len(chunked(pieces[: number + 1], b"")) <= len(cut))
    assert len(found) >= came


@given(st.binary(min_size=2, max_size=300), st.data())
def test_a_first_chunk_that_was_cut_is_read_where_the_record_says_so(piece: bytes, data: st.DataObject) -> None:
    whole = chunked([piece], b"")
    cut = whole[: data.draw(st.integers(whole.index(b"\n") + 1, len(whole) - 3))]
    assert piece.startswith(unchunked(cut, is_cut=True)) and unchunked(cut) == cut


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"add\r\nmore of a text", b"add", b"5\r\nabcdefgh\r\n", b"\x1f\x8b\x08"]
)
def test_what_is_no_chunks_stays(body: bytes) -> None:
    assert unchunked(body) == body
