"""The run that an agent takes part in: Redis that forgets, word of the end, runs before and after."""

from __future__ import annotations

import math

import pytest

from scrapy_ubi.agent.crawl.finished_run import CLOCKS, end_fields, ended_ago, is_finished, is_lossy
from scrapy_ubi.agent.mail.outage import LONGEST_PAUSE
from scrapy_ubi.agent.mail.run_state import PUT_BACK, RIVALS
from tests.agent.office import HOST, LIMIT, SETTINGS, FullDisk, Office, found, letter, run
from tests.support.views import ordered
from tests.support.village import page

# -- Redis forgets


def test_the_first_exchange_names_the_run_and_leaves_a_token() -> None:
    async def test() -> None:
        office = Office()
        await office.trip()
        assert office.control("run")
        assert office.control("memory")
        before = office.shelf.control.copy()
        await office.trips(3)
        assert office.shelf.control == before

    run(test)


def test_what_is_there_is_not_written_again() -> None:
    async def test() -> None:
        office = Office({"run": "r1", "memory": "m1"})
        office.say("run", "r1")
        office.say("memory", "m1")
        await office.trips(2)
        assert (office.control("run"), office.control("memory")) == ("r1", "m1")

    run(test)


def test_when_redis_has_forgotten_what_is_under_way_is_sent_again_at_once() -> None:
    async def test() -> None:
        office = Office()
        office.join("b")
        host = ordered("b", "a")
        await office.trips(2)
        run_, memory = office.control("run"), office.control("memory")
        office.agent.discovery.discover(host, page(host))
        await office.trip()
        assert len(office.shelf.inbox["b"]) == 1
        office.hub.flush()
        await office.trips(1)
        assert len(office.shelf.inbox["b"]) == 0, "it is not known yet"
        await office.trip()
        assert len(office.shelf.inbox["b"]) == 1
        assert office.agent.counters.resent == 1
        assert office.control("run") == run_, "the run goes on"
        assert office.control("memory") not in (None, memory)
        await office.trip()
        assert len(office.shelf.inbox["b"]) == 1, "once"

    run(test)


def test_answers_are_said_again_too() -> None:
    async def test() -> None:
        office = Office()
        office.put(letter(found("http://h.example/1")))
        await office.trips(3)
        assert office.answer() == {"acked": [1]}
        office.hub.flush()
        await office.trips(2)
        assert office.answer() == {"acked": [1]}

    run(test)


def test_another_token_says_the_same() -> None:
    """Redis was emptied, and another agent saw it first."""

    async def test() -> None:
        office = Office()
        office.join("b")
        host = ordered("b", "a")
        await office.trips(2)
        office.agent.discovery.discover(host, page(host))
        await office.trip()
        run_ = office.control("run") or ""
        office.hub.flush()
        office.say("memory", "another")
        office.say("run", run_)
        await office.trips(2)
        assert len(office.shelf.inbox["b"]) == 1
        assert office.control("memory") == "another"

    run(test)


def test_who_starts_while_others_write_their_tokens_has_not_lost_anything() -> None:
    async def test() -> None:
        office = Office({"run": "r1", "memory": "one"})
        office.join("b")
        host = ordered("b", "a")
        office.say("memory", "another")
        office.agent.discovery.discover(host, page(host))
        await office.trips(2)
        assert office.agent.counters.resent == 0
        office.now += RIVALS
        office.say("memory", "a third")
        await office.trips(2)
        assert office.agent.counters.resent == 1, "nobody starts any more"

    run(test)


def test_two_that_write_a_token_at_once_have_not_lost_anything() -> None:
    async def test() -> None:
        office = Office()
        office.join("b")
        host = ordered("b", "a")
        office.agent.discovery.discover(host, page(host))
        await office.trip()
        office.say("memory", "a rival's")
        await office.trip()
        await office.trip()
        assert office.agent.counters.resent == 0
        assert office.control("memory") == "a rival's"

    run(test)


