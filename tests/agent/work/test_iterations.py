"""Iterations by themselves: what may be taken when, what is held, and what comes of it at the barrier."""

from __future__ import annotations

import random

import pytest

from scrapy_ubi.agent.work.iterations import Iteration, Iterations
from scrapy_ubi.agent.work.visits import Visit, VisitEnd
from scrapy_ubi.protocol.host import Entry, HostState
from scrapy_ubi.protocol.memory_state import SetState


def entry(key: int, host: str = "h", text: str = "") -> Entry:
    return Entry(key, f"http://{host}/{key}", 1, 0, text)


class Crawl:
    """In the place of node, frontier and barrier: requests wait in the order of their keys."""

    def __init__(self, take: int, hosts: int = 10, ranks: bool = False) -> None:
        self.iterations = Iterations(take, hosts)
        self.iterations.barrier = self
        self.states: dict[str, SetState] = {}
        self.over: list[list[int]] = []  # of each iteration, the pages as they count
        self.links: list[int] = []
        self.retried: list[int] = []
        self.woken: list[str] = []
        self.ranks, self.ranking = ranks, list[Iteration]()

    def waits(self, *keys: int, host: str = "h") -> None:
        state = self.states.setdefault(host, SetState(host))
        for key in keys:
            state.learn(entry(key, host))

    def take(self, host: str = "h") -> Visit | None:
        state = self.states[host]
        if not state.queued or not self.iterations.may_take(state):
            return None
        visit = Visit(state, state.hand_out(min(state.queued)), 0)
        self.iterations.taken(visit)
        return visit

    def take_all(self, host: str = "h") -> list[Visit]:
        found = []
        while (visit := self.take(host)) is not None:
            found.append(visit)
        return found

    def end(self, *visits: Visit) -> None:
        for visit in visits:
            visit.closed = True
            self.iterations.end_visit(VisitEnd(visit, None, True, 200, None))

    def put_back(self, visit: Visit) -> None:
        self.states[visit.host].put_back(visit.entry.key, None)
        self.iterations.put_back(visit)

    # -- the barrier

    def again(self, endings: list[VisitEnd]) -> None:
        for ending in endings:
            self.retried.append(ending.visit.entry.key)
            ending.visit.again = None
            self.states[ending.visit.host].put_back(ending.visit.entry.key, None)

    def reached(self, iteration: Iteration, goes_on: bool) -> None:
        self.links += [link.entry.key for link in iteration.links()]
        endings = iteration.in_order(iteration.endings)
        self.over.append([ending.visit.entry.key for ending in endings])
        for ending in endings:
            self.states[ending.visit.host].finish(ending.visit.entry.key)
        if self.ranks:
            self.ranking.append(iteration)
        else:
            self.iterations.closed(iteration)

    def close_stalled(self) -> None: ...

    def wake(self, state: HostState) -> None:
        self.woken.append(state.host)


def test_one_that_was_known_when_its_turn_came_takes_no_place() -> None:
    """Else it would depend on the time which request is the last one of an iteration."""
    crawl = Crawl(take=3)
    crawl.waits(1, 2, 3, 4, 5)
    first, known = crawl.take(), crawl.take()
    assert first is not None and known is not None
    known.closed = True
    crawl.iterations.end_visit(VisitEnd(known, None, False, 0, None))
    others = crawl.take_all()
    assert [visit.entry.key for visit in others] == [3, 4]
    crawl.end(first, *others)
    assert crawl.over == [[1, 2, 3, 4]]


def test_so_many_are_taken_and_no_more_until_all_have_ended() -> None:
    crawl = Crawl(take=3)
    crawl.waits(1, 2, 3, 4, 5)
    first = crawl.take_all()
    assert len(first) == 3
    crawl.end(first[2], first[0])
    assert crawl.take() is None and not crawl.over
    crawl.end(first[1])
    assert crawl.over == [[1, 2, 3]] and crawl.woken == ["h"]
    crawl.end(*crawl.take_all())
    assert crawl.over[1:] == [[4, 5]] and len(crawl.iterations) == 0


def test_what_comes_while_it_is_loaded_waits_for_the_next_one() -> None:
    crawl = Crawl(take=3)
    crawl.waits(1)
    (only,) = crawl.take_all()
    crawl.waits(2, 3)
    assert crawl.take() is None, "one waited when it began"
    crawl.end(only)
    assert len(crawl.take_all()) == 2


def test_it_waits_for_the_requests_that_politeness_puts_off() -> None:
    crawl = Crawl(take=3)
    crawl.waits(1, 2, 3)
    first = crawl.take()
    assert first is not None
    crawl.end(first)
    assert not crawl.over, "it has ended before the second was taken, and two are to come"
    crawl.end(*crawl.take_all())
    assert crawl.over == [[1, 2, 3]]


