"""The agent: two, three or four of them around a tiny post, and what each promise of docs/explanation/protocol.md looks
like there.

Hosts are named by the order of their agents: `ordered("b", "c", "a")` is b's, c keeps a copy, a is next.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_ubi.protocol import work
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.beat import BLANK, LEFT, LOSSY, OVER, Beat
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.protocol.lane import DISCOVERY, STATE
from scrapy_ubi.protocol.losses import LossBook, missing
from tests.support.views import incarnation, ordered
from tests.support.village import Village, host_of, page


def marks(village: Village) -> set[int]:
    """Keys of all done marks that were ever sent."""
    return {key for _, letter in village.log for delta in letter.deltas for key in delta.done}


# -- a foreign link: owner, successor, acknowledgement, done mark


def test_foreign_link_step_by_step() -> None:
    village, host = Village("a", "b", "c"), ordered("b", "c", "a")
    a, b, c = village.agents.values()
    link = page(host)
    village.log.clear()

    assert a.discovery.discover(host, link)
    assert village.holders(host) == set(), "only the mail knows it"
    village.flush("a")
    village.take("b")
    assert village.queued("b", host) == {link.key}

    village.flush("b")
    village.take("a")
    assert len(a.outbox) == 1, "b has it, its successor does not"
    village.take("c")
    assert village.queued("c", host) == {link.key}
    village.flush("c")
    village.take("b")
    village.flush("b")
    assert len(a.outbox) == 1
    village.take("a")
    assert len(a.outbox) == 0
    assert [(to, letter.sender, letter.kind) for to, letter in village.log] == [
        ("b", "a", DISCOVERY),
        ("c", "b", STATE),
    ]

    assert village.visit("a") is None
    assert village.visit("c") is None
    assert village.visit("b") == link.url
    village.flush("b")
    village.take("c")
    assert village.state("c", host).done == {link.key}
    assert not village.queued("c", host)
    village.flush("c")
    village.take("b")
    assert len(b.outbox) == 0
    assert (a.counters.forwarded, b.counters.received, b.counters.done, b.counters.replicated) == (1, 1, 1, 2)
    assert len(c.outbox) == 0


def test_without_replication_the_owner_acknowledges_at_once() -> None:
    village, host = Village("a", "b", "c", replication=0), ordered("b", "c", "a")
    village.agents["a"].discovery.discover(host, page(host))
    for part, name in ((village.flush, "a"), (village.take, "b"), (village.flush, "b"), (village.take, "a")):
        part(name)
    assert len(village.agents["a"].outbox) == 0
    assert village.holders(host) == {"b"}


def test_with_two_successors_both_have_to_have_it() -> None:
    village, host = Village("a", "b", "c", "d", replication=2), ordered("b", "c", "d", "a")
    a = village.agents["a"]
    a.discovery.discover(host, page(host))
    for part, name in ((village.flush, "a"), (village.take, "b"), (village.flush, "b")):
        part(name)
    for name in "cd":
        village.take("b")
        village.flush("b")
        village.take("a")
        assert len(a.outbox) == 1
        village.take(name)
        village.flush(name)
    village.take("b")
    village.flush("b")
    village.take("a")
    assert len(a.outbox) == 0
    assert village.holders(host) == {"b", "c", "d"}


# -- P5: done marks come last


def test_a_done_mark_leaves_only_when_owner_and_successor_have_the_outlinks() -> None:
    village = Village("a", "b", "c")
    own, far = ordered("a", "b", "c"), ordered("b", "c", "a")
    village.agents["a"].discovery.discover(own, page(own))
    village.settle()
    village.visit("a", page(far))

    def sent() -> bool:
        for _ in range(3):
            village.flush("a")
            village.take("a")
        return page(own).key in marks(village)

    assert not sent()
    village.take("b")
    village.flush("b")
    assert not sent(), "b has it, c does not"
    village.take("c")
    village.flush("c")
    assert not sent(), "b does not know that c has it"
    village.take("b")
    assert not sent(), "a does not know that both have it"
    village.flush("b")
    village.take("a")
    assert sent()


def test_a_done_mark_waits_for_own_links_at_the_successor() -> None:
    village, host, other = Village("a", "b", "c"), ordered("a", "b", "c"), ordered("a", "c", "b")
    village.agents["a"].discovery.discover(host, page(host))
    village.settle()
    village.visit("a", page(other))
    for _ in range(3):
        village.flush("a")
        village.take("a")
    assert page(host).key not in marks(village), "c has not acknowledged"
    village.take("c")
    village.flush("c")
    village.take("a")
    village.flush("a")
    assert page(host).key in marks(village)


def test_a_done_mark_waits_for_links_of_the_same_flush_only_and_of_those_before() -> None:
    village = Village("a", "b", "c")
    own, far = ordered("a", "b", "c"), ordered("b", "c", "a")
    for number in range(2):
        village.agents["a"].discovery.discover(own, page(own, number))
    village.settle()
    village.visit("a")
    village.flush("a")
    village.visit("a", page(far))
    village.flush("a")
    assert page(own, 0).key in marks(village)
    village.flush("a")
    assert page(own, 1).key not in marks(village)


def test_a_done_mark_waits_for_a_link_that_was_refused_and_one_whose_receiver_died() -> None:
    village = Village("a", "b", "c", "d")
    own, far = ordered("a", "d", "b", "c"), ordered("b", "c", "d", "a")
    village.agents["a"].discovery.discover(own, page(own))
    village.settle()
    village.visit("a", page(far))
    village.flush("a")
    village.kill("b")
    for _ in range(3):
        village.turn()
    assert page(own).key not in marks(village)
    village.until(lambda: page(own).key in marks(village))
    assert page(far).key in village.queued("c", far)
    assert page(far).key in village.queued("d", far)


STEPS = st.lists(
    st.tuples(st.sampled_from(["visit", "flush", "take", "beat"]), st.sampled_from("abc"), st.integers(0, 8)),
    min_size=10,
    max_size=80,
)


@settings(max_examples=40)
@given(STEPS)
def test_whatever_the_order_of_steps_a_mark_on_its_way_has_its_outlinks_in_two_places(
    steps: list[tuple[str, str, int]],
) -> None:
    """P5 as a law: when a done mark is sent, every outlink of its page is at its owner and at the owner's successor."""
    village = Village("a", "b", "c")
    hosts = [ordered(*"abc"), ordered(*"bca"), ordered(*"cab"), ordered(*"acb")]
    links: dict[int, list[Entry]] = {}
    for agent, host in zip("abca", hosts, strict=True):
        village.agents[agent].discovery.discover(host, page(host))

    def judge() -> None:
        for key in marks(village) & links.keys():
            for link in links[key]:
                order = village.agents["a"].keeping.ring.order(host_of(link), 2)
                for name in order:
                    state = village.state(name, host_of(link))
                    known = {*state.queued, *state.out, *state.done}
                    assert link.key in known, f"{link.url} is not at {name}"

    for step, name, number in steps:
        village.now += 0.1
        if step == "visit":
            entry = page(hosts[number % 4], number)
            url = village.visit(name, entry)
            if url is not None:
                links[page(url.split("/")[2], int(url.rsplit("/", 1)[1])).key] = [entry]
        else:
            getattr(village, step)(name)
        judge()
        village.check()
    village.settle()
    judge()


