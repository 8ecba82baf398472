"""The guard of the amount of work: what it takes for more, and that a baseline is there."""

from __future__ import annotations

import json
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(FOLDER))  # the benchmarks are scripts, which find each other beside themselves

import guard  # noqa: E402


def test_calls_are_counted_for_who_makes_them() -> None:
    def twice() -> None:
        for _ in range(50):
            len("")
            len("")

    assert 2.0 <= guard.calls_of(twice, 50) < 2.2
    assert sys.getprofile() is None


def test_more_than_the_margin_is_named() -> None:
    then = {"a link": 10.0, "a page": 100.0, "gone": 5.0}
    risen, fallen = guard.judge("frontier", {"a link": 11.6, "a page": 114.0}, then, 0.15)
    assert risen == ["frontier, a link: 11.6 calls, 10.0 in the baseline"]
    assert fallen == ["frontier, gone: 0.0 calls, 5.0 in the baseline"]


def test_of_a_crawl_what_is_not_ours_or_next_to_nothing_is_passed_over() -> None:
    then = {"all": 1000.0, "node": 20.0, "mail": 100.0, "signals": 100.0}
    now = {"all": 1130.0, "node": 29.0, "mail": 120.0, "signals": 200.0}
    risen, _ = guard.judge("walk", now, then, 0.15)
    assert risen == ["walk, mail: 120.0 calls, 100.0 in the baseline"]
    assert guard.judge("walk", {**then, "all": 1151.0}, then, 0.15)[0], "the sum counts, whoever it is"


def test_a_case_without_a_baseline_is_no_success() -> None:
    assert guard.verdict([], [], ["mail"], 0.15) == 1
    assert guard.verdict([], ["mail, it: 1.0 calls, 2.0 in the baseline"], [], 0.15) == 0
    assert guard.verdict(["mail, it: 2.0 calls, 1.0 in the baseline"], [], [], 0.15) == 1


def test_the_committed_baseline_has_all_cases() -> None:
    baselines = json.loads(guard.BASELINE.read_text(encoding="utf-8"))
    assert any(baseline.keys() == set(guard.CASES) for baseline in baselines.values())
    for baseline in baselines.values():  # where a case is newer than the last count, guard.py says so
        assert baseline.keys() <= set(guard.CASES)
        assert all(count > 0 for counts in baseline.values() for count in counts.values())
