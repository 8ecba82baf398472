"""The post: what goes out and comes in with an exchange, garbage set aside, Redis away or full, an absence."""

from __future__ import annotations

import asyncio
import json
import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scrapy_ubi.frontier.store import StoreFull
from scrapy_ubi.node.disk import NoDisk
from scrapy_ubi.node.mail.inbox_check import HEAD, MOST_RECORDS, MOST_SAID
from scrapy_ubi.node.mail.outage import FIRST_PAUSE, LONGEST_PAUSE
from scrapy_ubi.node.mail.run_state import RIVALS
from scrapy_ubi.node.mail.timing import CONTROL
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.protocol.bundle import opened
from scrapy_ubi.protocol.wire import decode
from scrapy_ubi.settings import SETTINGS as TABLE
from scrapy_ubi.transport import Incoming, Outgoing, TransportDown
from tests.node.office import HOST, REPLICAS, SETTINGS, VIEW, FullDisk, Office, found, letter, listen, run
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
        office.agent.discover(host, page(host))
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
        office.agent.discover(host, page(host))
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


def test_no_letter_that_settings_allow_has_too_many_records() -> None:
    (row,) = (row for row in TABLE if row.name == "letter_records")
    assert row.high is not None
    assert row.high <= MOST_RECORDS


# -- garbage


GARBAGE = [
    ("wrong schema", letter({"urls": []}), "body is not a list", True),
    ("not JSON", letter(body="<html>"), "not JSON", True),
    ("a file", letter(found("file:///etc/passwd")), "neither http nor https", True),
    ("a URL too long", letter(found("http://h.example/" + "x" * 100)), "sensible length", True),
    ("another encoding", letter(enc="pickle"), "enc is not json", False),
    ("no lane", letter(lane="gossip"), "lane", False),
    ("no sender", {n: v for n, v in letter().items() if n != b"from"}, "missing", False),
    ("pickle bytes", letter() | {b"body": pickle.dumps({"url": "http://h.example/"})}, "not UTF-8", False),
    ("bytes for a name", {b"\xff\xfe": b"1"}, "not UTF-8", False),
    ("nothing of ours", {b"hello": b"world"}, "missing", False),
    ("empty", {b"": b""}, "missing", False),
    ("too large", letter(body="x" * 30_000), "too large", False),
]


@pytest.mark.parametrize(
    ("fields", "reason", "answered"),
    [case[1:] for case in GARBAGE],
    ids=[case[0].replace(" ", "_") for case in GARBAGE],
)
def test_garbage_goes_to_the_dead_letters_with_a_reason(
    fields: dict[bytes, bytes], reason: str, answered: bool
) -> None:
    async def test() -> None:
        office = Office()
        office.put(fields)
        office.put(letter(found("http://h.example/1"), seq="2"))
        await office.trips(2)
        assert len(office.shelf.inbox["a"]) == 0, "nothing comes back"
        assert office.post.dead_letters == 1
        (dead,) = office.dead
        assert reason in dead["reason"]
        assert dead["from"] == ("?" if b"from" not in fields else "z")
        assert int(dead["size"]) >= sum(map(len, fields.values()))
        assert len(dead["head"]) <= HEAD
        state = office.agent.frontier.find(HOST)
        assert state is not None, "what comes after it is read"
        assert office.answer() == {"acked": [1, 2] if answered else [2]}
        await office.trips(2)
        assert len(office.dead) == 1

    run(test)


FOREIGN = [({"run": "0badcafe"}, "of the run '0badcafe', and this agent is in"), ({"run": ""}, "of no run")]
FOREIGN += [({"enc": "json2"}, "enc is not json")]


