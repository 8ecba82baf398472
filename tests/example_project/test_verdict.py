"""The web's verdict: each way a crawl can go wrong fails the check that is named after it."""

from __future__ import annotations

from typing import Any

import pytest

from demo.verdict import judge, lines

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


def test_a_page_missed_and_a_page_too_many() -> None:
    assert failed(visits={"http://a.example/"}) == ["coverage"]
    assert failed(visits=TRUTH | {"http://b.example/"}) == ["nothing else"]


def test_an_agent_that_failed_or_did_not_end() -> None:
    assert failed(exits={"agent-1": 0, "agent-2": 1}) == ["the end"]
    assert failed(exits={"agent-1": 0, "agent-2": None}) == ["the end"]


def test_text_names_a_few_of_what_was_missed_and_what_failed() -> None:
    truth = {f"http://a.example/{i}" for i in range(9)}
    text = "\n".join(lines(judge(truth, {}, STATS, {"agent-1": None, "agent-2": -9})))
    assert "FAIL  coverage" in text
    assert "http://a.example/0, http://a.example/1, http://a.example/2 and 6 more" in text
    assert "agent-1: did not end, agent-2: -9" in text
    assert "ok    duplicates" in text
