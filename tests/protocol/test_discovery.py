"""What becomes of URLs that were found: queued, told their owner, known, too large, routed anew.

Hosts are named by the order of their agents: `ordered("b", "c", "a")` is b's, c keeps a copy, a is next.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.protocol.done_mark_delivery import Outlinks
from scrapy_ubi.protocol.host_policy import HostPolicy
from scrapy_ubi.protocol.lane import DISCOVERY, Bounds
from scrapy_ubi.protocol.records import MOST_OUTLINKS
from tests.support.views import ordered
from tests.support.village import Village, page


def test_an_own_link_is_queued_here_and_told_to_the_successor() -> None:
    village, host = Village("a", "b"), ordered("a", "b")
    a = village.agents["a"]
    assert a.discovery.discover(host, page(host))
    assert village.queued("a", host) == {page(host).key}
    assert not a.discovery.discover(host, page(host)), "known"
    village.settle()
    assert village.queued("b", host) == {page(host).key}
    assert (a.counters.forwarded, a.counters.suppressed, a.counters.replicated, a.counters.links) == (0, 0, 1, 2)


numbers = st.lists(st.integers(0, 5), max_size=4)


def most_known(most: int, begun: list[bool]) -> HostPolicy:
    """No host takes more, once it has begun."""
    return HostPolicy(lambda state, entry: bool(begun) and state is not None and state.known >= most)


@given(numbers, numbers, st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), min_size=1, max_size=8))
@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("owner", ["a", "b"])
def test_links_of_one_host_may_be_told_at_once(
    owner: str, limited: bool, seeds: list[int], known: list[int], found: list[tuple[int, int]]
) -> None:
    """`discover_all` is `discover` for each."""
    outcomes = []
    for at_once in (True, False):
        begun: list[bool] = []
        village = Village("a", "b", policies={"a": most_known(3, begun)} if limited else {})
        host = ordered("a", "b") if owner == "a" else ordered("b", "a")
        a, outlinks = village.agents["a"], Outlinks()
        for number in known:
            a.discovery.discover(host, page(host, number, depth=1), [])
        village.settle()
        for number in seeds:
            a.discovery.discover(host, page(host, number, depth=1))
        begun.append(True)
        entries = [page(host, number, depth) for number, depth in found]
        if at_once:
            news = a.discovery.discover_all(host, entries, outlinks)
        else:
            news = [entry for entry in entries if a.discovery.discover(host, entry, outlinks)]
        village.settle()
        states = [sorted(village.state(name, host).undone()) for name in sorted(village.holders(host))]
        outcomes.append((news, sorted(set(outlinks)), states, a.counters))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("owner", ["a", "b"])
@pytest.mark.parametrize("at_once", [True, False])
def test_of_a_page_with_very_many_links_no_more_are_gathered_than_tell_that(owner: str, at_once: bool) -> None:
    village, host = Village("a", "b"), ordered("a", "b") if owner == "a" else ordered("b", "a")
    a, outlinks, slices = village.agents["a"], Outlinks(), 40
    for start in range(0, 10 * slices, 10):
        entries = [page(host, start + number) for number in range(10)]
        if at_once:
            assert a.discovery.discover_all(host, entries, outlinks) == entries
        else:
            assert all(a.discovery.discover(host, entry, outlinks) for entry in entries)
    assert MOST_OUTLINKS < len(outlinks) <= MOST_OUTLINKS + 10


def test_what_its_owner_knows_is_not_sent_again() -> None:
    village, host = Village("a", "b"), ordered("b", "a")
    a = village.agents["a"]
    assert a.discovery.discover(host, page(host, depth=3))
    assert not a.discovery.discover(host, page(host, depth=3))
    assert not a.discovery.discover(host, page(host, depth=4))
    assert (a.counters.forwarded, a.counters.suppressed) == (1, 2)
    village.settle()
    assert not a.discovery.discover(host, page(host, depth=3))
    assert a.discovery.discover(host, page(host, depth=2)), "a shorter way is news"
    village.settle()
    assert village.state("b", host).queued[page(host).key].depth == 2


def test_suppression_is_bounded() -> None:
    village, host = Village("a", "b", suppressed_keys=3), ordered("b", "a")
    a = village.agents["a"]
    for number in range(4):
        a.discovery.discover(host, page(host, number))
    assert not a.discovery.discover(host, page(host, 3))
    assert a.discovery.discover(host, page(host, 0)), "it was forgotten"


def test_suppression_ends_when_an_agent_is_gone() -> None:
    """What the dead knew may have to be told again."""
    village, host = Village("a", "b", "c"), ordered("b", "a", "c")
    a = village.agents["a"]
    a.discovery.discover(host, page(host))
    village.settle()
    village.kill("c")
    village.settle()
    assert a.discovery.discover(host, page(host))
    village.settle()
    village.start("d")
    village.settle()
    assert not a.discovery.discover(host, page(host)), "a newcomer is no reason"


def test_a_hint_is_followed_when_it_is_in_the_view() -> None:
    """b is leaving, and a has not seen that yet."""
    village, host = Village("a", "b", "c"), ordered("b", "c", "a")
    a, b = village.agents["a"], village.agents["b"]
    b.leave(village.now)
    b.tick(village.now)
    village.beat("b", "c")
    a.discovery.discover(host, page(host))
    village.flush("a")
    village.take("b")
    village.flush("b")
    village.take("a")
    village.log.clear()
    village.now += 1.0
    village.flush("a")
    assert [(to, letter.kind) for to, letter in village.log] == [("c", DISCOVERY)]
    village.take("c")
    assert page(host).key in village.queued("c", host)


def test_mail_to_the_dead_is_routed_anew() -> None:
    village, host = Village("a", "b", "c"), ordered("b", "c", "a")
    a = village.agents["a"]
    a.discovery.discover(host, page(host, 1))
    village.flush("a")
    village.kill("b")
    a.discovery.discover(host, page(host, 2))
    village.settle()
    assert village.queued("c", host) == {page(host, 1).key, page(host, 2).key}
    assert village.queued("a", host) == {page(host, 1).key, page(host, 2).key}, "a is c's successor now"


def test_mail_to_the_dead_may_be_for_oneself_now() -> None:
    village, host = Village("a", "b"), ordered("b", "a")
    a = village.agents["a"]
    a.discovery.discover(host, page(host))
    village.flush("a")
    village.kill("b")
    village.settle()
    assert village.visit("a") == page(host).url
    assert len(a.outbox) == 0


def test_what_is_too_large_does_not_travel() -> None:
    village = Village("a", "b", bounds=Bounds(4, 10, 100, 5.0))
    a = village.agents["a"]
    far, own = ordered("b", "a"), ordered("a", "b")
    assert not a.discovery.discover(far, page(far, request='{"body":"%s"}' % ("x" * 200)))
    assert a.counters.untravelled == 1
    assert a.discovery.too_large(far, page(far, request='{"body":"%s"}' % ("x" * 200)))
    assert not a.discovery.too_large(far, page(far))
    assert not a.discovery.too_large(own, page(own, request='{"body":"%s"}' % ("x" * 200)))
    assert a.discovery.discover(own, page(own, request='{"body":"%s"}' % ("x" * 200))), "here it can be fetched"
    assert a.counters.untravelled == 2, "but nobody else has it"
    village.settle()
    assert village.queued("b", own) == set()
