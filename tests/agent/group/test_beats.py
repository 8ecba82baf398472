"""What an agent hears and says of its group: in its log, in its beats, and how often."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any, cast

import pytest

from scrapy_ubi.agent.group.beats import MOST_HURRIED, MOST_NAMES, Beats
from scrapy_ubi.protocol.beat import LEAVING, LEFT, LOSSY, PASSIVE, Beat
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport import Transport
from tests.agent.crawler import SETTINGS
from tests.agent.parts import Part


class Group(Part):
    """Agent `a`, and the beats that it reads."""

    def __init__(self, caplog: pytest.LogCaptureFixture, settings: UbiSettings = SETTINGS) -> None:
        super().__init__()
        caplog.set_level(logging.INFO, "scrapy_ubi")
        self.log = caplog
        self.counter = 0
        self.beats = Beats(self.crawl, cast("Transport", None), settings, lambda *_: None, self.clock)

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
    assert group.read(beat(1), beat(2)) == [("INFO", "The agents of the crawl are now: a, b1, b2.")]
    assert group.read(beat(1), beat(2, flags=LEAVING)) == [("INFO", "The agents of the crawl are now: a, b1.")]
    (level, dead), now = group.forget()
    assert level == "WARNING" and dead.startswith("Dead: b1. ")
    assert now == ("INFO", "The agents of the crawl are now: a.")


def test_an_agent_that_is_not_sure_any_more_says_for_whom_it_waits(caplog: pytest.LogCaptureFixture) -> None:
    group = Group(caplog)
    settled = beat(1, settled="0" * 16)  # it knows who lives, and so does this agent as long as it is there
    group.read(settled)
    assert group.crawl.agent.group.sure
    (_, now), (level, said) = group.read(beat(1, flags=LEFT + LOSSY))
    assert level == "INFO" and " b1 took part before, and may come back " in said
    assert now == "The agents of the crawl are now: a."
    assert group.read(beat(1, flags=LEFT + LOSSY)) == [], "it is said once"


def test_a_group_is_named_when_it_is_another_one(caplog: pytest.LogCaptureFixture) -> None:
    group = Group(caplog)
    group.read(beat(1))
    fenced = Beat("00000001", 1, 20, "0" * 16, activity=1)
    assert group.read(fenced) == [], "the same agents"
    assert group.read(beat(1, "abcdef01")) == [("INFO", "Started again after a crash or a pause: b1.")]


def test_an_agent_that_was_held_dead_says_so(caplog: pytest.LogCaptureFixture) -> None:
    group = Group(caplog)
    group.read(beat(1))
    [(level, said)] = group.read(beat(1, dead=(group.crawl.agent.incarnation,)))
    assert level == "WARNING" and said.startswith("The other agents hold this one dead")


def test_a_large_group_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    group = Group(caplog)
    beats = [beat(number) for number in range(10, 60)]
    [(_, said)] = group.read(*beats)
    assert said.endswith(f"b20 and {51 - MOST_NAMES} more.")
    (_, dead), _ = group.forget()
    assert dead.startswith("Dead: b10, ") and f"b21 and {50 - MOST_NAMES} more." in dead


class Mouth:
    """Counts the beats out of turn."""

    def __init__(self) -> None:
        self.sooner = 0

    def beat_now(self) -> None:
        self.sooner += 1


def test_a_beat_is_out_of_turn_where_it_tells_the_others_something_new() -> None:
    part, mouth = Part(), Mouth()
    beats = Beats(part.crawl, cast("Transport", mouth), SETTINGS, lambda *_: None, part.clock)
    agent = part.crawl.agent
    beats.publish(agent.beat)
    assert mouth.sooner == 0, "nothing is new"
    part.now += SETTINGS.heartbeat_interval
    agent.counters.done += 1
    agent.tick(part.now)
    beats.publish(agent.beat)
    assert mouth.sooner == 0, "that one more page is done can wait"
    agent.leave(part.now)
    agent.tick(part.now)
    before = beats.line(1)
    beats.publish(agent.beat)
    assert mouth.sooner == 1 and beats.line(1) != before
    beats.publish(agent.beat)
    assert mouth.sooner == 1


def test_the_second_read_of_an_end_is_not_waited_for() -> None:
    part, mouth = Part(), Mouth()
    beats = Beats(part.crawl, cast("Transport", mouth), SETTINGS, lambda *_: None, part.clock)
    agent = part.crawl.agent
    counter = 0

    def read(**said: object) -> int:
        """How many beats out of turn follow from a read of the own beat, with this said in place of that."""
        nonlocal counter
        part.now += 0.01
        counter += 1
        agent.tick(part.now)
        mouth.sooner = 0
        beats.read(part.now, part.now, {"a": dataclasses.replace(agent.beat, **said).line(counter)})  # type: ignore[arg-type]
        return mouth.sooner

    quiet = {"flags": PASSIVE, "digest": agent.view.digest, "settled": agent.view.digest}
    assert read(flags="") == 0, "there is something to do"
    assert read(**quiet) == 1, "all are quiet: one more such read, and it is over"
    assert not agent.end.finished
    assert read(**quiet) == 0 and agent.end.finished


def test_beats_out_of_turn_at_an_end_that_does_not_come_are_bounded() -> None:
    part, mouth = Part(), Mouth()
    beats = Beats(part.crawl, cast("Transport", mouth), SETTINGS, lambda *_: None, part.clock)
    agent = part.crawl.agent
    quiet = dataclasses.replace(agent.beat, flags=PASSIVE, digest=agent.view.digest, settled=agent.view.digest)
    for _ in range(5 * MOST_HURRIED):  # the same beat again: nobody has beaten in between
        part.now += 0.001
        beats.read(part.now, part.now, {"a": quiet.line(7)})
    assert mouth.sooner == MOST_HURRIED and not agent.end.finished


def test_what_is_no_beat_or_no_name_is_not_heard() -> None:
    part = Part()
    heard: list[tuple[bool, Any]] = []
    beats = Beats(part.crawl, cast("Transport", None), SETTINGS, lambda *told: heard.append(told), part.clock)
    assert not beats.were_read
    lines = {"b": "what is this", "no name!": beat(1).line(1), "a": beats.line(1), "c": beat(2).line(1)}
    beats.read(part.now, part.now, lines)
    assert beats.were_read
    assert part.crawl.agent.view.members.keys() == {"a", "c"}
    assert heard == [(False, lines)]


def test_the_end_that_the_others_tell_of_is_handed_on_once() -> None:
    part = Part()
    told: list[bool] = []
    beats = Beats(part.crawl, cast("Transport", None), SETTINGS, lambda end, _: told.append(end), part.clock)
    beats.read(part.now, part.now, {"a": beats.line(1), "b1": beat(1).line(1)})
    part.crawl.agent.read = lambda *_: part.crawl.agent.accept_end(lossy=False)  # type: ignore[method-assign]
    for _ in range(2):
        beats.read(part.now, part.now, {})
    assert told == [False, True, False]


def test_a_lease_too_short_for_so_many_agents_is_said_when_they_become_more(caplog: pytest.LogCaptureFixture) -> None:
    short = 6.0 * SETTINGS.heartbeat_interval
    group = Group(caplog, dataclasses.replace(SETTINGS, lease_timeout=short))
    many, more = ([beat(number) for number in range(10, 10 + agents)] for agents in (250, 260))
    said = [sum("ask less of Redis" in text for _, text in group.read(*others)) for others in ([], many, many, more)]
    assert said == [0, 1, 0, 0]
