"""The bodies of pages, compressed beforehand, with room at their beginning for links that differ from page to page.

A page is a head of fixed length, in which title and links stand, and a rest: words in markup with classes, inline
scripts with JSON, paths of pictures. The rest is compressed once for each size and encoding. It is compressed behind a
head of random bytes, which no encoder can make smaller and to which nothing in the rest refers: so the head stands
in the compressed page as it is, and any other head of the same length can be put in its place. That costs a copy,
where compressing a page anew would cost milliseconds. Of gzip the check sum is made for each page, by a table.

Sizes: the five quantiles that the Web Almanac 2025 of the HTTP Archive gives for HTML bytes of inner pages, as
transferred ("Page Weight", HTML bytes by page type: 7, 14, 33, 76 and 148 kB for 10, 25, 50, 75 and 90 of 100 pages;
almanac.httparchive.org/en/2025/page-weight). Between them sizes go evenly by their logarithm. The ends are this
testbed's choice, as the Almanac gives none that would be of use (its largest page has 624 MB): 2 and 300 kB. The
Almanac adds up all HTML that a page loads, that of its frames too; documents alone are somewhat smaller.
How far markup is compressed is no figure of the Almanac: RATIO is such that pages unpacked are about as large as those
of A. Chan's crawl of 2025, 138 kB in the median and 242 kB on average (andrewkchan.dev/posts/crawler.html).
"""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import brotli

try:
    from compression import zstd  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    from backports import zstd

# Share of pages -> kB as transferred. Between two, by the logarithm of the size.
QUANTILES = ((0.0, 2.0), (0.10, 7.0), (0.25, 14.0), (0.50, 33.0), (0.75, 76.0), (0.90, 148.0), (1.0, 300.0))
SIZES = 48  # different sizes
RATIO = 4.3  # unpacked bytes for one compressed
LINKS = (8, 60, 300)  # links of the smallest, the median and the largest page
POOL = 1500  # different parts of markup, scripts and pictures
LINK_BYTES = 52  # of the head, for each link
CODINGS = ("gzip", "br", "zstd")
# What a page's rest is made of, by bytes: compressing it gives about RATIO.
SCRIPT, PICTURE = 0.38, 0.07

_WORDS = (
    "the of and to in is for that with on as are this be by from at or an it your you we can all our more not have has "
    "new their which was will page about site search home news contact policy privacy product service company market "
    "people world report system network research university health travel music video photo price order account help"
).split()
_TAGS = ("p", "div", "span", "li", "h3", "td", "section", "article")


@dataclass(frozen=True, slots=True)
class Body:
    """A compressed page: `before` + a head of `room` bytes + `after`; of gzip with a check sum behind that."""

    before: bytes
    after: bytes
    room: int
    links: int
    unpacked: int  # bytes of the whole page
    check: Callable[[bytes], bytes] | None

    def filled(self, head: bytes) -> bytes:
        """The compressed page with this head."""
        head = head.ljust(self.room)
        end = self.check(head) if self.check else b""
        return b"".join((self.before, head, self.after, end))

    @property
    def size(self) -> int:
        """Bytes as transferred."""
        return len(self.before) + self.room + len(self.after) + (8 if self.check else 0)


def bodies(seed: int, scale: float = 1.0) -> dict[str, list[Body]]:
    """By encoding, one body for each size, in order; `scale`: all sizes so many times as large."""
    found: dict[str, list[Body]] = {coding: [] for coding in CODINGS}
    pool = _pool(random.Random(seed))
    for place in range(SIZES):
        share = (place + 0.5) / SIZES
        links = links_at(share)
        size = int(1000 * scale * quantile(share))
        room = 400 + links * LINK_BYTES
        draw = random.Random(seed * 1000 + place)
        rest = _rest(draw, pool, max(200, int((size - room) * RATIO)))
        for coding in CODINGS:
            found[coding].append(_body(coding, draw, room, links, rest))
    return found


def _body(coding: str, draw: random.Random, room: int, links: int, rest: bytes) -> Body:
    """A body that gives back any head: noise to which the rest refers after all, by chance, is drawn again."""
    make, unpack = _ENCODERS[coding]
    for _ in range(20):
        noise = draw.randbytes(room)
        before, _, after = make(noise, rest).partition(noise)
        check = _check_sum(rest, room) if coding == "gzip" else None
        body = Body(before, after, room, links, room + len(rest), check)
        try:
            if after and unpack(body.filled(b"<html>")) == b"<html>".ljust(room) + rest:
                return body
        except (OSError, ValueError, brotli.error, zstd.ZstdError):
            continue
    raise RuntimeError(f"no head can be put into a page of this size by {coding}")


