"""What is done when an agent's process ends: tables of events and times."""

from __future__ import annotations

import random
import signal

import pytest

from scrapy_ubi.cli.supervisor.restarts import MOST_RESTARTS, PAUSES, WITHIN, AgentState, End, Supervision

KILLED = End(-signal.SIGKILL)


def test_agents_that_end_well_make_a_whole_that_ended_well() -> None:
    group = Supervision(["a1", "a2"])
    assert group.note_end("a1", End(0), 1.0) == "" and not group.over
    assert group.note_end("a2", End(0), 2.0) == "" and group.over
    assert group.result(crawl_over=True).status == 0
    left = group.result(crawl_over=False)
    assert left.status == 0 and "not finished" in left.why


def test_a_killed_agent_is_started_again_at_once_and_later_each_time() -> None:
    group, now = Supervision(["a1"]), 100.0
    for pause in PAUSES[:MOST_RESTARTS]:
        said = group.note_end("a1", KILLED, now)
        assert said == "Agent a1 was killed (SIGKILL); it is started again."
        assert not group.over
        if pause:
            assert group.due(now + pause - 0.1) == []
        now += pause
        assert group.due(now) == ["a1"] and group.due(now) == []
    said = group.note_end("a1", KILLED, now)
    assert said == "Agent a1 was killed (SIGKILL), and was started again 5 times in 10 min: it stays away."
    assert group.over and group.agents["a1"].state is AgentState.DEAD
    assert group.result(crawl_over=True).status == 1 and group.result(True).why == said


def test_restarts_of_long_ago_do_not_count() -> None:
    group, now = Supervision(["a1"]), 0.0
    for _ in range(5 * MOST_RESTARTS):
        group.note_end("a1", KILLED, now)
        now += PAUSES[-1]
        assert group.due(now) == ["a1"]
        now += WITHIN / MOST_RESTARTS
    assert group.agents["a1"].state is AgentState.RUNNING and group.agents["a1"].times == 5 * MOST_RESTARTS


def test_an_agent_killed_after_the_end_of_the_crawl_is_not_started_again() -> None:
    """It would begin another crawl."""
    group = Supervision(["a1"])
    assert "after the end of the crawl" in group.note_end("a1", End(-9, crawl_over=True), 1.0)
    assert group.over and group.result(crawl_over=True).status == 1


def test_an_agent_that_fails_before_it_has_joined_ends_all() -> None:
    group = Supervision(["a1", "a2", "a3"])
    group.note_end("a3", KILLED, 0.0)
    said = group.note_end("a1", End(1, joined=False, said="UBI_FILTERS has a fault."), 1.0)
    assert said == "Agent a1 failed at its start. All agents end."
    assert group.ending and group.due(100.0) == []
    assert group.note_end("a2", End(-signal.SIGTERM), 2.0) == "" and group.over
    result = group.result(crawl_over=False)
    assert result.status == 1 and result.why == "Agent a1 failed at its start: UBI_FILTERS has a fault."


def test_an_agent_that_fails_later_stays_away_and_the_others_go_on() -> None:
    group = Supervision(["a1", "a2"])
    assert group.note_end("a1", End(1), 1.0) == "Agent a1 failed with exit status 1."
    assert not group.ending and not group.over
    group.note_end("a2", End(0), 2.0)
    assert group.over and group.result(crawl_over=True).status == 1


def test_an_agent_that_is_refused_at_a_restart_stays_away_and_the_others_go_on() -> None:
    group = Supervision(["a1", "a2"])
    group.note_end("a1", KILLED, 1.0)
    assert group.due(1.0) == ["a1"]
    group.note_end("a1", End(1, joined=False), 2.0)
    assert not group.ending and group.agents["a1"].state is AgentState.DEAD


def test_one_interruption_lets_them_leave_and_the_second_kills_them() -> None:
    group = Supervision(["a1", "a2", "a3"])
    group.note_end("a3", KILLED, 0.0)
    assert group.interrupt() == signal.SIGTERM
    assert group.due(100.0) == [] and not group.over
    assert group.note_end("a1", End(0), 1.0) == ""
    first = group.result(crawl_over=False)
    assert first.status == 130 and "have left" in first.why
    assert group.interrupt() == signal.SIGKILL
    assert group.note_end("a2", KILLED, 2.0) == "" and group.over
    assert group.result(crawl_over=False).status == 130 and "were killed" in group.result(False).why


def test_an_interruption_while_all_end_kills_them() -> None:
    group = Supervision(["a1", "a2"])
    group.note_end("a1", End(1, joined=False), 1.0)
    assert group.interrupt() == signal.SIGKILL


@pytest.mark.parametrize("seed", range(200))
def test_whatever_happens_it_comes_to_an_end(seed: int) -> None:
    """Random ends: no agent is started more often than allowed, none runs twice, and it is over at some time."""
    chance = random.Random(seed)
    names = [f"a{i}" for i in range(chance.randint(1, 5))]
    group, running, now, starts = Supervision(names), set(names), 0.0, 0
    while not group.over:
        now += chance.choice([0.1, 1.0, 10.0])
        again = group.due(now)
        assert not running & set(again) and not (again and group.ending), seed
        running |= set(again)
        starts += len(again)
        if running and chance.random() < 0.8:
            name = chance.choice(sorted(running))
            running.discard(name)
            code = chance.choice([0, 1, -9, -9, -9, -9])
            group.note_end(name, End(code, chance.random() < 0.9, chance.random() < 0.05), now)
        if chance.random() < 0.01:
            group.interrupt()
        assert now < 1e5, seed
    assert not running and starts <= len(names) * MOST_RESTARTS * (1 + now / WITHIN), seed
    assert group.result(crawl_over=True).status in (0, 1, 130), seed
