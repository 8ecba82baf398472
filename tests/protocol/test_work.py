"""What is handed out to be fetched, and comes back: done, retried, cancelled, or from no queue at all.

Hosts are named by the order of their agents: `ordered("b", "c", "a")` is b's, c keeps a copy, a is next.
"""

from __future__ import annotations

import pytest

from scrapy_ubi.protocol.beat import FENCED, NEW
from scrapy_ubi.protocol.host import retried
from scrapy_ubi.protocol.records import Record
from scrapy_ubi.protocol.visit_row import VisitRow
from tests.support.views import ordered
from tests.support.village import Village, page


def test_a_retry_is_the_same_key_not_yet_done() -> None:
    village, host = Village("a", "b"), ordered("a", "b")
    a, entry = village.agents["a"], page(host)
    a.discovery.discover(host, entry)
    state, first = a.work.next(village.now) or pytest.fail("nothing to fetch")
    again = first._replace(priority=-1)
    a.work.freed(state, village.now)
    a.work.put_back(state, entry.key, again)
    assert a.work.next(village.now) == (state, again)
    a.work.ended(state, entry.key)
    a.work.freed(state, village.now)
    assert a.work.next(village.now) is None
    village.check()


def test_an_heir_does_not_begin_with_the_retries_anew() -> None:
    village, host = Village("a", "b"), ordered("a", "b")
    a, entry = village.agents["a"], page(host)
    a.discovery.discover(host, entry)
    state, first = a.work.next(village.now) or pytest.fail("nothing to fetch")
    village.turn()
    again = retried(first._replace(priority=-1), first)
    a.work.freed(state, village.now)
    a.work.put_back(state, entry.key, again)
    village.turn()
    assert village.state("b", host).queued == {entry.key: again}
    village.check()


@pytest.mark.parametrize("heavy", [False, True])
def test_a_page_whose_request_is_too_long_for_a_letter_is_not_visited_again(heavy: bool) -> None:
    """It is counted."""
    village = Village("a")
    a, entry = village.agents["a"], page("h.example", request='{"body":"%s"}' % ("x" * 5_000 * heavy))
    a.discovery.discover("h.example", entry)
    state, _ = a.work.next(village.now) or pytest.fail("nothing to fetch")
    a.work.ended(state, entry.key, row=VisitRow(1, 10, 0, 1, 0, 5, 5, 0, 3, "", "", entry))
    assert state.is_done(entry.key)
    assert (a.counters.heavy_rows, state.visit_row(entry.key) is None) == (int(heavy), heavy)


def test_one_at_a_time_of_a_host() -> None:
    village, hosts = Village("a"), ["h1.example", "h2.example"]
    a = village.agents["a"]
    for host in hosts:
        for number in range(2):
            a.discovery.discover(host, page(host, number))
    first, second = a.work.next(village.now), a.work.next(village.now)
    assert first is not None
    assert second is not None
    assert {first[0].host, second[0].host} == set(hosts)
    assert a.work.next(village.now) is None
    a.work.freed(first[0], village.now)
    third = a.work.next(village.now)
    assert third is not None
    assert third[0] is first[0]


def test_no_new_fetches_while_the_outbox_is_full() -> None:
    village, own, far = Village("a", "b", outbox_records=2), ordered("a", "b"), ordered("b", "a")
    a = village.agents["a"]
    a.discovery.discover(own, page(own))
    village.settle()
    for number in range(3):
        a.discovery.discover(far, page(far, number))
    assert village.visit("a") is None
    village.settle()
    assert village.visit("a") == page(own).url


def test_no_new_fetches_while_too_many_outlinks_are_thin() -> None:
    village, own = Village("a", "b", outbox_records=2), ordered("a", "b")
    a = village.agents["a"]
    a.discovery.discover(own, page(own))
    village.settle()
    a.outbox.thin += [Record(own, 1, page(own, number)) for number in range(3)]
    assert village.visit("a") is None
    village.turn()
    assert village.visit("a") == page(own).url, "done marks may leave, so none is thin any more"


def test_nobody_fetches_before_its_first_beat() -> None:
    village = Village()
    a = village.start("a")
    a.sure()
    a.discovery.discover("h.example", page("h.example"))
    assert village.visit("a") is None
    assert FENCED in a.beat.flags
    assert NEW in a.beat.flags


def test_a_cancelled_load_is_fetched_by_the_new_owner() -> None:
    village = Village("a", "b")
    host = ordered("c", "a", "b")
    a = village.agents["a"]
    a.discovery.discover(host, page(host))
    village.settle()
    state, first = a.work.next(village.now) or pytest.fail("nothing to fetch")
    village.start("c")
    for _ in range(10):
        village.turn()
    a.work.freed(state, village.now)
    a.work.put_back(state, first.key)
    village.settle()
    assert village.crawl() == [page(host).url]


def test_a_host_not_in_any_queue_counts_as_work_while_it_is_loaded() -> None:
    """robots.txt and media are borrowed: a new owner waits for their end as well."""
    village = Village("a", "b")
    host = ordered("c", "a", "b")
    a = village.agents["a"]
    state = a.work.borrow(host)
    c = village.start("c")
    c.discovery.discover(host, page(host))
    for _ in range(10):
        village.turn()
    assert a.beat.pending
    assert village.visit("c") is None
    a.work.give_back(state, village.now)
    village.settle()
    assert village.visit("c") == page(host).url


def test_the_lease_is_asked_at_the_dispatch() -> None:
    village, host = Village("a", "b"), ordered("a", "b")
    a = village.agents["a"]
    a.discovery.discover(host, page(host))
    state, _ = a.work.next(village.now) or pytest.fail("nothing to fetch")
    assert a.work.may_fetch(state, village.now)
    assert a.work.may_fetch(state, village.now + village.config.lease_timeout - 0.001)
    assert not a.work.may_fetch(state, village.now + village.config.lease_timeout), "nobody had to say so"


def test_nothing_is_handed_out_when_it_is_over() -> None:
    village = Village("a")
    a = village.agents["a"]
    a.discovery.discover("h.example", page("h.example"))
    a.accept_end(lossy=False)
    assert village.visit("a") is None
