"""When a page is visited again: the rules of UBI_RECRAWL, as values that are asked.

A rule is told what a visit has seen and what is known of the page, and says when the next visit is due. It decides by
that alone: the pages, their rows and the clock are others' matter. Nothing here imports Scrapy, Twisted or redis.
"""

from __future__ import annotations

from scrapy_ubi.policy.recrawl.read_recrawl import read_recrawl, read_revisits
from scrapy_ubi.policy.recrawl.rule_contract import NEVER, NOTHING, Past, Plan, Rule, VisitSeen, read_past

__all__ = ["NEVER", "NOTHING", "Past", "Plan", "Rule", "VisitSeen", "read_past", "read_recrawl", "read_revisits"]
