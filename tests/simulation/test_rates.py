"""The rate of a group in simulated crawls: kept in every window under every kind of fault, and the crawl ends."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from scrapy_ubi.protocol import rates
from scrapy_ubi.protocol.rates import Desk, Share
from tests.simulation.checkers import Violation
from tests.simulation.plans import Plan

MUTANTS = 60


def most_in_a_window(times: list[float], seconds: float) -> int:
    """The most loads that began within so many seconds."""
    times = sorted(times)
    first = most = 0
    for last, moment in enumerate(times):
        while times[first] + seconds <= moment:
            first += 1
        most = max(most, last - first + 1)
    return most


def keep(seed: int, **drawn: Any) -> Plan:
    """Run one crawl under a rate. Raises Violation where it is not kept. Clocks may run at other rates, and so do
    windows then."""
    plan = Plan(seed, **drawn)
    random = Random(f"rate {seed}")
    loads, seconds = random.choice(((3, 0.5), (8, 1.0), (20, 3.0), (60, 12.0)))
    plan.world.rate = loads, seconds
    try:
        plan.run()
        most = most_in_a_window(plan.world.rated, seconds / (1 + plan.world.drift))
        if most > loads:
            raise Violation(f"rate: {most} loads in {seconds} s, where {loads} may be")
    except AssertionError as violation:
        raise Violation(f"{violation}\n{plan}\nrepeat: UBI_TEST_SEED={seed}") from None
    return plan


def test_the_rate_is_kept_under_fixed_seeds_and_fresh_ones() -> None:
    first = int(os.environ.get("UBI_TEST_SEED") or time.time_ns() // 1_000_000)
    for seed in (*range(20), *range(first, first + 20)):
        keep(seed)


@pytest.mark.parametrize(
    "kinds", [("join", "join", "crash"), ("leave", "join", "leave"), ("pause", "cut", "join"), ("amnesia", "pause")]
)
def test_the_rate_is_kept_under_these_faults(kinds: tuple[str, ...]) -> None:
    for seed in range(5):
        keep(seed, kinds=kinds)


def _begins_at_once() -> Any:
    begin = Desk.__init__
    return patch.object(
        Desk,
        "__init__",
        lambda self, loads, seconds, expiry, opens, numbers: begin(self, loads, seconds, expiry, 0, numbers),
    )


def _counted_once() -> Any:
    return patch.object(rates.Borrower, "counts", lambda self: self._level)


@pytest.mark.parametrize(("mistake", "seed"), [(_begins_at_once, 164), (_counted_once, 11)])
def test_a_mistake_is_caught(mistake: Callable[[], Any], seed: int) -> None:
    """The seed is tried first that has caught it last."""
    with mistake():
        assert any(_is_broken(each) for each in (seed, *range(MUTANTS)))


def _is_broken(seed: int) -> bool:
    try:
        keep(seed)
    except Violation as violation:
        return "rate: " in str(violation)
    return False


def test_a_share_that_is_not_given_back_is_caught() -> None:
    """Nobody is lent anything that another one has had: the crawl never ends, or late."""
    held = patch.object(Share, "held", lambda self, now: max(self.under_way, self.most))
    settle = patch.object(rates.Borrower, "settle", lambda self, now, window: None)
    with held, settle, pytest.raises(Violation, match=r"P6|rate"):
        for seed in range(MUTANTS):
            keep(seed, kinds=("crash", "join", "join"))
