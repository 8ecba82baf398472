"""How near the end is: recorded crawls of several shapes, and laws."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.agent.profile.remaining import (
    ABOUT,
    EARLY,
    ENDLESS,
    NOTHING,
    OPEN,
    UNSURE,
    Ahead,
    Point,
    Remaining,
    SlowHost,
    remaining,
    shifted,
    summed,
)
from scrapy_ubi.agent.report.timeline import Sample, curve_of

HERE = Path(__file__).parent / "recorded_crawls"
FACTOR = 2.0
GRAIN = 10.0  # s between two samples: no estimate is finer
LATER = 1_000  # unix seconds at which the recordings begin
UNKNOWABLE = ("list_of_lists", "never_ends")  # page leads to page until the end, or there is none
SHAPES = sorted(path.stem for path in HERE.glob("*.json"))


class Moment(NamedTuple):
    """A recorded moment: which share is done, what is true, and what is told."""

    share: float
    left: float
    told: Remaining
    state: str


def moments(name: str, **more: Any) -> Iterator[Moment]:
    recorded = json.loads((HERE / f"{name}.json").read_text())
    rows = [dict(zip(recorded["fields"], row, strict=True)) for row in recorded["samples"]]
    samples = [sample_of(row) for row in rows]
    for at, row in enumerate(rows):
        waits, slowest = row["queued"] + row["in_flight"], row["slowest"]
        told = remaining(
            Ahead(
                waits=waits,
                done=row["known"] - waits,
                curve=curve_of(samples[: at + 1]),
                slowest=SlowHost(*slowest) if slowest else None,
                **more,
            )
        )
        yield Moment(row["done"] / recorded["total"], (recorded["end"] or 0.0) - row["time"], told, row["state"])


def sample_of(row: dict[str, Any]) -> Sample:
    names = ("done", "known", "queued", "in_flight", "state")
    return Sample(time=LATER + row["time"], **{name: row[name] for name in names})


@pytest.mark.parametrize("name", [name for name in SHAPES if name not in UNKNOWABLE])
@pytest.mark.parametrize("share", [0.5, 0.8, 0.95])
def test_the_estimate_is_within_twice_the_truth(name: str, share: float) -> None:
    at = next(one for one in moments(name) if one.share >= share and one.state != "paused")
    assert at.told.kind == ABOUT, at
    assert at.told.seconds is not None
    assert at.left / FACTOR - GRAIN <= at.told.seconds <= at.left * FACTOR + GRAIN, at


@pytest.mark.parametrize("name", [name for name in SHAPES if name != "never_ends"])
def test_no_end_in_sight_is_never_said_in_the_second_half_of_a_crawl_that_ends(name: str) -> None:
    assert {one.told.kind for one in moments(name) if one.share >= 0.5} <= {ABOUT, UNSURE, NOTHING}


def test_of_a_list_whose_pages_lead_to_the_next_it_is_said_that_nothing_can_be_told() -> None:
    late = [one for one in moments("list_of_lists") if 0.5 <= one.share <= 0.9]
    assert {one.told.kind for one in late} == {UNSURE}
    assert all(one.told.seconds is not None and one.told.seconds <= one.left for one in late), "at least so long"


def test_a_slow_host_that_finds_nothing_new_any_more_is_no_list() -> None:
    """Of a tree its second half leads to nothing: the window of the last eighth still shows how the first half grew."""
    points = [(0, 500, 511), (15, 490, 511), (30, 480, 511), (60, 462, 509), (120, 424, 450), (200, 0, 0)]
    host = SlowHost("slow.example", 10, load=1.5)
    told = remaining(Ahead(11, 500, [Point(*one) for one in points], host))
    assert (told.kind, told.pages) == (ABOUT, 11)
    assert told.seconds == pytest.approx(15.0)  # what waits of it, one each 1.5 s
    still = [Point(ago, done, min(known, done + 11)) for ago, done, known in points]
    assert remaining(Ahead(11, 500, still, host)).kind == UNSURE


def test_a_web_that_grows_faster_than_it_is_fetched_has_no_end_in_sight() -> None:
    assert {one.told.kind for one in list(moments("never_ends"))[15:]} == {OPEN}


def test_a_crawl_that_does_not_end_by_itself_is_told_so_and_how_long_what_waits_takes() -> None:
    at = next(one for one in moments("many_small_hosts", endless="UBI_SERVE") if one.share > 0.5)
    assert (at.told.kind, at.told.endless) == (ENDLESS, "UBI_SERVE")
    assert at.told.seconds


def test_a_pause_by_people_is_no_part_of_the_pace() -> None:
    before = [one for one in moments("paused") if one.state == "crawling" and one.share < 0.4][-1]
    after = next(one for one in moments("paused") if one.state == "crawling" and one.share > before.share + 0.05)
    assert before.told.pace is not None
    assert after.told.pace == pytest.approx(before.told.pace, rel=0.3)


def test_a_limit_of_pages_is_an_end() -> None:
    at = list(moments("never_ends", most_pages=700))[100]
    assert at.told.kind == ABOUT
    assert at.told.seconds == pytest.approx(700 / 7.7, rel=0.5)


def test_a_limit_of_time_is_an_end() -> None:
    assert list(moments("never_ends", most_seconds=90.0))[100].told[:2] == (ABOUT, 90.0)


def test_a_host_needs_its_delay_and_its_loads_and_what_is_left_of_its_pause() -> None:
    assert SlowHost("a", 10, delay=2.0, load=0.5).needs() == 25.0
    assert SlowHost("a", 10, delay=0.0, load=5.0).needs() == 50.0
    assert SlowHost("a", 10, delay=1.0, rest=600.0).needs() == 610.0
    assert SlowHost("a", 10, delay=0.5, load=4.0, loads=4).needs() == 10.0, "of several loads at once"
    assert SlowHost("a", 10, delay=2.0, load=4.0, loads=4).needs() == 20.0, "the delay is from start to start then"
    assert SlowHost("a", 100, load=0.1, each=1.5, free=40).needs() == 90.0, "by its rate of 40 a minute"
    assert SlowHost("a", 10, load=0.1, each=1.5, free=40).needs() == 1.0, "which is not used up"
    assert SlowHost("a", 10, delay=3.0, each=1.5).needs() == 30.0, "the delay is longer"


def test_too_early_nothing_is_told() -> None:
    assert remaining(Ahead(5, 0)).kind == EARLY
    assert remaining(Ahead(0, 5)).kind == NOTHING


class Grown(NamedTuple):
    """A crawl that ends: how many are done and known at moments, and how many there are."""

    total: int
    points: list[tuple[int, int]]  # (done, known), ascending


@st.composite
def crawls(draw: st.DrawFn) -> Grown:
    total = draw(st.integers(2, 3000))
    dones = sorted(draw(st.lists(st.integers(0, total), min_size=2, max_size=12)))
    points, known = [], 1
    for done in dones:
        known = draw(st.integers(max(known, done), total))
        points.append((done, known))
    return Grown(total, points)


@given(crawls(), st.floats(1, 1e5))
def test_whatever_the_curve_no_end_in_sight_is_not_said_once_half_is_done(grown: Grown, step: float) -> None:
    done, known = grown.points[-1]
    if 2 * done < grown.total:
        return
    curve = [Point(step * number, *point) for number, point in enumerate(reversed(grown.points))]
    told = remaining(Ahead(known - done, done, curve, SlowHost("a", known - done, 1.0)))
    assert told.kind != OPEN
    assert told.seconds is None or told.seconds >= 0


@given(st.lists(crawls(), min_size=1, max_size=4))
def test_the_curve_of_all_ends_with_what_all_have(grown: list[Grown]) -> None:
    curves = [[Point(10.0 * n, *point) for n, point in enumerate(reversed(one.points))] for one in grown]
    total = summed(curves)
    assert total[0][1:] == (sum(c[0].done for c in curves), sum(c[0].known for c in curves))
    assert [one.ago for one in total] == sorted(one.ago for one in total)


def test_who_went_away_had_then_what_others_have_now() -> None:
    gone = shifted([Point(0.0, 50, 100), Point(60.0, 0, 1)], 30.0)
    heir = [Point(0.0, 150, 300), Point(29.0, 150, 300), Point(31.0, 90, 190), Point(91.0, 0, 1)]
    total = summed([gone, heir])
    assert total[0][1:] == (150, 300)
    late = next(point for point in total if point.ago >= 60.0)
    assert late.known < 200, "nothing was found by the hand-over"


def test_a_curve_has_few_points_however_long_the_crawl() -> None:
    samples = [Sample(time=LATER + 10 * n, known=n, queued=n // 2) for n in range(10_000)]
    curve = curve_of(samples)
    assert len(curve) < 20
    assert curve[0] == Point(0.0, 9999 - 4999, 9999)
    assert curve[-1].ago == 99_990.0


def test_the_time_between_two_processes_does_not_count() -> None:
    samples = [Sample(time=LATER + 10 * n + (50_000 if n > 50 else 0), known=n) for n in range(100)]
    assert curve_of(samples)[-1].ago == 980.0
