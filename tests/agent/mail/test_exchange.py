"""What goes out and comes in with an exchange, what is read with it, and that there is one at a time."""

from __future__ import annotations

from dataclasses import replace

from scrapy_ubi.agent.mail.inbox_check import MOST_RECORDS
from scrapy_ubi.agent.mail.outage import FIRST_PAUSE
from scrapy_ubi.agent.mail.timing import CONTROL
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.protocol.wire import decode
from scrapy_ubi.settings import UbiSettings
from tests.agent.office import HOST, REPLICAS, Office, found, letter, listen, run
from tests.support.views import ordered
from tests.support.village import page

# -- letters in


def test_a_letter_is_merged_answered_and_deleted_with_the_exchange_that_follows() -> None:
    async def test() -> None:
        office = Office()
        office.put(letter(found("http://h.example/1")))
        await office.trip()
        state = office.agent.frontier.find(HOST)
        assert state is not None
        assert len(state.queued) == 1
        assert len(office.shelf.inbox["a"]) == 1, "not before what follows from it is durable"
        assert office.answer() is None
        await office.trip()
        assert len(office.shelf.inbox["a"]) == 0
        assert office.answer() == {"acked": [1]}
        assert office.dead == []

    run(test)


def test_letters_out_and_their_answers() -> None:
    async def test() -> None:
        office = Office()
        office.join("b")
        host = ordered("b", "a")
        office.agent.discovery.discover(host, page(host))
        await office.trip()
        (fields,) = office.shelf.inbox["b"].values()
        told = decode({n.decode(): v.decode() for n, v in fields.items()}, "b", 100, 1000)
        assert [delta.host for delta in told.deltas] == [host]
        lane = f"{office.agent.outbox.store}/b/discovery"
        office.shelf.acks["a"][lane.encode()] = b'{"acked":[1]}'
        await office.trip()
        assert len(office.agent.outbox) == 0

    run(test)


def test_garbage_in_the_answers_stops_nothing() -> None:
    async def test() -> None:
        office = Office()
        office.join("b")
        host = ordered("b", "a")
        office.agent.discovery.discover(host, page(host))
        await office.trip()
        lane = f"{office.agent.outbox.store}/b/discovery".encode()
        for garbage in (b"\x80\x04", b"{", b'{"acked": {"1": 1}}', b"[" * 5000):
            office.shelf.acks["a"][lane] = garbage
            await office.trip()
            assert len(office.agent.outbox) == 1
        office.shelf.acks["a"][lane] = b'{"acked":[1]}'
        await office.trip()
        assert len(office.agent.outbox) == 0

    run(test)


def test_no_letter_that_an_agent_sends_has_too_many_records() -> None:
    assert UbiSettings().letter_records <= MOST_RECORDS


# -- what is read


def test_the_control_hash_is_looked_at_now_and_then_and_at_once_where_it_was_written_or_something_went_wrong() -> None:
    async def test() -> None:
        office = Office()
        await office.trip()
        office.say("said", "0")
        await office.trip()
        assert office.post.control["said"] == "0", "at the start others may write there, too"
        await office.trips(1)
        office.say("said", "1")
        await office.trip()
        assert office.post.control["said"] == "0"
        office.now += CONTROL
        await office.trip()
        assert office.post.control["said"] == "1"
        office.say("said", "2")
        office.hub.down = True
        await office.trip()
        office.hub.down = False
        office.now += FIRST_PAUSE
        await office.trip()
        assert office.post.control["said"] == "2", "a Redis that was away may have forgotten everything"
        office.say("said", "3")
        office.agent.accept_end(lossy=False)
        await office.trip()
        assert office.post.control["said"] == "3", "what was written is read"

    run(test)


def test_answers_are_read_while_some_are_waited_for() -> None:
    async def test() -> None:
        office = Office()
        office.join("b")
        exchanges = listen(office)
        await office.trip()
        host = ordered("b", "a")
        office.agent.discovery.discover(host, page(host))
        await office.trips(2)
        office.shelf.acks["a"][f"{office.agent.outbox.store}/b/discovery".encode()] = b'{"acked":[1]}'
        await office.trips(2)
        assert [out.read_acks for out in exchanges] == [False, True, True, True, False]

    run(test)


# -- one after the other


def test_one_exchange_at_a_time() -> None:
    async def test() -> None:
        office = Office()
        office.agent.tick(office.now)
        office.post.send(office.now, lambda: "{}")
        assert not office.post.may_send(office.now + 1000, hurry=True)
        assert not office.post.collect(office.now)
        await office.arrival()
        assert office.arrivals == 1
        assert not office.post.collect(office.now), "taken once"
        assert office.post.may_send(office.now + 1000, hurry=True)
        assert office.shelf.agents[b"a"] == b"{}"

    run(test)


def test_whose_name_was_taken_over_leaves_the_mail_alone() -> None:
    office = Office()
    for counter in (1, 2):
        office.agent.read(office.now, office.now, {"a": Beat("f" * 8, 0, REPLICAS, "0" * 16, counter=counter)})
    assert not office.post.may_send(office.now + 1000, hurry=True)


def test_while_another_may_live_under_its_name_it_only_looks_and_writes_its_disk() -> None:
    """It has slept, and the inbox may be that one's: what it would answer, that one would never get."""

    async def test() -> None:
        office = Office()
        await office.trip()
        office.put(letter(found("http://h.example/1")))
        stranger = {"a": Beat("f" * 8, 0, REPLICAS, "0" * 16, counter=1)}
        office.agent.read(office.now, office.now, stranger)
        await office.trips(2)
        assert office.answer() is None
        assert len(office.shelf.inbox["a"]) == 1
        assert not office.post.may_send(office.now, hurry=False), "not without a pause"
        office.agent.read(office.now, office.now, {"a": replace(office.agent.beat, counter=2)})
        await office.trips(2)
        assert office.answer() == {"acked": [1]}, "it was a line of a former life"

    run(test)
