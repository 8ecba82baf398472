"""Crawls whose pages are visited again (UBI_RECRAWL): real spiders and a web that knows validators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import Response, TextResponse
from scrapy.linkextractors import LinkExtractor

from tests.support.crawls import crawl, items_of, total
from tests.support.site import Page, Site, Visit, links

HOSTS = [f"http://h{number}.example" for number in range(3)]
AGENTS = pytest.mark.parametrize("agents", [1, 3])
RECRAWL: dict[str, Any] = {"UBI_RECRAWL": "every(1s, rounds=2)"}


class Walk(Spider):
    """Follows every link, yields an item a call."""

    name = "walk"
    start_urls = (f"{HOSTS[0]}/",)

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        yield {"url": response.url, "visit": response.meta.get("ubi_visit"), "flags": [*response.flags]}
        for link in LinkExtractor().extract_links(response):
            yield Request(link.url)


def tagged(body: Callable[[int], str], etag: bool = True) -> Callable[[Visit], Page]:
    """A page whose body depends on the number of the visit, with an ETag, which is asked for, or with a date."""

    def answer(visit: Visit) -> Page:
        text = body(visit.number)
        name, asked, tag = "ETag", "If-None-Match", f'"{len(text)}-{hash(text) % 1000}"'
        if not etag:
            name, asked, tag = "Last-Modified", "If-Modified-Since", "Sat, 21 Nov 2026 08:00:00 GMT"
        headers = {name: tag}
        if visit.headers.get(asked) == tag or visit.headers.get(asked.lower()) == tag:
            return Page("", 304, headers)
        return Page(text, 200, headers)

    return answer


def _more(body: str, urls: list[str]) -> str:
    """A page with these links, too."""
    return body.replace("<body>", "<body>" + "".join(f'<a href="{url}">{url}</a>' for url in urls))


def web(site: Site, page: Callable[[str, str], Callable[[Visit], Page] | str]) -> set[str]:
    """Three hosts of two pages, linked in a ring."""
    urls = set()
    for number, host in enumerate(HOSTS):
        following = HOSTS[(number + 1) % len(HOSTS)]
        for url in (f"{host}/", f"{host}/a"):
            site.page(url, page(url, links(f"{host}/a", f"{following}/") + "x" * 3000))
            urls.add(url)
    return urls


@AGENTS
@pytest.mark.parametrize("etag", [True, False], ids=["ETag", "Last-Modified"])
def test_unchanged_pages_are_asked_for_and_cost_no_call(site: Site, agents: int, etag: bool) -> None:
    urls = web(site, lambda url, body: tagged(lambda number: body, etag))
    outcomes = crawl(Walk, site.proxy, agents, RECRAWL)
    assert [outcome.reason for outcome in outcomes] == ["finished"] * agents
    assert site.urls() == dict.fromkeys(urls, 3)
    assert Counter(item["url"] for item in items_of(outcomes)) == dict.fromkeys(urls, 1)
    assert total(outcomes, "ubi/recrawl/not_modified") == total(outcomes, "ubi/recrawl/unchanged") == 2 * len(urls)
    asked = [visit for visit in site.visits if visit.number > 1]
    assert all({"if-none-match", "if-modified-since"} & {name.lower() for name in visit.headers} for visit in asked)


@AGENTS
def test_without_validators_the_digest_says_that_a_page_is_unchanged(site: Site, agents: int) -> None:
    urls = web(site, lambda url, body: body)
    outcomes = crawl(Walk, site.proxy, agents, RECRAWL)
    assert site.urls() == dict.fromkeys(urls, 3)
    assert Counter(item["url"] for item in items_of(outcomes)) == dict.fromkeys(urls, 1)
    assert total(outcomes, "ubi/recrawl/unchanged") == 2 * len(urls)


@AGENTS
def test_changed_pages_are_called_again_and_their_new_links_followed(site: Site, agents: int) -> None:
    new = [f"{HOSTS[0]}/new2", f"{HOSTS[1]}/new3"]
    urls = web(site, lambda url, body: tagged(lambda number: _more(body, new[number - 2 :][:1] if number > 1 else [])))
    for url in new:
        site.page(url, tagged(lambda number: "new"))
    outcomes = crawl(Walk, site.proxy, agents, RECRAWL)
    assert site.urls() == dict.fromkeys([*urls, *new], 3)
    visits = Counter((item["url"], item["visit"]) for item in items_of(outcomes))
    assert visits == dict.fromkeys([*((url, g) for url in urls for g in (1, 2, 3)), *((url, 1) for url in new)], 1)


def test_with_always_the_callback_gets_every_page_whole(site: Site) -> None:
    urls = web(site, lambda url, body: tagged(lambda number: body))
    outcomes = crawl(Walk, site.proxy, 1, {**RECRAWL, "UBI_RECRAWL": "every(1s, rounds=2, call=always)"})
    flags = Counter((item["visit"], *item["flags"]) for item in items_of(outcomes))
    assert flags == {(1,): len(urls), (2, "unchanged"): len(urls), (3, "unchanged"): len(urls)}


def test_a_page_that_is_gone_is_not_visited_for_ever(site: Site) -> None:
    gone, broken = f"{HOSTS[0]}/a", f"{HOSTS[1]}/a"
    web(site, lambda url, body: body)
    site.page(gone, lambda visit: Page("there", 200) if visit.number == 1 else Page("", 404))
    site.page(broken, lambda visit: Page("", 500) if visit.number < 4 else Page("well", 200))
    settings = {**RECRAWL, "UBI_RECRAWL": "every(1s, rounds=5)", "RETRY_ENABLED": False}
    (outcome,) = crawl(Walk, site.proxy, 1, settings)
    assert site.urls()[gone] == 4
    assert site.urls()[broken] == 6
    assert [item["visit"] for item in outcome.items if item["url"] == broken] == [4]
    assert outcome.stats["ubi/failed/http/404"] == 3


def test_no_page_is_visited_before_its_time(site: Site) -> None:
    urls = web(site, lambda url, body: body)
    crawl(Walk, site.proxy, 1, {**RECRAWL, "UBI_RECRAWL": "every(2s, rounds=1)"})
    assert site.urls() == dict.fromkeys(urls, 2)
    for spans in site.spans.values():
        begins = sorted(begin for begin, _ in spans)
        assert begins[len(begins) // 2] - begins[len(begins) // 2 - 1] >= 0.9, spans


def test_a_request_of_a_retried_page_is_visited_again_as_it_was_found(site: Site) -> None:
    web(site, lambda url, body: body)
    site.page(f"{HOSTS[0]}/a", lambda visit: Page("", 503) if visit.number in (1, 3) else Page(f"{visit.number}", 200))
    (outcome,) = crawl(Walk, site.proxy, 1, RECRAWL)
    assert site.urls()[f"{HOSTS[0]}/a"] == 5
    assert [item["visit"] for item in outcome.items if item["url"].endswith("h0.example/a")] == [1, 2, 3]


def test_unchanged_pages_cost_few_of_their_bytes(site: Site) -> None:
    web(site, lambda url, body: tagged(lambda number: body + "y" * 40_000))
    once = crawl(Walk, site.proxy, 1)[0].stats["downloader/response_bytes"]
    site.visits.clear()
    again = crawl(Walk, site.proxy, 1, RECRAWL)[0].stats["downloader/response_bytes"]
    print(f"{(again - once) / 2 / once:.4f} of the bytes for each visit")
    assert again - once <= 2 * 0.02 * once
