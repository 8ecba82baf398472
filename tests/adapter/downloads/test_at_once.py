"""How many requests an agent has under way at once: found from what it sees, by rules without a clock."""

from __future__ import annotations

import dataclasses

from scrapy_ubi.adapter.downloads.at_once import AtOnce, LoadsSeen


def looks(decides: AtOnce, times: int, **seen: float) -> int:
    """The limit after so many looks at an agent all of whose places are taken."""
    for _ in range(times):
        decides.look(dataclasses.replace(LoadsSeen(active=decides.limit), **seen))  # type: ignore[arg-type]
    return decides.limit


def test_it_grows_to_the_most_while_all_places_are_taken() -> None:
    decides = AtOnce(16, 500)
    assert looks(decides, 1) == 24
    assert looks(decides, 30) == 500


def test_with_a_place_left_nothing_changes() -> None:
    decides = AtOnce(16, 500)
    assert looks(decides, 20, active=15) == 16


def test_a_busy_thread_wants_no_more_and_a_late_loop_fewer() -> None:
    decides = AtOnce(16, 500)
    looks(decides, 8)
    before = decides.limit
    assert looks(decides, 20, busy=0.95) == before
    assert looks(decides, 1, late=0.7) < before
    assert looks(decides, 50, late=0.7) == 16


def test_more_failures_than_usual_want_fewer_and_usual_ones_do_not() -> None:
    decides = AtOnce(16, 500)
    assert looks(decides, 30, answered=90, failed=10) == 500
    assert looks(decides, 1, answered=20, failed=80) < 500
    many_dead = AtOnce(16, 500)
    looks(many_dead, 40, answered=50, failed=50, active=0)
    assert looks(many_dead, 30, answered=50, failed=50) == 500, "half of all hosts of this web are dead"


def test_silent_loads_hold_no_place() -> None:
    decides = AtOnce(16, 16)
    assert looks(decides, 1, silent=10) == 26
    assert looks(decides, 1, silent=100) == 32, "as many again, and no more"
    assert looks(decides, 1) == 16


def test_large_pages_and_few_files_bound_it() -> None:
    decides = AtOnce(16, 500, most_bytes=64e6)
    assert looks(decides, 40, page_bytes=4e6) == 16
    assert looks(decides, 1, page_bytes=0) == 16, "none came: they are as they were"
    assert looks(AtOnce(16, 500, most_files=100), 40) == 100
    assert looks(AtOnce(16, 500, most_bytes=1e6), 1, page_bytes=5e6) == 1
