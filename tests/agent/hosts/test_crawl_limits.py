"""Limits of the whole crawl: what an agent adds up, and crawls of one and of three agents that end by them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from scrapy_ubi.agent.hosts.crawl_limits import CrawlLimits
from scrapy_ubi.agent.profile import figures
from scrapy_ubi.agent.profile.figures import PUBLISH
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.settings.crawl_caps import CrawlCaps
from scrapy_ubi.transport.in_process import MemoryHub
from tests.agent.crawler import SETTINGS, Crawler, Log, crawl
from tests.cli.monitor.by_hand import profile

SEEDS = ["http://h0.example/1"]


def limits(**settings: Any) -> tuple[CrawlLimits, list[tuple[str, str]]]:
    """The limits as agent `me` sees them, and how it was stopped."""
    stopped: list[tuple[str, str]] = []
    return CrawlLimits(
        UbiSettings(crawl_limits=CrawlCaps(**settings)), "me", lambda *words: stopped.append(words)
    ), stopped


def told(**counters: dict[str, Any]) -> dict[str, str]:
    """Profiles of agents with these counters."""
    return {name: json.dumps(profile(name, counters=values)) for name, values in counters.items()}


def test_pages_of_all_are_added_up_and_the_own_ones_are_counted_now() -> None:
    one, stopped = limits(pages=100)
    one.read_profiles(told(me={"pages": 5}, other={"pages": 60}, gone={"pages": 30}), alive={"other"})
    one.check(9, 1.0)
    assert not stopped and not one.over
    one.check(10, 1.0)
    one.check(11, 1.0)
    assert one.over
    assert stopped == [
        ("limit/crawl_pages", "The agents have loaded 100 pages, and the crawl ends (UBI_CRAWL_LIMITS).")
    ]


def test_what_is_under_way_counts_for_what_is_begun() -> None:
    one, stopped = limits(pages=100)
    one.read_profiles(told(other={"pages": 60}), alive={"other"})
    assert not one.full(39) and one.full(40)
    one.check(39, 1.0)
    assert not stopped and not one.full(39), "one that was under way has failed"
    assert not limits()[0].full(10**12)


def test_the_time_is_that_of_who_has_crawled_longest() -> None:
    one, stopped = limits(seconds=60.0)
    one.read_profiles(told(other={"seconds": 59.0}), alive={"other"})
    one.check(0, 5.0)
    assert not stopped
    one.read_profiles(told(other={"seconds": 61.0}), alive={"other"})
    one.check(0, 5.0)
    assert stopped == [("limit/crawl_seconds", "The crawl has run for 61 s, and ends (UBI_CRAWL_LIMITS).")]
    alone, stopped = limits(seconds=60.0)
    alone.check(0, 60.0)
    assert stopped


def test_known_urls_are_those_of_the_living() -> None:
    one, stopped = limits(known=100)
    profiles = told(me={"known": 30}, other={"known": 60}, dead={"known": 60})
    one.read_profiles(profiles, alive={"other"})
    assert not one.refuses_depth(0)
    one.read_profiles(profiles, alive={"other", "dead"})
    assert one.refuses_depth(0) == "limit/crawl_known"
    one.check(10**9, 1e9)
    assert not stopped, "the crawl ends by itself"


def test_depth() -> None:
    one, _ = limits(depth=3)
    assert [one.refuses_depth(depth) for depth in (0, 3, 4)] == ["", "", "limit/crawl_depth"]
    assert one.idle, "nobody else is to be asked"


def test_without_limits_nothing_is_read_or_refused() -> None:
    one, stopped = limits()
    one.check(10**12, 1e12)
    assert one.idle and not one.refuses_depth(10**6) and not stopped


@pytest.mark.parametrize("text", ["", "{}", "[1]", "\ud800", json.dumps(profile("other", counters={"pages": "many"}))])
def test_what_cannot_be_read_counts_for_nothing(text: str) -> None:
    one, stopped = limits(pages=100)
    one.read_profiles({"other": text, **told(third={"pages": 50})}, alive={"other"})
    one.check(50, 1.0)
    assert stopped


def test_profiles_are_read_as_often_as_they_are_published() -> None:
    one, _ = limits(pages=1)
    due = [one.is_due(10.0), one.is_due(10.1), one.is_due(10.0 + PUBLISH), one.is_due(11.0 + PUBLISH)]
    assert due == [True, False, True, False]


def test_bytes_of_all_are_added_up() -> None:
    one, stopped = limits(bytes=1000)
    one.read_profiles(told(other={"body_bytes": 600}, gone={"body_bytes": 300}), alive={"other"})
    one.check(9, 1.0, 99)
    assert not stopped
    one.check(9, 1.0, 100)
    assert stopped == [
        ("limit/crawl_bytes", "The agents have received 1,000 bytes, and the crawl ends (UBI_CRAWL_LIMITS).")
    ]


# -- whole crawls: 8 hosts of 20 pages


def run(
    agents: int, hub: MemoryHub | None = None, host_delay: float = 0.0, **caps: Any
) -> tuple[Log, list[tuple[str, str]], list[Crawler]]:
    """A crawl in which agents that reach a limit go, as Scrapy lets them."""
    log, stopped = Log(), []
    group: list[Crawler] = []

    def member(number: int, hub: MemoryHub) -> Crawler:
        one = Crawler(hub, f"a{number}", log, replace(SETTINGS, host_delay=host_delay, crawl_limits=CrawlCaps(**caps)))

        def stop(reason: str, sentence: str) -> None:
            stopped.append((one.name, reason))
            one.stop()

        one.node.status.crawl_limits._stop = stop
        return one

    async def main() -> None:
        shared = hub or MemoryHub()
        group.extend(member(number, shared) for number in range(agents))
        await asyncio.gather(*(one.start(SEEDS if one is group[0] else []) for one in group))

    crawl(main)
    return log, stopped, group


def test_one_agent_stops_at_the_number_of_pages() -> None:
    log, stopped, _ = run(1, pages=30)
    assert stopped == [("a0", "limit/crawl_pages")]
    assert sum(log.fetched.values()) == 30


def test_all_agents_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "PUBLISH", 0.02)
    log, stopped, group = run(3, pages=30, host_delay=0.05)
    assert sorted(stopped) == [(f"a{number}", "limit/crawl_pages") for number in range(3)]
    assert 30 <= sum(log.fetched.values()) < 160, "how many are loaded before others hear of it, the machine decides"
    assert not any(one.node.over for one in group)


def test_known_urls_of_the_crawl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "PUBLISH", 0.0)
    log, stopped, (one,) = run(1, known=40, host_delay=0.02)
    assert not stopped and one.node.over
    assert sum(log.fetched.values()) < 160
    assert one.node.limits.counted["crawl_known"] > 0


def test_depth_of_the_crawl() -> None:
    log, _, (one,) = run(1, depth=2)
    assert one.node.over
    assert 3 < sum(log.fetched.values()) <= 1 + 3 + 9
    assert one.node.crawl.tally.noted["refused/limit/crawl_depth"] == one.node.limits.counted["crawl_depth"] > 0


def test_a_time_that_is_over_ends_the_crawl() -> None:
    log, stopped, _ = run(1, seconds=0.05, host_delay=0.1)
    assert stopped == [("a0", "limit/crawl_seconds")]
    assert sum(log.fetched.values()) < 160
