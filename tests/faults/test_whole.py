"""Agents that nothing happens to, that come, and that go: nothing is fetched twice."""

from __future__ import annotations

import pytest

from tests.faults.conftest import FOUR, MakeGroup
from tests.support.group import Verdict

pytestmark = [pytest.mark.processes, pytest.mark.faults]


@pytest.mark.parametrize(("seeds", "spider"), [("all", "walk"), ("first", "walk"), ("all", "plain")])
def test_four_agents_fetch_all_of_a_web_once(make_group: MakeGroup, seeds: str, spider: str) -> None:
    group = make_group(seeds=seeds)
    group.start(*FOUR, spider=spider)
    verdict = group.end().judge()
    assert set(verdict.stats["agents"]) == set(FOUR)
    assert sorted(verdict.items) == pages(verdict)


def test_one_that_joins_and_one_that_leaves_change_nothing(make_group: MakeGroup) -> None:
    group = make_group(latency=0.25, hosts=20)
    group.start("a0", "a1", "a2")
    group.until_served(0.02)
    group.start("a3")
    group.until(lambda: "a3" in group.web.stats()["agents"], "a page fetched by the newcomer")
    assert group.web.count() < len(group.truth)  # there is something left to hand over
    group.stop("a1")
    group.until_ended("a1")
    verdict = group.end().judge()
    assert "Closing spider (shutdown)" in verdict.logs["a1"]
    assert sorted(verdict.items) == pages(verdict)


def pages(verdict: Verdict) -> list[str]:
    """The pages among what can be reached: each is an item; redirects and missing documents are none."""
    return sorted(url for url in verdict.truth if "/go/" not in url and "/gone/" not in url)
