"""A key that is done with a page, beside the page's own: its mark leaves with that one's, and no earlier (P5)."""

from __future__ import annotations

from scrapy_ubi.protocol.host import Entry
from tests.support.views import ordered
from tests.support.village import Village, page

HOST, FAR = ordered("a", "b", "c"), ordered("b", "c", "a")


def visited() -> tuple[Village, Entry, Entry]:
    """a has fetched a page of its own host, whose outlink is b's, and another key is done with it."""
    village = Village("a", "b", "c")
    one = page(HOST)
    other = one._replace(key=one.key ^ 1)
    village.agents["a"].discovery.discover(HOST, one)
    village.settle()
    village.log.clear()
    village.visit("a", page(FAR))
    village.agents["a"].work.mark_joined_done(village.state("a", HOST), other)
    return village, one, other


def marked(village: Village) -> set[int]:
    return {key for _, letter in village.log for delta in letter.deltas for key in delta.done}


def test_its_mark_leaves_with_that_of_the_page() -> None:
    village, one, other = visited()
    village.flush("a")
    assert village.state("a", HOST).done == {one.key, other.key}
    assert not marked(village), "the outlink is not acknowledged"
    village.until(lambda: marked(village))
    assert marked(village) == {one.key, other.key}
    village.until(lambda: village.state("b", HOST).done == {one.key, other.key})


def test_it_is_fetched_by_no_one() -> None:
    village, one, other = visited()
    village.until(lambda: village.state("b", HOST).done == {one.key, other.key})
    village.kill("a")
    village.until(lambda: all("a" not in agent.view.members for agent in village.agents.values()))
    village.settle()
    assert village.crawl() == [page(FAR).url]


def test_an_heir_that_was_not_told_fetches_the_page_again() -> None:
    village, one, _ = visited()
    village.kill("a")
    village.until(lambda: all("a" not in agent.view.members for agent in village.agents.values()))
    village.settle()
    assert village.crawl() == [one.url]


def test_nobody_is_told_of_it_before_the_page_may_be_told_done() -> None:
    village, one, other = visited()
    for _ in range(3):
        village.flush("a")
        village.take("b")  # c, which keeps a copy of the outlink, reads nothing
        village.flush("b")
        village.take("a")
    state = village.state("b", HOST)
    assert state.is_known(one.key) and not state.is_done(one.key)
    assert not state.is_known(other.key)


def test_a_second_time_does_nothing() -> None:
    village, _, other = visited()
    agent = village.agents["a"]
    work, done = village.state("a", HOST).open_work, agent.counters.done
    agent.work.mark_joined_done(village.state("a", HOST), other)
    assert (village.state("a", HOST).open_work, agent.counters.done) == (work, done)
    village.until(lambda: not village.state("a", HOST).open_work)