def test_who_learns_another_name_of_the_run_sends_again_what_bore_the_old_one() -> None:
    """Two that start together each name it; letters of the name that is gone find no receiver."""

    async def test() -> None:
        office = Office()
        office.join("b")
        host = ordered("b", "a")
        office.agent.discovery.discover(host, page(host))
        await office.trip()
        assert [fields[b"run"] for fields in office.shelf.inbox["b"].values()] == [
            (office.control("run") or "").encode()
        ]
        office.say("run", "0badcafe")
        for _ in range(2):
            await office.trip()
        assert [fields[b"run"] for fields in office.shelf.inbox["b"].values()][1:] == [b"0badcafe"]

    run(test)


# -- a newcomer to a Redis that has forgotten makes up another name


def forget(office: Office, **named: str) -> None:
    """Redis is emptied, and a newcomer has written this there before anyone else."""
    office.shelf.control.clear()
    for name, value in named.items():
        office.say(name, value)


@pytest.mark.parametrize("seen_empty", [False, True])
def test_who_knew_the_name_puts_it_back_and_what_is_past(seen_empty: bool) -> None:
    async def test() -> None:
        office = Office({"run": "r1", "memory": "one", "past": "r0"})
        forget(office)
        await office.trips(1 + seen_empty)  # the newcomer's word comes before that of this agent, or over it
        forget(office, run="made up", memory="new")
        await office.trips(3)
        assert office.post.run.run == office.control("run") == "r1"
        assert office.control("past") == "r0"

    run(test)


def test_who_made_it_up_takes_the_name_that_was_put_back() -> None:
    async def test() -> None:
        office = Office()
        await office.trips(2)
        assert office.control("run") != "r1"
        office.say("run", "r1")
        await office.trips(2)
        assert office.post.run.run == office.control("run") == "r1"

    run(test)


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("secret", ["", "a secret"])
def test_the_name_stays_whoever_looks_first_and_whoever_is_held_up(held: bool, secret: str) -> None:
    """A newcomer names it as well, and a token comes with each name; signed, it holds under any name."""

    async def test() -> None:
        named, disk = {"run": "r1", "memory": "one"}, FullDisk()
        known = Office(named, disk=disk, secret=secret)
        newcomer = Office(hub=known.hub, me="n", secret=secret)
        await known.trips(1)
        disk.full = held
        await known.trips(3)
        forget(known)
        known.now += LONGEST_PAUSE
        await known.trip()
        turns = [[known.now + (2.05 if held else 0.5), known, 2.05 if held else 0.5], [known.now + 0.1, newcomer, 0.55]]
        end, lost = known.now + 4 * PUT_BACK, known.agent.counters.resent + newcomer.agent.counters.resent
        while (turn := min(turns, key=lambda one: one[0]))[0] < end:
            turn[1].now = turn[0]
            await turn[1].trip()
            turn[0] += turn[2]
        assert known.post.run.run == newcomer.post.run.run == "r1"
        assert (known.control("run") or "").split(" ")[0] == "r1"
        assert known.agent.counters.resent + newcomer.agent.counters.resent - lost < 10

    run(test)


def test_who_goes_on_from_a_disk_beside_a_newcomer_puts_its_name_back() -> None:
    """Both had looked before either wrote."""

    async def test() -> None:
        disk = FullDisk()
        disk.facts = {"run": "r1"}
        office = Office(disk=disk)
        await office.trip()
        office.now += 0.3
        office.say("run", "made up")
        office.say("memory", "new")
        for _ in range(6):
            office.now += 0.5
            await office.trip()
        assert office.post.run.run == office.control("run") == "r1"

    run(test)


def test_one_directory_of_another_crawl_renames_none_that_runs() -> None:
    async def test() -> None:
        disk = FullDisk()
        disk.facts = {"run": "r1"}
        office = Office({"run": "r2", "memory": "two"}, disk=disk)
        forget(office, run="r2", memory="two")
        await office.trips(3)
        assert office.post.run.run == office.control("run") == "r2"

    run(test)