# -- becoming sure


def test_a_first_agent_waits_for_a_lease() -> None:
    """Redis may have forgotten the others a moment before it came (decision 0003)."""
    village = Village()
    a = village.start("a")
    a.discovery.discover("h.example", page("h.example"))
    begun = village.now
    village.until(lambda: village.visit("a"))
    assert village.now - begun > village.config.lease_timeout
    assert not a.lossy


def test_one_who_knows_to_be_alone_does_not_wait() -> None:
    village = Village()
    a = village.start("a")
    a.sure()
    a.discovery.discover("h.example", page("h.example"))
    begun = village.now
    village.until(lambda: village.visit("a"))
    assert village.now - begun < village.config.lease_timeout


# -- joining


def test_a_newcomer_takes_its_hosts_over() -> None:
    village = Village("a", "b")
    hosts = [ordered("c", "a", "b"), ordered("a", "c", "b"), ordered("a", "b", "c")]
    for host in hosts:
        for number in range(30):
            village.agents["a"].discovery.discover(host, page(host, number))
    village.settle()
    village.start("c")
    assert village.visit("c") is None
    village.settle()
    assert [village.holders(host) for host in hosts] == [{"a", "c"}, {"a", "c"}, {"a", "b"}]
    urls = village.crawl("cab")
    assert sorted(urls) == sorted(page(host, number).url for host in hosts for number in range(30))
    village.settle()
    for host in hosts:
        for name in village.holders(host):
            assert len(village.state(name, host).done) == 30


