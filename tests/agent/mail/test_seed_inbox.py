"""Seeds from outside: when an agent reads them, and when it answers."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

import pytest

from scrapy_ubi.agent.mail.outage import LONGEST_PAUSE
from scrapy_ubi.agent.mail.seed_inbox import KNOWN, MOST, MOST_SAID, REFUSED, SeedInbox, SeedOutcome
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.urls import partition_key, url_key
from tests.agent.office import FullDisk, Office, listen, run
from tests.support.views import ordered

URL = "http://h.example/"


class Desk:
    """An office that takes seeds. `ends`: how often it was told that it serves no longer."""

    def __init__(self, disk: FullDisk | None = None) -> None:
        self.ends = 0
        self.inbox = SeedInbox(self._take, self._ended)
        self.office = Office(disk=disk, seeds=self.inbox)

    def _ended(self) -> None:
        self.ends += 1

    def _take(self, number: str, fields: Mapping[str, str]) -> SeedOutcome:
        url, agent = fields["url"], self.office.agent
        if "refuse" in url:
            return SeedOutcome(REFUSED, "as asked for")
        host = str(partition_key(url, "host"))
        if (owner := agent.keeping.owner(host)) != agent.me:
            return SeedOutcome(owner=owner)
        return (
            SeedOutcome() if agent.discovery.discover(host, Entry(url_key("GET", url), url, 0)) else SeedOutcome(KNOWN)
        )

    def push(self, url: str = URL) -> str:
        return str(self.office.shelf.seeds.append({b"url": url.encode()}))

    @property
    def answers(self) -> list[str]:
        return [answer[b"said"].decode() for answer in self.office.shelf.seeds.answers]

    @property
    def waiting(self) -> list[str]:
        return [*self.office.shelf.seeds.waiting]


def test_a_seed_is_answered_when_it_is_on_disk() -> None:
    async def test() -> None:
        disk = FullDisk()
        desk = Desk(disk)
        await desk.office.trips(1)
        desk.push()
        await desk.office.trip()
        assert desk.office.agent.frontier.find("h.example") is not None and not desk.answers
        disk.full = True
        for _ in range(3):
            desk.office.now += LONGEST_PAUSE
            desk.office.post.send(desk.office.now, lambda: None)
            await desk.office.arrival()
        assert desk.waiting and not desk.answers
        disk.full = False
        await desk.office.trips(2)
        assert desk.answers == ["OK"] and not desk.waiting

    run(test)


def test_a_seed_is_answered_when_the_successors_have_it() -> None:
    async def test() -> None:
        desk = Desk()
        desk.office.join("b")
        await desk.office.trips(1)
        desk.push(f"http://{ordered('a', 'b')}/")
        await desk.office.trips(3)
        assert desk.waiting and not desk.answers
        agent = desk.office.agent
        lanes = [lane for (to, _), lane in agent.outbox.lanes.items() if to == "b"]
        for lane in lanes:
            agent.outbound.answered(lane.name, json.dumps({"acked": [*lane.unacknowledged]}), desk.office.now)
        await desk.office.trips(1)
        assert desk.answers == ["OK"] and not desk.waiting

    run(test)


def test_a_seed_of_anothers_host_is_handed_to_that_one() -> None:
    async def test() -> None:
        desk = Desk()
        desk.office.join("b")
        await desk.office.trips(1)
        number = desk.push(f"http://{ordered('b', 'a')}/")
        await desk.office.trips(2)
        assert desk.office.shelf.seeds.readers[number][0] == "b"
        assert desk.waiting and not desk.answers and not desk.office.links_to("b")

    run(test)


def test_an_agent_that_leaves_or_has_much_to_send_reads_none() -> None:
    async def test() -> None:
        desk = Desk()
        office = desk.office
        await office.trips(1)
        given = listen(office)
        desk.push()
        office.agent.group.leaving = True
        await office.trips(1)
        office.agent.group.leaving, office.agent.group.sure = False, False
        await office.trips(1)
        office.agent.group.sure = True
        assert [out.read_seeds for out in given] == [0, 0]
        assert desk.inbox.wanted(office.agent, most_waiting=-1) == 0
        await office.trips(2)
        assert given[-1].read_seeds == MOST and len(desk.answers) == 1

    run(test)


def test_one_that_finishes_serves_until_no_seed_waits() -> None:
    async def test() -> None:
        desk = Desk()
        await desk.office.trips(2)
        assert desk.inbox.serves
        desk.push()
        desk.inbox.finishing = True
        await desk.office.trip()
        assert desk.inbox.serves, "one has come"
        await desk.office.trips(3)
        assert not desk.inbox.serves and desk.ends == 1 and desk.answers == ["OK"]
        desk.push()
        await desk.office.trips(2)
        assert len(desk.waiting) == 1, "for the next start"

    run(test)


def test_not_all_refusals_are_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        desk = Desk()
        for number in range(2 * MOST_SAID):
            desk.push(f"{URL}refuse/{number}")
        await desk.office.trips(3)
        assert desk.answers == [REFUSED] * 2 * MOST_SAID == ["REFUSED"] * len(desk.office.dead)
        assert desk.office.dead[0]["reason"] == "as asked for"
        assert desk.inbox.counts == {REFUSED: 2 * MOST_SAID}

    caplog.set_level(logging.WARNING, "scrapy_ubi")
    run(test)
    assert caplog.text.count("A seed was refused") == MOST_SAID
    assert caplog.text.count("is not said any more") == 1
