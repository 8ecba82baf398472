"""The last lines of a crawl say what it has lost: of which kind, how much, and which command shows it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Spider, signals
from scrapy.utils.test import get_crawler

from scrapy_ubi.adapter.process.last_lines import (
    LONGEST,
    MOST_NAMES,
    CrawlOutcome,
    FeedNames,
    lines,
    lost,
    of_copies,
    say,
    tally,
)
from tests.support.crawls import FAST


def profile(agent: str, **counters: Any) -> str:
    return json.dumps({"agent": agent, "state": "finished", "counters": counters})


def test_a_crawl_that_lost_nothing_has_nothing_to_say() -> None:
    own = {"pages": 5, "failed": {"http/404": 7, "robots": 1}, "untravelled": 0, "dead_letters": 0}
    assert lost(tally("a", own, {}), "c") == []


def test_pages_that_could_not_travel_are_counted_by_reason_over_all_agents() -> None:
    own = {"failed": {"codec/callback": 2, "http/404": 9}, "pages": 3}
    others = {
        "a": profile("a", failed={"codec/callback": 100}),  # its own, as it was published before
        "b": profile("b", failed={"codec/callback": 3, "codec/meta": 1}, pages=1),
        "c": "no profile",
    }
    (sentence,) = lost(tally("a", own, others), "my crawl")
    assert "Lost, of the crawl, as far as its agents have said: 6 pages" in sentence
    assert "(codec/callback: 5, codec/meta: 1)" in sentence
    assert "`scrapy ubi failed --crawl 'my crawl' --reason codec`" in sentence


def test_alone_it_is_said_of_this_agent() -> None:
    (sentence,) = lost(tally("a", {"failed": {"codec/class": 1}}, {"a": profile("a")}), "c")
    assert "Lost, of this agent: 1 page whose" in sentence


def test_mail_that_was_lost_is_said_as_well() -> None:
    others = {"b": profile("b", untravelled=2, dead_letters=4)}
    large, aside = lost(tally("a", {"untravelled": 1, "dead_letters": 0}, others), "c")
    assert "3 requests too large for a letter" in large and "UBI_MAX_LETTER_BYTES" in large
    assert "4 letters or records" in aside


@pytest.mark.parametrize("sentences", [[], ["Lost: a.", "Lost: b."]])
def test_it_is_said_when_the_engine_has_stopped(sentences: list[str], caplog: pytest.LogCaptureFixture) -> None:
    crawler = get_crawler(Spider, FAST)
    say(crawler, sentences)
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    crawler.signals.send_catch_log(signals.engine_stopped)
    said = [(record.levelname, record.getMessage()) for record in caplog.records if record.levelname == "WARNING"]
    assert said == [("WARNING", sentence) for sentence in sentences]


def test_who_was_lost_with_what_only_they_knew_is_named() -> None:
    assert of_copies((), 1) == []
    (sentence,) = of_copies(("a1", "a2"), 1)
    assert sentence.startswith("This crawl has lost 2 agents (a1, a2), more than its copies")
    assert "UBI_REPLICATION = 1" in sentence and "start these agents again" in sentence
    (sentence,) = of_copies(("a1",), 0)
    assert "1 agent (a1), more than its copies" in sentence
    (sentence,) = of_copies(("a1",), 1)
    assert "1 agent (a1), before others had copies" in sentence and "more than" not in sentence
    (sentence,) = of_copies([f"a{number}" for number in range(MOST_NAMES + 3)], 1)
    assert "and 3 more)" in sentence


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
