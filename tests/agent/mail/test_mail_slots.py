"""Mail in slots of its own: what an agent does where one takes nothing, or has lost its mail."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from scrapy_ubi.protocol.lost_mail import LANE
from scrapy_ubi.transport.redis_keys import mail_place
from tests.agent.office import CRAWL, Office, letter, run
from tests.support.views import ordered
from tests.support.village import page

SLOTS = 4


def place(agent: str) -> int:
    return mail_place(agent, SLOTS)


OTHER = next(name for name in "bcdefgh" if place(name) != place("a"))


def bodies(office: Office, agent: str) -> Counter[bytes]:
    return Counter(fields[b"seq"] for fields in office.shelf.inbox[agent].values())


def test_letters_to_a_slot_that_is_away_are_said_again_at_once_when_it_is_back() -> None:
    async def test() -> None:
        office = Office(mail_slots=SLOTS)
        office.join(OTHER)
        host = ordered(OTHER, "a")
        await office.trips(1)
        office.hub.slots_away = {place(OTHER)}
        office.agent.discovery.discover(host, page(host))
        await office.trips(3)
        assert not office.shelf.inbox[OTHER]
        assert (office.post.slots_away, office.agent.counters.mail_put_off) == (1, 1)
        assert not office.post.away, "Redis itself is not"
        assert not office.post.busy, "what follows may leave"
        office.hub.slots_away = set()
        await office.trips(2)  # no time-out has passed: those of this test take days
        assert bodies(office, OTHER) == {b"1": 1}
        assert office.post.slots_away == 0

    run(test)


def test_an_agent_whose_own_slot_is_away_goes_on_and_reads_later() -> None:
    async def test() -> None:
        office = Office(mail_slots=SLOTS)
        await office.trips(1)
        office.put(letter())
        office.hub.slots_away = {place("a")}
        await office.trips(2)
        assert not office.post.away
        assert office.control("run"), "it takes part"
        office.hub.slots_away = set()
        await office.trips(2)
        assert office.answer() is not None
        assert not office.shelf.inbox["a"], "what it has read is deleted"

    run(test)


def test_what_was_in_a_slot_that_was_emptied_is_said_again_by_those_who_hear_of_it() -> None:
    async def test() -> None:
        office = Office(mail_slots=SLOTS)
        office.join(OTHER)
        host = ordered(OTHER, "a")
        await office.trips(1)
        office.put(letter(**{"from": OTHER, "lane": "state"}))
        office.agent.discovery.discover(host, page(host))
        await office.trips(2)
        assert bodies(office, OTHER) == {b"1": 1}
        answer = dict(office.shelf.acks[OTHER])
        assert answer
        office.hub.empty_slot(CRAWL, SLOTS, place(OTHER))
        text = json.dumps({"from": "2" * 8, "number": 1})
        office.shelf.acks["a"][(LANE + OTHER).encode()] = text.encode()
        await office.trips(2)
        assert bodies(office, OTHER) == {b"1": 1}
        assert dict(office.shelf.acks[OTHER]) == answer
        await office.trips(1)
        assert (LANE + OTHER).encode() not in office.shelf.acks["a"]

    run(test)


def test_an_agent_whose_slot_was_emptied_tells_all_others(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    async def test() -> None:
        office = Office(mail_slots=SLOTS)
        office.join(OTHER)
        await office.trips(2)
        assert not office.shelf.acks[OTHER]
        office.hub.empty_slot(CRAWL, SLOTS, place("a"))
        await office.trips(2)
        said = json.loads(office.shelf.acks[OTHER][(LANE + "a").encode()])
        assert said == {"from": office.agent.incarnation, "number": 1}
        await office.trips(3)
        assert json.loads(office.shelf.acks[OTHER][(LANE + "a").encode()])["number"] == 1

    run(test)
    assert [record.message for record in caplog.records if "mail slot" in record.message] == [
        "The mail slot of this agent was emptied, or its Redis replaced: mail is sent again."
    ]