@pytest.mark.parametrize(("named", "reason"), FOREIGN, ids=["unknown", "missing", "another_version"])
def test_a_letter_of_another_run_or_version_is_neither_merged_nor_answered(named: dict[str, str], reason: str) -> None:
    """Its sender keeps it: a letter of a run that is not known here yet is good for whoever comes to know it."""

    async def test() -> None:
        office = Office()
        foreign = letter(found("http://h.example/1"), **named)
        office.put(foreign)
        await office.trips(2)
        assert office.agent.frontier.find(HOST) is None
        assert office.answer() is None
        assert not office.shelf.inbox["a"], "read, and not read again"
        (dead,) = office.dead
        assert reason in dead["reason"] and dead["from"] == "z"
        assert office.post.dead_letters == 1
        office.put({**foreign, b"run": office.post.run.run.encode(), b"enc": b"json"})
        await office.trips(2)
        assert office.answer() == {"acked": [1]}
        assert office.agent.frontier.find(HOST) is not None

    run(test)


def test_while_agents_may_have_named_the_run_alike_their_letters_only_come_again() -> None:
    """Two that start together each name it. The letter is not answered, and nobody is alarmed."""

    async def test() -> None:
        office = Office()
        office.join("z")
        office.put(letter(found("http://h.example/1"), run="0badcafe"))
        await office.trip()
        assert office.answer() is None and not office.dead and office.agent.frontier.find(HOST) is None
        office.now += RIVALS + 1
        office.put(letter(found("http://h.example/1"), run="0badcafe"))
        await office.trips(2)
        assert len(office.dead) == 1

    run(test)


def test_what_an_entry_holds_of_another_run_is_refused_alone() -> None:
    async def test() -> None:
        office = Office()
        office.put(letter(found("http://h.example/1")) | {b"seq.2": b"2", b"run.2": b"0badcafe"})
        await office.trips(2)
        assert office.answer() == {"acked": [1]}
        assert len(office.dead) == 1

    run(test)


def test_who_meets_a_run_that_it_does_not_know_looks_for_it() -> None:
    async def test() -> None:
        office = Office()
        await office.trips(2)
        office.now += RIVALS + 1
        await office.trip()
        given = listen(office)
        office.put(letter(run="0badcafe"))
        for _ in range(2):
            office.now += 0.01
            await office.trip()
        assert [out.read_control for out in given] == [False, True]

    run(test)


def test_of_letters_in_one_entry_each_is_judged_by_itself() -> None:
    async def test() -> None:
        office = Office()
        good = letter(found("http://h.example/1"))
        office.put(good | {b"lane.2": b"gossip", b"seq.3": b"2", b"body.3": b"{"})
        await office.trips(2)
        assert len(office.shelf.inbox["a"]) == 0
        assert [dead["reason"] for dead in office.dead] == ["lane is neither discovery nor state", "body is not JSON"]
        assert office.answer() == {"acked": [1, 2]}
        state = office.agent.frontier.find(HOST)
        assert state is not None and state.known == 1

    run(test)


def test_letters_that_leave_together_are_one_entry() -> None:
    """Two hosts: one that b owns, so that it is told a URL, and one of our own, of which b keeps a copy."""

    async def test() -> None:
        office = Office()
        office.join("b")
        for host in (ordered("b", "a"), ordered("a", "b")):
            office.agent.discover(host, page(host))
        await office.trip()
        (fields,) = office.shelf.inbox["b"].values()
        told = [decode({n.decode(): v.decode() for n, v in one.items()}, "b", 100, 1000) for one in opened(fields)]
        assert {one.kind for one in told} == {"discovery", "state"}
        assert len(told) == 2 < len(fields)

    run(test)


def test_what_only_the_adapters_can_judge_is_taken_out_and_the_rest_is_good() -> None:
    """Agents whose spiders differ must not lose what both understand."""

    async def test() -> None:
        office = Office(judge=lambda host, entry: "no such callback" if entry.url.endswith("2") else None)
        office.put(letter(found(*(f"http://h.example/{number}" for number in (1, 2, 3)))))
        office.put(letter(found("http://h.example/2"), seq="2"))
        await office.trips(2)
        assert [(dead["reason"], dead["head"]) for dead in office.dead] == [
            ("no such callback", "http://h.example/2")
        ] * 2
        assert office.post.dead_letters == 2
        assert office.answer() == {"acked": [1, 2]}, "sent again it would be no better"
        state = office.agent.frontier.find(HOST)
        assert state is not None
        assert sorted(entry.url for entry in state.undone()) == ["http://h.example/1", "http://h.example/3"]

    run(test)


