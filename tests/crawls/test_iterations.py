"""Whole crawls in iterations: however long loads and callbacks take, requests are taken in one order."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import AsyncCrawlerRunner, Crawler
from scrapy.http import HtmlResponse, Response

from scrapy_ubi import PlainLinks, UbiSpider
from scrapy_ubi.adapter.components.scheduler import UbiScheduler
from tests.support.crawls import FAST, LIMIT

PAGES, LINKS, RUNS = 24, 5, 20
HOST = "http://h.example"
SLOWEST = 0.02  # s that a load takes, at most: crawls beside each other make it more


class Run:
    """How long loads take in one crawl, and what was taken in which order."""

    def __init__(self, seed: int) -> None:
        self.draws = random.Random(seed)
        self.visits: Counter[str] = Counter()
        self.taken: list[str] = []
        self.out = self.most = 0


RUN: dict[int, Run] = {}  # by seed: settings are copied


def run_of(crawler: Crawler) -> Run:
    return RUN[crawler.settings.getint("TEST_SEED")]


def links_of(number: int) -> list[int]:
    """Few pages are linked from everywhere, most from one or two."""
    draws = random.Random(number)
    return [min(PAGES - 1, int(PAGES * draws.random() ** 3)) for _ in range(LINKS)]


class Web(BaseDownloadHandler):
    """One host in this process. Each seventh page fails once, each eleventh leads elsewhere at first."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.run = run_of(crawler)

    async def download_request(self, request: Request) -> Response:
        run, path = self.run, request.url.rpartition("/")[2]
        run.out += 1
        run.most = max(run.most, run.out)
        await asyncio.sleep(run.draws.random() * SLOWEST)
        run.out -= 1
        run.visits[path] += 1
        number = int(path.partition("-")[0])
        if number % 7 == 3 and run.visits[path] == 1:
            return HtmlResponse(request.url, status=503, request=request)
        if number % 11 == 4 and "-" not in path:
            return HtmlResponse(request.url, status=302, headers={"Location": f"{HOST}/{path}-b"}, request=request)
        body = "".join(f'<a href="{HOST}/{to}">x</a>' for to in links_of(number))
        return HtmlResponse(request.url, body=body.encode(), encoding="utf-8", request=request)


class Noting(UbiScheduler):
    """Notes what is taken."""

    def next_request(self) -> Request | None:
        request = super().next_request()
        if request is not None:
            run_of(self.crawler).taken.append(request.url.rpartition("/")[2])
        return request


class Follow(UbiSpider):
    name = "follow"
    start_urls = (f"{HOST}/0",)

    async def waits(self) -> None:
        """A callback may take its time, too."""
        await asyncio.sleep(run_of(self.crawler).draws.random() * SLOWEST)

    async def parse(self, response: Response) -> Any:
        await self.waits()
        yield {"url": response.url}
        yield self.links(response)


class Requests(Follow):
    async def parse(self, response: Response) -> Any:
        for link in self.link_extractor.extract_links(response):  # type: ignore[arg-type]
            await self.waits()
            yield Request(link.url, self.parse)


SETTINGS: dict[str, Any] = {
    **FAST,
    "DOWNLOAD_HANDLERS": {"http": f"{__name__}.Web"},
    "SCHEDULER": f"{__name__}.Noting",
    "LOG_LEVEL": "WARNING",
    "UBI_HEARTBEAT_INTERVAL": 0.5,
    "UBI_HOST_ITERATE": True,
    "UBI_MAX_LOAD_SECONDS": 60,
    "UBI_MAX_RETRY_AFTER": 0,
    "UBI_HOST_FAILURES": 0,
    "ROBOTSTXT_OBEY": False,
}


def crawled(
    count: int, spider: type[Follow] = Follow, expected: str = "finished", kept: Path | None = None, **settings: Any
) -> list[Run]:
    """So many crawls beside each other, each with latencies of its own; their directories are kept in that one."""

    async def crawl(place: Path) -> None:
        runner, crawlers = AsyncCrawlerRunner({"TWISTED_REACTOR_ENABLED": False}), []
        for seed in range(count):
            RUN[seed] = Run(seed)
            own = {"TEST_SEED": seed, "UBI_DIR": str(place / str(seed)), "UBI_CRAWL": f"c{seed}"}
            crawlers.append(Crawler(spider, {**SETTINGS, **own, **settings}))
        async with asyncio.timeout(LIMIT):
            await asyncio.gather(*map(runner.crawl, crawlers))
        assert {crawler.stats.get_value("finish_reason") for crawler in crawlers} == {expected}

    with tempfile.TemporaryDirectory() as place:
        asyncio.run(crawl(kept or Path(place)))
    return [RUN.pop(seed) for seed in range(count)]


