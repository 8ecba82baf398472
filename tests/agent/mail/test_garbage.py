"""What comes in and is no letter of this run: set aside with a reason, read once, and it stops nothing."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scrapy_ubi.agent.mail.inbox_check import HEAD, MOST_SAID
from scrapy_ubi.agent.mail.run_state import RIVALS
from scrapy_ubi.protocol.bundle import opened
from scrapy_ubi.protocol.wire import decode
from tests.agent.office import HOST, VIEW, Office, found, letter, listen, run
from tests.support.views import ordered
from tests.support.village import page

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
        office.now += RIVALS + 1
        await office.trip()
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


@pytest.mark.parametrize("comes", [True, False])
def test_a_letter_that_comes_before_its_senders_first_beat_is_dead_only_where_that_never_comes(comes: bool) -> None:
    """It was told as lost, in the last lines of a crawl that had lost nothing."""

    async def test() -> None:
        office = Office()
        office.put(letter(found("http://h.example/1"), run="0badcafe"))
        await office.trip()
        assert office.answer() is None and not office.dead
        if comes:
            office.join("z")
        office.now += RIVALS + 1
        await office.trips(3)
        assert len(office.dead) == office.post.dead_letters == (0 if comes else 1)

    run(test)


def test_what_an_entry_holds_of_another_run_is_refused_alone() -> None:
    async def test() -> None:
        office = Office()
        office.put(letter(found("http://h.example/1")) | {b"seq.2": b"2", b"run.2": b"0badcafe"})
        await office.trips(2)
        assert office.answer() == {"acked": [1]}
        office.now += RIVALS + 1
        await office.trips(2)
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
            office.agent.discovery.discover(host, page(host))
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
