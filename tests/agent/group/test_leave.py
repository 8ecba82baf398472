"""How an agent leaves: what it waits for and for how long, and what it says when that does not come."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable

import pytest

from scrapy_ubi.agent.group.leave import FULL, SILENCE, Leave
from scrapy_ubi.agent.report.publish import Publisher
from scrapy_ubi.protocol.beat import Beat
from tests.agent.crawler import LIMIT, SETTINGS
from tests.agent.parts import Part
from tests.support.views import ordered
from tests.support.village import page

STEP = 0.5  # s


class Turns:
    """Stands for the exchanges: one takes `STEP`, and none gets through before a test says so. `then` is called
    whenever somebody waits."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.told = -1.0
        self.disk_full = self.busy = False
        self.sendable = 0
        self.pressed: list[bool] = []
        self.then: Callable[[], None] = lambda: None

    def press(self, hurry: bool = True) -> None:
        self.pressed.append(hurry)

    async def wait(self) -> None:
        self.part.now += STEP
        self.then()

    def has_told(self, since: float) -> bool:
        return self.told >= since


class Leaver(Part):
    """An agent with a host that it owns; where it is not alone, b is there, too."""

    def __init__(self, alone: bool = False) -> None:
        super().__init__()
        self.settings = dataclasses.replace(SETTINGS, leave_timeout=20.0, lease_timeout=10.0, failure_timeout=15.0)
        self.exchanges = Turns(self)
        publishing = Publisher(self.crawl, lambda: "", self.clock)
        self.leaving = Leave(
            self.crawl,
            self.settings,
            self.halt,
            self.exchanges,  # type: ignore[arg-type]
            publishing.renew,
            self.clock,
            self.see_who_is_lost,
        )
        self.hold_lease()
        agent, host = self.crawl.agent, ordered("a", "b")
        self.crawl.frontier.add(host, [page(host)])
        if not alone:
            beat = Beat("2" * 8, 0, SETTINGS.replicas, "0" * 16, counter=1)
            agent.read(self.now, self.now, {"a": agent.beat, "b": beat})

    async def see_who_is_lost(self) -> None: ...

    def go(self) -> float:
        """How long it took."""
        begun = self.now
        asyncio.run(asyncio.wait_for(self.leaving.go(), LIMIT))
        return self.now - begun


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "scrapy_ubi")
    return caplog


def test_others_that_take_nothing_are_waited_for_no_longer_than_settings_say(said: pytest.LogCaptureFixture) -> None:
    leave = Leaver()
    leave.exchanges.told = float("inf")
    assert 20.0 < leave.go() <= 20.0 + STEP
    assert leave.leaving.stage == "left"
    assert "Not all was handed over within UBI_LEAVE_TIMEOUT" in said.messages[-1]
    still = sum("Still handing over" in message for message in said.messages)
    assert 20.0 / (SILENCE + STEP) - 1 <= still <= 20.0 / SILENCE
    assert not any("Handed over in" in message for message in said.messages)


def test_what_waits_to_be_sent_is_hurried_and_nothing_else() -> None:
    leave = Leaver()
    leave.exchanges.told = float("inf")
    leave.exchanges.sendable = 1
    leave.exchanges.then = lambda: setattr(leave.exchanges, "sendable", 0)
    leave.go()
    first, *rest = leave.exchanges.pressed
    assert first and rest and not any(rest)


@pytest.mark.parametrize(("disk_full", "says"), [(False, "did not take the last counters"), (True, FULL)])
def test_last_words_that_nobody_takes_are_tried_for_a_lease(
    disk_full: bool, says: str, said: pytest.LogCaptureFixture
) -> None:
    leave = Leaver(alone=True)
    leave.exchanges.disk_full = disk_full
    assert 10.0 < leave.go() <= 10.0 + STEP
    assert leave.leaving.stage == "left"
    assert says in said.messages[-1]


def test_last_words_are_new_once_all_is_handed_over() -> None:
    """What left in an exchange before does not count."""
    leave = Leaver(alone=True)
    leave.exchanges.told = leave.now - STEP
    leave.exchanges.then = lambda: setattr(leave.exchanges, "told", leave.now)
    assert leave.go() == STEP
    assert leave.exchanges.pressed == [True]
    assert leave.crawl.tally.ended == leave.now - STEP


def test_who_is_alone_hands_over_to_nobody(said: pytest.LogCaptureFixture) -> None:
    leave = Leaver(alone=True)
    leave.exchanges.told = float("inf")
    assert leave.go() == 0.0
    forgotten = "what was not fetched is forgotten with this process"
    assert said.messages == [f"No other agent is left to hand over to: {forgotten}."]


@pytest.mark.parametrize("end", ["over", "dead"])
def test_where_all_is_over_nothing_is_handed_over(end: str, said: pytest.LogCaptureFixture) -> None:
    leave = Leaver()
    if end == "over":
        leave.crawl.agent.accept_end(lossy=False)
        leave.exchanges.then = lambda: setattr(leave.exchanges, "told", leave.now)
    else:
        leave.halt.stop("It ends.")
    assert leave.go() == (STEP if end == "over" else 0.0)
    assert not leave.crawl.agent.leaving and not said.messages
    assert leave.leaving.stage == ("finished" if end == "over" else "left")


@pytest.mark.parametrize("told", [False, True], ids=["handing over", "last words"])
def test_an_agent_that_dies_meanwhile_waits_no_more(told: bool, said: pytest.LogCaptureFixture) -> None:
    leave = Leaver(alone=told)
    leave.exchanges.then = lambda: leave.halt.stop("It ends.")
    assert leave.go() == STEP
    assert not any("Not all" in message or "last counters" in message for message in said.messages)
