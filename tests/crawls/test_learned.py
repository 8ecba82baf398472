"""Whole crawls with `UBI_NORMALISE = "learned"`: what agrees is joined, what differs never is, and no page is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import StopDownload
from scrapy.http import Response, TextResponse
from scrapy.linkextractors import LinkExtractor

from scrapy_ubi.agent.hosts.learned_forms import SAMPLE
from scrapy_ubi.agent.report.answers_under_way import whole
from scrapy_ubi.agent.report.queries import Question
from scrapy_ubi.urls import url_key
from scrapy_ubi.urls.learned import AGREE
from tests.support.crawls import crawl, items_of, total
from tests.support.site import Page, Site, links

AGENTS = pytest.mark.parametrize("agents", [1, 3])
HOME = "http://h0.example"
SETTINGS = {"UBI_NORMALISE": "learned", "UBI_HOST_RULES": ["startsWith(www.) ="]}


class Learn(Spider):
    """Follows every link; of the page `/end` it tells what its agent has learned."""

    name = "learn"
    start_urls = (f"{HOME}/",)

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        if response.url.endswith("/end"):
            node = self.crawler.engine.scheduler.node  # type: ignore[union-attr]
            yield {row["host"]: row["learned"] for row in whole(node.answers.answer(Question("hosts", 0.0)))["rows"]}
        for link in LinkExtractor(canonicalize=False, unique=True).extract_links(response):
            yield Request(link.url)


SPELLINGS = {
    "www": "http://www.h0.example/{0}/page",
    "slashes": HOME + "//{0}/page",
    "path-case": HOME + "/{0}/PAGE",
    "tracking": HOME + "/{0}/page?utm_source=x",
    "session": HOME + "/{0}/page;jsessionid=1",
}


def group(site: Site, name: str, contents: str = "{0}") -> list[str]:
    """The spellings of one page."""
    urls = [f"{HOME}/{name}/page", *(spelling.format(name) for spelling in SPELLINGS.values())]
    for number, url in enumerate(urls):
        site.page(url, f"<p>{contents.format(name, number)}</p>")
    return urls


def chain(site: Site, name: str, length: int, *last: str) -> str:
    """A row of pages, the last of which has these links: what is before it in the queue is fetched by then."""
    for number in range(length):
        site.page(f"{HOME}/{name}{number}", links(*(last if number == length - 1 else [f"{HOME}/{name}{number + 1}"])))
    return f"{HOME}/{name}0"


@AGENTS
def test_spellings_of_one_page_are_joined_once_enough_have_agreed(site: Site, agents: int) -> None:
    first = [group(site, f"a{number}") for number in range(AGREE)]
    later = [group(site, f"b{number}") for number in range(8)]
    links_later = [url for urls in later for url in reversed(urls)]
    begin = chain(site, "wait", 5, *links_later, chain(site, "still", 5, f"{HOME}/end"))
    site.page(f"{HOME}/end", "the end")
    site.page(f"{HOME}/", links(*[url for urls in first for url in urls], begin))
    outcomes = crawl(Learn, site.proxy, agents, SETTINGS)
    asked = site.urls()
    assert set(asked.values()) == {1}
    assert all(asked[url] for urls in first for url in urls)
    for urls in later:
        fetched = [url for url in urls if asked[url]]
        sampled = [url for url in fetched if url_key("GET", url) % SAMPLE == 0]
        assert 1 <= len(fetched) <= 1 + len(sampled), fetched
    assert {"h0.example": "+www +path-case +session +tracking +slashes"} in items_of(outcomes)
    fetched_later = sum(asked[url] for urls in later for url in urls)
    assert sum(total(outcomes, f"ubi/joined/{step}") for step in SPELLINGS) >= 8 * 6 - fetched_later - 8
    assert total(outcomes, "ubi/learned/on") == 5
    assert [outcome.reason for outcome in outcomes] == ["finished"] * agents


@AGENTS
def test_spellings_of_different_pages_are_all_fetched(site: Site, agents: int) -> None:
    urls = [
        f"{HOME}/d{number}/{name}" for number in range(AGREE * 3) for name in ("index.html", "default.html", "A", "a")
    ]
    for url in urls:
        site.page(url, f"<p>{url}</p>")
    site.page(f"{HOME}/end", "the end")
    site.page(f"{HOME}/", links(*urls, chain(site, "wait", 5, f"{HOME}/end")))
    outcomes = crawl(Learn, site.proxy, agents, SETTINGS)
    assert all(site.urls()[url] == 1 for url in urls)
    assert {"h0.example": "-path-case -index"} in items_of(outcomes)
    assert not sum(total(outcomes, f"ubi/joined/{step}") for step in ("index", "path-case"))


@AGENTS
def test_a_step_that_is_disproved_later_gives_back_what_it_had_joined(site: Site, agents: int) -> None:
    """Capitals are one for the first pages, and two for others: a sample notices, and all of those are fetched."""
    urls = [f"{HOME}/{name}{number}" for number in range(AGREE) for name in ("p", "P")]
    for url in urls:
        site.page(url, f"<p>{url.lower()}</p>")
    others = [f"{HOME}/{name}{number}" for number in range(3 * SAMPLE) for name in ("q", "Q")]
    assert any(url_key("GET", url) % SAMPLE == 0 for url in others if "Q" in url)
    for url in others:
        site.page(url, f"<p>{url}</p>")
    site.page(f"{HOME}/", links(*urls, chain(site, "wait", 5, *others)))
    outcomes = crawl(Learn, site.proxy, agents, SETTINGS)
    assert all(site.urls()[url] == 1 for url in [*urls, *others])
    assert total(outcomes, "ubi/learned/unjoined") == total(outcomes, "ubi/joined/path-case") > 0
    assert total(outcomes, "ubi/learned/off") == 1


def test_what_a_page_that_fails_stood_for_is_fetched(site: Site) -> None:
    urls = [f"{HOME}/{name}{number}" for number in range(AGREE) for name in ("p", "P")]
    for url in urls:
        site.page(url, f"<p>{url.lower()}</p>")
    broken, whole = f"{HOME}/broken", f"{HOME}/BROKEN"
    site.page(broken, Page("out of order", 500))
    site.page(whole, "<p>whole</p>")
    site.page(f"{HOME}/", links(*urls, chain(site, "wait", 5, broken, whole)))
    crawl(Learn, site.proxy, 1, {**SETTINGS, "RETRY_ENABLED": False})
    assert site.urls()[broken] == site.urls()[whole] == 1


def test_pages_of_which_only_the_beginning_is_kept_are_not_compared(site: Site) -> None:
    urls = [f"{HOME}/{name}{number}" for number in range(AGREE) for name in ("p", "P")]
    for url in urls:
        site.page(url, f"<p>{url.lower()}</p>" + " " * 2000 + url)
    site.page(f"{HOME}/", links(*urls))
    (outcome,) = crawl(Learn, site.proxy, 1, {**SETTINGS, "UBI_MAX_BODY": 1500})
    assert outcome.stats["ubi/body/truncated"] == len(urls)
    assert "ubi/learned/agreed" not in outcome.stats


class Stops(Learn):
    """Wants of no page more than its headers, but of the first."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.stop, signals.headers_received)
        return spider

    def stop(self, request: Request) -> None:
        if not request.url.endswith("/"):
            raise StopDownload(fail=False)


