"""Sitemaps: what is taken of them, and whole crawls that follow them."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request, Spider
from scrapy.exceptions import CloseSpider
from scrapy.http import Response

from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.robots import sitemaps
from scrapy_ubi.adapter.robots.sitemaps import MARK, Mark
from scrapy_ubi.settings.values import SitemapUse
from scrapy_ubi.urls.listings.usual_places import SITEMAPS
from tests.support.crawls import crawl, items_of, total
from tests.support.site import Page, Site
from tests.support.turns import turns_of_others

HOST, OTHER = "http://h0.example", "http://h1.example"
SETTINGS: dict[str, Any] = {"ROBOTSTXT_OBEY": True, "UBI_SITEMAPS": 100}


def urlset(*urls: str) -> str:
    entries = "".join(f"<url><loc> {url} </loc><lastmod>2020</lastmod></url>" for url in urls)
    return f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'


def index(*urls: str) -> str:
    return f"<sitemapindex>{''.join(f'<sitemap><loc>{url}</loc></sitemap>' for url in urls)}</sitemapindex>"


def taken(body: str | bytes, most: int = 100, nesting: int = 1) -> list[tuple[str, Any]]:
    return [(request.url, request.meta.get(MARK)) for request in reading(body, most, nesting).requests]


def reading(body: str | bytes, most: int = 100, nesting: int = 1, since: float = 0.0) -> sitemaps.Reading:
    data = body.encode() if isinstance(body, str) else body
    return sitemaps.read(Response(f"{HOST}/s/map", body=data), Mark(most, nesting), since)


@pytest.mark.parametrize("form", ["xml", "gz", "text", "bom", "utf-16-le", "utf-16-be", "cut"])
def test_urls_are_taken_of_any_form(form: str) -> None:
    urls = [f"{HOST}/{number}" for number in range(3)]
    text = urlset(*urls)
    body = {
        "xml": text.encode(),
        "gz": gzip.compress(text.encode()),
        "text": "\r\n".join(["# no URL", *urls]).encode(),
        "bom": b"\xef\xbb\xbf\n" + text.encode(),
        "utf-16-le": b"\xff\xfe" + text.encode("utf-16-le"),
        "utf-16-be": b"\xfe\xff" + text.encode("utf-16-be"),
        "cut": text.encode()[: text.rindex("</url>") + 6],
    }[form]
    assert taken(body) == [(url, None) for url in urls]


@pytest.mark.parametrize("form", ["urlset", "index", "text"])
def test_only_so_many_entries_are_looked_at(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """Else one sitemap that says a URL a million times would hold up the loop for half a minute."""
    monkeypatch.setattr(sitemaps, "ENTRIES_ANYWAY", 1)
    write = {"urlset": urlset, "index": index, "text": lambda *urls: "\n".join(urls)}[form]
    again = [f"{HOST}/0"] * 4
    assert [url for url, _ in taken(write(*again, f"{HOST}/1", f"{HOST}/2"), 2)] == [f"{HOST}/0", f"{HOST}/1"]
    assert [url for url, _ in taken(write(*again, *again, f"{HOST}/1"), 2)] == [f"{HOST}/0"]
    assert not taken(write(*[""] * 8, f"{HOST}/1"), 2) or form == "text", "nor more that say none"


@pytest.mark.parametrize("most", ["MOST_BYTES", "BYTES_ANYWAY"])
@pytest.mark.parametrize("form", ["xml", "text", "gz"])
def test_only_so_many_bytes_are_read(monkeypatch: pytest.MonkeyPatch, form: str, most: str) -> None:
    urls = [f"{HOST}/{number:03}" for number in range(100)]
    text = "\n".join(urls) if form == "text" else urlset(*urls)
    half = text.index(urls[50])
    monkeypatch.setattr(sitemaps, most, half)
    monkeypatch.setattr(sitemaps, "BYTES_A_URL", 0)
    body = gzip.compress(text.encode()) if form == "gz" else text.encode()
    assert [url for url, _ in taken(body)] == urls[:50]


def test_a_bound_is_kept_and_shared_out_in_an_index() -> None:
    urls = [f"{HOST}/{number}" for number in range(9)]
    assert [url for url, _ in taken(urlset(*urls), 4)] == urls[:4]
    assert reading(urlset(*urls), 4).left_out == {"urls": 1}
    assert taken(index(*urls[:3]), 8) == [(urls[0], [3, 0, 0]), (urls[1], [3, 0, 0]), (urls[2], [2, 0, 0])]
    assert taken(index(*urls), 2) == [(urls[0], [1, 0, 0]), (urls[1], [1, 0, 0])]


def test_indexes_in_each_other_end_and_that_is_counted() -> None:
    assert taken(index(f"{HOST}/a"), nesting=2) == [(f"{HOST}/a", [100, 1, 0])]
    assert reading(index(f"{HOST}/a"), nesting=0) == ([], True, {"nesting": 1})


def test_what_was_not_changed_since_is_left_out_and_what_has_no_date_is_taken() -> None:
    since = 1795824000.0  # 2026-11-28
    for old, new in (("2026-11-27", "2026-11-28"), ("2026-11-27T23:59:59Z", "2026-11-28T00:00:00Z")):
        body = urlset(f"{HOST}/1", f"{HOST}/2", f"{HOST}/3")
        for when in (old, new, ""):
            body = body.replace(">2020<", f">{when}<", 1)
        found = reading(body, since=since)
        assert [request.url for request in found.requests] == [f"{HOST}/2", f"{HOST}/3"]
        assert found.left_out == {"older": 1}


def test_urls_are_taken_once_made_absolute_and_only_such_of_the_web() -> None:
    body = urlset("a", f"{HOST}/s/a", "/b", "ftp://x/", "javascript:x", "http://[", "")
    assert [url for url, _ in taken(body)] == [f"{HOST}/s/a", f"{HOST}/b"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<",
        b"<html>",
        b"<?xml?>",
        b"<urlset>",
        b"\x1f\x8b\x08",
        b"<urlset><url><loc>",
        b"<!DOCTYPE x [<!ENTITY a 'b'>",
        "é",
    ],
)
def test_what_is_no_sitemap_leads_nowhere(body: str | bytes) -> None:
    assert taken(body) == []


@given(
    st.binary(max_size=200)
    | st.text(alphabet="<>/urlsetoc &;'x", max_size=200).map(lambda text: b"<urlset>" + text.encode())
)
def test_whatever_the_bytes_there_is_no_exception(body: bytes) -> None:
    taken(body)


def test_of_a_bomb_the_beginning_is_unpacked() -> None:
    body = urlset(f"{HOST}/1").replace("</urlset>", " " * 20_000_000)
    assert taken(gzip.compress(body.encode(), 1), 1) == [(f"{HOST}/1", None)]


@pytest.mark.parametrize(
    "value",
    [None, 3, [], [1], [5, 1], [0, 1, 0], [-1, 1, 0], [True, 1, 0], ["1", 1, 0], [10**10, 0, 0], [5, 4, 0], [5, 1, 99]],
    ids=repr,
)
def test_a_mark_that_does_not_hold_is_none(value: Any) -> None:
    assert Mark.from_request(Request(HOST, meta={MARK: value})) is None
    assert Mark.from_request(Request(HOST, meta={MARK: [5, 1, 0]})) == (5, 1, 0)


# -- whole crawls


class Pages(Spider):
    """What it is given, with depth."""

    name = "pages"
    start_urls = (f"{HOST}/",)

    def parse(self, response: Response) -> Iterator[Any]:
        yield f"{response.url} {response.meta.get('depth', 0)}"


def build(site: Site) -> None:
    """Two sitemaps, one of them an index of a redirect to a compressed one; pages of two hosts, one forbidden."""
    site.page(f"{HOST}/", "home")
    names = f"Sitemap: {HOST}/map.xml\nsitemap: /index.xml\nSitemap: {HOST}/gone.xml\n"
    site.page(f"{HOST}/robots.txt", f"{names}User-agent: *\nDisallow: /no\n")
    site.page(f"{HOST}/map.xml", urlset(f"{HOST}/1", f"{HOST}/no", f"{OTHER}/2", "http://filtered.example/"))
    site.page(f"{HOST}/index.xml", index(f"{OTHER}/moved"))
    site.redirect(f"{OTHER}/moved", f"{OTHER}/map.xml.gz")
    site.page(f"{OTHER}/map.xml.gz", Page(gzip.compress(urlset(f"{OTHER}/3").encode())))
    for url in (f"{HOST}/1", f"{OTHER}/2", f"{OTHER}/3"):
        site.page(url, "page")


@pytest.mark.parametrize("agents", [1, 3])
def test_sitemaps_are_followed_to_the_end_and_the_spider_sees_pages_only(site: Site, agents: int) -> None:
    build(site)
    filters = ["scope(hosts=h0.example, h1.example)"]
    outcomes = crawl(Pages, site.proxy, agents, settings={**SETTINGS, "UBI_FILTERS": filters})
    assert items_of(outcomes) == [f"{url} 0" for url in (f"{HOST}/", f"{HOST}/1", f"{OTHER}/2", f"{OTHER}/3")]
    assert set(site.urls().values()) == {1}
    stats = ("named", "read", "urls")
    assert [total(outcomes, f"ubi/sitemaps/{stat}") for stat in stats] == [3, 3, 6]
    assert total(outcomes, "ubi/failed/http/404") == 1 and total(outcomes, "robotstxt/forbidden") == 1
    assert total(outcomes, "ubi/filtered/scope") == 1


class Stops(Pages):
    """Closes after its first page, unless it is to go on."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield from super().parse(response)
        if not self.settings["TEST_GO_ON"]:
            raise CloseSpider("enough")


