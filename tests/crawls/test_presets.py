"""Each preset on a small crawl of its kind: real spiders and nodes in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Spider
from scrapy.http import Response

from scrapy_ubi.settings import UbiSettings
from tests.crawls.test_serve import Outside, serve
from tests.support.crawls import Outcome, crawl, items_of
from tests.support.site import Page, Site, links


class Kind(Spider):
    """Follows all links; notes what its scheduler has read."""

    name = "kind"
    start_urls = ("http://h0.example/",)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "size": len(response.body)}
        yield from response.follow_all(css="a::attr(href)")  # type: ignore[attr-defined]


def read(outcome: Outcome) -> UbiSettings:
    return UbiSettings.from_scrapy(outcome.crawler.settings, "kind")


def fetched(outcomes: list[Outcome]) -> set[str]:
    assert {outcome.reason for outcome in outcomes} == {"finished"}
    return {item["url"] for item in items_of(outcomes)}


def test_one_site_has_several_pages_under_way_and_waits_out_a_busy_host(site: Site) -> None:
    pages = [f"http://h0.example/{number}" for number in range(40)]
    site.page("http://h0.example/", links(*pages))
    for url in pages:
        site.page(url, "page")
    answers = iter([Page("busy", 503, {"Retry-After": "1"})])
    site.page(pages[3], lambda visit: next(answers, Page("page")))
    outcomes = crawl(Kind, site.proxy, settings={"UBI_PRESET": "one_site", "UBI_HOST_PAUSE": 0.1})
    assert fetched(outcomes) == {"http://h0.example/", *pages}
    own = read(outcomes[0])
    assert (str(own.host_concurrency), own.host_tries, own.host_pause) == ("auto(8)", 10, 0.1)


def test_a_broad_crawl_bounds_hosts_and_pages_and_leaves_retries_to_the_project(site: Site) -> None:
    homes = [f"http://h{number}.example/" for number in range(12)]
    site.page(homes[0], links(*homes, "http://h1.example/broken"))
    for url in homes[1:]:
        site.page(url, links(homes[0]))
    site.page(homes[5], "<html>" + "x" * 3_000_000)
    site.page("http://h1.example/broken", Page("broken", 500))
    settings = {"UBI_PRESET": "broad", "UBI_DELAY_FACTOR": 0, "UBI_HOST_PAUSE": 0.1}
    outcomes = crawl(Kind, site.proxy, settings=settings)
    assert fetched(outcomes) == set(homes)
    assert {item["url"]: item["size"] for item in items_of(outcomes)}[homes[5]] == 2_000_000
    assert site.urls()["http://h1.example/broken"] == 3  # RETRY_TIMES = 2 of this project wins
    assert outcomes[0].crawler.settings["DOWNLOAD_TIMEOUT"] == 30
    assert any(url.endswith("/robots.txt") for url in site.urls())


def test_an_archive_has_every_page_whole_in_warc_files(site: Site, tmp_path: Path) -> None:
    homes = [f"http://h{number}.example/" for number in range(4)]
    for url in homes:
        site.page(url, links(*homes) + "x" * 100_000)
    outcomes = crawl(Kind, site.proxy, settings={"UBI_PRESET": "archive", "UBI_DELAY_FACTOR": 0}, place=tmp_path)
    assert fetched(outcomes) == set(homes)
    assert all(item["size"] > 100_000 for item in items_of(outcomes))
    kept = {path.parent.name for path in (tmp_path / "a0").rglob("*") if path.is_file() and "out" in path.parts}
    assert {"items", "warc"} <= kept
    assert read(outcomes[0]).replication == 2


def test_a_service_waits_for_urls_and_ends_when_it_is_told(site: Site) -> None:
    site.page("http://h1.example/", "page")
    said: list[str] = []

    async def scene(outside: Outside) -> None:
        await outside.quiet()
        said.extend(await outside.told(outside.push("http://h1.example/")))
        await outside.quiet()

    outcomes = serve(site, scene, 2, UBI_PRESET="service")
    assert said == ["OK"]
    assert [item["url"] for item in items_of(outcomes)] == ["http://h1.example/"]
    assert all(read(outcome).error_burst == 50 for outcome in outcomes)


@pytest.mark.parametrize("agents", [1, 2])
def test_a_crawl_under_development_ends_after_a_thousand_pages(site: Site, agents: int) -> None:
    pages = [f"http://h{number % 3}.example/{number}" for number in range(30)]
    site.page("http://h0.example/", links(*pages))
    for url in pages:
        site.page(url, "page")
    outcomes = crawl(Kind, site.proxy, agents, {"UBI_PRESET": "development", "UBI_FAILURE_TIMEOUT": 8})
    assert fetched(outcomes) == {"http://h0.example/", *pages}
    own = read(outcomes[0])
    assert (own.crawl_limits.pages, own.start_wait, own.leave_timeout) == (1000, 0, 5)
