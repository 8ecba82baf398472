"""Redis away or full: what is kept, the pauses between two tries, an absence, and what is said of it."""

from __future__ import annotations

import asyncio
import json

import pytest

from scrapy_ubi.agent.mail.outage import FIRST_PAUSE, LONGEST_PAUSE
from scrapy_ubi.agent.mail.timing import CONTROL
from scrapy_ubi.transport import Incoming, Outgoing, TransportDown
from tests.agent.office import HOST, SETTINGS, Office, found, letter, listen, run
from tests.support.views import ordered
from tests.support.village import page

# -- Redis is away


def test_while_redis_is_away_everything_is_kept_and_tried_again_with_growing_pauses() -> None:
    async def test() -> None:
        office = Office()
        office.join("b")
        host = ordered("b", "a")
        await office.trips(1)
        office.hub.down = True
        office.agent.discovery.discover(host, page(host))
        pauses = []
        given = listen(office)
        await office.trip()
        for _ in range(8):
            given.clear()
            begun = office.now
            while not given:
                assert office.post.busy
                office.now += 0.05
                if office.post.may_send(office.now, hurry=True):
                    await office.trip()  # for the disk alone, most of them
            pauses.append(office.now - begun)
        assert pauses == sorted(pauses)
        assert pauses[0] == pytest.approx(FIRST_PAUSE, abs=0.05)
        assert pauses[-1] == pytest.approx(LONGEST_PAUSE, abs=0.05)
        office.hub.down = False
        await office.trips(2)  # the first one looks
        assert len(office.shelf.inbox["b"]) == 1
        assert not office.post.busy
        assert office.post.may_send(office.now, hurry=True), "no pause any more"

    run(test)


def test_after_redis_was_back_the_next_absence_begins_with_the_shortest_pause() -> None:
    async def test() -> None:
        office = Office()
        for _ in range(2):
            office.hub.down = True
            await office.trip()
            assert not office.post.may_send(office.now + 0.9 * FIRST_PAUSE, hurry=True)
            assert office.post.may_send(office.now + FIRST_PAUSE, hurry=True)
            await office.trips(5)
            office.hub.down = False
            await office.trips(2)

    run(test)


