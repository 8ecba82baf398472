"""The contract of a frontier (`protocol.frontier.Frontier`), for every one there is (`frontiers.FRONTIERS`)."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from scrapy_ubi.frontier.host_loads import HostLoads
from scrapy_ubi.protocol.host import HostState, Notes, retried
from scrapy_ubi.protocol.notes import NOTHING
from tests.frontier.frontiers import FRONTIERS, Checked, Make, Tight
from tests.frontier.life import NOW, add, always, entry, life, never, pop, waiting

DELAY = 10.0


@pytest.fixture(params=FRONTIERS.values(), ids=FRONTIERS)
def make(request: pytest.FixtureRequest) -> Make:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def frontier(make: Make) -> Checked:
    return make(DELAY)


def popped(frontier: Checked) -> list[tuple[str, int]]:
    """All that may be handed out now."""
    found = iter(lambda: pop(frontier), None)
    return [one for one in found if one is not None]


# -- states


def test_nothing_is_held_at_first(frontier: Checked) -> None:
    assert len(frontier) == 0
    assert frontier.states() == []
    assert frontier.find("h.example") is None
    assert pop(frontier) is None
    assert frontier.next_ready() is None
    assert not frontier.waits(always)


def test_what_is_added_is_held(frontier: Checked) -> None:
    state = add(frontier, "h.example", 1, 2)
    assert frontier.find("h.example") is state
    assert frontier.states() == [state]
    assert len(frontier) == 1
    assert waiting(state).keys() == {1, 2}


def test_a_host_may_be_held_without_anything_known_of_it(frontier: Checked) -> None:
    state, news = frontier.add("h.example", ())
    assert news == []
    assert frontier.find("h.example") is state
    assert frontier.next_ready() is None
    assert not frontier.waits(always)


def test_only_news_is_news(frontier: Checked) -> None:
    add(frontier, "h.example", 1, depth=3)
    again, nearer, new = (entry("h.example", 1, 3), entry("h.example", 1, 2), entry("h.example", 2))
    state, news = frontier.add("h.example", [again, nearer, new, nearer])
    assert news == [nearer, new]
    assert waiting(state)[1].depth == 2
    frontier.check_invariants()


def test_the_list_of_states_is_the_callers(frontier: Checked) -> None:
    add(frontier, "a", 1)
    states = frontier.states()
    add(frontier, "b", 1)
    frontier.drop("a")
    assert [state.host for state in states] == ["a"]


def test_done_marks(frontier: Checked) -> None:
    state = add(frontier, "h.example", 1, 2)
    assert frontier.add_done(state, [1, 5, 1]) == [1, 5]
    assert frontier.add_done(state, [1, 5]) == []
    assert set(state.told_done()) == {1, 5}
    assert pop(frontier) == ("h.example", 2)
    frontier.check_invariants()


def test_dropped_is_forgotten(frontier: Checked) -> None:
    add(frontier, "a", 1)
    add(frontier, "b", 2)
    frontier.drop("a")
    frontier.check_invariants()
    assert frontier.find("a") is None
    assert [state.host for state in frontier.states()] == ["b"]
    assert pop(frontier) == ("b", 2)
    assert pop(frontier) is None
    add(frontier, "a", 1)
    assert pop(frontier) == ("a", 1)


def test_dropping_a_parked_host(frontier: Checked) -> None:
    add(frontier, "a", 1)
    assert pop(frontier, allowed=never) is None
    frontier.drop("a")
    frontier.look_again()
    assert pop(frontier) is None
    frontier.check_invariants()


# -- one load at a time, in order, after a delay


def test_breadth_first_in_a_host(make: Make) -> None:
    frontier = make(0.0)
    frontier.add("h", [entry("h", 1, 2), entry("h", 2, 0), entry("h", 3, 1), entry("h", 4, 9, priority=1)])
    order = []
    while (found := frontier.pop(NOW, always)) is not None:
        state, one = found
        order.append(one.key)
        frontier.free(state, NOW)
    assert order == [4, 2, 3, 1]


def test_hosts_take_turns(make: Make) -> None:
    frontier = make(0.0)
    for host in "abc":
        add(frontier, host, 1, 2)
    order = []
    while (found := frontier.pop(NOW, always)) is not None:
        order.append(found[0].host)
        frontier.free(found[0], NOW)
    assert order == list("abcabc")


@pytest.mark.parametrize("meanwhile", ["", "parked", "put off"])
def test_a_flood_of_new_hosts_does_not_stop_one_with_one_page_after_the_other(make: Make, meanwhile: str) -> None:
    """Its queue is empty between two pages; the second one is found before the first is done."""
    frontier, now = make(0.0), NOW
    chain = add(frontier, "chain", 1)
    assert pop(frontier) == ("chain", 1)

    def put_off(state: HostState) -> bool:
        frontier.postpone(state, NOW + 2)
        return True

    for number in range(40):
        add(frontier, f"new{number}", 1000 + number)
    fetched = 0
    for key in range(1, 10):
        frontier.free(chain, now)
        add(frontier, "chain", key + 1)
        frontier.finish(chain, key)
        if meanwhile == "parked":
            assert pop(frontier, now + 1, never) is None
            frontier.look_again()
        elif meanwhile and key == 1:  # as all hosts are that came from another agent
            assert pop(frontier, now + 1, put_off) is None
        now += 10
        for _ in range(3):
            found = pop(frontier, now)
            assert found is not None
            if found[0] == "chain":
                fetched += 1
                break
            state = frontier.find(found[0])
            assert state is not None
            frontier.free(state, now)
            frontier.finish(state, found[1])
        else:
            raise AssertionError(f"its page {key + 1} is not fetched")
    assert fetched == 9


def test_a_host_is_busy_until_its_load_has_ended(frontier: Checked) -> None:
    state = add(frontier, "h", 1, 2)
    assert pop(frontier) == ("h", 1)
    assert pop(frontier, NOW + 1000) is None
    add(frontier, "h", 3)
    frontier.look_again()
    assert pop(frontier, NOW + 1000) is None
    frontier.free(state, NOW + 1000)
    assert pop(frontier, NOW + 1000 + DELAY) == ("h", 2)


def test_the_delay_counts_from_the_end_of_a_load(frontier: Checked) -> None:
    state = add(frontier, "h", 1, 2)
    pop(frontier)
    frontier.free(state, NOW + 5)
    assert frontier.next_ready() == NOW + 5 + DELAY
    assert pop(frontier, NOW + 4.999 + DELAY) is None
    assert pop(frontier, NOW + 5 + DELAY) == ("h", 2)


def test_the_delay_holds_also_for_what_is_found_later(frontier: Checked) -> None:
    state = add(frontier, "h", 1)
    pop(frontier)
    frontier.free(state, NOW)
    assert frontier.next_ready() is None
    add(frontier, "h", 2)
    assert frontier.next_ready() == NOW + DELAY
    assert pop(frontier, NOW + DELAY - 0.001) is None
    assert pop(frontier, NOW + DELAY) == ("h", 2)


def test_a_host_may_be_handed_out_several_times_at_once(make: Make) -> None:
    frontier = make(0.0)
    frontier.loads = HostLoads(lambda host: 3 if host == "h" else 0)
    state, other = add(frontier, "h", 1, 2, 3, 4, 5), add(frontier, "g", 6, 7)
    assert {*popped(frontier)} == {("h", 1), ("g", 6), ("h", 2), ("h", 3)}
    frontier.free(other, NOW)
    frontier.free(state, NOW)
    assert {*popped(frontier)} == {("g", 7), ("h", 4)}
    for _ in range(3):
        frontier.free(state, NOW)
    add(frontier, "h", 8, 9)
    assert popped(frontier) == [("h", 5), ("h", 8), ("h", 9)]
    assert len(state.out) == 7
    frontier.check_invariants()


def test_its_delay_counts_from_when_it_was_handed_out(make: Make) -> None:
    frontier = make(DELAY)
    frontier.loads = HostLoads(lambda host: 3)
    state = add(frontier, "h", 1, 2, 3)
    assert pop(frontier) == ("h", 1)
    assert pop(frontier, NOW + DELAY - 0.001) is None
    assert pop(frontier, NOW + DELAY) == ("h", 2)
    frontier.free(state, NOW + DELAY + 5)
    assert pop(frontier, NOW + 2 * DELAY) == ("h", 3)


def test_where_the_number_of_its_loads_falls_some_have_to_end_first(make: Make) -> None:
    frontier, limit = make(0.0), [4]
    frontier.loads = HostLoads(lambda host: limit[0])
    state = add(frontier, "h", 1, 2, 3, 4, 5)
    assert popped(frontier) == [("h", 1), ("h", 2), ("h", 3), ("h", 4)]
    limit[0] = 2
    for _ in range(2):
        frontier.free(state, NOW)
        assert pop(frontier) is None
    frontier.free(state, NOW)
    assert pop(frontier) == ("h", 5)


def test_a_load_that_ends_twice_ends_once(frontier: Checked) -> None:
    state = add(frontier, "h", 1, 2, 3)
    pop(frontier)
    frontier.free(state, NOW)
    frontier.free(state, NOW + 5)
    assert frontier.next_ready() == NOW + DELAY
    frontier.check_invariants()


def test_a_deferred_host_waits_wherever_it_is(frontier: Checked) -> None:
    """Another agent may have fetched it a moment ago."""
    waiting, idle, busy = add(frontier, "waiting", 1), frontier.add("idle", ())[0], add(frontier, "busy", 1, 2)
    assert pop(frontier, allowed=lambda state: state is busy) == ("busy", 1)
    frontier.look_again()
    for state in (waiting, idle, busy):
        frontier.defer(state, NOW + 3)
    add(frontier, "idle", 1)
    frontier.free(busy, NOW)
    found = {pop(frontier, NOW + DELAY + step) for step in (0, 2.999)}
    assert found <= {None, ("busy", 2)}
    assert {pop(frontier, NOW + DELAY + 3) for _ in range(3)} - {None} == {
        ("waiting", 1),
        ("idle", 1),
        ("busy", 2),
    } - found


def test_deferring_never_shortens_the_wait(frontier: Checked) -> None:
    state = add(frontier, "h", 1)
    frontier.defer(state, NOW)
    frontier.defer(state, NOW - 50)
    assert pop(frontier, NOW + DELAY - 0.001) is None
    assert pop(frontier, NOW + DELAY) == ("h", 1)


def test_a_host_may_want_a_longer_delay_than_all(frontier: Checked) -> None:
    state = add(frontier, "h", 1, 2, 3)
    state.pause = 3 * DELAY
    pop(frontier)
    frontier.free(state, NOW)
    assert pop(frontier, NOW + 3 * DELAY - 0.001) is None
    assert pop(frontier, NOW + 3 * DELAY) == ("h", 2)
    state.pause = DELAY / 2
    frontier.free(state, NOW + 100)
    frontier.defer(state, NOW + 100)
    assert pop(frontier, NOW + 100 + DELAY - 0.001) is None
    assert pop(frontier, NOW + 100 + DELAY) == ("h", 3)


def test_deferring_keeps_to_the_longer_delay_too(frontier: Checked) -> None:
    state = add(frontier, "h", 1)
    state.pause = 3 * DELAY
    frontier.defer(state, NOW)
    assert pop(frontier, NOW + 3 * DELAY - 0.001) is None
    assert pop(frontier, NOW + 3 * DELAY) == ("h", 1)


def test_a_postponed_host_waits_wherever_it_is(frontier: Checked) -> None:
    waiting, idle, busy = add(frontier, "waiting", 1), frontier.add("idle", ())[0], add(frontier, "busy", 1, 2)
    parked, until = add(frontier, "parked", 1), NOW + 500
    assert pop(frontier, allowed=lambda state: state is busy) == ("busy", 1)
    for state in (waiting, idle, busy, parked):
        frontier.postpone(state, until)
        frontier.check_invariants()
    add(frontier, "idle", 1)
    frontier.free(busy, NOW)
    frontier.look_again()
    assert {pop(frontier, until - 0.001) for _ in range(4)} == {None}
    others = {pop(frontier, until) for _ in range(4)}
    assert others == {("waiting", 1), ("idle", 1), ("busy", 2), ("parked", 1)}


def test_postponing_never_shortens_the_wait(frontier: Checked) -> None:
    state = add(frontier, "h", 1)
    frontier.postpone(state, NOW + 50)
    frontier.postpone(state, NOW + 20)
    assert pop(frontier, NOW + 49.999) is None
    assert pop(frontier, NOW + 50) == ("h", 1)


def test_a_postponed_host_is_in_nobodys_way(frontier: Checked) -> None:
    for host in "abcdef":
        add(frontier, host, *range(1, 9))
    for host in "abcde":
        frontier.postpone(frontier.find(host) or pytest.fail("lost"), NOW + 1000)
    for number in range(1, 9):
        assert pop(frontier, NOW + 20 * number) == ("f", number)
        frontier.free(frontier.find("f") or pytest.fail("lost"), NOW + 20 * number)
    assert {pop(frontier, NOW + 1000) for _ in range(5)} == {(host, 1) for host in "abcde"}


# -- notes


def test_notes_are_merged(frontier: Checked) -> None:
    state = add(frontier, "h", 1)
    assert state.notes == NOTHING
    assert frontier.note(state, Notes(2, '{"a":2}'))
    assert not frontier.note(state, Notes(1, '{"a":3}'))
    assert not frontier.note(state, Notes(2, '{"a":2}'))
    assert state.notes == Notes(2, '{"a":2}')
    frontier.drop("h")
    assert add(frontier, "h", 1).notes == NOTHING, "kept as long as the host is"


def test_a_hastened_host_is_ready_wherever_it_is(frontier: Checked) -> None:
    waiting, parked, busy = add(frontier, "waiting", 1), add(frontier, "parked", 1), add(frontier, "busy", 1, 2)
    assert pop(frontier, allowed=lambda state: state is busy) == ("busy", 1)
    frontier.look_again()
    assert pop(frontier, allowed=lambda state: state is not parked) == ("waiting", 1)
    assert pop(frontier, allowed=lambda state: state is not parked) is None
    frontier.put_back(waiting, 1)
    frontier.free(waiting, NOW)
    for state in (waiting, parked, busy):
        frontier.defer(state, NOW + 500)
        frontier.hasten(state, NOW + 1)
        frontier.check_invariants()
    assert pop(frontier, NOW + 1) == ("waiting", 1)
    assert pop(frontier, NOW + 1) is None, "parked, or busy"
    frontier.free(busy, NOW + 1)
    frontier.hasten(busy, NOW + 1)
    frontier.look_again()
    assert {pop(frontier, NOW + 1) for _ in range(3)} == {("busy", 2), ("parked", 1), None}


def test_hastening_never_lengthens_the_wait(frontier: Checked) -> None:
    state = add(frontier, "h", 1)
    frontier.hasten(state, NOW + 50)
    assert pop(frontier) == ("h", 1)


# -- what is out ends, or comes back


def test_finished_is_done(frontier: Checked) -> None:
    state = add(frontier, "h", 1)
    pop(frontier)
    assert frontier.finish(state, 1)
    assert set(state.told_done()) == {1}
    assert not state.out
    frontier.free(state, NOW)
    assert pop(frontier, NOW + DELAY) is None


def test_finished_may_be_no_news(frontier: Checked) -> None:
    state = add(frontier, "h", 1)
    pop(frontier)
    frontier.add_done(state, [1])
    assert not frontier.finish(state, 1)


def test_put_back_waits_again(frontier: Checked) -> None:
    state = add(frontier, "h", 1, 2)
    pop(frontier)
    frontier.free(state, NOW)
    frontier.put_back(state, 1)
    frontier.check_invariants()
    assert waiting(state).keys() == {1, 2}
    assert pop(frontier, NOW + DELAY) == ("h", 2), "behind what waited"
    frontier.free(state, NOW + DELAY)
    assert pop(frontier, NOW + 2 * DELAY) == ("h", 1)


def test_put_back_before_the_load_is_freed(frontier: Checked) -> None:
    state = add(frontier, "h", 1)
    pop(frontier)
    frontier.put_back(state, 1)
    assert pop(frontier, NOW + 1000) is None, "busy still"
    frontier.free(state, NOW)
    assert pop(frontier, NOW + DELAY) == ("h", 1)


def test_put_back_as_another_version(frontier: Checked) -> None:
    state = add(frontier, "h", 1, 2, 3)
    pop(frontier)
    frontier.free(state, NOW)
    frontier.put_back(state, 1, entry("h", 1, priority=1))
    assert pop(frontier, NOW + DELAY) == ("h", 1), "before what waited"
    frontier.free(state, NOW + DELAY)
    frontier.put_back(state, 1, entry("h", 1, priority=-1))
    assert pop(frontier, NOW + 2 * DELAY) == ("h", 2)


def test_what_is_retried_is_not_as_new_when_it_is_found_again(frontier: Checked) -> None:
    state = add(frontier, "h", 1)
    pop(frontier)
    frontier.free(state, NOW)
    again = retried(entry("h", 1, priority=-1), entry("h", 1))
    frontier.put_back(state, 1, again)
    assert state.holds(1, 0, 5)
    assert frontier.add("h", [entry("h", 1, priority=5)])[1] == []
    frontier.check_invariants()
    assert waiting(state) == {1: again}


def test_what_was_retried_elsewhere_is_not_as_new_here(frontier: Checked) -> None:
    state = add(frontier, "h", 1, 2, 3, depth=1)
    new = entry("h", 2, 1, priority=-1)
    once = retried(new, entry("h", 2, 1))
    twice = retried(new, once)
    news = frontier.add("h", [twice])[1]
    assert news == [twice] or (not news and isinstance(frontier, Tight)), "it may be on disk only"
    assert frontier.add("h", [once, twice, entry("h", 2, 1)])[1] == []
    frontier.check_invariants()
    assert waiting(state)[2].request == (twice.request if news else "")


def test_put_back_what_was_done_meanwhile_is_gone(frontier: Checked) -> None:
    state = add(frontier, "h", 1)
    pop(frontier)
    frontier.add_done(state, [1])
    frontier.free(state, NOW)
    frontier.put_back(state, 1)
    frontier.check_invariants()
    assert not state.waiting
    assert not state.out
    assert pop(frontier, NOW + DELAY) is None
    assert not frontier.waits(always)


# -- what may not be fetched here


def test_what_is_not_allowed_waits_until_one_looks_again(frontier: Checked) -> None:
    foreign = add(frontier, "foreign", 1)
    add(frontier, "own", 1)
    assert pop(frontier, allowed=lambda state: state is not foreign) == ("own", 1)
    assert frontier.next_ready() is None
    assert pop(frontier) is None
    frontier.look_again()
    assert pop(frontier) == ("foreign", 1)


def test_looking_again_does_not_forget_the_delay(frontier: Checked) -> None:
    state = add(frontier, "h", 1, 2)
    pop(frontier)
    frontier.free(state, NOW)
    assert pop(frontier, NOW + DELAY, never) is None
    frontier.defer(state, NOW + DELAY)
    frontier.look_again()
    assert frontier.next_ready() == NOW + 2 * DELAY


def test_what_is_asked_may_depend_on_the_state(frontier: Checked) -> None:
    add(frontier, "a", 1)
    add(frontier, "b", 1, 2)
    assert pop(frontier, allowed=lambda state: state.waiting > 1) == ("b", 1)


def test_waits_says_whether_any_such_host_has_something_queued(frontier: Checked) -> None:
    state = add(frontier, "h", 1)
    assert frontier.waits(always)
    assert not frontier.waits(never)
    assert pop(frontier, allowed=never) is None
    assert frontier.waits(always), "also while it is parked"
    frontier.look_again()
    pop(frontier)
    assert not frontier.waits(always), "what is out does not wait"
    frontier.put_back(state, 1)
    frontier.free(state, NOW)
    assert frontier.waits(always), "also before its time"
    frontier.add_done(state, [1])
    assert not frontier.waits(always)


def test_a_host_whose_waiting_requests_were_done_elsewhere_is_passed_over(frontier: Checked) -> None:
    state = add(frontier, "a", 1, 2)
    add(frontier, "b", 1)
    frontier.add_done(state, [1, 2])
    assert pop(frontier) == ("b", 1)
    assert pop(frontier) is None
    frontier.check_invariants()
    add(frontier, "a", 3)
    assert pop(frontier) == ("a", 3)


def test_a_frontier_is_what_it_stands_for(make: Make) -> None:
    run_state_machine_as_test(life(make), settings=settings(max_examples=50, stateful_step_count=40))
