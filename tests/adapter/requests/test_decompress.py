"""Bounded decompression: at most so much comes out, and of a broken stream what came before."""

from __future__ import annotations

import gzip
import importlib.util
import random
import sys
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.adapter.requests import decompress
from scrapy_ubi.adapter.requests.decompress import MOST_LAYERS, brotli, can_unpack, unpack, zstd


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "two members": ("gzip", lambda data: gzip.compress(data[:50]) + gzip.compress(data[50:])),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "br": ("br", lambda data: brotli.compress(data, quality=2)),
    "zstd": ("zstd", zstd.compress),
}
EVERY = pytest.mark.parametrize(("encoding", "pack"), PACKERS.values(), ids=PACKERS)
PAGE = b"".join(b"<p>paragraph %d</p>" % number for number in range(10_000))


@EVERY
def test_all_or_the_beginning_comes_out(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    packed = pack(PAGE)
    for most in (1, 100, 65_536, len(PAGE) - 1, len(PAGE), len(PAGE) + 1, 10**9):
        assert unpack(packed, [encoding], most) == PAGE[:most]


@EVERY
def test_a_stream_that_ends_too_early_gives_what_there_is(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    page = random.Random(1).randbytes(3000)
    packed = pack(page)
    longest = 0
    for end in range(0, len(packed) + 1, 7):
        out = unpack(packed[:end], [encoding], 10_000)
        assert out is None or page.startswith(out)
        longest = max(longest, len(out or b""))
    assert longest > 0 or encoding in ("br", "zstd")  # which write such a page in one block
    assert unpack(packed, [encoding], 10_000) == page


@EVERY
def test_a_bomb_costs_no_more_than_a_page(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    packed = pack(bytes(20_000_000))
    tracemalloc.start()
    try:
        out = unpack(packed, [encoding], 100_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert out == bytes(100_000)
    assert peak < 5_000_000


def test_deflate_is_given_a_little_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []

    class Stream:
        def __init__(self, *args: int) -> None:
            self.stream = decompressobj(*args)

        def __getattr__(self, name: str) -> object:
            return getattr(self.stream, name)

        def decompress(self, data: bytes, most: int) -> bytes:
            given.append(len(data))
            return self.stream.decompress(data, most)

    decompressobj = zlib.decompressobj
    body = random.Random(1).randbytes(2_000_000)
    monkeypatch.setattr(zlib, "decompressobj", Stream)
    assert unpack(zlib.compress(body), ["deflate"], len(body)) == body
    assert sum(given) < 2 * len(body), "what is left is copied for each chunk that comes out"


def test_encodings_on_each_other() -> None:
    bomb = gzip.compress(gzip.compress(bytes(2_000_000)))
    assert unpack(bomb, ["gzip", "gzip"], 1000) == bytes(1000)
    assert unpack(gzip.compress(brotli.compress(PAGE, quality=2)), ["br", "gzip"], len(PAGE)) == PAGE


def test_which_encodings_can_be_undone() -> None:
    assert can_unpack(["gzip"])
    assert can_unpack(["br", "deflate"])
    assert not can_unpack(["gzip", "compress"])
    assert not can_unpack(["gzip"] * (MOST_LAYERS + 1))


@given(st.sampled_from(["gzip", "deflate", "br", "zstd"]), st.binary(max_size=300), st.integers(1, 1000))
def test_whatever_the_bytes_never_an_exception(encoding: str, body: bytes, most: int) -> None:
    out = unpack(body, [encoding], most)
    assert out is None or len(out) <= most


@given(st.sampled_from(list(PACKERS)), st.integers(0, 400), st.integers(0, 255))
def test_a_damaged_stream_is_never_an_exception(name: str, place: int, byte: int) -> None:
    encoding, pack = PACKERS[name]
    packed = bytearray(pack(PAGE[:2000]))
    packed[place % len(packed)] = byte
    out = unpack(bytes(packed), [encoding], 5000)
    assert out is None or len(out) <= 5000


def test_what_is_not_installed_is_scrapys_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("brotli", "brotlicffi", "compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    spec = importlib.util.spec_from_file_location("decompress_alone", decompress.__file__)
    assert spec is not None and spec.loader is not None
    alone = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(alone)
    assert not alone.can_unpack(["br"]) and not alone.can_unpack(["zstd"]) and alone.can_unpack(["gzip", "deflate"])
    assert alone.unpack(gzip.compress(PAGE), ["gzip"], len(PAGE)) == PAGE
    assert alone.unpack(b"no gzip", ["gzip"], 10) is None
