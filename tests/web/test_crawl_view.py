"""What is told of a crawl by comparing looks, around a Redis that is started again."""

from __future__ import annotations

from scrapy_ubi.agent.profile.profile import Profile
from scrapy_ubi.cli.monitor.status import DEAD, SILENT, AgentStatus, CrawlStatus
from scrapy_ubi.web.crawl_view import CALM, CrawlEvents


def crawl(now: float, **states: str) -> CrawlStatus:
    agents = tuple(AgentStatus(name, state, Profile(name)) for name, state in states.items())
    return CrawlStatus("c", agents, {"run": "r"}, now)


def told(events: CrawlEvents) -> list[tuple[str, str | None]]:
    return [(one["what"], one["agent"]) for one in events.kept]


ALL = {"a": "crawling", "b": "crawling", "c": "crawling"}


def test_one_restart_of_redis_is_one_event_whatever_agents_look_like_meanwhile() -> None:
    events = CrawlEvents()
    events.look(crawl(100, **ALL))
    for second in range(10):
        events.away(102.0 + 2 * second)
    events.look(crawl(122, a="fenced", b=DEAD, c=SILENT))
    events.look(crawl(124, a="crawling", b="fenced"))
    events.look(crawl(126, a="crawling", b="joining", c="fenced"))
    events.look(crawl(128, **ALL))
    events.look(crawl(130, **ALL))
    assert told(events) == [("redis", None)]
    assert events.kept[0]["text"] == "Redis was away for 20 s, and is back."


def test_who_does_not_come_back_after_it_is_told_of() -> None:
    events = CrawlEvents()
    events.look(crawl(100, **ALL))
    events.away(101)
    events.look(crawl(110, a="crawling", b="crawling", c=DEAD))
    assert told(events) == [("redis", None)]
    events.look(crawl(110 + CALM, a="crawling", b="crawling", c=DEAD))
    assert told(events) == [("redis", None), ("dead", "c")]


def test_what_comes_right_after_a_calm_end_is_told_at_once() -> None:
    events = CrawlEvents()
    events.look(crawl(100, **ALL))
    events.away(101)
    events.look(crawl(103, **ALL))
    events.look(crawl(105, **{**ALL, "b": DEAD}))
    assert told(events) == [("redis", None), ("dead", "b")]


def test_without_an_outage_every_change_is_told_at_once() -> None:
    events = CrawlEvents()
    events.away(50)  # before the first look: nothing is known yet
    events.look(crawl(100, **ALL))
    events.look(crawl(102, **{**ALL, "a": "fenced"}))
    events.look(crawl(104, **ALL))
    assert told(events) == [("fenced", "a"), ("back", "a")]
