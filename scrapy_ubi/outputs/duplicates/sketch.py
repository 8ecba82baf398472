"""What pages are compared by: a digest of the body, and a sketch of the words of the content.

Rules of this module:

* Exact is by SHA-1 of the body as callbacks get it: decompressed, so a page is the same whether it came gzipped or not.
* Near is by the resemblance (Jaccard) of the sets of shingles, three words in a row, estimated from a *sketch*: the
  shingles' hashes are dealt into 256 bins, and of the least hash in each bin 8 bits are kept (MinHash by one
  permutation). Where `k` words of a hundred are changed, 1 - 3k/100 of the shingles are shared.
* Words are runs of letters and digits, and whatever is not ASCII, in small letters.
* Two pages are compared if one of their `BANDS` bands, four least hashes of coarser bins each, is equal: of those that
  share 0.8 of their shingles one in 500 is missed.
* Nothing depends on the process: agents and machines give the same page the same sketch.
"""

from __future__ import annotations

from hashlib import sha1

import numpy as np
from numpy.typing import NDArray

BINS = 256
DIGEST = 20  # bytes
BANDS, ROWS = 12, 4
COARSE, WIDTH = BANDS * ROWS, 5  # coarse bins, of so many fine ones: short pages leave many of those empty
SHINGLE = 3  # words
FEWEST = 50  # words: fewer say too little
MOST = 1 << 17  # bytes of text: 20,000 words and more are judged by these
SLACK = 0.5  # words: what the number of changed words may be missed by

Bins = NDArray[np.uint8]
Bands = NDArray[np.uint32]

_ODD = 0x9E3779B97F4A7C15
_M1, _M2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_SHIFT = np.uint64(33)
_FACTORS = [np.uint64(number) for number in (0xD6E8FEB86659FD93, 0xA0761D6478BD642F, 0xE7037ED1A0B428DB)]
_BAND = np.array([0x8EBC6AF09C88C6E3, 0x589965CC75374CC3, 0x1D8E4E27C47D124F, 0xEB44ACCAB455D165], np.uint64)


def _powers(base: int) -> NDArray[np.uint64]:
    found = np.full(MOST + 1, base, np.uint64)
    found[0] = 1
    return np.multiply.accumulate(found)


_UP, _DOWN = _powers(_ODD), _powers(pow(_ODD, -1, 1 << 64))
_IS_WORD = np.array([chr(code).isalnum() or code >= 128 for code in range(256)])
_STARTS = np.append(np.arange(BINS, dtype=np.uint64) << np.uint64(56), np.uint64(0xFFFF_FFFF_FFFF_FFFF))
_LAST = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_SALT = np.arange(BANDS, dtype=np.uint64)  # equal numbers in different bands are none of the same


def digest_of(body: bytes) -> bytes:
    """The digest of a decoded body, 20 bytes."""
    return sha1(body, usedforsecurity=False).digest()


def resemblance_of(percent: float, words: int) -> float:
    """How far a page of so many words resembles itself with so many of a hundred, far from each other, changed: 0 to 1,
    rather less than more."""
    changed = SHINGLE * (percent / 100 + SLACK / words)
    return max(0.0, (1 - changed) / (1 + changed))


def words_of(text: str) -> NDArray[np.uint64]:
    """A hash of each word, in their order."""
    data = np.frombuffer(text.lower().encode("utf-8", "replace")[:MOST], np.uint8)
    is_word = np.zeros(len(data) + 2, np.bool_)
    is_word[1:-1] = _IS_WORD[data]
    ends = np.flatnonzero(is_word[1:] != is_word[:-1])
    starts, stops = ends[::2], ends[1::2]
    sums = np.zeros(len(data) + 1, np.uint64)
    np.cumsum(data * _UP[: len(data)], out=sums[1:])
    return _mixed((sums[stops] - sums[starts]) * _DOWN[starts])


def sketch_of(words: NDArray[np.uint64]) -> Bins:
    """The sketch of so many words, at least `SHINGLE` of them: of each bin the least hash, 0 where it is empty."""
    last = len(words) - SHINGLE + 1
    shingles = words[:last] * _FACTORS[0]
    for number in range(1, SHINGLE):
        shingles += words[number : number + last] * _FACTORS[number]
    hashes = np.append(np.sort(_mixed(shingles)), _LAST)
    at = np.searchsorted(hashes, _STARTS)
    bins = (hashes[at[:-1]] % np.uint64(255) + np.uint64(1)).astype(np.uint8)
    bins[at[1:] == at[:-1]] = 0
    return bins


def bands_of(bins: Bins) -> Bands:
    """By what candidates are found: `BANDS` numbers of each sketch, given as a row."""
    coarse = bins[:, : COARSE * WIDTH].reshape(-1, COARSE, WIDTH).astype(np.uint64)
    least = coarse[:, :, WIDTH - 1]
    for place in range(WIDTH - 2, -1, -1):  # the first that is not empty has the least hash
        least = np.where(coarse[:, :, place], coarse[:, :, place] + np.uint64(place << 8), least)
    bands = (least.reshape(-1, BANDS, ROWS) * _BAND).sum(axis=2, dtype=np.uint64)
    return (_mixed(bands + _SALT) >> np.uint64(32)).astype(np.uint32)


def resemblance(bins: Bins, others: NDArray[np.uint8]) -> NDArray[np.float64]:
    """How far a page resembles each of the others: 0 to 1."""
    same = (others == bins) & (bins != 0)
    filled = ((others != 0) | (bins != 0)).sum(axis=1)
    found: NDArray[np.float64] = same.sum(axis=1) / np.maximum(filled, 1)
    return found


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """MurmurHash3's last steps: bits that differ little come out far apart."""
    numbers = (numbers ^ (numbers >> _SHIFT)) * _M1
    numbers = (numbers ^ (numbers >> _SHIFT)) * _M2
    return numbers ^ (numbers >> _SHIFT)
