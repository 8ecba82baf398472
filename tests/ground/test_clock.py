"""What is believed of a time that another clock has set."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.ground.clock import AHEAD, is_ahead, no_later

times = st.floats(0.0, 4e9)
spans = st.floats(0.0, 4e8)


@given(times, times, spans)
def test_nothing_is_waited_for_longer_than_it_was_set_for(at: float, wall: float, most: float) -> None:
    believed = no_later(at, wall, most)
    assert believed <= wall + most and believed <= at
    assert believed == at or at > wall + most
    assert no_later(believed, wall, most) == believed
    assert not is_ahead(believed, wall, most)


@given(times, spans, st.floats(0.0, 1.0), st.floats(0.0, 1e6))
def test_what_a_right_clock_has_set_stays_whenever_it_is_read(
    wall: float, most: float, part: float, later: float
) -> None:
    at = wall + part * most
    assert no_later(at, wall + later, most) == at and not is_ahead(at, wall + later, most)


def test_clocks_that_differ_a_little_are_not_spoken_of() -> None:
    assert not is_ahead(100.0 + AHEAD, 100.0, 0.0)
    assert is_ahead(101.0 + AHEAD, 100.0, 0.0)
