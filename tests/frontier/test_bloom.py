"""The kind of `Seen` that may err: how often, and how small it is. What both kinds promise is in test_seen.py."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_ubi.frontier import bloom
from scrapy_ubi.frontier.bloom import HASH_BITS, SeenBloom, error_rate
from scrapy_ubi.frontier.seen import SeenDamaged, SeenTable
from tests.frontier.test_seen import MOST, holds, keys_of

# Keys whose hash has nothing beyond the shard's bits, and those they share a slot with: the product turned around.
INVERSE = pow(bloom.FACTOR, -1, 1 << 64)


def key_with(number: int) -> int:
    """A key of this hash."""
    return (number << 64 - HASH_BITS) * INVERSE & MOST


KEYS = st.integers(0, MOST) | st.integers(0, 50)


@given(st.lists(st.dictionaries(KEYS, st.integers(1, 2), max_size=60), max_size=10))
@settings(max_examples=15, deadline=None)
def test_what_is_known_is_never_unknown(steps: list[dict[int, int]]) -> None:
    with TemporaryDirectory() as directory:
        seen = SeenBloom.create(Path(directory) / "seen")
        truth: dict[int, int] = {}
        for changes in steps:
            seen.apply(changes)
            for key, status in changes.items():
                truth[key] = max(status, truth.get(key, 0))
        seen.check()
        assert all(seen.status(key) >= status for key, status in truth.items())
        seen.close()


@pytest.mark.parametrize("at_once", [1, 1000])
@pytest.mark.parametrize("number", [0, 1, 4095, 4096, 4097, 8191, 8192, (1 << 43) - 1])
def test_every_hash_is_found_and_only_it(tmp_path: Path, number: int, at_once: int) -> None:
    """Hashes below 4096 are one with that a shard's width above; the slots of all others are their own."""
    others = [key_with(at) for at in (0, 1, 4095, 4096, 4097, 8191, 8192, (1 << 43) - 1)]
    same = {key_with(number), key_with(number + 4096 if number < 4096 else number - 4096)} if number < 8192 else set()
    seen = SeenBloom.create(tmp_path / "seen")
    seen.apply(dict.fromkeys([key_with(number), *keys_of(1, at_once - 1)], 1))
    for key in others:
        assert seen.status(key) == (key in same or key == key_with(number)), key
    seen.check()


def test_keys_that_are_one_to_it_in_one_large_change(tmp_path: Path) -> None:
    seen = SeenBloom.create(tmp_path / "seen")
    changes = dict.fromkeys(keys_of(1, 1000), 1) | {key_with(1): 1, key_with(4097): 2}
    seen.apply(changes)
    seen.check()
    assert seen.status(key_with(1)) == seen.status(key_with(4097)) == 2
    assert all(map(seen.status, changes))


def test_it_errs_as_often_as_stated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 43 bits no test would ever see an error. With a key's hash cut to 30 bits it errs 2**13 times as often."""
    hashes, cut = SeenBloom._hashes, 13
    least = np.uint64((1 << HASH_BITS - cut) - 1)
    monkeypatch.setattr(bloom, "_MASK", MOST >> cut)  # the upper bits of the product are those of the hash
    monkeypatch.setattr(SeenBloom, "_hashes", staticmethod(lambda keys: hashes(keys) & least))
    seen = SeenBloom.create(tmp_path / "seen")
    known, asked = 100_000, 300_000
    draw = np.random.default_rng(1)
    seen.rebuild(((key, 1) for key in draw.integers(0, MOST, known, np.uint64).tolist()), 1)
    errors = sum(map(bool, map(seen.status, draw.integers(0, MOST, asked, np.uint64).tolist())))
    stated = error_rate(known) * (1 << cut) * asked
    assert abs(errors - stated) < 5 * stated**0.5, (errors, stated)


def test_bytes_a_key(tmp_path: Path) -> None:
    """At every size from 900,000 on; the file of an empty one has 4.7 MB."""
    seen = SeenBloom.create(tmp_path / "seen")
    memory, sizes = [], []
    for number, keys in enumerate(np.random.default_rng(1).integers(0, MOST, (24, 50_000), np.uint64), 1):
        seen.apply(dict.fromkeys(keys.tolist(), 1))
        memory.append(seen.memory / number / 50_000)
        sizes.append(seen.size / number / 50_000)
    seen.check()
    assert max(memory[18:]) < 5.6
    assert max(sizes[18:]) < 7


def test_the_kinds_do_not_take_each_others_files(tmp_path: Path) -> None:
    for mine, other in ((SeenBloom, SeenTable), (SeenTable, SeenBloom)):
        mine.create(tmp_path / "seen").close()
        with pytest.raises(SeenDamaged, match="is not"):
            other.open(tmp_path / "seen")


def test_the_rate_in_words() -> None:
    """What the module and the documentation say."""
    assert round(1 / error_rate(10_000_000), -4) == 880_000
    assert round(10_000_000**2 / 2**44) == 6


def test_after_a_crash_of_the_machine_lost_keys_are_new_ones(tmp_path: Path) -> None:
    truth = dict.fromkeys(keys_of(1, 50_000), 2)
    seen = SeenBloom.create(tmp_path / "seen")
    seen.apply(truth)
    seen.close()
    with (tmp_path / "seen").open("r+b") as file:
        file.seek(40 * 4096)
        file.write(bytes(4096))
    seen = SeenBloom.open(tmp_path / "seen")
    assert {seen.status(key) for key in truth} == {0, 2}
    seen.apply(truth)
    assert holds(seen, truth)