def test_a_redis_that_is_full_is_said_whatever_else_was_said_a_moment_ago(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        office = Office()
        office.join("b")
        host = ordered("b", "a")
        await office.trips(1)
        office.hub.down = True
        await office.trips(1)
        office.hub.down, office.hub.full = False, True
        office.agent.discovery.discover(host, page(host))
        await office.trips(2)

    run(test)
    said = [record.message[:22] for record in caplog.records if record.levelname == "WARNING"]
    assert said == ["Redis is away: this ag", "Redis is full and take"]


def test_what_was_read_is_deleted_once() -> None:
    """Also where Redis was full in between."""

    async def test() -> None:
        office = Office()
        office.join("b")
        host = ordered("b", "a")
        given = listen(office)
        for number in range(1, 10):
            office.put(letter(found(f"http://h.example/{number}"), seq=str(number)))
            office.hub.full = number == 4
            office.agent.discovery.discover(host, page(host, number))
            await office.trips(1)
        await office.trips(3)
        deleted = [number for out in given for number in out.consumed]
        assert len(set(deleted)) == 9
        assert len(deleted) <= len(set(deleted)) + 2, "what a full Redis may not have taken is deleted again"
        assert len(office.shelf.inbox["a"]) == 0

    run(test)


def test_a_connection_that_breaks_in_the_middle_repeats_what_may_be_lost() -> None:
    async def test() -> None:
        for most in range(6):
            office = Office()
            office.join("b")
            host = ordered("b", "a")
            office.put(letter(found("http://h.example/1")))
            await office.trip()
            office.agent.discovery.discover(host, page(host))
            office.hub.break_after = most
            await office.trips(3)
            assert 1 <= len(office.links_to("b")) <= 2, "at least once"
            assert office.answer() == {"acked": [1]}
            assert len(office.shelf.inbox["a"]) == 0
            assert office.agent.counters.resent == 0, "it is the same exchange again"

    run(test)


def test_what_happens_meanwhile_goes_with_the_next_exchange() -> None:
    async def test() -> None:
        office = Office()
        office.join("b")
        host = ordered("b", "a")
        await office.trips(1)
        office.hub.down = True
        for number in range(3):
            office.agent.discovery.discover(host, page(host, number))
            await office.trips(1)
        office.hub.down = False
        await office.trips(2)
        assert [json.dumps(body).count("http://") for body in office.links_to("b")] == [1, 2]

    run(test)


# -- Redis is full


def test_a_full_redis_is_read_and_emptied_and_written_to_when_it_has_room() -> None:
    async def test() -> None:
        office = Office()
        office.join("b")
        host = ordered("b", "a")
        await office.trips(2)
        for seq in range(1, 4):
            office.put(letter(found(f"http://h.example/{seq}"), seq=str(seq)))
        office.put({b"hello": b"world"})
        office.agent.discovery.discover(host, page(host))
        office.hub.full = True
        await office.trip()
        state = office.agent.frontier.find(HOST)
        assert state is not None
        assert state.queued, "what waits is read"
        assert office.post.busy
        await office.trips(1)
        assert len(office.shelf.inbox["a"]) == 0, "and deleted, which makes room"
        await office.trips(2)
        assert office.links_to("b") == []
        assert office.answer() is None
        office.hub.full = False
        await office.trips(2)
        assert len(office.links_to("b")) == 1
        assert office.answer() == {"acked": [1, 2, 3]}
        assert len(office.dead) == office.post.dead_letters == 1

    run(test)


def test_a_redis_at_its_limit_is_complained_of_once_with_the_remedy_and_figures_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        office = Office()
        office.join("b")
        host = ordered("b", "a")
        for number in range(3):  # it takes something now and then
            office.hub.full = False
            await office.trips(2)
            office.agent.discovery.discover(host, page(host, number))
            office.hub.full = True
            await office.trips(3)
        assert office.post.full
        assert office.post.writes_refused > 3

    with caplog.at_level("INFO", "scrapy_ubi"):
        run(test)
    said = [record.getMessage() for record in caplog.records]
    assert [text[:22] for text in said] == ["Redis is full and take", "Redis has room again."]
    assert "UBI_MEMORY_MB" in said[0]


# -- after an absence


def test_after_an_absence_what_waits_is_sent_once_it_has_looked() -> None:
    async def test() -> None:
        office = Office()
        office.join("b")
        await office.trip()
        office.agent.discovery.discover(ordered("b", "a"), page(ordered("b", "a")))
        office.now += SETTINGS.lease_timeout + 1
        await office.trip()
        assert not office.shelf.inbox["b"]
        assert office.post.may_send(office.now, hurry=False), "at once"
        await office.trip()
        assert office.links_to("b")

    run(test)


def test_an_answer_that_has_waited_over_the_absence_is_no_look() -> None:
    """A process that is suspended finds what came before, when it wakes."""

    async def test() -> None:
        office = Office()
        office.join("b")
        await office.trip()
        office.now += CONTROL
        office.post.send(office.now, lambda: None)
        while not office.arrivals >= 2:
            await asyncio.sleep(0)
        office.agent.discovery.discover(ordered("b", "a"), page(ordered("b", "a")))
        office.now += SETTINGS.lease_timeout + 1
        await office.arrival()
        await office.trip()
        assert not office.shelf.inbox["b"], "it looks before it sends"
        await office.trip()
        assert office.links_to("b")

    run(test)


def test_a_redis_that_can_be_read_and_takes_no_mail_is_away_all_the_time(caplog: pytest.LogCaptureFixture) -> None:
    """It became a replica, or the user lost rights."""

    async def test() -> None:
        office = Office()
        exchange = office.transport.exchange

        async def read_only(out: Outgoing) -> Incoming:
            if not (out.read_inbox or out.read_acks):  # a look at the control hash
                return await exchange(out)
            raise TransportDown("It is a read-only replica.")

        await office.trip()
        office.transport.exchange = read_only  # type: ignore[method-assign]
        for _ in range(12):
            office.now += SETTINGS.lease_timeout
            await office.trip()
            assert office.post.away
        office.transport.exchange = exchange  # type: ignore[method-assign]
        for _ in range(3):
            office.now += SETTINGS.flush_interval + LONGEST_PAUSE
            await office.trip()
        assert not office.post.away
        said = [record.message for record in caplog.records if "Redis is" in record.message]
        assert len(said) == 2 and said[1] == "Redis is back."

    caplog.set_level("INFO", "scrapy_ubi")
    run(test)


def test_a_redis_that_answers_beats_and_no_mail_is_not_said_to_be_away_again_and_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "scrapy_ubi")

    async def test() -> None:
        office = Office()
        exchange = office.transport.exchange

        async def slow(out: Outgoing) -> Incoming:
            office.now += 3
            office.agent.group.lease.acknowledged(office.now - 1)
            raise TransportDown("It did not answer in time.")

        for _ in range(5):
            office.transport.exchange = slow  # type: ignore[method-assign]
            await office.trips(1)
            assert office.post.away, "so much may wait and no more"
            office.transport.exchange = exchange  # type: ignore[method-assign]
            await office.trips(1)
            assert not office.post.away
        office.hub.down = True
        office.agent.group.lease.acknowledged(office.now + 99)  # it went right after a beat, and at once
        await office.trips(1)

    run(test)
    said = [record.message for record in caplog.records]
    assert [one.split(":")[0] for one in said] == [
        "Redis takes this agent's beats, and not its mail",
        "Redis takes mail again.",
        "Redis is away",
    ]
    assert "UBI_MAX_LETTER_BYTES" in said[0] and said[0].endswith("It did not answer in time.")