def test_sitemaps_that_wait_survive_a_restart(site: Site, tmp_path: Path) -> None:
    site.page(f"{HOST}/", "home")
    site.page(f"{HOST}/robots.txt", "Sitemap: /map.xml\nUser-agent: *\nCrawl-delay: 0.2\n")
    site.page(f"{HOST}/map.xml", urlset(f"{HOST}/1"))
    site.page(f"{HOST}/1", "page")
    settings = {**SETTINGS, "UBI_DIR": str(tmp_path)}
    first = crawl(Stops, site.proxy, settings=settings)
    second = crawl(Stops, site.proxy, settings={**settings, "TEST_GO_ON": True})
    assert (first[0].reason, second[0].reason) == ("enough", "finished")
    assert items_of([*first, *second]) == [f"{HOST}/ 0", f"{HOST}/1 0"]
    assert set(site.urls().values()) == {1}


def test_without_the_setting_none_is_fetched(site: Site) -> None:
    build(site)
    outcome = crawl(Pages, site.proxy, settings={**SETTINGS, "UBI_SITEMAPS": 0})[0]
    assert outcome.items == [f"{HOST}/ 0"]
    assert set(site.urls()) == {f"{HOST}/", f"{HOST}/robots.txt"}


def test_of_all_sitemaps_together_so_many_urls_are_taken(site: Site) -> None:
    site.page(f"{HOST}/robots.txt", f"Sitemap: {HOST}/a.xml\nSitemap: {HOST}/b.xml\n")
    for name in "ab":
        site.page(f"{HOST}/{name}.xml", urlset(*(f"{HOST}/{name}{number}" for number in range(9))))
    crawl(Pages, site.proxy, settings={**SETTINGS, "UBI_SITEMAPS": 5})
    pages = set(site.urls()) - {f"{HOST}/", f"{HOST}/robots.txt", f"{HOST}/a.xml", f"{HOST}/b.xml"}
    assert pages == {f"{HOST}/{name}" for name in ("a0", "a1", "a2", "b0", "b1")}