def test_the_owner_stops_when_it_sees_the_newcomer_and_the_newcomer_waits_for_the_load_under_way() -> None:
    village = Village("a", "b")
    host = ordered("c", "a", "b")
    a = village.agents["a"]
    for number in range(2):
        a.discovery.discover(host, page(host, number))
    village.settle()
    state, first = a.work.next(village.now) or pytest.fail("nothing to fetch")
    c = village.start("c")
    for _ in range(10):
        village.turn()
    assert not a.work.may_fetch(state, village.now)
    assert a.beat.pending, "it lists the host"
    assert a.beat.settled == a.view.digest
    assert c.view_history.released
    begun = village.now
    while village.now < begun + 2 * village.config.handoff_timeout:
        village.turn()
        assert village.visit("c") is None, "its load is under way at a"
    assert c.counters.handoff_timeouts == 0
    a.work.freed(state, village.now)
    a.work.ended(state, first.key)
    village.turn("a")
    assert village.visit("c") is None, "the done mark has not arrived"
    village.settle()
    assert village.visit("c") == page(host, 1).url
    assert village.visit("c") is None, "the first is done"


def test_an_agent_that_never_settles_holds_the_others_up_for_the_handoff_timeout() -> None:
    village = Village("a", "b", handoff_timeout=20.0)
    host = ordered("c", "a", "b")
    village.agents["a"].discovery.discover(host, page(host))
    village.settle()
    c = village.start("c")
    begun, visited = village.now, None
    while visited is None and village.now < begun + 60:
        village.now += 1.0
        village.beat()
        village.flush("b", "c")  # a beats, and does nothing else
        village.take("b", "c")
        visited = village.visit("c")
        if village.now == begun + 1:
            c.discovery.discover(host, page(host, 1))
    assert visited is not None
    assert village.now - begun > 20.0
    assert c.counters.handoff_timeouts == 1
    assert village.urgent["c"].overdue == 1, "one host is said to be fetched at the risk of duplicates"


def village_of_overdue(count: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Village, Agent]:
    """Three agents; nobody has handed so many hosts over to the third, which counts four of them a tick."""
    monkeypatch.setattr(work, "COUNTED", 4)
    village = Village("a", "b", handoff_timeout=20.0)
    c = village.start("c")
    hosts = [ordered("c", "a", "b", nth=number) for number in range(count)]
    while not c.counters.handoff_timeouts:
        village.now += 1.0
        village.beat()
        for host in hosts:
            c.discovery.discover(host, page(host))
        c.tick(village.now)
    return village, c


def test_hosts_that_nobody_has_handed_over_are_counted_some_a_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent with a million of them would stand still for seconds; it fetches meanwhile."""
    village, c = village_of_overdue(9, monkeypatch)
    assert village.visit("c") is not None
    assert c.tick(village.now).overdue == 0, "not all are looked at"
    assert c.tick(village.now).overdue == 9
    assert c.tick(village.now).overdue == 9, "each is counted once"


def test_hosts_that_wait_again_after_another_change_are_not_said_to_be_fetched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The count goes on for some ticks, and all that another view held back were in it."""
    village, c = village_of_overdue(9, monkeypatch)
    before = c.view
    village.start("d")
    while c.view is before:
        village.now += 1.0
        village.beat()
    assert [c.tick(village.now) for _ in range(3)][-1].overdue == 4


# -- crashes


