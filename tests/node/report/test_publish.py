"""A profile is published every two seconds; where counting takes long, its counters are seldomer new."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from scrapy_ubi.monitor.status import SILENT_AFTER
from scrapy_ubi.node.mail.io_thread import IoThread
from scrapy_ubi.node.report import publish
from scrapy_ubi.node.report.figures import PUBLISH
from scrapy_ubi.node.report.publish import COUNTING, Publisher
from scrapy_ubi.transport import TransportDown
from tests.node.parts import Part


class Agent(Part):
    """`takes`: how long counting takes (s)."""

    def __init__(self, takes: float = 0.0) -> None:
        super().__init__()
        self.takes, self.counted = takes, 0
        self.publishing = Publisher(self.crawl, lambda: "crawling", self.clock)
        self.count, self.crawl.counters = self.crawl.counters, self.counters  # type: ignore[method-assign]

    def counters(self) -> dict[str, Any]:
        self.now += self.takes
        self.counted += 1
        return self.count()

    def is_due(self) -> bool:
        return self.publishing.profile() is not None


def test_a_profile_says_what_people_want_to_know() -> None:
    agent = Agent()
    told = json.loads(agent.publishing.profile() or "{}")
    assert (told["agent"], told["state"], told["incarnation"]) == ("a", "crawling", agent.crawl.agent.incarnation)
    assert told["counters"]["pages"] == 0


def test_another_one_is_made_after_a_while() -> None:
    agent = Agent()
    assert [agent.is_due(), agent.is_due()] == [True, False]
    agent.now += PUBLISH
    assert agent.is_due()


def test_counting_takes_a_small_part_of_the_time_at_most() -> None:
    agent = Agent(takes=1.0)
    began = agent.now
    assert agent.is_due()
    agent.now = began + COUNTING - 0.5
    assert agent.is_due() and agent.counted == 1
    agent.now = began + COUNTING + PUBLISH
    assert agent.is_due() and agent.counted == 2


def test_an_agent_of_very_many_hosts_is_not_taken_for_silent_while_it_does_not_count() -> None:
    agent = Agent(takes=1.0)
    assert agent.is_due()
    for _ in range(int(SILENT_AFTER // PUBLISH)):
        agent.now += PUBLISH
        told = json.loads(agent.publishing.profile() or "{}")
        assert told["counters"]["pages"] == 0
    assert agent.counted == 1


def test_one_that_is_wanted_anew_is_made_at_once() -> None:
    agent = Agent()
    assert agent.is_due()
    agent.publishing.renew()
    assert agent.is_due() and agent.counted == 2


class Transport:
    """One that answers, is away, or never answers."""

    def __init__(self, answer: dict[str, str] | Exception | None) -> None:
        self.answer = answer

    async def profiles(self) -> dict[str, str]:
        if self.answer is None:
            await asyncio.Event().wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer or {}


@pytest.mark.parametrize("own_thread", [False, True])
@pytest.mark.parametrize(("answer", "read"), [({"a": "x"}, {"a": "x"}), (TransportDown("away"), {}), (None, {})])
def test_what_all_have_published_is_read_and_not_waited_for_without_end(
    answer: Any, read: dict[str, str], own_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "UNANSWERED", 0.05 if answer is None else 30.0)

    async def run() -> dict[str, str]:
        courier = IoThread(own_thread)
        courier.start()
        try:
            transport: Any = Transport(answer)
            return await publish.published(courier, transport)
        finally:
            await courier.stop()

    assert asyncio.run(run()) == read
