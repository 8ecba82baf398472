"""Duplicates of pages: CPU time of what a page is compared by, and how far SimHash and the sketch tell copies.

    python benchmarks/duplicates.py

A page has 600 words. Of 300 pairs each: copies of which 2 words of a hundred were replaced, and pages that share three
quarters of their words in one piece, as those of one template. Found: by SimHash (64 bits, shingles of three words) at
a Hamming distance of at most 3 or 6, and by the sketch as `near(3)` compares.
"""

from __future__ import annotations

import random
from time import process_time

import numpy as np

from scrapy_ubi.outputs.duplicates import sketch
from scrapy_ubi.outputs.duplicates.host_pages import HostPages

WORDS, PAIRS, CALLS, TURNS = 600, 300, 400, 7


def cpu(function) -> float:
    """Milliseconds of a call: the best of some turns."""
    best = 1e9
    for _ in range(TURNS):
        begin = process_time()
        for _ in range(CALLS):
            function()
        best = min(best, (process_time() - begin) / CALLS * 1e3)
    return best


def simhash(words: np.ndarray) -> int:
    """64 bits: the signs of the sums of the shingles' bits."""
    shingles = sketch._mixed(words[:-2] * np.uint64(3) + words[1:-1] * np.uint64(5) + words[2:] * np.uint64(7))
    bits = np.unpackbits(np.ascontiguousarray(shingles).view(np.uint8).reshape(-1, 8), axis=1)
    return int.from_bytes(np.packbits(bits.sum(axis=0) * 2 > len(shingles)).tobytes(), "big")


def pairs(chance: random.Random, vocabulary: list[str], copies: bool):
    for _ in range(PAIRS):
        one = chance.choices(vocabulary, k=WORDS)
        other = list(one)
        places = chance.sample(range(WORDS), WORDS // 50) if copies else range(WORDS * 3 // 4, WORDS)
        for place in places:
            other[place] = chance.choice(vocabulary)
        yield sketch.words_of(" ".join(one)), sketch.words_of(" ".join(other))


def main() -> None:
    chance = random.Random(1)
    vocabulary = ["".join(chance.choices("etaoinshrdlucm", k=chance.randint(2, 9))) for _ in range(4000)]
    text = " ".join(chance.choices(vocabulary, k=WORDS))
    words, body = sketch.words_of(text), chance.randbytes(15_000)
    bins = sketch.sketch_of(words)
    known = HostPages()
    for number in range(2000):
        made = sketch.sketch_of(sketch.words_of(" ".join(chance.choices(vocabulary, k=100))))
        known.add_near(made, sketch.bands_of(made[None])[0], str(number))
    bands = sketch.bands_of(bins[None])[0]
    for what, function in (
        ("exact: digest of 15 kB", lambda: sketch.digest_of(body)),
        ("near: words and sketch", lambda: sketch.sketch_of(sketch.words_of(text))),
        ("near: its bands", lambda: sketch.bands_of(bins[None])),
        ("near: looked up among 2,000 pages of a host", lambda: known.near(bins, bands, 0.8)),
        ("SimHash, words included", lambda: simhash(sketch.words_of(text))),
    ):
        print(f"{what:46} {cpu(function):7.4f} ms")
    least = sketch.resemblance_of(3, WORDS)
    for what, copies in (("copies, 2 words of 100 replaced", True), ("pages that share three quarters", False)):
        made = list(pairs(chance, vocabulary, copies))
        distances = np.array([(simhash(one) ^ simhash(other)).bit_count() for one, other in made])
        near = [
            sketch.resemblance(sketch.sketch_of(one), sketch.sketch_of(other)[None])[0] >= least for one, other in made
        ]
        shares = [(distances <= 3).mean(), (distances <= 6).mean(), (distances <= 10).mean(), np.mean(near)]
        print(
            f"{what:34} SimHash <= 3, 6, 10: {shares[0]:.2f} {shares[1]:.2f} {shares[2]:.2f}; sketch: {shares[3]:.2f}"
        )


if __name__ == "__main__":
    main()