def test_the_successor_goes_on_at_once_where_the_owner_died() -> None:
    village, host = Village("a", "b", "c"), ordered("a", "b", "c")
    for number in range(30):
        village.agents["a"].discovery.discover(host, page(host, number))
    village.settle()
    village.visit("a")
    village.settle()
    village.kill("a")
    b = village.agents["b"]
    village.until(lambda: "a" not in b.view.members, "b")
    assert not b.view_history.released, "c has not even seen it"
    assert village.visit("b") == page(host, 1).url
    village.settle()
    urls = village.crawl()
    assert sorted(urls) == sorted(page(host, number).url for number in range(2, 30))
    assert village.holders(host) == {"b", "c"}


def test_death_is_noticed_within_failure_timeout_and_a_beat() -> None:
    village = Village("a", "b", "c")
    village.kill("a")
    begun = village.now
    village.until(lambda: all("a" not in agent.view.members for agent in village.agents.values()))
    assert village.config.failure_timeout < village.now - begun <= village.config.failure_timeout + 2


def test_a_crashed_agents_fetches_are_repeated_only_where_its_marks_had_not_left() -> None:
    village, host = Village("a", "b"), ordered("a", "b")
    for number in range(4):
        village.agents["a"].discovery.discover(host, page(host, number))
    village.settle()
    village.visit("a")
    village.settle()
    village.visit("a")
    village.kill("a")
    village.settle()
    assert village.crawl() == [page(host, number).url for number in (1, 2, 3)]


def test_lossy_when_more_are_lost_than_there_are_copies() -> None:
    village = Village("a", "b", "c", "d")
    village.kill("a")
    village.settle()
    assert not village.agents["c"].lossy, "one is what a copy is for"
    village.kill("b")
    village.settle()
    assert not village.agents["c"].lossy, "every host had its copies again in between"
    village = Village("a", "b", "c", "d")
    village.kill("a")
    village.kill("b")
    village.settle()
    assert village.agents["c"].lossy
    assert LOSSY in village.agents["d"].beat.flags
    village.start("e")
    village.settle()
    assert village.agents["e"].lossy, "word of it spreads"


def test_an_agent_dies_and_returns_without_anything() -> None:
    village, host = Village("a", "b", "c"), ordered("a", "b", "c")
    for number in range(12):
        village.agents["a"].discovery.discover(host, page(host, number))
    village.settle()
    village.kill("a")
    village.start("a")
    village.settle()
    assert village.holders(host) == {"a", "b"}
    assert len(village.crawl("a")) == 12


# -- the end


def test_the_crawl_ends_by_itself_when_there_is_nothing_left() -> None:
    village = Village("a", "b", "c")
    host, far = ordered("a", "b", "c"), ordered("b", "c", "a")
    village.agents["a"].discovery.discover(host, page(host))
    for agent in village.agents.values():
        agent.end.start_exhausted = True
    for _ in range(10):
        village.turn()
    assert not any(agent.end.finished for agent in village.agents.values()), "a page waits to be fetched"
    village.visit("a", page(far))
    for _ in range(10):
        village.turn()
    assert not any(agent.end.finished for agent in village.agents.values()), "and another one"
    village.visit("b")
    turns = village.until(lambda: all(agent.end.finished for agent in village.agents.values()))
    assert turns < 10


def test_word_of_the_end_is_believed_unless_agents_were_lost_and_work_is_left() -> None:
    village = Village("a")
    a = village.agents["a"]
    a.discovery.discover("h.example", page("h.example"))
    a.accept_end(lossy=True)
    assert not a.end.finished
    a.accept_end(lossy=False)
    assert a.end.finished
    village = Village("a")
    village.agents["a"].accept_end(lossy=True)
    assert village.agents["a"].end.finished, "nothing is left here"


def test_a_copy_that_others_keep_is_no_work_left_at_the_end() -> None:
    """It is to be dropped, and the word of the end may come before that."""
    village, host = Village("a", "b", "c"), ordered("b", "c", "a")
    for name in "ac":
        village.agents[name].frontier.add(host, (page(host),))
        village.agents[name].accept_end(lossy=True)
    assert village.agents["a"].end.finished
    assert not village.agents["c"].end.finished, "it keeps that host"