def test_a_disk_of_a_run_that_is_past_is_no_part_of_the_present_one() -> None:
    """It was looked at while Redis had forgotten, before another had said again which runs are past."""

    async def test() -> None:
        disk = FullDisk()
        disk.facts = {"run": "r1"}
        said = {"run": "r2", "memory": "new", "past": "r0 r1"}
        office = Office(said, disk=disk)
        forget(office, **said)
        await office.trips(2)
        assert office.agent.end.outlived
        assert office.control("run") == "r2"

    run(test)


def test_who_has_ended_its_crawl_puts_no_name_back() -> None:
    async def test() -> None:
        office = Office({"run": "r1", "memory": "one"})
        await office.trip()
        office.agent.accept_end(False)
        await office.trips(2)
        forget(office, run="r2", memory="two")
        await office.trips(3)
        assert office.control("run") == "r2"

    run(test)


def test_two_that_knew_different_names_come_to_one() -> None:
    async def test() -> None:
        office = Office({"run": "r1", "memory": "one"})
        await office.trip()
        forget(office, run="r2", memory="two")
        begun = office.now
        while office.now < begun + 2 * PUT_BACK:  # the other one puts its name back as well
            office.now += 1.0
            await office.trip()
            if office.now < begun + PUT_BACK:
                office.say("run", "r2")
        office.say("run", "r2")
        await office.trips(2)
        assert office.post.run.run == office.control("run") == "r2"

    run(test)


def test_who_can_write_nothing_says_again_what_redis_has_forgotten() -> None:
    async def test() -> None:
        disk = FullDisk()
        office = Office({"run": "r1", "memory": "one"}, disk=disk)
        await office.trip()
        disk.full = True
        office.join("b")
        host = ordered("b", "a")
        office.agent.discovery.discover(host, page(host))
        await office.trips(2)
        assert office.post.disk_full
        forget(office)
        await office.trips(3)
        assert office.control("run") == "r1"
        assert not office.control("memory"), "each token would be news"
        assert not office.shelf.inbox["b"], "mail waits for the disk"

    run(test)


# -- the end


def test_the_end_is_announced_once() -> None:
    async def test() -> None:
        office = Office()
        await office.trip()
        office.agent.accept_end(lossy=False)
        await office.trip()
        assert office.control("finished") == f"{office.control('run')} a"
        assert abs(office.transport.now() - float(office.control("finished_at") or 0)) < LIMIT
        office.say("finished", "changed by hand")
        await office.trip()
        assert office.control("finished") == "changed by hand"

    run(test)


def test_an_end_that_is_known_is_not_announced_again() -> None:
    """Whoever comes late to a finished crawl makes its end no later."""

    async def test() -> None:
        office = Office()
        await office.trip()
        office.say("finished", f"{office.control('run')} b")
        await office.trips(1)
        assert office.agent.end.finished
        await office.trips(2)
        assert office.control("finished") == f"{office.control('run')} b"
        assert office.control("finished_at") is None

    run(test)


def test_word_of_the_end_is_believed() -> None:
    async def test() -> None:
        office = Office()
        office.agent.discovery.discover(HOST, page(HOST))
        await office.trip()
        office.say("finished", "another-run b")
        await office.trips(1)
        assert not office.agent.end.finished, "word of an earlier run that comes late"
        office.say("finished", f"{office.control('run')} b")
        await office.trips(1)
        assert office.agent.end.finished

    run(test)


def test_an_end_of_agents_that_lost_too_many_is_denied_by_one_that_has_work_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        office = Office()
        office.agent.discovery.discover(HOST, page(HOST))
        await office.trip()
        office.say("finished", f"{office.control('run')} b lossy")
        await office.trips(1)
        assert not office.agent.end.finished
        await office.trip()
        assert caplog.text.count("has work left, and goes on") == 1, "it may fetch again what it cannot know"
        assert office.control("finished") == "", "a start under this name joins, and does not begin anew"
        office.say("finished", f"{office.control('run')} b")
        await office.trips(1)
        assert office.agent.end.finished, "denied once; what is said afterwards is heard"

    run(test)


# -- runs before and after


