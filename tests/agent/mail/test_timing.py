"""The pace of mail: when there is an exchange, and which of them read."""

from __future__ import annotations

import pytest

from scrapy_ubi.agent.mail.timing import ENOUGH, IDLE, PLENTY, SELDOM
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.protocol.records import Record
from scrapy_ubi.transport.contract import MOST_READ
from tests.agent.office import SETTINGS, Office, found, letter, listen, run
from tests.support.views import ordered
from tests.support.village import page


def test_an_exchange_each_flush_interval_sooner_when_mail_has_come_or_there_is_hurry() -> None:
    async def test() -> None:
        office = Office()
        await office.trip()
        interval = SETTINGS.flush_interval
        assert not office.post.may_send(office.now, hurry=False)
        assert office.post.may_send(office.now, hurry=True)
        assert office.post.may_send(office.now + interval, hurry=False)
        office.put(letter(found("http://h.example/1")))
        await office.trip()
        assert not office.post.may_send(office.now, hurry=False), "what follows is gathered"
        assert office.post.may_send(office.now + interval / 2, hurry=False), "but others wait for the answer"
        await office.trip()
        assert not office.post.may_send(office.now + interval / 2, hurry=False)

    run(test)


def test_an_agent_that_does_not_know_yet_who_is_there_exchanges_seldom_but_for_what_is_new() -> None:
    async def test() -> None:
        office = Office()
        office.agent.group.sure = False
        office.join()
        await office.trip()
        assert not office.post.may_send(office.now + IDLE - 0.01, hurry=False)
        assert office.post.may_send(office.now, hurry=True)
        assert office.post.may_send(office.now + IDLE, hurry=False)
        record = Record("h.example", 1, entry=Entry(1, "http://h.example/1", 0))
        office.agent.outbox.put("b", "discovery", record, office.agent.view)
        assert office.post.may_send(office.now + SETTINGS.flush_interval, hurry=False), "there is something to say"
        office.agent.outbox.lanes["b", "discovery"].waiting.clear()
        assert not office.post.may_send(office.now + SETTINGS.flush_interval, hurry=False)
        office.agent.sure()
        assert office.post.may_send(office.now + SETTINGS.flush_interval, hurry=False)

    run(test)


def test_who_leaves_waits_for_answers_as_eagerly_as_others_for_its_own() -> None:
    async def test() -> None:
        office = Office()
        office.join()
        office.agent.leave(office.now)
        await office.trip()
        assert not office.post.may_send(office.now + SETTINGS.flush_interval / 2, hurry=False), "nothing is under way"
        record = Record("h.example", 1, entry=Entry(1, "http://h.example/1", 0))
        office.agent.outbox.put("b", "discovery", record, office.agent.view)
        assert not office.post.may_send(office.now, hurry=False)
        assert office.post.may_send(office.now + SETTINGS.flush_interval / 2, hurry=False)

    run(test)


def busy(office: Office) -> None:
    """The agent has plenty to fetch, and nobody comes or goes."""
    agent = office.agent
    agent.view_history.complete, agent.work.out = agent.view, PLENTY


def test_an_agent_with_plenty_to_fetch_hurries_for_pages_that_are_done_and_not_for_letters() -> None:
    async def test() -> None:
        office = Office()
        busy(office)
        interval = SETTINGS.flush_interval
        office.put(letter(found("http://h.example/1")))
        await office.trip()
        assert not office.post.may_send(office.now + (SELDOM - 0.1) * interval, hurry=False)
        assert office.post.may_send(office.now + SELDOM * interval, hurry=False)
        assert office.post.may_send(office.now, hurry=True)
        office.agent.counters.done += ENOUGH
        assert not office.post.may_send(office.now, hurry=False)
        assert office.post.may_send(office.now + interval / 2, hurry=False)
        await office.trip()
        assert not office.post.may_send(office.now + interval / 2, hurry=False), "those were told"

    run(test)


def test_where_more_letters_wait_than_one_exchange_reads_the_next_one_reads_them_at_once() -> None:
    async def test() -> None:
        office = Office()
        busy(office)
        for number in range(2 * MOST_READ + 1):
            office.put(letter(found(f"http://h.example/{number}"), seq=str(number + 1)))
        await office.trip()
        exchanges = listen(office)
        for more_wait in (True, False):
            assert office.post.may_send(office.now, hurry=False)
            await office.trip()
            assert office.post.may_send(office.now, hurry=False) is more_wait
        assert [out.read_inbox for out in exchanges] == [True, True]
        assert len(office.shelf.inbox["a"]) == 1, "but for the last one, which the next drain deletes"

    run(test)


def test_among_many_agents_as_many_pages_are_told_at_once_as_there_are_agents() -> None:
    async def test() -> None:
        office = Office()
        office.join(*(f"b{number}" for number in range(2 * ENOUGH - 1)))
        await office.trip()
        busy(office)
        await office.trip()
        soon = office.now + SETTINGS.flush_interval / 2
        office.agent.counters.done += 2 * ENOUGH - 1
        assert not office.post.may_send(soon, hurry=False)
        office.agent.counters.done += 1
        assert office.post.may_send(soon, hurry=False)

    run(test)


async def send(office: Office) -> None:
    """A letter, a flush interval after the last exchange."""
    host = ordered("b", "a")
    office.agent.discovery.discover(host, page(host, office.agent.counters.links))
    office.now += SETTINGS.flush_interval
    await office.trip()


def test_an_agent_with_plenty_to_fetch_reads_its_mail_less_often_than_it_sends() -> None:
    async def test() -> None:
        office = Office()
        office.join("b")
        busy(office)
        await office.trips(1)
        exchanges = listen(office)
        for _ in range(4):
            await send(office)
        office.hub.down = True
        await send(office)
        office.hub.down = False
        await send(office)
        assert [out.read_inbox for out in exchanges] == [False, True, False, True, False, True]
        assert [out.read_acks for out in exchanges] == [out.read_inbox for out in exchanges]
        assert len(office.links_to("b")) == 5, "and sends each time"

    run(test)


@pytest.mark.parametrize("case", ["little to fetch", "a view that is not complete", "it leaves"])
def test_whoever_others_may_wait_for_reads_its_mail_each_time_and_answers_soon(case: str) -> None:
    async def test() -> None:
        office = Office()
        office.join("b")
        busy(office)
        await office.trips(1)
        if case == "little to fetch":
            office.agent.work.out -= 1
        elif case == "it leaves":
            office.agent.group.leaving = True
        else:
            office.agent.view_history.complete = None
        exchanges = listen(office)
        for _ in range(2):
            office.put(letter())
            await send(office)
        assert [out.read_inbox for out in exchanges] == [True, True]
        assert office.post.may_send(office.now + SETTINGS.flush_interval / 2, hurry=False)

    run(test)


def test_with_plenty_to_fetch_and_nothing_to_send_redis_is_asked_only_now_and_then() -> None:
    async def test() -> None:
        office = Office()
        await office.trips(2)
        busy(office)
        await office.trips(1)
        exchanges, interval = listen(office), SETTINGS.flush_interval
        for _ in range(3):
            office.now += interval / 4
            await office.trip()
        assert exchanges == []
        office.put(letter())
        office.now += SELDOM * interval
        await office.trip()
        assert [out.read_inbox for out in exchanges] == [True]
        await office.trip()
        assert [out.read_inbox for out in exchanges] == [True, False]
        assert office.answer() is not None, "the letter has come, and is answered"

    run(test)