class Beside(Pages):
    """Asks for a file of HOST before the queue has any page of it."""

    start_urls = (f"{OTHER}/",)

    async def parse(self, response: Response) -> Any:
        yield response.url
        if response.url == f"{OTHER}/":
            await self.crawler.engine.download_async(Request(f"{HOST}/file"))
            yield Request(f"{HOST}/")


def test_a_sitemap_is_followed_from_the_first_page_where_a_file_had_the_robots_txt_fetched(site: Site) -> None:
    site.page(f"{HOST}/robots.txt", f"Sitemap: {HOST}/map.xml\n")
    site.page(f"{HOST}/map.xml", urlset(f"{HOST}/a"))
    for url in (f"{HOST}/", f"{HOST}/a", f"{HOST}/file", f"{OTHER}/"):
        site.page(url, "fine")
    outcome = crawl(Beside, site.proxy, settings=SETTINGS)[0]
    assert sorted(outcome.items) == [f"{HOST}/", f"{HOST}/a", f"{OTHER}/"]
    assert outcome.stats["ubi/sitemaps/named"] == 1


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("2026-11-28T01:02:03Z", 1795827723.0),
        ("2026-11-28T02:02:03+01:00", 1795827723.0),
        ("2026-11-28", 1795910399.0),  # the end of that day
        ("2026-11", 0.0),
        ("0001-01-01", 0.0),
        ("yesterday", 0.0),
        ("", 0.0),
    ],
)
def test_when_a_page_was_changed_is_read(text: str, when: float) -> None:
    body = urlset(f"{HOST}/1").replace(">2020<", f">{text}<")
    (request,) = reading(body).requests
    assert request.meta.get(sitemaps.LASTMOD, 0.0) == when