def test_how_many_were_set_aside_for_what_is_said(caplog: pytest.LogCaptureFixture) -> None:
    reasons = {
        "1": "no such callback",
        "2": "no header",
        "3": "no such callback",
        "4": "a",
        "5": "b",
        "6": "c",
        "7": "d",
    }

    async def test() -> None:
        office = Office(judge=lambda host, entry: reasons[entry.url[-1]])
        office.put(letter(found(*(f"http://h.example/{number}" for number in reasons))))
        await office.trip()

    run(test)
    [said] = [record.getMessage() for record in caplog.records]
    assert "7 requests in a letter from z" in said and "such as 'http://h.example/1'" in said
    assert "2 for 'no such callback', 1 for 'no header', 1 for 'a'" in said and "1 for other reasons" in said


def test_a_flood_of_garbage_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        office = Office(judge=lambda host, entry: "no such callback")
        for _ in range(3 * MOST_SAID):
            office.put({b"from": b"z", b"body": b"garbage"})
        while office.post.dead_letters < 3 * MOST_SAID:
            await office.trips(1)
        office.put(letter(found("http://h.example/1")))
        await office.trips(2)

    run(test)
    *_, counted, other = caplog.messages
    assert len(caplog.records) == MOST_SAID + 2
    assert counted.endswith("only counted (ubi/dead_letters).")
    assert other.startswith("1 requests in a letter from z"), "another kind"


def test_reasons_and_names_of_strangers_are_cut() -> None:
    async def test() -> None:
        office = Office(judge=lambda host, entry: "r" * 5000)
        office.put(letter(found("http://h.example/1"), **{"from": "z" * 64}))
        office.put({b"from": b"\xff" * 500, b"body": b"b" * 5000})
        await office.trips(2)
        assert [len(dead["reason"]) <= HEAD for dead in office.dead] == [True, True]
        assert [len(dead["from"]) <= 64 for dead in office.dead] == [True, True]

    run(test)


@settings(max_examples=30)
@example([{b"": b"json", b"?.7": b"\xff"}])  # two letters in one entry
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from([b"from", b"store", b"lane", b"seq", b"floor", b"view", b"enc", b"body"])
            | st.binary(max_size=5),
            st.binary(max_size=40) | st.sampled_from([b"state", b"discovery", b"json", b"1", b"[]", VIEW.encode()]),
            max_size=9,
        ),
        max_size=8,
    )
)
def test_whatever_lies_in_the_inbox_is_read_once_and_stops_nothing(entries: list[dict[bytes, bytes]]) -> None:
    async def test() -> None:
        office = Office()
        put = [letter() | entry if len(entry) % 2 else entry for entry in entries]
        for entry in put:
            office.put(entry)
        await office.trips(3)
        assert len(office.shelf.inbox["a"]) == 0
        assert len(office.dead) == office.post.dead_letters <= sum(len(opened(entry)) for entry in put)
        office.agent.check_invariants()

    run(test)


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
        office.agent.discover(host, page(host))
        await office.trips(2)
        office.shelf.acks["a"][f"{office.agent.outbox.store}/b/discovery".encode()] = b'{"acked":[1]}'
        await office.trips(2)
        assert [out.read_acks for out in exchanges] == [False, True, True, True, False]

    run(test)


# -- Redis is away


