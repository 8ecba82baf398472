"""A profile is published every two seconds; where counting takes long, its counters are seldomer new."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest

from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.agent.profile.figures import PUBLISH
from scrapy_ubi.agent.profile.host_sums import HostSums
from scrapy_ubi.agent.report import publish
from scrapy_ubi.agent.report.publish import COUNTING, Publisher
from scrapy_ubi.cli.monitor.status import SILENT_AFTER
from scrapy_ubi.protocol.host import Entry, HostState
from scrapy_ubi.transport import TransportDown
from tests.agent.parts import Part


class Agent(Part):
    """`takes`: how long counting takes (s)."""

    def __init__(self, takes: float = 0.0) -> None:
        super().__init__()
        self.takes, self.counted = takes, 0
        self.publishing = Publisher(self.crawl, lambda: "crawling", self.clock)
        self.count, self.crawl.counters = self.crawl.counters, self.counters  # type: ignore[method-assign]

    def counters(self, sums: HostSums | None = None) -> dict[str, Any]:
        self.now += self.takes
        self.counted += 1
        return self.count(sums)

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


def test_what_becomes_known_of_losses_is_published_at_once_until_it_was_taken() -> None:
    agent = Agent()
    book = agent.crawl.agent.group.losses.book
    assert agent.is_due() and book.is_published
    book.count(["0123abcd"])
    assert [agent.is_due(), agent.is_due()] == [True, True]
    told = json.loads(agent.publishing.profile() or "{}")
    assert told["counted"] == ["0123abcd"]
    book.count(["4567abcd"])
    agent.publishing.taken()
    assert not book.is_published, "the last one has less"
    assert agent.is_due()
    agent.publishing.taken()
    assert book.is_published and not agent.is_due()
    agent.publishing.kept = "{}"
    book.count(["89ababcd"])
    assert not agent.is_due(), "that one says nothing of it"


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


def test_many_hosts_are_counted_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "SLICE", 10)

    async def crawl() -> None:
        agent = Agent()
        assert agent.is_due() and agent.counted == 1
        for number in range(95):
            agent.crawl.frontier.add(f"h{number}.example", [Entry(number, f"http://h{number}.example/", 0)])
        agent.now += PUBLISH
        told = json.loads(agent.publishing.profile() or "{}")
        assert told["counters"]["queued"] == 0, "the last counters, as long as the new ones are not complete"
        turns = 0
        async with asyncio.timeout(30):
            while agent.publishing.counted(agent.now)["queued"] != 95:
                turns += 1
                await asyncio.sleep(0)
        assert turns >= 9, "the loop has turned in between"
        assert agent.publishing.counted(agent.now) == agent.count()

    asyncio.run(crawl())


def test_counters_that_are_wanted_anew_do_not_wait_for_a_count_that_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(publish, "SLICE", 10)

    async def crawl() -> None:
        agent = Agent()
        assert agent.is_due()
        for number in range(95):
            agent.crawl.frontier.add(f"h{number}.example", [Entry(number, f"http://h{number}.example/", 0)])
        agent.now += PUBLISH
        assert agent.is_due()
        agent.publishing.renew()
        assert json.loads(agent.publishing.profile() or "{}")["counters"]["queued"] == 95
        asked = agent.counted
        await asyncio.sleep(3 * publish.REST)
        assert agent.counted == asked, "the other count has ended"

    asyncio.run(crawl())


def test_after_its_end_an_agent_sums_up_its_hosts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    summed: list[int] = []
    add = HostSums.add

    def counted(self: HostSums, states: Iterable[HostState]) -> None:
        summed.append(1)
        add(self, states)

    monkeypatch.setattr(HostSums, "add", counted)
    agent = Agent()
    agent.crawl.frontier.add("h.example", [Entry(1, "http://h.example/", 0)])
    assert agent.count()["queued"] == 1 and agent.count()["queued"] == 1 and len(summed) == 2
    agent.crawl.tally.ended = agent.now
    assert [agent.count()["queued"] for _ in range(3)] == [1, 1, 1]
    assert len(summed) == 3
    agent.crawl.agent.discovery.discover("new.example", Entry(2, "http://new.example/", 0))
    assert agent.count()["queued"] == 2, "something came still"


def test_who_has_left_as_the_last_one_owns_what_it_owned_and_awaits_no_handover() -> None:
    agent = Agent()
    agent.hold_lease()
    agent.crawl.frontier.add("h.example", [Entry(1, "http://h.example/", 0)])
    agent.crawl.last_view = agent.crawl.agent.view
    agent.crawl.agent.leave(agent.now)
    assert not agent.crawl.agent.view.members
    told = agent.count()
    assert (told["queued"], told["hosts"], told["hosts_held"]) == (1, 1, 0)
