"""What an agent's log says of its group."""

from __future__ import annotations

import logging
from typing import cast

import pytest

from scrapy_ubi.node.beats import MOST_NAMES, Beats
from scrapy_ubi.protocol.view import LEAVING, Beat
from scrapy_ubi.transport import Transport
from tests.node.crawler import SETTINGS
from tests.node.parts import Part


class Group(Part):
    """Agent `a`, and the beats that it reads."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        super().__init__()
        caplog.set_level(logging.INFO, "scrapy_ubi")
        self.log = caplog
        self.counter = 0
        self.beats = Beats(self.crawl, cast("Transport", None), SETTINGS, lambda *_: None, self.clock)

    def read(self, *others: Beat, own: Beat | None = None) -> list[tuple[str, str]]:
        """Read these beats, and everybody's next one; levels and texts of what was said."""
        self.log.clear()
        self.counter += 1
        self.now += SETTINGS.heartbeat_interval
        lines = {"a": (own or self.crawl.agent.beat).line(self.counter)}
        lines |= {f"b{beat.activity}": beat.line(self.counter) for beat in others}
        self.beats.read(self.now, self.now, lines)
        return [(record.levelname, record.getMessage()) for record in self.log.records]

    def forget(self, *others: Beat) -> list[tuple[str, str]]:
        """Read these beats only, until all others are dead."""
        said: list[tuple[str, str]] = []
        end = self.now + 2 * SETTINGS.failure_timeout
        while self.now < end:
            said += self.read(*others)
        return said


def beat(number: int, incarnation: str = "", **more: object) -> Beat:
    """The beat of agent `b<number>`."""
    return Beat(incarnation or f"{number:08x}", 0, 20, "0" * 16, activity=number, **more)  # type: ignore[arg-type]


def test_who_has_died_is_told_from_who_has_left(caplog: pytest.LogCaptureFixture) -> None:
    group = Group(caplog)
    assert group.read(beat(1), beat(2)) == [("INFO", "The group is now: a, b1, b2.")]
    assert group.read(beat(1), beat(2, flags=LEAVING)) == [("INFO", "The group is now: a, b1.")]
    (level, dead), now = group.forget()
    assert level == "WARNING" and dead.startswith("Dead: b1. ")
    assert now == ("INFO", "The group is now: a.")


def test_a_group_is_named_when_it_is_another_one(caplog: pytest.LogCaptureFixture) -> None:
    group = Group(caplog)
    group.read(beat(1))
    fenced = Beat("00000001", 1, 20, "0" * 16, activity=1)
    assert group.read(fenced) == [], "the same agents"
    assert group.read(beat(1, "abcdef01")) == [("INFO", "Begun anew, after a crash or a pause: b1.")]


def test_an_agent_that_was_held_dead_says_so(caplog: pytest.LogCaptureFixture) -> None:
    group = Group(caplog)
    group.read(beat(1))
    [(level, said)] = group.read(beat(1, dead=(group.crawl.agent.incarnation,)))
    assert level == "WARNING" and said.startswith("The others hold this agent dead")


def test_a_large_group_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    group = Group(caplog)
    beats = [beat(number) for number in range(10, 60)]
    [(_, said)] = group.read(*beats)
    assert said.endswith(f"b20 and {51 - MOST_NAMES} more.")
    (_, dead), _ = group.forget()
    assert dead.startswith("Dead: b10, ") and f"b21 and {50 - MOST_NAMES} more." in dead