def test_while_it_is_ranked_nothing_is_taken() -> None:
    crawl = Crawl(take=1, ranks=True)
    crawl.waits(1, 2)
    crawl.end(*crawl.take_all())
    assert crawl.take() is None
    crawl.iterations.closed(crawl.ranking[0])
    assert len(crawl.take_all()) == 1


def test_what_is_fetched_again_belongs_to_the_iteration_and_comes_in_the_order_of_the_first_time() -> None:
    crawl = Crawl(take=4)
    crawl.waits(1, 2, 3, 4, 5)
    first = crawl.take_all()
    first[0].again = first[3].again = entry(0)
    crawl.end(*reversed(first))
    assert not crawl.over and crawl.retried == [1, 4]
    crawl.end(*reversed(crawl.take_all()))
    assert crawl.over == [[1, 2, 3, 4]]


def test_what_was_not_made_is_taken_once_more_before_the_barrier() -> None:
    crawl = Crawl(take=2)
    crawl.waits(1, 2, 3)
    first, second = crawl.take_all()
    crawl.put_back(first)
    crawl.end(second)
    assert not crawl.over
    crawl.end(*crawl.take_all())
    assert crawl.over == [[1, 2]]


@pytest.mark.parametrize("seed", range(10))
def test_links_count_with_the_first_page_that_has_them(seed: int) -> None:
    """Whatever order pages end in, and however what they say is mixed."""
    draws, crawl = random.Random(seed), Crawl(take=4)
    crawl.waits(1, 2, 3, 4)
    pages = crawl.take_all()
    said = {1: [11, 10], 2: [12, 11], 3: [], 4: [10, 13]}
    left = [(page, said[page.entry.key].copy()) for page in pages]
    while left:
        page, links = draws.choice(left)
        if links:
            crawl.iterations.hold(page, entry(links.pop(0)))
        else:
            crawl.end(page)
            left.remove((page, links))
    assert crawl.links == [11, 10, 12, 13], seed


def test_a_link_is_news_once_but_one_with_another_text_is_taken_from_the_earlier_page() -> None:
    crawl = Crawl(take=2)
    crawl.waits(1, 2)
    first, second = crawl.take_all()
    hold = crawl.iterations.hold
    assert hold(second, entry(9)) and not hold(second, entry(9)) and not hold(first, entry(9))
    assert hold(second, entry(8, text="late")) and hold(first, entry(8, text="early"))
    assert crawl.iterations.held == 2
    crawl.end(first)
    assert not crawl.iterations.holds(first) and crawl.iterations.holds(second)
    crawl.end(second)
    assert crawl.iterations.held == 0 and crawl.links == [9, 8]


def test_requests_of_so_many_hosts_are_out_at_once() -> None:
    crawl = Crawl(take=2, hosts=2)
    for host in ("a", "b", "c", "d"):
        crawl.waits(1, 2, 3, host=host)
    (a, b), others = [crawl.take_all("a"), crawl.take_all("b")], [crawl.take_all("c"), crawl.take_all("d")]
    assert len(a) == len(b) == 2 and others == [[], []]
    crawl.end(*a)
    assert crawl.woken == ["c", "d", "a"], "those in line, then the host itself"
    assert len(crawl.take_all("c")) == 2 and not crawl.take_all("a") and not crawl.take_all("d")
    crawl.iterations.close_stalled(lambda state: True)
    assert crawl.woken == ["c", "d", "a"], "there is no place"


def test_hosts_in_line_are_asked_again_though_the_first_ones_do_not_take_their_place() -> None:
    crawl = Crawl(take=1, hosts=1)
    for host in "abcdef":
        crawl.waits(1, host=host)
    (a,) = crawl.take_all("a")
    assert not any(crawl.take_all(host) for host in "bcdef")
    crawl.end(a)
    assert crawl.woken == ["b", "c", "a"]
    crawl.iterations.close_stalled(lambda state: True)
    assert crawl.woken[3:] == ["d", "e", "f"]


def test_a_host_that_was_forgotten_while_it_was_ranked_may_come_again() -> None:
    crawl = Crawl(take=1, ranks=True)
    crawl.waits(1)
    crawl.end(*crawl.take_all())
    crawl.states["h"] = SetState("h")
    crawl.waits(2)
    assert len(crawl.take_all()) == 1


@pytest.mark.parametrize("goes_on", [True, False])
def test_what_nothing_else_would_close_is_closed_by_a_look(goes_on: bool) -> None:
    """The rest was done elsewhere; or the host is not fetched here any more."""
    crawl = Crawl(take=3)
    crawl.waits(1, 2, 3)
    first = crawl.take()
    assert first is not None
    first.again = None if goes_on else entry(1)
    crawl.end(first)
    for key in (2, 3) if goes_on else ():
        crawl.states["h"].mark_done(key)
    crawl.iterations.close_stalled(lambda state: goes_on)
    assert crawl.over == ([[1]] if goes_on else [[]]) and crawl.retried == ([] if goes_on else [1])
