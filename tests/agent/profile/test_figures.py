"""What a node counts for people."""

from __future__ import annotations

from scrapy_ubi.agent.profile.figures import MOST_REASONS, WINDOW, Tally, fixed, kept, restore
from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.protocol.agent import Agent, Config
from scrapy_ubi.settings import UbiSettings


def test_pages_a_second_are_those_of_the_last_seconds() -> None:
    tally = Tally(100.0)
    assert tally.rate(100.0) == 0.0
    for second in range(1, 30):
        tally.pages += 10
        assert tally.rate(100.0 + second) == 10.0
    for second in range(30, 60):
        rate = tally.rate(100.0 + second)
    assert rate == 0.0, "what was long ago does not count"


def test_the_rate_follows_a_change_within_the_window() -> None:
    tally = Tally(0.0)
    for second in range(1, 100):
        tally.pages += 1
        tally.rate(float(second))
    for second in range(100, 100 + int(WINDOW) + 2):
        tally.pages += 100
        rate = tally.rate(float(second))
    assert rate == 100.0


def test_reasons_of_failure_are_bounded() -> None:
    """They come from the web (`http/404`) and from other people's code (names of exceptions)."""
    tally = Tally(0.0)
    for number in range(2 * MOST_REASONS):
        tally.fail(f"reason {number}")
        tally.fail("reason 0")
    assert tally.failed["reason 0"] == 2 * MOST_REASONS + 1
    assert len(tally.failed) == MOST_REASONS + 1
    assert tally.failed["other"] == MOST_REASONS


def test_what_is_noted_is_bounded_and_kept() -> None:
    tally = Tally(0.0)
    for number in range(2 * MOST_REASONS):
        tally.note(f"thing {number}")
    tally.joins.join("http://h/A", "http://h/a", ("path-case",))
    assert tally.noted["other"] == MOST_REASONS
    agent = Agent("a1", "store", Config(), MemoryFrontier(), lambda: "0badcafe", 0.0)
    again = Tally(0.0)
    restore(agent, again, {"counters": kept(agent, tally, 1.0)})
    assert again.noted == tally.noted
    assert again.joins.counts == {"path-case": 1}


def test_what_does_not_change_is_told_once() -> None:
    told = fixed(UbiSettings(capacity=2.0, partition="domain"), "a", "spider")
    assert (told["agent"], told["spider"], told["capacity"], told["partition"]) == ("a", "spider", 2.0, "domain")