# -- where robots.txt names none, is not obeyed; and in place of links


PLACES = [f"{HOST}{place}" for place in SITEMAPS]


class Links(Pages):
    """Follows a link of each page."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield from super().parse(response)
        yield Request(f"{response.url}x")


@pytest.mark.parametrize("robots", ["User-agent: *\nDisallow: /no\n", None])
@pytest.mark.parametrize("obey", [True, False])
@pytest.mark.parametrize("agents", [1, 2])
def test_the_usual_places_are_tried_until_one_is_a_sitemap(
    site: Site, robots: str | None, obey: bool, agents: int
) -> None:
    if robots is not None:
        site.page(f"{HOST}/robots.txt", robots)
    site.page(f"{HOST}/", "home")
    site.page(PLACES[0], "<html>Not found")
    site.page(PLACES[2], urlset(f"{HOST}/1"))
    site.page(f"{HOST}/1", "page")
    settings = {"ROBOTSTXT_OBEY": obey, "UBI_SITEMAPS": "first"}
    outcomes = crawl(Pages, site.proxy, agents, settings=settings)
    assert items_of(outcomes) == [f"{HOST}/ 0", f"{HOST}/1 0"]
    assert set(site.urls()) == {f"{HOST}/", f"{HOST}/robots.txt", f"{HOST}/1", *PLACES[:3]}
    assert set(site.urls().values()) == {1}
    assert total(outcomes, "ubi/sitemaps/tried") == 3 and total(outcomes, "ubi/sitemaps/read") == 1
    assert not any(stat.startswith("ubi/failed") for outcome in outcomes for stat in outcome.stats)


def test_one_that_robots_txt_forbids_does_not_end_the_search(site: Site) -> None:
    site.page(f"{HOST}/robots.txt", "User-agent: *\nDisallow: /sitemap.xml\n")
    site.page(f"{HOST}/", "home")
    site.page(PLACES[1], urlset(f"{HOST}/1"))
    site.page(f"{HOST}/1", "page")
    outcome = crawl(Pages, site.proxy, settings={"ROBOTSTXT_OBEY": True, "UBI_SITEMAPS": "first"})[0]
    assert sorted(outcome.items) == [f"{HOST}/ 0", f"{HOST}/1 0"]
    assert PLACES[0] not in site.urls() and not any(stat.startswith("ubi/failed") for stat in outcome.stats)


@pytest.mark.parametrize("obey", [True, False])
def test_a_robots_txt_that_names_some_ends_the_search(site: Site, obey: bool) -> None:
    site.page(f"{HOST}/robots.txt", f"Sitemap: {HOST}/map.xml\n")
    site.page(f"{HOST}/", "home")
    site.page(f"{HOST}/map.xml", urlset(f"{HOST}/1"))
    site.page(f"{HOST}/1", "page")
    crawl(Pages, site.proxy, settings={"ROBOTSTXT_OBEY": obey, "UBI_SITEMAPS": "first"})
    assert set(site.urls()) == {f"{HOST}/", f"{HOST}/robots.txt", f"{HOST}/map.xml", f"{HOST}/1"}


def test_first_means_before_links(site: Site) -> None:
    site.page(f"{HOST}/robots.txt", "Sitemap: /map.xml\n")
    site.page(f"{HOST}/map.xml", urlset(*(f"{HOST}/{number}" for number in range(3))))
    for url in ("/", "/x", "/0", "/1", "/2"):
        site.page(f"{HOST}{url}", "page")
    one_page_at_a_time = {"CONCURRENT_REQUESTS": 1, "SCRAPER_SLOT_MAX_ACTIVE_SIZE": 1}  # read before the next is loaded
    settings = {**SETTINGS, **one_page_at_a_time, "UBI_SITEMAPS": "first", "RETRY_ENABLED": False, "DEPTH_LIMIT": 1}
    outcome = crawl(Links, site.proxy, settings=settings)[0]
    assert [item.split()[0].removeprefix(HOST) for item in outcome.items] == ["/", "/0", "/1", "/2", "/x"]


def test_only_leaves_out_what_pages_link_to(site: Site) -> None:
    site.page(f"{HOST}/robots.txt", "Sitemap: /map.xml\n")
    site.page(f"{HOST}/map.xml", urlset(f"{HOST}/1"))
    site.page(f"{HOST}/", "home")
    site.page(f"{HOST}/1", "page")
    outcome = crawl(Links, site.proxy, settings={**SETTINGS, "UBI_SITEMAPS": "only"})[0]
    assert sorted(outcome.items) == [f"{HOST}/ 0", f"{HOST}/1 0"]
    assert outcome.stats["ubi/sitemaps/links_left_out"] == 2 and f"{HOST}/x" not in site.urls()


def test_filters_judge_the_pages_and_not_the_sitemap_of_the_host_itself(site: Site) -> None:
    site.page(f"{HOST}/robots.txt", f"Sitemap: {HOST}/map.xml\nSitemap: {OTHER}/map.xml\n")
    site.page(f"{HOST}/map.xml", urlset(f"{HOST}/docs/1", f"{HOST}/2"))
    site.page(f"{HOST}/", "home")
    site.page(f"{HOST}/docs/1", "page")
    settings = {**SETTINGS, "UBI_SITEMAPS": "first", "UBI_FILTERS": ["scope(allow=/docs/)"]}
    outcome = crawl(Pages, site.proxy, settings=settings)[0]
    assert sorted(outcome.items) == [f"{HOST}/ 0", f"{HOST}/docs/1 0"]
    assert f"{OTHER}/map.xml" not in site.urls() and outcome.stats["ubi/filtered/scope"] == 2


@pytest.mark.parametrize("lean", [True, False])
def test_all_of_a_sitemap_is_taken_whichever_way_pages_go(site: Site, lean: bool) -> None:
    urls = [f"{HOST}/{number}" for number in range(200)]
    site.page(f"{HOST}/robots.txt", "Sitemap: /map.xml\n")
    site.page(f"{HOST}/map.xml", urlset(*urls))
    for url in (f"{HOST}/", *urls):
        site.page(url, "page")
    settings = {**SETTINGS, "UBI_SITEMAPS": "first", "UBI_LEAN": lean, "DOWNLOAD_DELAY": 0}
    outcome = crawl(Pages, site.proxy, settings=settings)[0]
    assert sorted(outcome.items) == sorted(f"{url} 0" for url in (f"{HOST}/", *urls))
    assert outcome.reason == "finished"


def taking(found: list[Request], body: str, fails: bool = False, waits: int = 0) -> tuple[Flight, Any]:
    """A flight of a sitemap with this body, and what is to be awaited; it has to wait so many times."""

    def take(request: Request, parent: Request) -> None:
        if fails:
            raise ValueError("of a bug")
        found.append(request)

    left = [waits]

    def is_full() -> bool:
        left[0] -= 1
        return left[0] >= 0

    crawler: Any = SimpleNamespace(stats=SimpleNamespace(inc_value=lambda stat, number: None))
    unit = sitemaps.Sitemaps(crawler, SitemapUse("first"), take, waits=is_full)
    flight = Flight(Request(f"{HOST}/map.xml", meta={MARK: [10**9, 3, 0]}), None)
    return flight, unit.passes_over(flight, Response(f"{HOST}/map.xml", body=body.encode()))


def test_while_a_large_sitemap_is_taken_others_have_their_turns() -> None:
    """One of 50,000 URLs would hold up the loop for seconds, which is about as long as a lease lasts."""
    found: list[Request] = []
    _, work = taking(found, urlset(*(f"{HOST}/{number}" for number in range(5000))), waits=1)
    assert asyncio.run(turns_of_others(work)) > 5000 / 64 and len(found) == 5000


def test_a_sitemap_whose_urls_could_not_be_taken_is_not_done() -> None:
    flight, work = taking([], urlset(f"{HOST}/1"), fails=True)
    with pytest.raises(ValueError, match="of a bug"):
        asyncio.run(turns_of_others(work))
    assert flight.failed == "callback/ValueError"
