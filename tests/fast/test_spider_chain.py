"""Scrapy's spider middlewares in one loop, against Scrapy's own generators one around the other."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.settings import default_settings
from scrapy.spidermiddlewares.base import BaseSpiderMiddleware
from scrapy.spidermiddlewares.depth import DepthMiddleware
from scrapy.spidermiddlewares.referer import RefererMiddleware
from scrapy.spidermiddlewares.start import StartSpiderMiddleware
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.misc import build_from_crawler, load_object

from scrapy_ubi.fast.compared import changed
from scrapy_ubi.fast.spider_chain import Joined, chain_of

BASE = default_settings.SPIDER_MIDDLEWARES_BASE
POLICIES = ["no-referrer", "origin", "same-origin", "unsafe-url", "nonsense", "scrapy-default"]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"DEPTH_LIMIT": 2, "DEPTH_STATS_VERBOSE": True},
    {"DEPTH_PRIORITY": 1, "URLLENGTH_LIMIT": 30},
    {"REFERRER_POLICY": "same-origin"},
    {"REFERRER_POLICY": "scrapy.spidermiddlewares.referer.OriginPolicy", "META_COPY_WARN_SKIP_KEYS": ["retry_times"]},
]
URLS = st.sampled_from(
    ["http://a.example/", "https://a.example/x?y=1#z", "https://user:pw@b.example:443/", "ftp://c.example/f", "data:,x"]
) | st.text("ab/", max_size=40).map(lambda path: f"https://d.example/{path}")
META = st.fixed_dictionaries(
    {},
    optional={
        "referrer_policy": st.sampled_from(POLICIES),
        "depth": st.integers(0, 9),
        "depth_reset": st.booleans(),
        "retry_times": st.just(1),
        "mine": st.just("x"),
    },
)
REQUESTS = st.builds(
    dict,
    url=URLS,
    meta=st.none() | META,
    headers=st.sampled_from([{}, {"Referer": "mine"}]),
    priority=st.integers(0, 3),
)
OUTPUT = st.lists(REQUESTS | st.none() | st.integers(0, 5).map(lambda number: ("item", number)), max_size=8)


def crawler_of(**own: Any) -> Crawler:
    crawler = Crawler(Spider, own)
    crawler.spider = Spider(name="it")
    crawler.stats = MemoryStatsCollector(crawler)
    return crawler


def middlewares_of(crawler: Crawler) -> list[Any]:
    """Scrapy's, from the spider outwards."""
    order = sorted(BASE, key=lambda path: -BASE[path])
    return [build_from_crawler(load_object(path), crawler) for path in order]


def layers_of(middlewares: list[Any]) -> list[Any]:
    return [getattr(one, "process_spider_output", None) for one in middlewares]


def nested(middlewares: list[Any]) -> list[tuple[int, Any]]:
    return [(number, layer) for number, layer in enumerate(layers_of(middlewares), 1) if layer is not None]


def output(pieces: list[Any]) -> Iterator[Any]:
    for piece in pieces:
        yield Request(**piece) if isinstance(piece, dict) else piece


def outcome(chain: list[tuple[int, Any]], response: Response, pieces: Iterable[Any]) -> list[Any]:
    passed: Iterable[Any] = pieces
    for _, layer in chain:
        passed = layer(response=response, result=passed)
    return [found.to_dict() if isinstance(found, Request) else found for found in passed]


@given(
    pieces=OUTPUT,
    own=st.sampled_from(SETTINGS),
    url=URLS,
    meta=st.sampled_from([{}, {"depth": 0}, {"depth": 3}]),
    policy=st.none() | st.sampled_from(POLICIES),
)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.filterwarnings("ignore:Could not load referrer policy")
def test_what_passes_is_what_passes_the_generators(
    pieces: list[Any], own: dict[str, Any], url: str, meta: dict[str, Any], policy: str | None, caplog: Any
) -> None:
    found = []
    for joined in (False, True):
        caplog.clear()
        crawler = crawler_of(**own)
        middlewares = middlewares_of(crawler)
        chain = chain_of(middlewares, layers_of(middlewares)) if joined else nested(middlewares)
        response = Response(
            url, headers={"Referrer-Policy": policy} if policy else {}, request=Request(url, meta=dict(meta))
        )
        with caplog.at_level(logging.DEBUG):
            passed = outcome(chain, response, output(pieces))
        assert crawler.stats is not None
        found.append((passed, response.meta, crawler.stats.get_stats(), [one.getMessage() for one in caplog.records]))
    assert found[0] == found[1]


def test_one_loop_stands_for_all_of_scrapys() -> None:
    middlewares = middlewares_of(crawler_of())
    chain = chain_of(middlewares, layers_of(middlewares))
    assert [type(layer) for _, layer in chain] == [Joined] and not any(map(changed, middlewares[:4]))


def test_it_says_how_many_are_within_for_what_handles_their_exceptions() -> None:
    middlewares = middlewares_of(crawler_of())
    outside = [hasattr(one, "process_spider_exception") for one in middlewares].index(True)
    assert [number for number, _ in chain_of(middlewares, layers_of(middlewares))] == [outside]


class Own(BaseSpiderMiddleware):
    """A user's."""


class OwnReferer(RefererMiddleware):
    """A user's, in the place of Scrapy's."""


@pytest.mark.parametrize("own", [Own, OwnReferer])
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_a_users_own_stands_between_and_is_asked(own: type, place: int) -> None:
    crawler = crawler_of()
    middlewares = middlewares_of(crawler)
    middlewares.insert(place, build_from_crawler(own, crawler))
    chain = chain_of(middlewares, layers_of(middlewares))
    assert [layer.__self__ for _, layer in chain if getattr(layer, "__self__", None) is middlewares[place]]
    response = Response("https://a.example/", request=Request("https://a.example/"))
    pieces = [{"url": "https://a.example/b"}, ("item", 1), None]
    assert outcome(chain, response, output(pieces)) == outcome(nested(middlewares), response, output(pieces))


def test_one_that_reads_otherwise_is_asked_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def process(self: Any, request: Request, response: Response | None) -> Request | None:
        asked.append(request.url)
        return request

    monkeypatch.setattr(DepthMiddleware, "get_processed_request", process)
    monkeypatch.setattr(StartSpiderMiddleware, "get_processed_request", process)
    middlewares = middlewares_of(crawler_of())
    chain = chain_of(middlewares, layers_of(middlewares))
    assert [type(layer) is Joined for _, layer in chain] == [False, False, True, False]
    response = Response("https://a.example/", request=Request("https://a.example/"))
    outcome(chain, response, output([{"url": "https://a.example/b"}]))
    assert asked == ["https://a.example/b"] * 2