def test_a_redis_that_comes_back_as_it_was_in_a_former_run_ends_nothing() -> None:
    async def test() -> None:
        office = Office({"past": "0ld"})
        office.agent.discovery.discover(HOST, page(HOST))
        await office.trips(2)
        run = office.control("run")
        office.shelf.control.clear()
        for name, value in {"run": "0ld", "memory": "of then", "finished": "0ld b", "finished_at": "1.0"}.items():
            office.say(name, value)
        await office.trips(2)
        assert not office.agent.end.finished
        assert (office.control("run"), office.control("past")) == (run, "0ld")
        assert office.control("memory") not in (None, "of then")

    run(test)


def test_mail_of_a_former_run_that_comes_back_with_it_is_thrown_away() -> None:
    async def test() -> None:
        office = Office({"past": "0ld"})
        office.agent.discovery.discover(HOST, page(HOST))
        await office.trips(2)
        done = [{"host": HOST, "done": [f"{page(HOST).key:016x}"]}]
        office.put(letter(done, run="0ld"))
        await office.trips(2)
        assert not office.shelf.inbox["a"] and not office.dead
        state = office.agent.frontier.find(HOST)
        assert state is not None and not state.done_count, "it was fetched in that run, not in this one"
        office.put(letter(done, run=office.control("run") or ""))
        await office.trip()
        assert state.done_count

    run(test)


def test_letters_name_their_run_from_the_first_one_on() -> None:
    async def test() -> None:
        office = Office()
        office.join()
        host = ordered("b", "a")
        office.agent.discovery.discover(host, page(host))
        await office.trip()
        (fields,) = office.shelf.inbox["b"].values()
        assert fields[b"run"].decode() == office.control("run")

    run(test)


def test_who_was_away_over_the_end_closes_and_brings_nothing_into_the_next_run() -> None:
    async def test() -> None:
        office = Office()
        office.join("b")
        await office.trip()
        old = office.control("run") or ""
        office.agent.discovery.discover(ordered("b", "a"), page(ordered("b", "a")))
        office.shelf.control.clear()
        office.say("run", "a-new-one")
        office.say("past", f"older {old}")
        before = dict(office.shelf.control)
        office.put(letter(found("http://h.example/1")))
        office.now += SETTINGS.lease_timeout + 1
        for _ in range(4):
            await office.trip()
        assert office.agent.end.finished
        assert office.shelf.control == before, "it says nothing of the run that is none of its own"
        assert not office.shelf.inbox["b"], "it looks before it sends"
        assert len(office.shelf.inbox["a"]) == 1
        assert office.agent.last_beat().flags == "L", "that the crawl is over would end the next one"

    run(test)


@pytest.mark.parametrize(
    ("control", "over"),
    [
        ({}, False),
        ({"run": "r1"}, False),
        ({"run": "r1", "finished": ""}, False),
        ({"run": "r1", "finished": "r1 a"}, True),
        ({"run": "r1", "finished": "r1 a lossy"}, True),
        ({"run": "r1", "finished": "r0 a"}, False),
        ({"run": "", "finished": " a"}, False),
        ({"finished": "r1 a"}, False),
    ],
)
def test_finished_is_said_of_the_present_run(control: dict[str, str], over: bool) -> None:
    assert is_finished(control) == over


@pytest.mark.parametrize("lossy", [False, True])
def test_what_is_said_is_understood(lossy: bool) -> None:
    control = {"run": "r1", **end_fields("r1", "a", lossy, 1000.0)}
    assert is_finished(control)
    assert is_lossy(control) == lossy
    assert ended_ago(control, 1002.5) == 2.5


def test_clocks_may_differ_a_little_and_an_end_to_come_is_none() -> None:
    control = end_fields("r1", "a", False, 1000.0)
    assert -CLOCKS < ended_ago(control, 1000.0 - CLOCKS / 2) < 0
    assert ended_ago(control, 1000.0 - 2 * CLOCKS) == math.inf


@pytest.mark.parametrize("when", [None, "", "inf", "-inf", "nan", "soon", "1e999", "0x1", "9" * 5000])
def test_an_end_at_no_time_was_long_ago(when: str | None) -> None:
    assert ended_ago({} if when is None else {"finished_at": when}, 1000.0) == math.inf
