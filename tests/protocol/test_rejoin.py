"""An agent that was fenced: it joins anew, or goes on where all still know it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrapy_ubi.protocol import detector
from scrapy_ubi.protocol.beat import FENCED, Beat
from tests.support.views import ordered
from tests.support.village import Village, page

# -- fence, epoch, rejoin


def test_loads_are_cancelled_a_little_after_the_lease_ends() -> None:
    """In the meantime most end by themselves, and need not be fetched again."""
    village = Village("a", "b")
    a = village.agents["a"]
    village.cut = {"a"}
    village.turn(seconds=village.config.lease_timeout)
    assert village.urgent["a"].cancels == 0
    assert FENCED in a.beat.flags
    village.turn(seconds=village.config.grace)
    assert village.urgent["a"].cancels == 1
    village.turn(seconds=1.0)
    assert village.urgent["a"].cancels == 1, "once"


def slept(village: Village, seconds: float = 20.0) -> None:
    """Nothing of a happens for so long, and b goes on."""
    end = village.now + seconds
    while village.now < end:
        village.turn(*(name for name in village.agents if name != "a"))


@pytest.mark.parametrize("seconds", [3.4, 3.6, 20.0])
@pytest.mark.parametrize("first", ["beat", "flush"])
def test_who_was_asleep_cancels_nothing_where_it_is_dead_to_nobody(seconds: float, first: str) -> None:
    """Alone, or as all were asleep. Its loads have ended meanwhile, and what is thrown away is fetched again."""
    for names in ("a", "ab"):
        village = Village(*names)
        a = village.agents["a"]
        village.now += seconds
        village.beat("a") if first == "beat" else village.flush("a")
        village.flush("a")
        assert FENCED in a.beat.flags, "nothing starts"
        for _ in range(5):
            village.turn(seconds=0.5)
        assert village.urgent["a"].cancels == 0
        village.settle()
        assert FENCED not in a.beat.flags and a.counters.rejoins == 0


@pytest.mark.parametrize("first", ["beat", "flush"])
def test_who_was_asleep_cancels_when_it_finds_itself_dead(first: str) -> None:
    village = Village("a", "b")
    slept(village)
    village.beat("a") if first == "beat" else village.flush("a")
    assert village.agents["a"].drain(village.now).cancels == (first == "beat")
    village.beat("a")
    village.flush("a")
    assert village.urgent["a"].cancels == 1 and village.agents["a"].counters.rejoins == 1


def test_who_was_asleep_cancels_when_redis_has_forgotten_as_nobody_may_say_that_it_is_dead() -> None:
    village = Village("a", "b")
    a, b = village.agents["a"], village.agents["b"]
    village.now += 20.0
    for sent in (village.now, village.now + 0.5):
        a.group.lease.acknowledged(sent)
        a.read(sent, sent, {"a": a.beat, "b": replace(b.beat, counter=1000)}, "another token")
    assert a.tick(village.now + 0.5).cancels == 1


def test_who_was_asleep_cancels_when_no_word_comes_and_not_while_it_sleeps_again() -> None:
    village = Village("a", "b")
    village.cut = {"a"}
    for _ in range(3):
        village.turn("b", seconds=10.0)
        village.flush("a")
        assert village.urgent["a"].cancels == 0
    for _ in range(2):
        village.now += 0.3
        village.flush("a")
    assert village.urgent["a"].cancels == 1
    village.now += 0.3
    village.flush("a")
    assert village.urgent["a"].cancels == 1, "once"


def test_who_was_asleep_and_had_word_and_is_cut_off_then_cancels_after_all() -> None:
    village = Village("a", "b")
    a = village.agents["a"]
    village.now += 20.0
    village.flush("a")
    village.beat("a")
    for _ in range(2):  # asleep again, and awake with nobody to reach
        village.now += 20.0
        village.flush("a")
        assert village.urgent["a"].cancels == 0
    village.now += a.config.grace + 0.1
    village.flush("a")
    assert village.urgent["a"].cancels == 1


def test_after_a_short_cut_the_fence_outlasts_the_next_beat_until_all_have_seen_the_epoch() -> None:
    village, host = Village("a", "b", "c"), ordered("a", "b", "c")
    a = village.agents["a"]
    a.discovery.discover(host, page(host))
    village.settle()
    village.cut = {"a"}
    village.turn(seconds=village.config.lease_timeout)
    village.turn(seconds=0.5)
    assert village.agents["b"].view.members.keys() == {"a", "b", "c"}
    village.cut = set()
    digest = a.view.digest
    village.turn("a", seconds=0.5)
    assert a.group.lease.torn
    assert a.view.digest != digest, "its epoch is part of the view"
    assert a.view.members["a"].epoch == 1
    assert a.counters.fences == 1
    village.turn("a", "b", seconds=0.5)
    village.turn("a", "b", seconds=0.5)
    assert village.visit("a") is None, "c has not published a view that holds the new epoch"
    village.turn(seconds=0.5)
    village.until(lambda: village.visit("a"))
    assert not a.group.lease.torn
    assert a.counters.rejoins == 0


def test_a_redis_outage_for_all_ends_without_anybody_declared_dead() -> None:
    village, host = Village("a", "b", "c"), ordered("a", "b", "c")
    a = village.agents["a"]
    a.discovery.discover(host, page(host))
    village.settle()
    village.down = True
    for _ in range(30):
        village.turn()
    assert village.visit("a") is None
    village.down = False
    village.settle()
    assert [agent.counters.rejoins for agent in village.agents.values()] == [0, 0, 0]
    assert not any(agent.group.watch.dead for agent in village.agents.values())
    village.until(lambda: village.visit("a"))


def test_a_redis_that_comes_back_empty() -> None:
    village, host = Village("a", "b", "c"), ordered("a", "b", "c")
    village.agents["a"].discovery.discover(host, page(host))
    village.settle()
    village.down = True
    for _ in range(30):
        village.turn()
    village.forget()
    village.down = False
    village.settle()
    assert [agent.counters.rejoins for agent in village.agents.values()] == [0, 0, 0]
    village.until(lambda: village.visit("a"))


def test_one_declared_dead_finds_a_view_without_itself_and_joins_anew() -> None:
    village, host = Village("a", "b", "c"), ordered("a", "b", "c")
    a = village.agents["a"]
    for number in range(3):
        a.discovery.discover(host, page(host, number))
    village.settle()
    before = a.incarnation
    village.cut = {"a"}
    village.until(lambda: "a" not in village.agents["b"].view.members)
    assert village.visit("a") is None
    assert village.visit("b") == page(host, 0).url, "its heir goes on"
    village.cut = set()
    village.turn()
    assert village.visit("a") is None
    village.turn()
    assert a.incarnation != before
    assert a.counters.rejoins == 1
    assert village.urgent["a"].cancels
    assert not a.usurped, "it knows its own former life"
    assert village.visit("a") is None, "a newcomer like any other"
    village.settle()
    assert village.agents["b"].view.members["a"].incarnation == a.incarnation
    assert village.crawl("ab") == [page(host, 1).url, page(host, 2).url]


def test_more_agents_than_a_beat_can_name_come_back_from_a_cut_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who are not named would never know: each would believe in another view than the rest, for ever."""
    monkeypatch.setattr(detector, "MOST_DEAD", 2)
    village = Village(*"abcdefg")
    village.cut = set("abcde")
    village.until(lambda: village.agents["g"].view.members.keys() == {"f", "g"})
    village.cut = set()
    village.until(lambda: all(agent.group.may_act(village.now) for agent in village.agents.values()))
    village.settle()
    assert [agent.counters.rejoins for agent in village.agents.values()] == [1, 1, 1, 1, 1, 0, 0]


