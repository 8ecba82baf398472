"""Timelines of several agents as one history."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrapy_ubi.agent.report.timeline import Event, Sample, row
from scrapy_ubi.cli.monitor import merged_history
from scrapy_ubi.cli.monitor.merged_history import History, document, merged

NOW = 1_800_000_000


def answer(samples: list[Sample], events: list[Event] | None = None, step: float = 0.0) -> dict[str, Any]:
    return {"rows": [row(one) for one in samples], "events": [row(one) for one in events or []], "step": step}


def steady(rate: float, begin: int = 0, end: int = 600, queued: int = 50) -> list[Sample]:
    return [
        Sample(NOW + at, pages=round(rate * (at - begin)), queued=queued, state="crawling")
        for at in range(begin, end + 1, 10)
    ]


def at(made: History, name: str, second: int) -> float | None:
    return made.series[name][list(made.times).index(NOW + second)]


def test_rates_and_queues_of_all_agents_are_added_up() -> None:
    made = merged({"a": answer(steady(2.0)), "b": answer(steady(3.0, queued=7))})
    assert made.step == 10
    assert (made.times[0], made.times[-1]) == (NOW, NOW + 600)
    assert set(made.series["pages_per_second"][1:]) == {5.0}
    assert made.series["pages_per_second"][0] is None
    assert (at(made, "queued", 300), at(made, "agents", 300), at(made, "pages", 300)) == (57, 2, 1500)
    assert set(made.agents["b"]["pages_per_second"][1:]) == {3.0}
    assert {len(values) for values in made.series.values()} == {len(made.times)}


def test_between_two_samples_a_counter_grows_evenly() -> None:
    made = merged({"a": answer([Sample(NOW), Sample(NOW + 7, pages=70), Sample(NOW + 19, pages=190)])})
    assert {rate for rate in made.series["pages_per_second"][1:-1] if rate} == {10.0}


def test_an_agent_that_comes_later_or_goes_counts_while_it_is_there() -> None:
    gone = steady(2.0, 0, 200)
    gone[-1] = gone[-1]._replace(state="left")
    made = merged({"a": answer(steady(1.0)), "b": answer(gone), "c": answer(steady(4.0, 300, 600))})
    assert [at(made, "agents", second) for second in (100, 250, 400)] == [2, 1, 2]
    assert [at(made, "queued", second) for second in (100, 250, 400)] == [100, 50, 100]
    assert at(made, "pages", 600) == 600 + 400 + 1200  # what it did stays done


def test_until_an_agent_is_held_dead_its_queue_counts_as_it_was() -> None:
    dead = [Event(NOW + 225, "dead", "b")]
    made = merged({"a": answer(steady(1.0), dead), "b": answer(steady(2.0, 0, 200))})
    assert [at(made, "queued", second) for second in (200, 220, 230, 300)] == [100, 100, 100, 50]
    assert at(made, "agents", 240) == 1


def test_counters_never_fall_though_a_killed_agent_forgot_its_last_second() -> None:
    samples = [
        Sample(NOW, pages=0),
        Sample(NOW + 10, pages=100),
        Sample(NOW + 20, pages=95),
        Sample(NOW + 30, pages=99),
    ]
    made = merged({"a": answer(samples)})
    assert made.series["pages"] == [0, 100, 100, 100]
    assert min(rate for rate in made.series["pages_per_second"] if rate is not None) == 0.0


def test_the_longest_and_the_least_of_all_agents_are_shown() -> None:
    one = answer([Sample(NOW, lag=0.1), Sample(NOW + 10, lag=0.2, least=1.3), Sample(NOW + 20)])
    two = answer([Sample(NOW), Sample(NOW + 10, lag=0.9, exchange=2.0, least=1.1), Sample(NOW + 20)])
    made = merged({"a": one, "b": two})
    assert made.series["lag"] == [0.1, 0.9, 0.0]
    assert made.series["exchange"] == [0.0, 2.0, 0.0]
    assert made.series["least"] == [None, 1.1, None]


@pytest.mark.parametrize("points", [3, 10, 100])
@pytest.mark.parametrize("span", [60, 3_000, 100_000, 10_000_000, 1_000_000_000])
def test_there_are_no_more_times_than_asked_for(points: int, span: int) -> None:
    made = merged({"a": answer([Sample(NOW - at) for at in range(0, span + 1, max(1, span // 50))])}, points)
    assert 2 <= len(made.times) <= points
    assert made.times[-1] >= NOW
    assert made.times[0] <= NOW - span // 50 * 50


def test_one_event_that_several_have_seen_is_one() -> None:
    def told(second: int, *more: Event) -> dict[str, Any]:
        return answer(steady(1.0), [Event(NOW + second, "dead", "c"), *more])

    made = merged({"a": told(100), "b": told(103), "d": told(400)})
    assert [(one.time - NOW, one.by) for one in made.events] == [(100, ("a", "b")), (400, ("d",))]


def test_who_joined_knows_it_best_itself() -> None:
    made = merged({
        "a": answer(steady(1.0), [Event(NOW + 9, "joined", "b"), Event(NOW + 9, "joined", "c")]),
        "b": answer(steady(1.0), [Event(NOW + 5, "joined", "b", "again")]),
    })  # fmt: skip
    assert [(one.time - NOW, one.who, one.by) for one in made.events] == [(5, "b", ("b",)), (9, "c", ("a",))]


def test_events_are_bounded() -> None:
    events = [Event(NOW + number, "joined", f"c{number}") for number in range(900)]
    other = [Event(NOW + number, "joined", f"d{number}") for number in range(900)]
    made = merged({"a": answer(steady(1.0), events), "b": answer(steady(1.0), other)})
    assert len(made.events) == merged_history.MOST_EVENTS
    assert made.events[-1].time == NOW + 899


def test_with_very_many_agents_it_is_less_fine() -> None:
    made = merged({f"a{number}": answer(steady(1.0)[::20]) for number in range(1000)}, 360)
    assert len(made.times) <= merged_history.FEW_POINTS
    assert made.series["pages"][-1] == 600_000


def test_of_nothing_nothing_is_made() -> None:
    assert document(merged({})) == {"from": None, "to": None, "step": 0.0, "series": {}, "agents": {}, "events": []}
    assert len(merged({"a": answer([Sample(NOW)])}).times) == 1


def test_a_history_is_fit_for_json() -> None:
    made = document(merged({"a": answer(steady(1.0), [Event(NOW, "joined", "a")])}, now=NOW + 605.5))
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    assert made["series"]["time"][0] == made["from"] == NOW
    assert made["events"] == [{"time": NOW, "what": "joined", "who": "a", "why": "", "by": ["a"]}]


def test_a_crawl_that_goes_on_is_shown_until_now() -> None:
    made = merged({"a": answer(steady(1.0))}, now=NOW + 612.0)
    assert made.times[-1] == NOW + 620
    assert at(made, "agents", 610) == 1