def test_while_redis_is_away_everything_is_kept_and_tried_again_with_growing_pauses() -> None:
    async def test() -> None:
        office = Office()
        office.join("b")
        host = ordered("b", "a")
        await office.trips(1)
        office.hub.down = True
        office.agent.discover(host, page(host))
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
        office.agent.discover(host, page(host))
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
            office.agent.discover(host, page(host, number))
            await office.trips(1)
        await office.trips(3)
        deleted = [number for out in given for number in out.consumed]
        assert len(set(deleted)) == 9
        assert len(deleted) <= len(set(deleted)) + 2, "what a full Redis may not have taken is deleted again"
        assert len(office.shelf.inbox["a"]) == 0

    run(test)


@pytest.mark.parametrize("shadowed", [False, True])
def test_on_a_full_disk_mail_is_read_and_the_profile_told_unless_both_may_be_anothers(shadowed: bool) -> None:
    async def test() -> None:
        disk = FullDisk()
        office = Office(disk=disk)
        await office.trips(2)
        office.put(letter(found("http://h.example/1")))
        office.agent.group.shadowed = shadowed
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
        office.agent.discover(host, page(host))
        await office.trips(2)
        assert office.post.disk_full and disk.writes == written and not office.links_to("b")
        why[0] = ""
        await office.trips(2)
        assert not office.post.disk_full and disk.writes > written and len(office.links_to("b")) == 1

    run(test)


def test_a_connection_that_breaks_in_the_middle_repeats_what_may_be_lost() -> None:
    async def test() -> None:
        for most in range(6):
            office = Office()
            office.join("b")
            host = ordered("b", "a")
            office.put(letter(found("http://h.example/1")))
            await office.trip()
            office.agent.discover(host, page(host))
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
            office.agent.discover(host, page(host, number))
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
        office.agent.discover(host, page(host))
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
            office.agent.discover(host, page(host, number))
            office.hub.full = True
            await office.trips(3)
        assert office.post.full
        assert office.post.writes_refused > 3

    with caplog.at_level("INFO", "scrapy_ubi"):
        run(test)
    said = [record.getMessage() for record in caplog.records]
    assert [text[:22] for text in said] == ["Redis is full and take", "Redis has room again."]
    assert "UBI_FLUSH_RECORDS" in said[0]


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


# -- after an absence


def test_after_an_absence_what_waits_is_sent_once_it_has_looked() -> None:
    async def test() -> None:
        office = Office()
        office.join("b")
        await office.trip()
        office.agent.discover(ordered("b", "a"), page(ordered("b", "a")))
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
        office.agent.discover(ordered("b", "a"), page(ordered("b", "a")))
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


def test_letters_that_are_too_much_for_one_exchange_leave_in_parts() -> None:
    """A slow line cannot carry them within the time-out."""

    async def trip(office: Office) -> None:
        office.now += LONGEST_PAUSE
        office.post.send(office.now, lambda: "{}")
        await office.arrival()

    async def test() -> None:
        office = Office()
        office.join()
        await office.trip()
        told = office.post.told
        exchange = office.transport.exchange
        sent: list[int] = []

        async def narrow(out: Outgoing) -> Incoming:
            if len(out.letters) > 2:
                raise TransportDown("It did not answer in time.")
            sent.extend(int(value) for _, fields in out.letters for name, value in fields.items() if name[:3] == "seq")
            return await exchange(out)

        office.transport.exchange = narrow  # type: ignore[method-assign]
        host = ordered("b", "a")
        for number in range(150):
            office.agent.discover(host, page(host, number + 10**60))
        while not sent:
            await trip(office)
        assert office.post.busy and office.post.told == told, "the rest is still to be told"
        office.shelf.agents.clear()
        await trip(office)
        assert office.post.busy and office.shelf.agents[b"a"] == b"{}", "who takes long is not taken for silent"
        while office.post.busy:
            await trip(office)
        assert len(sent) > 4 and sent == list(range(1, len(sent) + 1)), "each of them once"
        assert office.post.told > told and not office.post.away

    run(test)