@pytest.mark.parametrize("fast", [True, False])
def test_pages_of_which_the_spider_stops_the_load_are_not_compared(site: Site, fast: bool) -> None:
    urls = [f"{HOME}/{name}{number}" for number in range(AGREE) for name in ("p", "P")]
    for url in urls:
        site.page(url, f"<p>{url}</p>")
    site.page(f"{HOME}/", links(*urls))
    (outcome,) = crawl(Stops, site.proxy, 1, {**SETTINGS, "UBI_FAST": fast})
    assert all(site.urls()[url] == 1 for url in urls)
    assert "ubi/learned/agreed" not in outcome.stats


def test_what_was_learned_is_there_after_a_restart(site: Site, tmp_path: Path) -> None:
    first = [url for number in range(AGREE) for url in (f"{HOME}/p{number}", f"{HOME}/P{number}")]
    for url in first:
        site.page(url, f"<p>{url.lower()}</p>")
    later = [(f"{HOME}/q{number}", f"{HOME}/Q{number}") for number in range(12)]
    for url in [url for pair in later for url in pair]:
        site.page(url, f"<p>{url.lower()}</p>")
    flat = [url for pair in later for url in pair]
    site.page(f"{HOME}/", links(*first, chain(site, "wait", 5, *flat, chain(site, "still", 5, f"{HOME}/end"))))
    site.page(f"{HOME}/end", "the end")
    settings = {**SETTINGS, "UBI_DIR": str(tmp_path / "a0"), "CONCURRENT_REQUESTS": 1}
    (begun,) = crawl(Learn, site.proxy, 1, {**settings, "CLOSESPIDER_PAGECOUNT": 1 + len(first) + 5 + 3})
    assert begun.reason == "closespider_pagecount" and begun.stats["ubi/learned/on"] == 1
    before = site.urls()
    outcomes = crawl(Learn, site.proxy, 1, settings)
    assert [outcome.reason for outcome in outcomes] == ["finished"]
    assert max(site.urls().values()) == 1, "nor is anything fetched again"
    assert {"h0.example": "+path-case"} in items_of(outcomes)
    assert any(not before[url] for url in flat)
    for pair in later:
        fetched = [url for url in pair if site.urls()[url]]
        sampled = [url for url in fetched if url_key("GET", url) % SAMPLE == 0]
        assert 1 <= len(fetched) <= 1 + len(sampled), fetched


def test_redirects_between_spellings_teach_as_well(site: Site) -> None:
    def spellings(number: int) -> list[str]:
        url = f"{HOME}/p{number}/"
        site.page(url, f"<p>{number}</p>")
        site.redirect(f"{url}index.html", url)
        return [f"{url}index.html"]

    first = [url for number in range(AGREE) for url in spellings(number)]
    later = [url for number in range(20, 40) for url in (spellings(number)[0], f"{HOME}/p{number}/")]
    site.page(f"{HOME}/", links(*first, chain(site, "wait", 5, *later, chain(site, "still", 5, f"{HOME}/end"))))
    site.page(f"{HOME}/end", "the end")
    outcomes = crawl(Learn, site.proxy, 1, SETTINGS)
    asked = site.urls()
    assert {"h0.example": "+index"} in items_of(outcomes)
    assert all(asked[f"{HOME}/p{number}/"] == 1 for number in [*range(AGREE), *range(20, 40)]), asked