def test_those_who_know_of_no_url_cannot_tell_that_nobody_has_work() -> None:
    village = Village("a", "b")
    for agent in village.agents.values():
        agent.end.start_exhausted = True
    village.until(lambda: all(agent.end.finished for agent in village.agents.values()))
    assert all(agent.lossy for agent in village.agents.values())


def test_an_end_without_urls_names_who_was_lost_before_all_had_settled() -> None:
    """It may have known all, and nobody's copies are whole yet. Others can read that before the crawl is over."""
    village = Village()
    for name in "ab":
        village.start(name)
    village.agents["a"].discovery.discover("h.example", page("h.example"))
    village.beat()
    a, b = village.kill("a"), village.agents["b"]
    b.end.start_exhausted = True
    b.group.losses.book.await_publishing()
    village.until(lambda: b.group.losses.book.losses)
    assert [loss.members for loss in b.group.losses.book.losses] == [(("a", a.incarnation),)]
    for _ in range(5):
        village.turn()
    assert not b.end.finished
    b.group.losses.book.publish(b.group.losses.book.changes)
    village.until(lambda: b.end.finished)


def books(village: Village) -> list[LossBook]:
    return [agent.group.losses.book for agent in village.agents.values()]


def without_urls(*names: str) -> Village:
    """The `start()` of these has come to an end, and had no URL; they wait for seeds."""
    village = Village(*names)
    for agent in village.agents.values():
        agent.end.start_over = True
    for _ in range(2):
        village.turn()
    return village


def test_an_idle_crawl_that_never_had_a_url_has_lost_nothing() -> None:
    """One is killed while all wait for a seed. None comes, and the crawl is asked to end."""
    village = without_urls("a", "b", "c")
    village.kill("b")
    village.settle()
    for agent in village.agents.values():
        agent.end.start_exhausted = True
    village.until(lambda: all(agent.end.finished for agent in village.agents.values()))
    assert missing(books(village), lambda name, life: False) == ()


def test_who_leaves_before_its_start_has_ended_has_not_said_that_it_knew_no_url() -> None:
    village = Village("a", "b")
    a = village.agents["a"]
    a.leave(village.now)
    village.turn()
    assert BLANK not in a.beat.flags
    a.end.start_over = True
    village.turn()
    assert BLANK in a.beat.flags


def test_what_was_said_where_nobody_knew_a_url_stands_no_more_when_one_comes_who_knows_some() -> None:
    village = Village("a", "b")
    lost, a = village.kill("b"), village.agents["a"]
    a.end.start_exhausted = True
    a.end.allow_outside_entries()
    village.until(lambda: a.group.losses.book.losses)
    assert missing(books(village), lambda name, life: False) == ("b",)
    assert [loss.members for loss in a.group.losses.book.losses] == [(("b", lost.incarnation),)]
    c = village.start("c")
    c.discovery.discover("h.example", page("h.example"))
    village.until(lambda: not a.group.losses.book.losses)
    assert not a.end.finished and not a.lossy and not c.lossy


@pytest.mark.parametrize("order", ["ac", "ca"])
def test_whoever_is_there_names_who_was_lost_where_nobody_knows_a_url(order: str) -> None:
    """Another one may see the end first, that had not heard the lost one."""
    village = Village("b", "c")
    c = village.agents["c"]
    c.end.start_exhausted = True
    village.turn()
    village.kill("b")
    village.forget()
    village.turn()
    village.start("a").end.start_exhausted = True
    village.until(lambda: any(agent.end.finished for agent in village.agents.values()), *order)
    assert [loss.members[0][0] for loss in c.group.losses.book.losses] == ["b"]


def test_one_who_knows_of_a_url_can_tell_it_for_all() -> None:
    village, host = Village("a", "b", "c"), ordered("a", "b", "c")
    for agent in village.agents.values():
        agent.end.start_exhausted = True
    village.agents["a"].discovery.discover(host, page(host))
    village.until(lambda: village.visit("a") is not None)
    village.until(lambda: all(agent.end.finished for agent in village.agents.values()))
    assert BLANK in village.agents["c"].beat.flags, "neither owner nor successor of the only host"
    assert not any(agent.lossy for agent in village.agents.values())


