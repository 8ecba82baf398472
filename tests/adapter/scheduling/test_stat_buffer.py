"""Numbers reach Scrapy's stats at once, at the end of a page, or at the close."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_ubi.adapter.scheduling.stat_buffer import StatBuffer


class Node:
    """What is asked of a node at the close."""

    hosts = SimpleNamespace(counted=Counter(deferred=1))
    limits = SimpleNamespace(counted=Counter(pages=2))
    joins = SimpleNamespace(counts=Counter(slash=4))
    learner: Any = None
    seeds: Any = SimpleNamespace(counts=Counter())
    status = SimpleNamespace(times_ahead=0)

    def counters(self) -> dict[str, Any]:
        return {"pages": 5, "seconds": 0.5, "failed": {"http/404": 1}}


def sheet_and_stats() -> tuple[StatBuffer, MemoryStatsCollector]:
    stats = MemoryStatsCollector(Crawler(Spider))
    return StatBuffer(stats), stats


def test_sums_are_told_once_at_the_end_of_a_page() -> None:
    stat_buffer, stats = sheet_and_stats()
    for _ in range(3):
        stat_buffer.sums["ubi/links"] += 1
    stat_buffer.count("ubi/now")
    assert stats.get_stats() == {"ubi/now": 1}
    for _ in range(2):
        stat_buffer.page_done()
    assert stats.get_stats() == {"ubi/now": 1, "ubi/links": 3}


def test_at_the_close_all_that_is_left_is_told() -> None:
    stat_buffer, stats = sheet_and_stats()
    stat_buffer.sums["ubi/links"] += 1
    node: Any = Node()
    stat_buffer.close(node, {"case": 3}, taken=0)
    told = {
        "ubi/links": 1,
        "ubi/pages": 5,
        "ubi/seconds": 0.5,
        "ubi/hosts/deferred": 1,
        "ubi/limits/pages": 2,
        "ubi/normalise/case": 3,
        "ubi/joined/slash": 4,
    }
    assert stats.get_stats() == told
    node.learner = SimpleNamespace(counted=Counter(hosts=6))
    node.seeds = SimpleNamespace(counts=Counter(OK=8))
    stat_buffer.close(node, {}, taken=7)
    told["ubi/seeds/ok"] = 8
    assert stats.get_stats() == told | {"ubi/learned/hosts": 6, "ubi/plain_links/taken": 7}
