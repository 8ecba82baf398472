"""The graph of real crawls is that of the site, arc for arc, whoever has crawled what."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Spider
from scrapy.http import HtmlResponse, Response

from scrapy_ubi import PlainLinks
from scrapy_ubi.outputs.graph import files
from tests.outputs.graph.test_numbered import arcs_of, collected, lines
from tests.support.crawls import Walk, crawl
from tests.support.site import Page, Site, links

HOME = "http://a.example/"


class Plain(Walk):
    """Follows every link, as plain links."""

    name = "plain"

    def parse(self, response: Response) -> Iterator[Any]:
        if isinstance(response, HtmlResponse):
            yield PlainLinks([response.urljoin(href) for href in response.css("a::attr(href)").getall()])


def web(site: Site, hosts: int = 4, pages: int = 40) -> set[tuple[str, str]]:
    """A web that is drawn; its arcs."""
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    draws = random.Random(seed)
    urls = [HOME, *(f"http://h{draws.randrange(hosts)}.example/p{number}" for number in range(pages))]
    arcs = set()
    for number, url in enumerate(urls):
        targets = [draws.choice(urls) for _ in range(draws.randrange(6))] + urls[number + 1 : number + 3]
        targets.append(f"http://h1.example/refused{draws.randrange(9)}.zip")
        site.page(url, links(*targets, targets[0] + "#fragment", "mailto:a@example.com"))
        arcs |= {(url, target) for target in targets}
    site.page(HOME, links(*urls[1:3], "http://h2.example/moved"))
    arcs = {arc for arc in arcs if arc[0] != HOME} | {(HOME, one) for one in (*urls[1:3], "http://h2.example/moved")}
    site.redirect("http://h2.example/moved", urls[3])
    return arcs | {("http://h2.example/moved", urls[3])}


def crawled(spider: type[Spider], site: Site, place: Path, agents: int, **settings: Any) -> list[Path]:
    """The directories of agents that have crawled a site."""
    dirs = [place / f"a{number}" for number in range(agents)]
    place.mkdir(exist_ok=True)
    options = {"UBI_STORES": "graph", "UBI_FILTERS": "extensions(-zip)", **settings}
    crawl(spider, site.proxy, agents, options, place=place)
    return dirs


@pytest.mark.parametrize("spider", [Walk, Plain])
def test_the_graph_is_the_sites_own_with_one_agent_and_with_three(
    site: Site, tmp_path: Path, spider: type[Spider]
) -> None:
    arcs = web(site)
    one = collected(tmp_path / "one", *crawled(spider, site, tmp_path / "alone", 1))
    three = collected(tmp_path / "three", *crawled(spider, site, tmp_path / "together", 3))
    assert arcs_of(one) == arcs
    assert one == three
    assert any("refused" in url for url in lines(one[files.URLS]))


def test_one_spelling_after_the_other_is_one_node(site: Site, tmp_path: Path) -> None:
    site.page(HOME, links("http://h1.example/x?b=1&a=2", "http://h1.example/x?a=2&b=1", "http://h1.example/%7Ex"))
    found = collected(tmp_path / "out", *crawled(Plain, site, tmp_path / "in", 1, UBI_FILTERS=""))
    assert lines(found[files.URLS]) == [HOME, "http://h1.example/x?a=2&b=1", "http://h1.example/~x"]


def test_links_that_are_too_deep_and_off_site_are_links_of_plain_links(site: Site, tmp_path: Path) -> None:
    site.page(HOME, links("http://h1.example/a", "http://off.site/"))
    site.page("http://h1.example/a", links("http://h1.example/b"))

    class Narrow(Plain):
        allowed_domains = ("example",)

    dirs = crawled(Narrow, site, tmp_path / "in", 1, UBI_FILTERS="", DEPTH_LIMIT=1)
    assert arcs_of(collected(tmp_path / "out", *dirs)) == {
        (HOME, "http://h1.example/a"),
        (HOME, "http://off.site/"),
        ("http://h1.example/a", "http://h1.example/b"),
    }


def test_pages_that_fail_are_nodes_and_a_retry_is_no_link(site: Site, tmp_path: Path) -> None:
    site.page(HOME, links("http://h1.example/gone", "http://h1.example/late"))
    site.page("http://h1.example/late", lambda visit: Page("late", 503 if visit.number == 1 else 200))
    dirs = crawled(Plain, site, tmp_path / "in", 1, UBI_FILTERS="")
    found = collected(tmp_path / "out", *dirs, crawled_only=True)
    assert lines(found[files.URLS]) == [HOME, "http://h1.example/gone", "http://h1.example/late"]
    assert arcs_of(found) == {(HOME, "http://h1.example/gone"), (HOME, "http://h1.example/late")}