def orders(runs: list[Run]) -> set[tuple[str, ...]]:
    return {tuple(run.taken) for run in runs}


@pytest.mark.slow
@pytest.mark.parametrize("take", [1, 4, 8])
def test_the_order_is_the_same_whatever_loads_take(take: int) -> None:
    runs = crawled(RUNS, UBI_HOST_LOAD_TAKE=take, UBI_RANK="backlinks")
    assert len(orders(runs)) == 1, [run.taken[:20] for run in runs]
    assert len(runs[0].taken) > PAGES / 2 and take / 2 < max(run.most for run in runs) <= take


@pytest.mark.parametrize("rank", [None, "composite(opic, shortest_path, weights=1, 10)"], ids=["unranked", "sum"])
@pytest.mark.parametrize("spider", [Follow, Requests])
def test_that_holds_for_any_ranker_and_for_links_that_are_requests(rank: str | None, spider: type[Follow]) -> None:
    assert len(orders(crawled(4, spider, UBI_HOST_LOAD_TAKE=4, UBI_RANK=rank))) == 1


def test_without_the_barrier_the_order_depends_on_how_long_loads_take() -> None:
    assert len(orders(crawled(6, UBI_HOST_ITERATE=False, UBI_HOST_CONCURRENCY=4))) > 1


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ({"UBI_HOST_LIMITS": "pages=6"}, "finished"),
        ({"UBI_HOST_LIMITS": "iterations=2"}, "finished"),
        ({"UBI_CRAWL_LIMITS": "pages=6"}, "limit/crawl_pages"),
        ({"CLOSESPIDER_PAGECOUNT": 6}, "closespider_pagecount"),
    ],
    ids=["host_pages", "host_iterations", "crawl_pages", "closespider"],
)
def test_an_iteration_that_a_limit_cuts_short_ends(limit: dict[str, int], reason: str) -> None:
    """Its pages are done, and the crawl ends as without iterations."""
    runs = crawled(3, UBI_HOST_LOAD_TAKE=4, UBI_RANK="backlinks", expected=reason, **limit)
    assert len(orders(runs)) == 1 and 5 <= len(runs[0].taken) < PAGES / 2 + 4, runs[0].taken


def test_a_crawl_that_is_stopped_goes_on_with_the_last_scores(tmp_path: Path) -> None:
    """In the same order whatever loads take, and with each page once."""
    settings = {"UBI_HOST_LOAD_TAKE": 4, "UBI_RANK": "backlinks"}
    first = crawled(4, kept=tmp_path, expected="closespider_pagecount", CLOSESPIDER_PAGECOUNT=6, **settings)
    second = crawled(4, kept=tmp_path, **settings)
    assert len(orders(first)) == len(orders(second)) == 1
    whole = crawled(1, **settings)[0]
    assert Counter(first[0].taken + second[0].taken) == Counter(whole.taken)


class Many(Follow):
    """Links to many pages at once: more than are in memory of a queue."""

    async def parse(self, response: Response) -> Any:
        yield self.links(response)
        if response.url.endswith("/0"):
            yield PlainLinks([f"{HOST}/{number}-x" for number in range(1, 700)])


def test_a_queue_that_is_not_in_memory_is_ranked() -> None:
    """Pages that others link to come first, whatever is read and flushed in between."""
    settings = {"UBI_HOST_LOAD_TAKE": 8, "CLOSESPIDER_PAGECOUNT": 24}
    runs = crawled(3, Many, UBI_RANK="backlinks", expected="closespider_pagecount", **settings)
    assert len({tuple(run.taken[:17]) for run in runs}) == 1
    counts = Counter(to for path in runs[0].taken[:9] for to in set(links_of(int(path.partition("-")[0]))))
    best = {str(number) for number, count in counts.items() if count > 1} - {*runs[0].taken[:9]}
    assert best and best <= {*runs[0].taken[9:17]}, "pages that one page links to came before those that several do"


class Broken:
    """A ranker of a user's."""

    def __init__(self, where: str) -> None:
        self.where = where

    def page(self, host: str, page: Any) -> None:
        assert self.where != "page"

    def scores(self, host: str, candidates: Sequence[Any]) -> list[float]:
        return [float("nan")] * (len(candidates) - (self.where == "few"))


@pytest.mark.parametrize("where", ["page", "few", "nan"])
def test_a_ranker_that_fails_leaves_the_order_as_it_is(where: str, caplog: pytest.LogCaptureFixture) -> None:
    runs = crawled(1, UBI_HOST_LOAD_TAKE=4, UBI_RANK=f"{__name__}.Broken({where})")
    assert len(set(runs[0].taken)) > PAGES / 2
    assert caplog.text.count("The ranker of UBI_RANK failed at h.example") == 1
