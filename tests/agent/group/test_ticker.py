"""Time passes for an agent, and what the protocol says at once is done."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable

import pytest

from scrapy_ubi.agent.group.ticker import Ticker
from tests.agent.crawler import LIMIT, SETTINGS
from tests.agent.parts import Part


class Agent(Part):
    """`ticks`, `turns`: the times that were told. `turn` is what becomes of the mail."""

    def __init__(self) -> None:
        super().__init__()
        self.ticks: list[float] = []
        self.turns: list[float] = []
        self.cancels: list[str] = []
        self.turn: Callable[[float], None] = self.turns.append
        self.pulse = Ticker(
            self.crawl,
            SETTINGS,
            self.halt,
            lambda now: self.turn(now),
            lambda: self.cancels.append("all loads"),
            lambda now, beat: self.ticks.append(now),
            self.clock,
        )

    def does(self, cancels: int, overdue: int) -> None:
        """The protocol says so whenever it hears of the time."""
        effects = dataclasses.replace(self.crawl.agent.tick(self.now), cancels=cancels, overdue=overdue)
        self.crawl.agent.tick = lambda now: effects  # type: ignore[method-assign]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(LIMIT):
        while not condition():
            await asyncio.sleep(0)


def test_mail_has_its_turn_more_often_than_the_protocol_hears_of_the_time() -> None:
    async def run() -> None:
        agent = Agent()
        assert not agent.pulse.started
        agent.pulse.start()
        assert agent.pulse.started
        await until(lambda: len(agent.ticks) == 2)
        assert len(agent.turns) > 2 * len(agent.ticks)
        agent.pulse.stop()
        for _ in range(5):  # turns of the loop, in which a task that was cancelled ends
            await asyncio.sleep(0)
        assert not agent.told, "who stops it wants it to stop"

    asyncio.run(run())


def test_an_agent_whose_time_has_stopped_stops() -> None:
    async def run() -> None:
        agent = Agent()

        def err(now: float) -> None:
            raise KeyError("a mistake")

        agent.turn = err
        agent.pulse.start()
        await until(lambda: agent.halt.dead)
        assert agent.told == ["The agent stops, for its protocol cannot go on."]

    asyncio.run(run())


def test_who_has_not_ticked_for_long_is_stalled() -> None:
    agent = Agent()
    agent.now += SETTINGS.stall_timeout
    assert not agent.pulse.stalled()
    agent.now += 0.1
    assert agent.pulse.stalled()
    agent.pulse.tick()
    assert not agent.pulse.stalled()
    assert agent.ticks == [agent.now]


def test_what_cannot_wait_is_done_once(caplog: pytest.LogCaptureFixture) -> None:
    agent = Agent()
    agent.does(cancels=1, overdue=7)
    for _ in range(2):
        agent.pulse.tick()
    assert agent.cancels == ["all loads"]
    assert [record.getMessage().count("7 hosts of this agent were not handed over") for record in caplog.records] == [1]
    assert not agent.told


def test_of_hosts_that_were_not_handed_over_where_none_waits_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    agent = Agent()
    agent.does(cancels=0, overdue=0)
    agent.pulse.tick()
    assert not caplog.records and not agent.cancels


def test_an_agent_whose_name_another_process_has_beats_no_more_and_stops_with_one_sentence() -> None:
    agent = Agent()
    agent.hold_lease()
    agent.pulse.tick()
    assert not agent.pulse.stalled() and not agent.told
    agent.crawl.agent.group.claim.usurped = True
    assert agent.pulse.stalled()
    for _ in range(2):
        agent.pulse.tick()
    (said,) = agent.told
    assert said.startswith("Another process lives as agent a ") and "UBI_AGENT_ID" in said
    assert agent.halt.dead


def test_the_protocol_hears_of_the_time() -> None:
    agent = Agent()
    agent.hold_lease()
    heard: list[float] = []
    tick = agent.crawl.agent.tick
    agent.crawl.agent.tick = lambda now: (heard.append(now), tick(now))[1]  # type: ignore[method-assign]
    agent.pulse.tick()
    assert heard == agent.ticks == [agent.now]
