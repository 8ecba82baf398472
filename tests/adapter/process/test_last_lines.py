"""The last lines of a crawl say what it has lost: of which kind, how much, and which command shows it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scrapy import Spider, signals
from scrapy.utils.test import get_crawler

from scrapy_ubi.adapter.process.last_lines import MOST_NAMES, lost, of_copies, say, tally
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
    assert "1 agent (a1)" in sentence
    (sentence,) = of_copies([f"a{number}" for number in range(MOST_NAMES + 3)], 1)
    assert "and 3 more)" in sentence