def test_while_fenced_no_done_mark_leaves() -> None:
    """Others may hold this agent dead, and acknowledge for as few as they are without it."""
    village = Village("a", "b")
    host, other = ordered("a", "b"), ordered("b", "a")
    village.agents["a"].discovery.discover(host, page(host))
    village.settle()
    village.visit("a", page(other))
    village.log.clear()
    village.now += village.config.lease_timeout
    for _ in range(6):
        village.flush()
        village.take()
    assert not len(village.agents["a"].outbox), "the link is told, and acknowledged"
    assert not any(delta.done for _, letter in village.log for delta in letter.deltas)
    village.settle()
    assert village.state("b", host).done == {page(host).key}


def test_who_is_not_sure_acknowledges_no_url() -> None:
    """It sees nobody, and may have successors all the same."""
    village, host = Village("a", "b"), ordered("b", "a")
    a = village.agents["a"]
    a.discovery.discover(host, page(host))
    village.kill("b")
    village.forget()
    b = village.start("b")
    village.beat("b")
    village.flush("a")
    village.take("b")
    village.flush("b")
    assert not b.group.sure and village.holders(host) == {"b"}
    assert not village.acks["a"]
    village.until(lambda: not len(a.outbox))
    assert b.group.sure and village.holders(host) == {"a", "b"}


def test_what_a_fenced_out_agent_did_alone_is_merged() -> None:
    """Its marks had not left when it was cut off; they are worth something all the same."""
    village, host = Village("a", "b", "c"), ordered("a", "b", "c")
    a = village.agents["a"]
    for number in range(3):
        a.discovery.discover(host, page(host, number))
    village.settle()
    village.cut = {"a"}
    village.visit("a", page(host, 9))
    village.until(lambda: "a" not in village.agents["b"].view.members)
    village.cut = set()
    village.settle()
    urls = village.crawl()
    assert sorted(urls) == sorted(page(host, number).url for number in (1, 2, 9))
    village.settle()
    assert village.state("b", host).done == village.state("a", host).done


def test_another_process_under_ones_name_is_noticed() -> None:
    village = Village("a", "b")
    a = village.agents["a"]
    stranger = Beat("ffffffff", 0, 20, a.view.digest)
    for counter in (1, 2):
        assert not a.usurped
        village.now += 1.0
        a.read(village.now, village.now, {"a": Beat.parse(stranger.line(counter)) or pytest.fail("no beat")})
    assert a.usurped


def test_whose_name_was_taken_over_begins_no_other_incarnation() -> None:
    """It would be the death of the one that has the name now, and that one's next one of its own, for ever."""
    village = Village("a", "b")
    a, before = village.agents["a"], village.agents["a"].incarnation
    stranger = Beat("ffffffff", 0, 20, a.view.digest, counter=1)
    others = {"b": replace(village.agents["b"].beat, dead=(before,))}
    for counter in (1, 1, 2, 2):
        village.now += 1.0
        a.read(village.now, village.now, {"a": replace(stranger, counter=counter), **others})
        assert a.incarnation == before
    assert a.usurped
