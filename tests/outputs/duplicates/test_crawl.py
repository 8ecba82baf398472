"""Duplicates in whole crawls: what is marked, what is not followed, whose callback is not called, what is counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import Response

from scrapy_ubi import PlainLinks
from tests.outputs.duplicates.planted import Plants
from tests.outputs.kept import collected
from tests.support.crawls import Outcome, crawl
from tests.support.site import Page, Site

HOME = "http://a.example/"


class Walk(Spider):
    """Follows all links, and says what it was told of each page. `plain`: by plain links."""

    name = "walk"
    plain = False

    async def start(self) -> Any:
        yield Request(HOME)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "of": response.meta.get("ubi_duplicate_of")}
        urls = [response.urljoin(href) for href in response.css("a::attr(href)").getall()]
        if self.plain:
            yield PlainLinks(urls)
        else:
            for url in urls:
                yield Request(url, meta=dict(response.meta))


def links_to(*paths: str) -> str:
    return "".join(f'<a href="{path}">x</a>' for path in paths)


def web(site: Site) -> None:
    """/exact and /near are copies of /first, and each leads to a page that nothing else leads to."""
    plants = Plants(7)
    body = plants.body(200)
    first = "".join(f"<p>{text}</p>" for text in body)
    near = "".join(f"<p>{text}</p>" for text in plants.changed(body, 1))

    def put(path: str, text: str) -> None:
        site.page(HOME + path, Page(text, headers={"Content-Type": "text/html"}))

    put("", links_to("/first", "/exact", "/near", "/other"))
    put("first", first + links_to("/only"))
    put("exact", first + links_to("/only"))
    put("near", near + links_to("/behind"))
    put("other", "".join(f"<p>{text}</p>" for text in plants.body(200)))
    put("only", "only")
    put("behind", "behind")


def run(tmp_path: Path, action: str, near: str = "near(3)", **arguments: Any) -> tuple[dict[str, str], Outcome]:
    """What the spider was told of each page."""
    with Site() as site:
        web(site)
        said = near and f"{near.removesuffix(')')}{', ' if '(' in near else '('}{action})"
        settings = {"UBI_DUPLICATES": said, "UBI_STORES": ["items", "graph"]}
        (outcome,) = crawl(Walk, site.proxy, settings=settings, place=tmp_path, **arguments)
    items = [json.loads(line) for line in collected(tmp_path / "a0")]
    return {item["url"].removeprefix(HOME): (item["of"] or "").removeprefix(HOME) for item in items}, outcome


def counted(outcome: Outcome) -> dict[str, Any]:
    stats = outcome.crawler.stats.get_stats()
    return {name.removeprefix("ubi/duplicates/"): n for name, n in stats.items() if name.startswith("ubi/duplicates/")}


ALL = {"", "first", "exact", "near", "other", "only", "behind"}


def test_a_duplicate_is_marked(tmp_path: Path) -> None:
    told, outcome = run(tmp_path, "mark")
    marked = {url: of for url, of in told.items() if of}
    assert set(told) == ALL and len(marked) == 2
    assert {*marked, *marked.values()} == {"first", "exact", "near"}
    numbers = counted(outcome)
    assert (numbers["exact"], numbers["near"]) == (1, 1) and "skipped" not in numbers
    lines = [line.split("\t") for line in collected(tmp_path / "a0", store="duplicates", ending="tsv")]
    assert {line[1].removeprefix(HOME): line[7].removeprefix(HOME) for line in lines if line[7] != "-"} == marked


@pytest.mark.parametrize("plain", [True, False])
def test_links_of_a_duplicate_are_not_followed(tmp_path: Path, plain: bool) -> None:
    told, outcome = run(tmp_path, "unfollow", plain=plain)
    left = {page for page, of in told.items() if of}
    assert left and counted(outcome)["unfollowed"] == len(left) == counted(outcome)["links"]
    assert ("behind" in told) == ("near" not in left)


def test_the_callback_of_a_duplicate_is_skipped(tmp_path: Path) -> None:
    told, outcome = run(tmp_path, "skip")
    assert counted(outcome)["skipped"] == 2 and len(told.keys() & {"first", "exact", "near"}) == 1
    assert outcome.crawler.stats.get_value("finish_reason") == "finished"


def test_exact_only(tmp_path: Path) -> None:
    told, outcome = run(tmp_path, "mark", "exact")
    assert {*filter(None, told.values())} <= {"first", "exact"} and counted(outcome) == {"exact": 1}


def test_off_by_default(tmp_path: Path) -> None:
    told, outcome = run(tmp_path, "mark", "")
    assert set(told) == ALL and not any(told.values()) and not counted(outcome)