def test_who_leaves_a_finished_crawl_ends_it_for_those_who_have_not_heard() -> None:
    """Else they would take over its hosts while they close, and count them twice."""
    village = Village("a", "b")
    a, b = village.agents.values()
    a.accept_end(lossy=False)
    view = b.view
    last = Beat.parse(a.last_beat().line(1000))
    assert last is not None
    b.read(village.now, village.now, {"a": last, "b": b.beat})
    assert b.end.finished
    assert b.view is view
    assert b.keeping.keepers_of(ordered("a", "b"))[0] == "a"


def test_word_of_the_end_from_one_who_is_in_no_view_is_none() -> None:
    """It may stand in a file from which Redis has come back, and be of another crawl's end."""
    village = Village("a", "b")
    a = village.agents["a"]
    over = Beat(incarnation("z"), 0, 20, a.view.digest, flags=LEFT + OVER, counter=7)
    a.read(village.now, village.now, {"z": over})
    assert not a.end.finished
    a.read(village.now, village.now, {"b": replace(over, incarnation=village.agents["b"].incarnation)})
    assert a.end.finished


def test_nothing_is_forced_where_nothing_waits() -> None:
    village = Village("a", "b", handoff_timeout=12.0)
    for _ in range(15):
        village.turn()
    assert [agent.counters.handoff_timeouts for agent in village.agents.values()] == [0, 0]


def test_nothing_is_forced_by_one_that_is_fenced() -> None:
    """It may be dead to the others, and its heirs be fetching; what it waits for may have come long ago."""
    village = Village("a", "b")
    a = village.agents["a"]
    village.start("c")
    village.beat("c")
    village.beat("a")
    assert a.view_history.waits
    a.tick(village.now + 2 * village.config.handoff_timeout)
    assert a.view_history.waits and a.counters.handoff_timeouts == 0


def test_who_begins_anew_counts_on_nothing_it_knew_of_the_others() -> None:
    """Its heirs may have fetched: all it holds is offered, its loads end, and it waits as a newcomer does."""
    village, host = Village("a", "b"), ordered("a", "b")
    a = village.agents["a"]
    a.discovery.discover(host, page(host))
    village.settle()
    assert a.view_history.complete is a.view and not village.state("a", host).dirty
    named = replace(village.agents["b"].beat, dead=(a.incarnation,), counter=10**6)
    a.read(village.now, village.now, {"b": named})
    assert a.drain(village.now).cancels and a.view_history.complete is None and not a.view_history.released
    assert village.state("a", host).dirty and village.visit("a") is None


def test_no_done_mark_leaves_while_there_may_be_too_few_copies() -> None:
    """After a view with too few members, before all have settled: who is gone may come back without the outlinks."""
    village, host = Village("a", "b"), ordered("a", "b")
    a = village.agents["a"]
    a.discovery.discover(host, page(host))
    village.settle()
    village.kill("b")
    village.until(lambda: "b" not in a.view.members, "a")
    assert village.visit("a") and not a.view_history.released
    a.tick(village.now)
    assert len(a.closing) == 1
    village.until(lambda: not len(a.closing), "a")
    assert a.view_history.released


def test_who_was_on_its_way_out_when_another_came_and_leaves_with_work_is_waited_for_though_that_one_has_settled() -> (
    None
):
    """It was in no view: the newcomer's line of a moment before stands, and says that all who are left have settled."""
    village, host = Village("b", start_wait=0.0), ordered("a", "b")
    leaver = village.agents["b"]
    leaver.discovery.discover(host, page(host))
    leaver.leave(village.now)
    village.flush("b")
    village.beat("b")
    newcomer = village.start("a")
    village.beat("a")
    village.flush("a")
    assert newcomer.group.sure and newcomer.beat.settled == newcomer.view.digest
    village.beat("a")
    village.kill("b")
    village.beats["b"] = leaver.last_beat().line(1000)
    village.beat("a")
    assert newcomer.group.expected == ("b",)
    assert not newcomer.group.sure and not newcomer.view_history.released
    for _ in range(6):
        village.turn()
    assert newcomer.group.sure and newcomer.view_history.released