def quantile(share: float) -> float:
    """kB of a page that is larger than this share of all."""
    for (low, small), (high, large) in pairwise(QUANTILES):
        if share <= high:
            return float(small * (large / small) ** ((share - low) / (high - low)))
    return QUANTILES[-1][1]


def links_at(share: float) -> int:
    """Links of a page that is larger than this share of all."""
    few, usual, many = LINKS
    low, high, at = (few, usual, share / 0.5) if share < 0.5 else (usual, many, (share - 0.5) / 0.5)
    return round(low * (high / low) ** at)


def _pool(draw: random.Random) -> list[str]:
    return [
        _script(draw) if kind < SCRIPT else _picture(draw) if kind < SCRIPT + PICTURE else _markup(draw)
        for kind in (draw.random() for _ in range(POOL))
    ]


def _rest(draw: random.Random, pool: list[str], size: int) -> bytes:
    parts, have = [], 0
    while have < size:
        parts.append(draw.choice(pool))
        have += len(parts[-1])
    return ("".join(parts)[: size - 16].rpartition("\n")[0] + "\n</body></html>\n").encode("ascii")


def _markup(draw: random.Random) -> str:
    """About 800 bytes of text in elements with classes."""
    lines = []
    for _ in range(5):
        tag, kind = draw.choice(_TAGS), f"{draw.choice(_WORDS)}-{draw.choice(_WORDS)}"
        words = " ".join(draw.choices(_WORDS, k=16))
        lines.append(f'<{tag} class="{kind} {kind}__item" data-id="{draw.getrandbits(20):x}">{words}</{tag}>\n')
    return "".join(lines)


def _script(draw: random.Random) -> str:
    """About 800 bytes of state, as frameworks write it into a page."""
    items = ",".join(
        f'{{"id":{draw.getrandbits(18)},"type":"{draw.choice(_WORDS)}","title":"{" ".join(draw.choices(_WORDS, k=5))}",'
        f'"visible":true,"position":{place}}}'
        for place in range(8)
    )
    return f"<script>window.__STATE__=window.__STATE__||[];window.__STATE__.push([{items}]);</script>\n"


def _picture(draw: random.Random) -> str:
    path = " ".join(f"{draw.choice('MLCQ')}{draw.randrange(240) / 10} {draw.randrange(240) / 10}" for _ in range(70))
    return f'<svg viewBox="0 0 24 24" class="icon"><path fill="none" d="{path}z"/></svg>\n'


# ---------------------------------------------------------------------- encodings


def _gzip(noise: bytes, rest: bytes) -> bytes:
    """Without the check sum and the length, which are another's for each head."""
    stream = zlib.compressobj(6, zlib.DEFLATED, -15)
    stored = b"".join(_stored(noise[at : at + 65535]) for at in range(0, len(noise), 65535))
    assert len(noise) <= 65535, "one stored block"
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + stored + stream.compress(rest) + stream.flush()


def _stored(data: bytes) -> bytes:
    """A stored block of deflate that is not the last one (RFC 1951, 3.2.4)."""
    size = len(data)
    return b"\0" + size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little") + data


def _brotli(noise: bytes, rest: bytes) -> bytes:
    stream = brotli.Compressor(quality=5)
    return bytes(stream.process(noise) + stream.flush() + stream.process(rest) + stream.finish())


def _zstd(noise: bytes, rest: bytes) -> bytes:
    stream = zstd.ZstdCompressor(3)
    return bytes(stream.compress(noise, stream.FLUSH_BLOCK) + stream.compress(rest, stream.FLUSH_FRAME))


_ENCODERS: dict[str, tuple[Callable[[bytes, bytes], bytes], Callable[[bytes], bytes]]] = {
    "gzip": (_gzip, gzip.decompress),
    "br": (_brotli, brotli.decompress),
    "zstd": (_zstd, zstd.decompress),
}


def _check_sum(rest: bytes, room: int) -> Callable[[bytes], bytes]:
    """What makes the end of a gzip file: CRC and length. The CRC of head and rest is an affine function of the head's,
    so it is put together of 33 known ones."""
    nothing = zlib.crc32(rest, 0)
    bits = [zlib.crc32(rest, 1 << bit) ^ nothing for bit in range(32)]
    size = ((room + len(rest)) & 0xFFFFFFFF).to_bytes(4, "little")

    def end(head: bytes) -> bytes:
        crc, found = zlib.crc32(head), nothing
        for bit in bits:
            if crc & 1:
                found ^= bit
            crc >>= 1
            if not crc:
                break
        return found.to_bytes(4, "little") + size

    return end
