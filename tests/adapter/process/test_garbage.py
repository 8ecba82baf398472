"""Garbage is looked for after each page and item, as far as the process's own collector is not set otherwise."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import weakref
from collections import deque
from collections.abc import Iterator

import pytest

from scrapy_ubi.adapter.process import garbage
from scrapy_ubi.adapter.process.garbage import A_PAGE, REST, GarbageTurns, look_early


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    before, enabled = gc.get_threshold(), gc.isenabled()
    gc.enable()
    gc.set_threshold(700, 10, 10)
    gc.collect()
    yield
    gc.set_threshold(*before)
    (gc.enable if enabled else gc.disable)()


class Held:
    """What is in a cycle with itself."""

    def __init__(self) -> None:
        self.me = self


def left() -> weakref.ref[Held]:
    return weakref.ref(Held())


def test_what_a_page_leaves_is_gone_after_it() -> None:
    turns, held = GarbageTurns(), left()
    turns.step_done()
    assert held() is None


def test_what_was_in_use_then_is_gone_some_pages_later() -> None:
    """Whatever Python finds itself: it looks at older objects by its own rules."""
    turns, one = GarbageTurns(), Held()
    held = weakref.ref(one)
    turns.step_done()
    del one
    for _ in range(25):
        turns.step_done()
    assert held() is None
    collections = [each["collections"] for each in gc.get_stats()]
    for _ in range(300):
        turns.step_done()
    young, older, _ = (after["collections"] - before for after, before in zip(gc.get_stats(), collections, strict=True))
    assert young >= 250 and 20 <= older <= 40


def looks_at_all(turns: GarbageTurns, kept: deque[object], pages: int, garbage: bool) -> int:
    """How often Python looks at all objects in so many pages: each replaces what one of a while ago has left."""
    before = gc.get_stats()[2]["collections"]
    for _ in range(pages):
        kept.append([[] for _ in range(300)])
        if garbage:
            Held()
        turns.step_done()
    return int(gc.get_stats()[2]["collections"]) - before


def test_a_crawl_without_garbage_is_spared_most_looks_at_all_objects_until_there_is_some() -> None:
    gc.freeze()  # what other tests have left is not garbage of this one, and no part of what is looked at
    try:
        gc.collect()  # from here on Python counts how much is new
        turns, kept, pages = GarbageTurns(), deque[object](maxlen=300), 11 * REST
        some = looks_at_all(turns, kept, pages, garbage=True)
        looks_at_all(turns, kept, pages, garbage=False)  # it has to be seen that there is none
        none = looks_at_all(turns, kept, pages, garbage=False)
        assert none <= 2 and none < some
        assert looks_at_all(turns, kept, pages, garbage=True) > none
    finally:
        gc.unfreeze()


def burst(early: bool) -> int:
    """How often Python looks by itself while very many new objects come, a few at a time, and go again."""
    looks: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and sys._getframe(1).f_code is not look_early.__code__:
            looks.append(info["generation"])

    gc.callbacks.append(note)
    try:
        for _ in range(20):
            kept: list[list[None]] = []
            for _ in range(30):
                if early:
                    look_early()
                kept += [[] for _ in range(40)]
    finally:
        gc.callbacks.remove(note)
    return len(looks)


def test_where_the_youngest_are_looked_at_early_python_does_not_look_by_itself() -> None:
    gc.set_threshold(700, 10, 10)
    gc.collect()
    assert burst(early=False)
    gc.collect()
    assert not burst(early=True)


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    turns, held = GarbageTurns(), left()
    for _ in range(30):
        turns.step_done()
    _ = [[None] for _ in range(1000)]
    look_early()
    assert held() is not None and not gc.isenabled()


@pytest.mark.parametrize(("threshold", "pages"), [(700, 1), (10 * A_PAGE, 10)])
def test_with_a_raised_threshold_it_is_looked_after_as_many_pages_more(threshold: int, pages: int) -> None:
    gc.set_threshold(threshold, 10, 10)
    turns, held = GarbageTurns(), left()
    for _ in range(pages - 1):
        turns.step_done()
    assert held() is not None
    turns.step_done()
    assert held() is None


def test_a_threshold_of_0_means_never() -> None:
    gc.set_threshold(0)
    turns, held = GarbageTurns(), left()
    turns.step_done()
    assert held() is not None


def test_nothing_of_the_process_is_changed() -> None:
    before = gc.get_threshold(), gc.get_freeze_count(), list(gc.callbacks), gc.isenabled()
    turns = GarbageTurns()
    for _ in range(30):
        turns.step_done()
    assert (gc.get_threshold(), gc.get_freeze_count(), gc.callbacks, gc.isenabled()) == before


PROCESS = """
from pathlib import Path
from scrapy_ubi.adapter.process.garbage import give_back

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

kept = [bytes(3000) for _ in range(40_000)]
del kept[:-1]  # the last one keeps the heap from shrinking by itself
before = resident()
give_back()
print(before - resident())
"""


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="another C library than glibc")
def test_what_lies_free_in_the_heap_is_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", PROCESS], capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) > 50_000_000


def test_elsewhere_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    garbage.malloc_trim.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    try:
        garbage.give_back()
    finally:
        garbage.malloc_trim.cache_clear()