def test_exchanges_of_little_do_not_say_that_the_line_carries_much() -> None:
    """After each pause in the mail all of it was tried at once again, in vain, and left copies in the inboxes."""

    async def test() -> None:
        office = Office()
        office.join()
        await office.trip()
        exchange = office.transport.exchange
        sizes: list[int] = []

        async def narrow(out: Outgoing) -> Incoming:
            if out.letters:
                office.now += 1.0
                sizes.append(len(out.letters))
            if len(out.letters) > 2:
                raise TransportDown("It did not answer in time.")
            return await exchange(out)

        office.transport.exchange = narrow  # type: ignore[method-assign]
        host = ordered("b", "a")
        for number in range(300):
            if number == 150:
                assert max(sizes) > 4
                for lane in office.agent.outbox.lanes.values():
                    office.agent.answered(lane.name, json.dumps({"acked": [*lane.unacknowledged]}), office.now)
                await office.trips(10)
                sizes.clear()
            office.agent.discover(host, page(host, number + 10**60))
            if number % 150 == 149:
                await office.trips(1)
                while office.post.busy:
                    await office.trips(1)
        assert max(sizes) <= 3

    run(test)


@pytest.mark.parametrize("in_parts", [False, True])
def test_letters_that_left_long_after_the_drain_are_not_sent_again_at_once(in_parts: bool) -> None:
    """Over a slow line, or as Redis was away: each would be in the inbox twice before anybody could have read it."""

    async def test() -> None:
        office = Office()
        office.join()
        await office.trips(1)
        outbox = office.agent.outbox
        outbox.bounds = outbox.bounds._replace(resend=5.0)
        exchange, sent = office.transport.exchange, []

        async def slow(out: Outgoing) -> Incoming:
            office.now += 3
            if len(out.letters) > (2 if in_parts else 99) or (not in_parts and office.now < 130):
                raise TransportDown("It did not answer in time.")
            sent.extend(fields["seq"] for _, fields in out.letters)
            return await exchange(out)

        host = ordered("b", "a")
        for number in range(150):
            office.agent.discover(host, page(host, number + 10**60))
        office.transport.exchange = slow  # type: ignore[method-assign]
        while not sent or office.post.busy:
            await office.trips(1)
        assert len(sent) > 4 and sent == [str(number) for number in range(1, len(sent) + 1)]
        assert not list(outbox.post(office.now + 4, ""))
        assert len(list(outbox.post(office.now + 6, ""))) == len(sent), "but after the time-out"

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
            office.agent.lease.acknowledged(office.now - 1)
            raise TransportDown("It did not answer in time.")

        for _ in range(5):
            office.transport.exchange = slow  # type: ignore[method-assign]
            await office.trips(1)
            assert office.post.away, "so much may wait and no more"
            office.transport.exchange = exchange  # type: ignore[method-assign]
            await office.trips(1)
            assert not office.post.away
        office.hub.down = True
        office.agent.lease.acknowledged(office.now + 99)  # it went right after a beat, and at once
        await office.trips(1)

    run(test)
    said = [record.message for record in caplog.records]
    assert [one.split(":")[0] for one in said] == [
        "Redis takes this agent's beats, and not its mail",
        "Redis takes mail again.",
        "Redis is away",
    ]
    assert "UBI_MAX_LETTER_BYTES" in said[0] and said[0].endswith("It did not answer in time.")


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
        office.agent.discover(ordered("b", "a"), page(ordered("b", "a")))
        while office.post.outage._pause < LONGEST_PAUSE:
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
            office.agent.discover(host, page(host, number))
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
        office.agent.group.shadowed = cause == "shadow"
        office.now += SETTINGS.lease_timeout + 1 if cause == "absence" else 0.0
        number, disk.full = 2, True
        await office.trip()
        assert office.post.disk_full
        number, disk.full, office.agent.group.shadowed = 3, False, False
        host = ordered("b", "a")
        office.agent.discover(host, page(host))
        await office.trips(4)
        assert durable == [3]

    office.transport.exchange = heard  # type: ignore[method-assign]
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
