"""Whole crawls in an order of one's own: UBI_SCORE changes which page of a host comes first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response

from scrapy_ubi import UbiSpider
from tests.support.crawls import crawl, total
from tests.support.site import Page, Site

ROOT, HOST = "http://root.example/", "http://h.example"
TOPIC, OTHER = [f"{HOST}/p{number}" for number in range(6)], [f"{HOST}/q{number}" for number in range(14)]
ONE_BY_ONE = {"CONCURRENT_REQUESTS": 1, "LOG_LEVEL": "INFO"}


def linked(urls: list[str]) -> str:
    return "".join(f'<a href="{url}">{"all about crawlers" if url in TOPIC else "else"}</a>' for url in urls)


@pytest.fixture
def site() -> Iterator[Site]:
    """A start page leads to the front of another host, which leads to its pages: those of the topic come last, and
    only the texts of links tell them."""
    with Site() as running:
        running.page(ROOT, Page(linked([f"{HOST}/"])), content_type="text/html")
        running.page(f"{HOST}/", Page(linked([*OTHER, *TOPIC])), content_type="text/html")
        for url in (*TOPIC, *OTHER):
            running.page(url, Page(linked([f"{HOST}/"])), content_type="text/html")
        yield running


class Plain(UbiSpider):
    name = "plain"
    start_urls = (ROOT,)

    def parse(self, response: Response) -> Iterator[Any]:
        assert response.request is not None
        yield {"url": response.url, "priority": response.request.priority}
        yield self.links(response, anchors=True, priority=3)


class Requests(Plain):
    def parse(self, response: Response) -> Iterator[Any]:
        assert response.request is not None
        yield {"url": response.url, "priority": response.request.priority}
        for link in self.link_extractor.extract_links(response):  # type: ignore[arg-type]
            yield Request(link.url, self.parse, priority=3, meta={"link_text": link.text})


def fetched(site: Site) -> list[str]:
    return [visit.url for visit in site.visits if visit.url in (*TOPIC, *OTHER)]


@pytest.mark.parametrize("spider", [Plain, Requests])
@pytest.mark.parametrize("agents", [1, 2])
def test_pages_of_the_topic_come_first_within_their_host(site: Site, spider: type[Plain], agents: int) -> None:
    outcomes = crawl(spider, site.proxy, agents, settings=ONE_BY_ONE | {"UBI_SCORE": ["keywords(crawler)"]})
    order = fetched(site)
    assert order[: len(TOPIC)] == TOPIC and order[len(TOPIC) :] == OTHER
    priorities = {item["url"]: item["priority"] for outcome in outcomes for item in outcome.items}
    assert {priorities[url] for url in TOPIC} == {13} and {priorities[url] for url in OTHER} == {3}


def test_without_scores_it_is_breadth_first(site: Site) -> None:
    crawl(Plain, site.proxy, settings=ONE_BY_ONE)
    assert fetched(site) == [*OTHER, *TOPIC]


def test_scores_of_a_file_and_of_scorers_add_up_and_hold_for_seeds(site: Site, tmp_path: Path) -> None:
    (tmp_path / "scores").write_text(f"{OTHER[5]}\t50\nno url\t1\n{ROOT}#top\t-4\n{TOPIC[0]}\t-20\n")
    asked = ONE_BY_ONE | {"UBI_SCORE": ["keywords(crawler)", ("file", str(tmp_path / "scores"))]}
    outcomes = crawl(Plain, site.proxy, settings=asked)
    assert fetched(site) == [OTHER[5], *TOPIC[1:], *OTHER[:5], *OTHER[6:], TOPIC[0]]
    assert {item["priority"] for item in outcomes[0].items if item["url"] == ROOT} == {-4}
    assert total(outcomes, "ubi/scores/read") == 3 and total(outcomes, "ubi/scores/refused/url") == 1


class Again(Requests):
    """Asks for each page once more, by a copy of its request."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield from super().parse(response)
        if not response.meta.get("again"):
            assert response.request is not None
            yield response.request.replace(dont_filter=True, meta={**response.meta, "again": True})


def fails(links: Any) -> list[float]:
    return [1 / 0 if url == OTHER[0] else 1 for url in links.urls]


def test_what_is_asked_for_anyway_is_not_scored_again_and_failures_are_counted(site: Site) -> None:
    score = ["keywords(crawler)", f"{__name__}.fails"]
    outcomes = crawl(Again, site.proxy, settings=ONE_BY_ONE | {"UBI_SCORE": score})
    priorities: dict[str, list[int]] = {}
    for item in outcomes[0].items:
        priorities.setdefault(item["url"], []).append(item["priority"])
    assert priorities[TOPIC[0]] == [14, 14] and priorities[OTHER[0]] == [3, 3] and priorities[OTHER[1]] == [4, 4]
    assert outcomes[0].stats["ubi/score/errors/fails/raised"] >= 1
