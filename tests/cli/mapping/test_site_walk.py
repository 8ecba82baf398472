"""The way through the lists of a site, over a web that is a dict."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.http import HtmlResponse, TextResponse

from scrapy_ubi.cli.mapping import site_walk
from scrapy_ubi.cli.mapping.site_walk import Fetched, SiteWalk, UbiNotMapped
from scrapy_ubi.cli.mapping.url_list import UrlList
from scrapy_ubi.urls.listings.usual_places import FEEDS, SITEMAPS

HOME = "http://site.example/"
SCOPE = "scope(hosts=site.example, www.site.example, stay=host, redirects=yes)"


def urlset(*urls: str, changed: str = "") -> str:
    when = f"<lastmod>{changed}</lastmod>" if changed else ""
    return f"<urlset>{''.join(f'<url><loc>{url}</loc>{when}</url>' for url in urls)}</urlset>"


def index(*urls: str, changed: str = "") -> str:
    when = f"<lastmod>{changed}</lastmod>" if changed else ""
    return f"<sitemapindex>{''.join(f'<sitemap><loc>{url}</loc>{when}</sitemap>' for url in urls)}</sitemapindex>"


class Web:
    """Pages by URL; what is not there is 404. A tuple redirects. `named`: the sitemaps of robots.txt."""

    def __init__(self, pages: dict[str, Any], named: list[str] | None = None) -> None:
        self.pages = pages
        self.named = named or []
        self.asked: list[str] = []

    async def fetch(self, url: str) -> Fetched:
        self.asked.append(url)
        page = self.pages.get(url)
        if isinstance(page, tuple):
            return await self.fetch(page[0])
        if page is None:
            return Fetched(url, "status 404")
        response: TextResponse = HtmlResponse(url, body=page.encode(), encoding="utf-8")
        return Fetched(url, "", response, page.encode())

    async def sitemaps_of(self, url: str) -> tuple[list[str], str]:
        return self.named, f"{HOME}robots.txt"


def walk(web: Web, links: bool = False, **options: Any) -> tuple[list[str], UrlList]:
    """The lines that a walk writes."""
    out = io.StringIO()
    urls = UrlList(out, SCOPE, **options)
    asyncio.run(SiteWalk(web, urls, links=links).run(HOME))
    return out.getvalue().splitlines(), urls


def test_only_lists_are_fetched() -> None:
    web = Web({HOME: "<p>", f"{HOME}a.xml": index("/b.xml"), f"{HOME}b.xml": urlset("/1", f"{HOME}2")}, ["/a.xml"])
    assert walk(web)[0] == [f"{HOME}1", f"{HOME}2"]
    assert web.asked == [HOME, f"{HOME}a.xml", f"{HOME}b.xml", *(f"{HOME}{place[1:]}" for place in FEEDS)]


def test_the_usual_places_are_tried_where_none_is_named() -> None:
    web = Web({HOME: "<p>", f"{HOME}sitemap_index.xml": index("/b.xml"), f"{HOME}b.xml": urlset("/1")})
    lines, urls = walk(web)
    assert lines == [f"{HOME}1"] and not urls.refused
    assert web.asked[1:4] == [f"{HOME}sitemap.xml", f"{HOME}sitemap_index.xml", f"{HOME}b.xml"]
    assert SITEMAPS[:2] == ("/sitemap.xml", "/sitemap_index.xml")


def test_a_page_in_the_place_of_a_sitemap_is_none() -> None:
    web = Web({HOME: "<p>", f"{HOME}sitemap.xml": "<html>Not found", f"{HOME}sitemap.txt": f"{HOME}1"})
    assert walk(web)[0] == [f"{HOME}1"]


def test_what_is_named_and_cannot_be_read_is_said() -> None:
    pages = {HOME: "<p>", f"{HOME}b.xml": "<html>", f"{HOME}c.xml": urlset("/1")[:-12]}
    _, urls = walk(Web(pages, ["/a.xml", "/b.xml", "/c.xml"]))
    assert urls.refused == {"status 404": 1, "neither a sitemap nor a feed": 1, "broken": 1}
    assert urls.first["status 404"] == f"{HOME}a.xml"


def test_indexes_in_each_other_end() -> None:
    pages = {HOME: "<p>", **{f"{HOME}{number}": index(f"/{number + 1}", f"/{number}", "/0") for number in range(9)}}
    web = Web(pages, ["/0"])
    _, urls = walk(web)
    assert urls.refused == {f"named by an index in {site_walk.MOST_NESTING} others": 3}
    assert len(web.asked) == len(set(web.asked)), "each once"


def test_there_may_be_so_many_sitemaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_walk, "MOST_SITEMAPS", 3)
    web = Web({HOME: "<p>", f"{HOME}i": index(*(f"/{number}" for number in range(5)))}, ["/i"])
    _, urls = walk(web)
    assert urls.refused["more than 3 sitemaps"] == 3 and urls.refused["status 404"] == 2


def test_feeds_and_links_of_the_home_page() -> None:
    rss = "<rss><item><link>/post</link><pubDate>Sat, 28 Nov 2026 10:00:00 GMT</pubDate></item></rss>"
    home = "<link rel=alternate type=application/rss+xml href=/rss><a href=/about></a><a href=//o.example/></a>"
    lines, urls = walk(Web({HOME: home, f"{HOME}rss": rss}), links=True, as_json=True)
    assert [json.loads(line) for line in lines] == [
        {"url": f"{HOME}post", "lastmod": "2026-11-28T10:00:00+00:00", "kind": "feed", "from": f"{HOME}rss"},
        {"url": f"{HOME}about", "lastmod": None, "kind": "link", "from": HOME},
    ]
    assert urls.left_out == {"of other hosts (--hosts)": 1}


def test_a_site_that_redirects_is_the_site_where_it_leads_to() -> None:
    there = "http://shop.example/"
    web = Web({HOME: (there,), there: "<p>", f"{there}s": urlset(f"{there}1", f"{HOME}2")}, [f"{there}s"])
    assert walk(web)[0] == [f"{there}1", f"{HOME}2"]


def test_since_leaves_out_what_is_older_and_sitemaps_that_are() -> None:
    since = 1795824000.0  # 2026-11-28
    pages = {
        HOME: "<p>",
        f"{HOME}i": index("/old", changed="2026-11-27"),
        f"{HOME}new": urlset("/1", changed="2026-11-28"),
        f"{HOME}mixed": urlset("/2", changed="2026-11-27T23:59:59Z"),
        f"{HOME}undated": urlset("/3"),
    }
    lines, urls = walk(Web(pages, ["/i", "/new", "/mixed", "/undated"]), since=since)
    assert lines == [f"{HOME}1\t2026-11-28", f"{HOME}3"] and urls.undated == 1
    assert urls.left_out == {"in sitemaps not changed since then": 1, "not changed since then": 1}


def test_it_ends_after_so_many_urls() -> None:
    out = io.StringIO()
    urls = UrlList(out, SCOPE, most=2)
    web = Web({HOME: "<p>", f"{HOME}s": urlset("/1", "/1", "/2", "/3", "/4")}, ["/s", "/t"])
    site = SiteWalk(web, urls)
    asyncio.run(site.run(HOME))
    assert site.is_full and out.getvalue().count("\n") == 2 and f"{HOME}t" not in web.asked


def test_a_site_that_cannot_be_reached_is_an_error() -> None:
    class Away(Web):
        async def fetch(self, url: str) -> Fetched:
            return Fetched(url, "the host is unknown")

    with pytest.raises(UbiNotMapped, match="cannot be reached"):
        walk(Away({}))


@given(st.lists(st.text(max_size=30) | st.sampled_from(["http://site.example/\x1b[2J", "/a b", "//[", "/é", "?"])))
def test_whatever_is_listed_a_line_is_one_url_in_ascii(urls: list[str]) -> None:
    out = io.StringIO()
    found = UrlList(out, SCOPE)
    for url in urls:
        found.add(site_walk.Listed(url, "\x1b[31m"), "sitemap", HOME)
    lines = out.getvalue().split("\n")[:-1]
    assert len(lines) == found.listed == len(set(lines))
    assert all(line.isascii() and line.isprintable() and " " not in line for line in lines)
    assert found.listed + found.again + sum(found.left_out.values()) == len(urls)
