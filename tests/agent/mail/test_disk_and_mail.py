"""The disk beside the mail: full, or written while Redis is away."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ubi.agent.crawl.disk import NoDisk
from scrapy_ubi.agent.mail.outage import LONGEST_PAUSE
from scrapy_ubi.frontier.store import StoreFull
from scrapy_ubi.transport import Incoming, Outgoing
from tests.agent.office import HOST, SETTINGS, FullDisk, Office, found, letter, listen, run
from tests.support.views import ordered
from tests.support.village import page


@pytest.mark.parametrize("shadowed", [False, True])
def test_on_a_full_disk_mail_is_read_and_the_profile_told_unless_both_may_be_anothers(shadowed: bool) -> None:
    async def test() -> None:
        disk = FullDisk()
        office = Office(disk=disk)
        await office.trips(2)
        office.put(letter(found("http://h.example/1")))
        office.agent.group.claim.shadowed = shadowed
        disk.full = True
        given = listen(office)
        for _ in range(3):
            office.now += LONGEST_PAUSE
            office.post.send(office.now, lambda: "blocked")
            await office.arrival()
        assert [out.read_inbox for out in given] == 3 * [not shadowed]
        told = [out.profile for out in given]
        assert told == (3 * [None] if shadowed else [None, "blocked", "blocked"])
        assert (office.agent.frontier.find(HOST) is None) == shadowed
        assert len(office.shelf.inbox["a"]) == 1, "nothing is deleted"

    run(test)


def test_nothing_is_written_or_leaves_while_what_pages_have_given_may_be_lost() -> None:
    async def test() -> None:
        disk, why = FullDisk(), [""]
        office = Office(disk=disk, on_flush=lambda: why[0])
        office.join("b")
        await office.trips(2)
        written = disk.writes
        why[0] = "The feed is full."
        host = ordered("b", "a")
        office.agent.discovery.discover(host, page(host))
        await office.trips(2)
        assert office.post.disk_full and disk.writes == written and not office.links_to("b")
        why[0] = ""
        await office.trips(2)
        assert not office.post.disk_full and disk.writes > written and len(office.links_to("b")) == 1

    run(test)


def test_while_redis_is_away_the_disk_is_written_however_long_that_lasts() -> None:
    disk = FullDisk()
    office = Office(disk=disk)

    async def test() -> None:
        await office.trip()
        office.hub.down = True
        office.now += SETTINGS.lease_timeout + 1
        await office.trips(1)
        before = disk.writes
        await office.trips(1)
        assert office.post.away
        assert disk.writes > before

    run(test)


@pytest.mark.parametrize("trouble", ["down", "full"])
def test_between_two_tries_the_disk_is_written_as_often_as_ever(trouble: str) -> None:
    disk = FullDisk()
    office = Office(disk=disk)
    interval = SETTINGS.flush_interval

    async def test() -> None:
        await office.trip()
        setattr(office.hub, trouble, True)
        office.join()
        office.agent.discovery.discover(ordered("b", "a"), page(ordered("b", "a")))
        while office.post.outage.pause < LONGEST_PAUSE:
            await office.trips(1)
        office.post.send(office.now, lambda: None)
        await office.arrival()
        before, given = disk.writes, listen(office)
        for _ in range(3):
            assert not office.post.may_send(office.now + interval / 2, hurry=True)
            office.now += interval
            assert office.post.may_send(office.now, hurry=False)
            office.post.send(office.now, lambda: None)
            await office.arrival()
        assert disk.writes == before + 3 and not given, "Redis is left alone"
        assert office.post.away is (trouble == "down") and office.post.full is (trouble == "full")
        setattr(office.hub, trouble, False)
        await office.trips(2)
        assert not office.post.away and not office.post.full and office.links_to("b")

    run(test)


def test_the_disk_is_written_between_two_tries_where_redis_is_full_again_soon_and_nobody_is_told_twice() -> None:
    disk = FullDisk()
    office = Office(disk=disk)

    async def test() -> None:
        await office.trip()
        office.join()
        host = ordered("b", "a")
        for number, full in enumerate((True, False, True)):
            office.hub.full = full
            office.agent.discovery.discover(host, page(host, number))
            await office.trips(1)
            assert office.post.full is full
        before = disk.writes
        office.post.outage.retry_at = office.now + LONGEST_PAUSE  # as after some tries more
        office.now += SETTINGS.flush_interval
        assert office.post.may_send(office.now, hurry=False)
        office.post.send(office.now, lambda: None)
        await office.arrival()
        assert disk.writes > before

    run(test)


def test_a_disk_that_is_full_is_left_alone_until_the_next_try() -> None:
    office = Office(disk=FullDisk(full=True))

    async def test() -> None:
        office.hub.down = True
        await office.trip()
        assert office.post.disk_full
        office.post.outage.retry_at = office.now + LONGEST_PAUSE
        office.now += SETTINGS.flush_interval
        assert not office.post.may_send(office.now, hurry=True)

    run(test)


def test_a_disk_that_has_room_again_stops_nothing_though_redis_is_away_still() -> None:
    disk = FullDisk(full=True)
    office = Office(disk=disk)

    async def test() -> None:
        office.hub.down = True
        await office.trip()
        assert office.post.disk_full
        disk.full = False
        await office.trips(1)
        assert office.post.away and not office.post.disk_full

    run(test)


@pytest.mark.parametrize("cause", ["absence", "shadow"])
def test_what_leaves_after_a_disk_was_full_at_a_mere_look_is_durable_before(cause: str) -> None:
    class Disk(NoDisk):
        due, full, collected, durable = False, False, 0, 0

        def collect(self, changes: Any, facts: Any) -> None:
            self.due, self.collected = True, number

        async def write(self) -> None:
            if self.full:
                raise StoreFull("No room.")
            self.durable = self.collected

        def settle(self) -> None:
            self.due = self.due and self.durable != self.collected

    number = 1
    disk = Disk(0.0)
    office = Office(disk=disk)
    exchange = office.transport.exchange

    async def heard(out: Outgoing) -> Incoming:
        if out.letters:
            durable.append(disk.durable)
        return await exchange(out)

    durable: list[int] = []

    async def test() -> None:
        nonlocal number
        await office.trip()
        office.join()
        office.agent.group.claim.shadowed = cause == "shadow"
        office.now += SETTINGS.lease_timeout + 1 if cause == "absence" else 0.0
        number, disk.full = 2, True
        await office.trip()
        assert office.post.disk_full
        number, disk.full, office.agent.group.claim.shadowed = 3, False, False
        host = ordered("b", "a")
        office.agent.discovery.discover(host, page(host))
        await office.trips(4)
        assert durable == [3]

    office.transport.exchange = heard  # type: ignore[method-assign]
    run(test)
