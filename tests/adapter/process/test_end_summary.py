"""What a crawl has come to, in its last lines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from scrapy import Spider, signals
from scrapy.utils.test import get_crawler

from scrapy_ubi.adapter.process.end_summary import LONGEST, CrawlOutcome, FeedNames, lines

COUNTERS: dict[str, Any] = {
    "pages": 2348,
    "seconds": 276.4,
    "queued": 0,
    "failed": {"robots": 12, "http/404": 55, "http/500": 40},
}
WHOLE = CrawlOutcome(
    "proj:s",
    COUNTERS,
    Path("/data/ubi"),
    received=7_900_000,
    feeds=(("items.jsonl", 2209),),
    stores=("items", "warc"),
    failed_at={"http/404": ["a.example", "b.example"]},
)


def test_a_crawl_that_is_finished() -> None:
    assert lines(WHOLE) == [
        "Crawl proj:s is finished: 2,348 pages in 0:04:36, 8.5 a second, 7.9 MB received.",
        "Items: 2,209 in items.jsonl",
        "Kept of its pages (items, warc): /data/ubi/out",
        "Failed: 107 URLs: 55 http/404, 40 http/500, 12 robots",
        "  http/404 mostly at a.example, b.example",
        "More: scrapy ubi report --html report.html --crawl proj:s",
    ]


def test_a_crawl_that_has_stopped_says_what_waits() -> None:
    said = lines(replace(WHOLE, over=False, counters={**COUNTERS, "queued": 1065}))
    assert said[0].startswith("Crawl proj:s has stopped: ")
    assert "Waiting: 1,065 URLs; the same command goes on with them." in said


def test_an_agent_of_several_speaks_of_itself() -> None:
    said = lines(replace(WHOLE, over=False, alone=False, counters={**COUNTERS, "queued": 1065}))
    assert said[0].startswith("This agent of crawl proj:s has left: ")
    assert not any(line.startswith("Waiting") for line in said)  # others have taken that over


def test_where_nothing_came_out_little_is_said() -> None:
    assert lines(CrawlOutcome("c", {"pages": 0, "seconds": 0.0}, Path("d"))) == [
        "Crawl c is finished: 0 pages in 0:00:00.",
        "More: scrapy ubi report --html report.html --crawl c",
    ]


def test_there_are_ten_lines_at_most_and_they_are_fit_for_a_terminal() -> None:
    hostile = "\x1b[2J\u202e" + 300 * "x"
    said = lines(
        replace(
            WHOLE,
            over=False,
            crawl=hostile,
            counters={**COUNTERS, "queued": 5, "failed": {f"{number}{hostile}": number + 1 for number in range(200)}},
            failed_at={f"199{hostile}": [hostile] * 9},
            feeds=[(f"{number}{hostile}", 5) for number in range(9)],
        )
    )
    assert len(said) <= 10
    assert all(line.isprintable() for line in said)
    assert all(len(line) < 2 * LONGEST for line in said)


def test_names_of_feeds_are_those_of_the_files_that_were_closed() -> None:
    crawler = get_crawler(Spider)
    feeds = FeedNames(crawler)
    for uri, number in (("a.jsonl", 3), ("b.csv", 0), ("a.jsonl", 4)):
        slot = SimpleNamespace(uri=uri, itemcount=number)
        crawler.signals.send_catch_log(signals.feed_slot_closed, slot=slot)
    assert feeds.closed == [("a.jsonl", 7)]
