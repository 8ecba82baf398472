"""Limits in whole crawls: a trap without end, a page without end, and a crawl that is to load so many pages."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from scrapy import Request, Spider
from scrapy.http import Response, TextResponse

from tests.support.crawls import crawl, total
from tests.support.site import Page, Site, Visit, links

TRAP, PLAIN = "http://trap.example", "http://plain.example"


class Walk(Spider):
    """Follows every link."""

    name = "walk"
    start_urls = (f"{TRAP}/0", f"{PLAIN}/0")

    async def start(self) -> Any:
        for url in self.start_urls:
            yield Request(url, errback=self.failed)

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        yield {"url": response.url, "depth": response.meta["depth"]}
        for link in response.css("a::attr(href)").getall():
            yield Request(link, errback=self.failed)

    def failed(self, failure: Any) -> Iterator[Any]:
        yield {"failed": failure.request.url, "error": type(failure.value).__name__}


class Calendar(dict):  # type: ignore[type-arg]
    """The pages of a site in which every page links to two that nobody has seen."""

    def get(self, url: str, default: Any = None) -> Any:
        if not url.startswith(f"{TRAP}/"):
            return super().get(url, default)
        number = int(url.rsplit("/", 1)[1])
        return lambda visit: Page(links(f"{TRAP}/{2 * number + 1}", f"{TRAP}/{2 * number + 2}", f"{PLAIN}/0"))


@pytest.fixture
def trap(site: Site) -> Site:
    """A calendar without end, and a site of ten pages."""
    site.pages = Calendar(site.pages)
    for number in range(10):
        site.page(f"{PLAIN}/{number}", links(f"{PLAIN}/{(number + 1) % 10}", f"{TRAP}/0"))
    return site


def by_host(site: Site) -> Counter[str]:
    return Counter(urlsplit(visit.url).netloc for visit in site.visits)


LIMITS: dict[str, tuple[dict[str, Any], int, str]] = {
    "pages": ({"UBI_HOST_LIMITS": "pages=12"}, 12, "ubi/failed/limit/host_pages"),
    "known": ({"UBI_HOST_LIMITS": "known=12"}, 12, "ubi/limits/host_known"),
    "depth": ({"UBI_HOST_LIMITS": "depth=2"}, 7, "ubi/limits/host_depth"),
    "iterations": (
        {"UBI_HOST_LIMITS": "iterations=4", "UBI_HOST_LOAD_TAKE": 3},
        12,
        "ubi/failed/limit/host_iterations",
    ),
}


@pytest.mark.parametrize(
    ("limit", "agents"), [("pages", 1), ("pages", 2), ("known", 1), ("depth", 1), ("iterations", 1)]
)
def test_a_trap_without_end_ends_and_other_hosts_are_whole(trap: Site, limit: str, agents: int) -> None:
    settings, pages, stat = LIMITS[limit]
    if limit == "depth":  # a chain of ten pages would be cut as well
        trap.page(f"{PLAIN}/0", links(*(f"{PLAIN}/{number}" for number in range(10))))
    outcomes = crawl(Walk, trap.proxy, agents, settings=settings)
    assert {outcome.reason for outcome in outcomes} == {"finished"}
    assert by_host(trap) == {"trap.example": pages, "plain.example": 10}
    assert total(outcomes, stat) > 0


def test_iterations_without_news(site: Site) -> None:
    """A list of thirty pages, none of which links to anything new."""
    pages = [f"{PLAIN}/{number}" for number in range(30)]
    for page in pages:
        site.page(page, links(*pages))
    settings = {"UBI_HOST_LIMITS": "stable=2", "UBI_HOST_LOAD_TAKE": 5}
    (outcome,) = crawl(Walk, site.proxy, settings=settings, start_urls=[f"{PLAIN}/0"])
    assert outcome.reason == "finished"
    assert by_host(site) == {"plain.example": 15}
    assert outcome.stats["ubi/failed/limit/host_stable"] == 15
    assert outcome.stats["ubi/hosts/ended/limit/host_stable"] == 1


def test_a_load_that_takes_too_long_is_cancelled(site: Site) -> None:
    """A host that answers one byte at a time, and does not stop."""
    stopped = threading.Event()

    def drip(visit: Visit) -> Page:
        return Page("<html>", chunks=iter(lambda: b" " if not stopped.wait(0.02) else b"", b""))

    site.page(f"{TRAP}/0", drip)
    for number in range(10):
        site.page(f"{PLAIN}/{number}", links(f"{PLAIN}/{(number + 1) % 10}"))
    try:
        (outcome,) = crawl(Walk, site.proxy, settings={"UBI_MAX_LOAD_SECONDS": 2.0})
    finally:
        stopped.set()
    assert outcome.reason == "finished"
    assert by_host(site) == {"trap.example": 1, "plain.example": 10}
    assert {"failed": f"{TRAP}/0", "error": "TooLong"} in outcome.items
    assert outcome.stats["ubi/failed/load/too_long"] == 1
    assert not any(name.startswith("ubi/errors") for name in outcome.stats)


def test_the_crawl_ends_at_so_many_pages_and_goes_on_with_a_higher_limit(
    trap: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def pages(most: int) -> tuple[str, int]:
        before = len(trap.visits)
        settings = {"UBI_CRAWL_LIMITS": f"pages={most}", "UBI_DIR": str(tmp_path / "a"), "UBI_CRAWL": "c"}
        (outcome,) = crawl(Walk, trap.proxy, settings=settings)
        return outcome.reason, len(trap.visits) - before

    caplog.set_level("INFO", "scrapy_ubi")
    assert pages(20) == ("limit/crawl_pages", 20)
    assert "UBI_CRAWL_LIMITS" in caplog.text
    assert pages(20) == ("limit/crawl_pages", 0)
    assert pages(40) == ("limit/crawl_pages", 20)


def test_depth_of_the_crawl(trap: Site) -> None:
    (outcome,) = crawl(Walk, trap.proxy, settings={"UBI_CRAWL_LIMITS": "depth=3"}, start_urls=[f"{TRAP}/0"])
    assert outcome.reason == "finished"
    assert max(item["depth"] for item in outcome.items) == 3
    assert by_host(trap)["trap.example"] == 15
    assert outcome.stats["ubi/limits/crawl_depth"] > 0


def test_without_limits_nothing_is_limited(site: Site) -> None:
    for number in range(40):
        site.page(f"{PLAIN}/{number}", links(f"{PLAIN}/{(number + 1) % 40}"))
    (outcome,) = crawl(Walk, site.proxy, start_urls=[f"{PLAIN}/0"])
    assert len(outcome.items) == 40
    assert not any(name.startswith("ubi/limits") for name in outcome.stats)
