"""The web's verdict: each way a crawl can go wrong fails the check that is named after it."""

from __future__ import annotations

from typing import Any

import pytest

from demo.record import ABORTED
from demo.verdict import Check, Kill, judge, lines, of_items

TRUTH = {"http://a.example/", "http://a.example/1"}
STATS = {"duplicates": 0, "most_simultaneous": 1, "violations": 0, "robots_violations": 0}
EXITS: dict[str, int | None] = {"agent-1": 0, "agent-2": 0}


def failed(visits: set[str] = TRUTH, exits: dict[str, int | None] = EXITS, **stats: Any) -> list[str]:
    checks = judge(TRUTH, dict.fromkeys(visits, 1), STATS | stats, exits)
    return [check.name for check in checks if not check.holds]


def test_a_good_crawl_holds() -> None:
    assert failed() == []


@pytest.mark.parametrize(
    ("stats", "name"),
    [
        ({"duplicates": 1}, "duplicates"),
        ({"violations": 1, "most_simultaneous": 2}, "one at a time"),
        ({"robots_violations": 3}, "robots.txt"),
    ],
)
def test_counts_that_must_be_nought(stats: dict[str, int], name: str) -> None:
    assert failed(**stats) == [name]


KILL = Kill("a2", 10.0)


def fetch(path: str, agent: str, start: float, status: int = 200) -> dict[str, Any]:
    return {"host": "a.example", "path": path, "agent": agent, "start": start, "status": status, "kind": "page"}


def again(*log: dict[str, Any]) -> Check:
    """What is said of duplicates where a2 was killed at 10 s."""
    number = len(log) - len({row["path"] for row in log})
    (check,) = (c for c in judge(TRUTH, {}, STATS | {"duplicates": number}, {}, log, KILL) if c.name == "duplicates")
    return check


def test_what_a_killed_agent_had_fetched_may_be_fetched_once_more() -> None:
    check = again(fetch("/1", "a2", 9.0), fetch("/2", "a1", 9.5), fetch("/1", "a3", 16.0))
    assert check.holds
    assert check.found == (
        "1 pages fetched again: a2 had fetched them in its last 1.0 s, and no other agent knew of it"
    )


def test_other_pages_may_not_nor_twice_more() -> None:
    assert not again(fetch("/1", "a1", 9.0), fetch("/1", "a3", 16.0)).holds
    assert not again(fetch("/1", "a2", 9.0), fetch("/1", "a3", 16.0), fetch("/1", "a1", 17.0)).holds


def test_loads_that_the_kill_broke_off_are_no_fetches() -> None:
    check = again(fetch("/1", "a2", 9.9, ABORTED), fetch("/2", "a2", 9.0))
    assert check.holds
    assert "knew of all" in check.found and "1 loads that the kill broke off" in check.found


def test_long_findings_are_wrapped() -> None:
    check = Check("duplicates", "word " * 40, True)
    assert len(lines([check])) > 1
    assert all(len(line) <= 80 for line in lines([check]))


def test_a_page_missed_and_a_page_too_many() -> None:
    assert failed(visits={"http://a.example/"}) == ["coverage"]
    assert failed(visits=TRUTH | {"http://b.example/"}) == ["nothing else"]


def test_an_agent_that_failed_or_did_not_end() -> None:
    assert failed(exits={"agent-1": 0, "agent-2": 1}) == ["the end"]
    assert failed(exits={"agent-1": 0, "agent-2": None}) == ["the end"]


def test_text_names_a_few_of_what_was_missed_and_what_failed() -> None:
    truth = {f"http://a.example/{i}" for i in range(9)}
    text = " ".join("\n".join(lines(judge(truth, {}, STATS, {"agent-1": None, "agent-2": -9}))).split())
    assert "FAIL coverage" in text
    assert "http://a.example/0, http://a.example/1, http://a.example/2 and 6 more" in text
    assert "agent-1: did not end, agent-2: -9" in text
    assert "ok duplicates" in text


def test_each_page_has_its_item_once() -> None:
    log = [fetch("/1", "a1", 0.0), fetch("/2", "a2", 0.0), fetch("/3", "a1", 0.0, status=404)]
    one, two = "http://a.example/1", "http://a.example/2"
    assert of_items(log, {one: 1, two: 1}).holds
    assert not of_items(log, {one: 1}).holds
    assert not of_items(log, {one: 1, two: 2}).holds
    assert of_items(log, {one: 1}).found == "1 of 2 pages have their item in the result, missing http://a.example/2"
