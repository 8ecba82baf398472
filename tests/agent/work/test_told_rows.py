"""Rows of visits that another clock has dated: the page is due as if it had been visited just now, and no later."""

from __future__ import annotations

import math

import pytest

from scrapy_ubi.agent.crawl.revisits import Recrawl
from scrapy_ubi.policy.recrawl import NOTHING, VisitSeen, read_recrawl
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.protocol.visit_row import VisitRow

NOW = 1_800_000_000.0
RULES = ("every(30d)", "every(10s)", "adaptive(1d, 1h, 30d)", "nutch", "stormcrawler", "sitemap(1d, 1h, 30d)",
         "new(1d)", "budget(1000/h, 1h, 30d)")  # fmt: skip


def row_by(text: str, at: float, failed: bool = False) -> VisitRow:
    """The row of a page that was visited twice, the last time at `at`."""
    rule = read_recrawl(text)
    assert rule is not None
    past = rule.plan_first(VisitSeen(at - 1000), 7).past
    plan = rule.plan_next(past, VisitSeen(at, failed=failed), 7)
    return VisitRow(2, plan.due, int(failed), *plan.past, 3, "", "", Entry(7, "http://h/7", 0))


def recrawl(text: str) -> Recrawl:
    rule = read_recrawl(text)
    assert rule is not None
    return Recrawl(rule, None, lambda: NOW)


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize("text", RULES)
def test_a_row_of_a_right_clock_stays_as_it_is_however_long_its_page_waits(text: str, failed: bool) -> None:
    told = recrawl(text)
    for ago in (0, 1, 3600, 10**7):
        row = row_by(text, NOW - ago, failed)
        assert told.believed_row(row) == row
    assert told.believed_row(row._replace(due=0)).due == 0
    assert told.ahead == 0


@pytest.mark.parametrize("lead", [3600, 86_400, 10**8])
@pytest.mark.parametrize("text", RULES)
def test_a_row_of_a_clock_that_was_ahead_is_one_of_a_visit_just_now(text: str, lead: int) -> None:
    told, right = recrawl(text), row_by(text, NOW)
    row = told.believed_row(row_by(text, NOW + lead))
    longest = told.rule.longest(NOTHING._replace(interval=row.interval))
    assert row.last == NOW
    assert row.due <= math.ceil(NOW + longest)
    assert right.due <= row.due <= right.due + lead
    assert row._replace(due=0, last=0) == row_by(text, NOW + lead)._replace(due=0, last=0), "all else stays"
    assert told.believed_row(row) == row and told.ahead == 1
