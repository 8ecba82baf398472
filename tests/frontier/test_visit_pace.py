"""No more pages are visited again than the budget, in any time, whatever is due (`budget` of UBI_RECRAWL)."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.agent.crawl.revisits import Recrawl
from scrapy_ubi.frontier.visit_pace import LATE, VisitPace
from scrapy_ubi.policy.recrawl import read_recrawl
from scrapy_ubi.policy.recrawl.budget import Budget
from scrapy_ubi.policy.recrawl.rule_contract import NOTHING, VisitSeen
from scrapy_ubi.protocol.host import HostState
from scrapy_ubi.protocol.memory_state import SetState
from tests.frontier.frontiers import FRONTIERS, Checked, DictKind, Make, reopened
from tests.frontier.test_visits import any_host, done, row
from tests.support.memory_store import MemoryStore

EVERY = pytest.mark.parametrize("make", FRONTIERS.values(), ids=FRONTIERS.keys())


def most_in(times: list[float], period: float) -> int:
    """The most of these times, in their order, within any such period."""
    first = most = 0
    for number, at in enumerate(times):
        while times[first] <= at - period:
            first += 1
        most = max(most, number - first + 1)
    return most


@given(
    st.floats(0.001, 1000.0),
    st.lists(st.tuples(st.integers(0, 30), st.floats(0.0, 20.0), st.booleans()), min_size=1, max_size=200),
)
def test_in_any_time_there_are_no_more_than_the_rate_and_a_few(
    rate: float, asked: list[tuple[int, float, bool]]
) -> None:
    """Hosts ask at any times, early and late, and the rate may be told anew."""
    pace, now, made, states = VisitPace(), 100.0, [], [SetState(f"h{number}") for number in range(31)]
    pace.follow(rate, now)
    for number, slots, again in asked:
        now += slots / rate
        if again:
            pace.follow(rate, now)
        if not pace.held(states[number], False, now):
            made.append(now)
    for slots in (1, 10, 100):
        assert most_in(made, slots / rate) <= slots + max(LATE, 0.2 * rate) + 2


def visited(frontier: Checked, begin: float, end: float) -> list[float]:
    """When pages are visited again from `begin` to `end` (s), each due again at once."""
    times, now = [], begin
    while now < end:
        frontier.wake(int(now), any_host)
        while (one := frontier.pop(now, any_host)) is not None:
            state, entry = one
            if entry.key in state.visits.out:
                times.append(now)
                before = state.visits.out[entry.key]
                frontier.visited(state, entry.key, before._replace(generation=before.generation + 1))
            else:
                frontier.finish(state, entry.key)
            frontier.free(state, now)
        frontier.check_invariants()
        now = min((at for at in (frontier.next_ready(),) if at is not None and at > now), default=now + 1.0)
    return times


@EVERY
@pytest.mark.parametrize(("hosts", "pages"), [(1, 3), (1, 60), (40, 1), (12, 20)])
def test_all_pages_of_the_start_come_back_at_the_rate_and_not_at_once(make: Make, hosts: int, pages: int) -> None:
    frontier = make(0.0)
    for host in range(hosts):
        done(frontier, f"h{host}", *(row(100 * host + page, 1000, host=f"h{host}") for page in range(pages)))
    frontier.look_again()
    frontier.pace = pace = VisitPace()  # type: ignore[attr-defined]
    pace.follow(0.5, 900.0)
    times = visited(frontier, 1000.0, 1400.0)
    assert most_in(times, 60.0) <= 30 + LATE + 1
    assert len(times) >= 0.9 * 0.5 * 400, "and what is due has its turn"


def test_a_restart_makes_no_burst() -> None:
    store, times = MemoryStore(), []
    frontier = reopened(store, DictKind())
    for host in range(20):
        done(frontier, f"h{host}", *(row(100 * host + page, 1000, host=f"h{host}") for page in range(20)))
    for start in range(10):
        frontier.flush()
        frontier = reopened(store, DictKind(damaged=True))
        frontier.pace = pace = VisitPace()
        pace.follow(0.5, 1000.0 + 20 * start)
        frontier.look_again()
        times += visited(frontier, 1000.0 + 20 * start, 1020.0 + 20 * start)
    assert most_in(times, 60.0) <= 30 + 3 * (LATE + 1)
    assert len(times) > 50


@EVERY
@pytest.mark.parametrize("queued", [False, True])
def test_where_the_budget_grows_nobody_waits_for_a_slot_of_before(make: Make, queued: bool) -> None:
    """As where other agents leave, and this one has their share."""
    frontier = make(0.0)
    for host in range(10):
        state = done(frontier, f"h{host}", row(host, 50, host=f"h{host}"))
        if queued:
            frontier.add(f"h{host}", [row(100 + host, 0, host=f"h{host}").entry])
            frontier.postpone(state, 1030.0)
    frontier.look_again()
    rule = read_recrawl("budget(3600/h)")
    assert rule is not None
    recrawl, view = Recrawl(rule, None, lambda: 1000.0), SimpleNamespace(members=range(1000))
    frontier.pace = recrawl.pace  # type: ignore[attr-defined]
    work, keeping = SimpleNamespace(wake=lambda wall: None), SimpleNamespace(keepers=lambda state: ("a",))
    agent: Any = SimpleNamespace(me="a", frontier=frontier, view=view, work=work, keeping=keeping)
    recrawl.tick(agent, 900.0)
    assert len(visited(frontier, 1000.0, 1100.0)) < 5
    view.members = range(1)
    recrawl.tick(agent, 1100.0)
    visited(frontier, 1100.0, 1130.0)
    rows = [state.visit_row(int(state.host[1:])) for state in frontier.states()]
    assert all(row is not None and row.generation > 1 for row in rows)


@EVERY
def test_pages_that_were_never_fetched_do_not_wait_for_the_budget(make: Make) -> None:
    frontier = make(0.0)
    state: HostState = done(frontier, "h", *(row(page, 50) for page in range(1, 30)))
    frontier.add("h", [row(page, 0).entry for page in range(100, 300)])
    frontier.pace = pace = VisitPace()  # type: ignore[attr-defined]
    pace.follow(0.001, 900.0)
    visited(frontier, 1000.0, 1010.0)
    assert not state.waiting


@given(st.integers(1, 400), st.sampled_from((0.1, 1.0, 50.0)), st.floats(0.01, 100.0))
def test_the_pages_of_a_start_are_planned_the_budget_apart(pages: int, each: float, budget: float) -> None:
    """Nobody knows at the start how many there will be."""
    rule, dues = Budget(budget, least=60.0, most=1e7), []
    for page in range(pages):
        seen = VisitSeen(1e9 + page / each)
        dues.append(rule.plan_next(NOTHING, seen, page * 7919).due)
        rule.told(NOTHING, seen)
        if page % 20 == 0:
            rule.settle(page + 1)
    dues.sort()
    assert dues[0] >= 1e9 + 60
    # A page may be due later than its slot by the spread over what were known, so a few come beside others.
    assert most_in([float(due) for due in dues], 60.0) <= 2 * math.ceil(60.0 * budget) + 20
