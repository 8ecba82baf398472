"""Who holds the event loop: named from another thread."""

from __future__ import annotations

import logging
import sys

import pytest

from scrapy_ubi.agent.report.loop_watch import HELD, LoopWatch, holder


def slow_callback(then: object) -> object:
    return then() if callable(then) else then


def test_the_users_function_is_named_with_its_line_and_not_what_it_calls() -> None:
    named = slow_callback(lambda: holder(sys._getframe()))
    assert str(named).startswith(
        "test_the_users_function_is_named_with_its_line_and_not_what_it_calls.<locals>.<lambda>"
    )
    assert "test_loop_watch.py:" in str(named)


def test_a_loop_that_is_held_is_said_and_then_each_time_it_took_twice_as_long(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "scrapy_ubi")
    late = 0.0
    watch = LoopWatch(lambda: late)
    for tick in range(100):
        late = float(tick)
        watch.check_loop(sys._getframe())
    assert 3 <= len(caplog.messages) <= 6
    assert f"held for {HELD:.0f} s by" in caplog.messages[0]
    late = 0.0
    watch.check_loop(sys._getframe())
    late = HELD
    watch.check_loop(sys._getframe())
    assert caplog.messages[-1].count(f"{HELD:.0f} s") == 1, "once it has turned, it is said anew"
