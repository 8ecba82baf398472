"""Truncation: whole crawls of pages that are too large, and what must not be cut."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import HtmlResponse, Response

from scrapy_ubi.adapter.requests.decompress import brotli, zstd
from tests.support.crawls import Outcome, agent_of, crawl
from tests.support.site import Page, Site

HOST = "http://h.example"
MOST = 10_000
HTML = b"<html><body>" + b"<p>words and words</p>" * 20_000 + b"</body></html>"
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "br": lambda data: brotli.compress(data, quality=2),
    "zstd": zstd.compress,
}


class Look(Spider):
    """Reports what its callback gets of its start URLs."""

    name = "look"
    meta: dict[str, Any] | None = None

    async def start(self) -> Any:
        for url in self.start_urls:
            yield Request(url, meta=dict(self.meta or {}), errback=self.failed)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {
            "url": response.url,
            "body": response.body,
            "cut": "truncated" in response.flags,
            "announced": response.meta.get("ubi_truncated", "whole"),
            "html": isinstance(response, HtmlResponse),
            "meta": response.meta,
        }

    def failed(self, failure: Any) -> Iterator[Any]:
        yield {"url": failure.request.url, "error": repr(failure.value)}


def look(site: Site, *paths: str, **settings: Any) -> tuple[dict[str, Any], Outcome]:
    """What the callback got of these paths, one item if it is one path."""
    meta = settings.pop("meta", None)
    urls = [HOST + path for path in paths]
    (outcome,) = crawl(Look, site.proxy, settings={"UBI_MAX_BODY": MOST, **settings}, start_urls=urls, meta=meta)
    got = {item["url"].removeprefix(HOST): item for item in outcome.items}
    assert set(got) == set(paths)
    return (got[paths[0]] if len(paths) == 1 else got), outcome


def test_of_a_larger_page_the_beginning_is_kept_and_marked(site: Site) -> None:
    site.page(f"{HOST}/", Page(HTML))
    item, outcome = look(site, "/")
    assert item["body"] == HTML[:MOST]
    assert item["cut"] and item["html"]
    assert item["announced"] == len(HTML)
    assert outcome.stats["ubi/body/truncated"] == 1
    assert "download_maxsize" not in item["meta"]


@pytest.mark.parametrize("length", [0, 1, MOST - 1, MOST])
def test_a_page_that_fits_is_as_it_was(site: Site, length: int) -> None:
    site.page(f"{HOST}/", Page(HTML[:length]))
    item, outcome = look(site, "/")
    assert (item["body"], item["cut"], item["announced"]) == (HTML[:length], False, "whole")
    assert "ubi/body/truncated" not in outcome.stats


def test_one_byte_more_is_cut(site: Site) -> None:
    site.page(f"{HOST}/", Page(HTML[: MOST + 1]))
    item, _ = look(site, "/")
    assert (item["body"], item["cut"], item["announced"]) == (HTML[:MOST], True, MOST + 1)


@pytest.mark.parametrize("encoding", PACK)
def test_compressed_pages_are_cut_at_their_unpacked_size(site: Site, encoding: str) -> None:
    packed = PACK[encoding](HTML)
    site.page(f"{HOST}/long", Page(packed, headers={"Content-Encoding": encoding}))
    site.page(f"{HOST}/short", Page(PACK[encoding](HTML[:5000]), headers={"Content-Encoding": encoding}))
    got, outcome = look(site, "/long", "/short")
    assert (got["/long"]["body"], got["/long"]["cut"], got["/long"]["html"]) == (HTML[:MOST], True, True)
    assert got["/long"]["announced"] == len(packed)
    assert (got["/short"]["body"], got["/short"]["cut"]) == (HTML[:5000], False)
    assert outcome.stats["httpcompression/response_count"] == 2
    assert outcome.stats["httpcompression/response_bytes"] == MOST + 5000


@pytest.mark.parametrize("announced", [True, False])
def test_a_page_of_a_gigabyte_is_not_read_to_its_end(site: Site, announced: bool) -> None:
    sent = 0

    def chunks() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(40_000):
            sent += 50_000
            yield b"x" * 50_000

    headers = {"Content-Length": "2000000000"} if announced else {}  # more than DOWNLOAD_MAXSIZE is by default
    site.page(f"{HOST}/", lambda visit: Page("<html>", headers=headers, chunks=chunks()))
    item, _ = look(site, "/")
    if "error" in item:  # Scrapy's handlers that work without a reactor ask DOWNLOAD_MAXSIZE before anybody else
        assert announced and "DownloadCancelledError" in item["error"]
    else:
        assert item["body"] == b"<html>" + b"x" * (MOST - 6)
        assert item["announced"] == (2_000_000_000 if announced else None)
    assert sent < 50_000_000  # what fits into the buffers of the sockets


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("length", ["3", "2000000000"])
def test_what_a_page_redirects_to_keeps_scrapys_limit(site: Site, length: str, fast: bool) -> None:
    """A redirect gives its meta to its target, which need not be a page."""
    sent = 0

    def chunks() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += 50_000
            yield b"x" * 50_000

    moved = {"Location": f"{HOST}/file", "Content-Length": length}
    file = {"Content-Type": "application/octet-stream", "Content-Length": "2000000000"}
    site.page(f"{HOST}/page", lambda visit: Page("<p>", status=302, headers=moved, chunks=iter([])))
    site.page(f"{HOST}/file", lambda visit: Page("", headers=file, chunks=chunks()))
    urls = [f"{HOST}/page"]
    (outcome,) = crawl(Look, site.proxy, settings={"UBI_FAST": fast, "RETRY_ENABLED": False}, start_urls=urls)
    (item,) = outcome.items
    assert "DownloadCancelledError" in item["error"]
    assert sent < 50_000_000


def test_a_bomb_is_cut(site: Site) -> None:
    bomb = gzip.compress(b"<html>" + bytes(50_000_000))
    site.page(f"{HOST}/", Page(bomb, headers={"Content-Encoding": "gzip, gzip"}))
    site.page(f"{HOST}/two", Page(gzip.compress(bomb), headers={"Content-Encoding": "gzip, gzip"}))
    site.page(f"{HOST}/one", Page(bomb, headers={"Content-Encoding": "gzip"}))
    got, _ = look(site, "/", "/one", "/two")
    assert "error" in got["/"]  # it says that it is packed twice, and is not: Scrapy's own words
    for path in ("/one", "/two"):
        assert got[path]["body"] == b"<html>" + bytes(MOST - 6)


def test_what_is_no_html_comes_whole_unless_all_is_cut(site: Site) -> None:
    data = json.dumps(["words"] * 5000).encode()
    site.page(f"{HOST}/json", Page(data, headers={"Content-Type": "application/json"}))
    packed = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    site.page(f"{HOST}/packed", Page(gzip.compress(data), headers=packed))
    site.page(f"{HOST}/picture", Page(data, headers={"Content-Type": "image/png"}))
    paths = ("/json", "/packed", "/picture")
    got, outcome = look(site, *paths)
    assert {path: (got[path]["body"], got[path]["cut"]) for path in paths} == dict.fromkeys(paths, (data, False))
    assert "ubi/body/truncated" not in outcome.stats
    got, outcome = look(site, *paths, UBI_MAX_BODY=f"all({MOST})")
    assert {path: (got[path]["body"], got[path]["cut"]) for path in paths} == dict.fromkeys(paths, (data[:MOST], True))
    assert outcome.stats["ubi/body/truncated"] == 3


def test_large_pages_that_are_kept_whole_are_named_in_the_report(site: Site) -> None:
    site.page(f"{HOST}/large", Page(b"0" * 50_000, headers={"Content-Type": "application/zip"}))
    site.page(f"{HOST}/cut", Page(HTML))
    noted: dict[str, int] = {}

    class Last(Look):
        def closed(self, reason: str) -> None:
            noted.update(agent_of(self).node.counters()["noted"])

    settings = {"UBI_MAX_BODY": MOST, "DOWNLOAD_WARNSIZE": 40_000}
    crawl(Last, site.proxy, settings=settings, start_urls=[f"{HOST}/large", f"{HOST}/cut"])
    assert noted == {"large": 1, "truncated": 1}


class Rows(Spider):
    """An item for each row of a table."""

    name = "rows"
    start_urls = (f"{HOST}/",)

    def parse(self, response: Response) -> Iterator[Any]:
        for row in response.css("tr"):
            yield {"row": row.css("td::text").get()}


def test_by_default_a_large_page_gives_all_its_items(site: Site) -> None:
    rows = [f"{number:06d}{'x' * 214}" for number in range(2001)]
    page = "<html><table>" + "".join(f"<tr><td>{row}</td></tr>" for row in rows) + "</table></html>"
    assert len(page) > 463_000
    site.page(f"{HOST}/", Page(page))
    (outcome,) = crawl(Rows, site.proxy)
    assert [item["row"] for item in outcome.items] == rows
    assert "ubi/body/truncated" not in outcome.stats


@pytest.mark.parametrize("settings", [{"UBI_MAX_BODY": 0}, {"meta": {"ubi_max_body": 0}}])
def test_nothing_is_cut_where_that_is_not_wanted(site: Site, settings: dict[str, Any]) -> None:
    site.page(f"{HOST}/", Page(HTML))
    item, _ = look(site, "/", **settings)
    assert (item["body"], item["cut"]) == (HTML, False)


@pytest.mark.parametrize(("own", "kept"), [(500, 500), (20_000, 20_000), ("many", MOST), (-1, MOST), (True, MOST)])
def test_a_request_may_have_a_limit_of_its_own(site: Site, own: object, kept: int) -> None:
    site.page(f"{HOST}/", Page(HTML))
    item, _ = look(site, "/", meta={"ubi_max_body": own, "ubi_truncated": 1})
    assert len(item["body"]) == kept


def test_a_mark_copied_from_another_page_is_taken_off(site: Site) -> None:
    site.page(f"{HOST}/", Page("short"))
    item, _ = look(site, "/", meta={"ubi_truncated": 1})
    assert item["announced"] == "whole"


def test_scrapys_own_limit_is_respected(site: Site) -> None:
    site.page(f"{HOST}/", Page(HTML))
    item, _ = look(site, "/", DOWNLOAD_MAXSIZE=5000)
    assert "DownloadCancelledError" in item["error"]
    site.page(f"{HOST}/", Page(gzip.compress(HTML), headers={"Content-Encoding": "gzip"}))
    item, _ = look(site, "/", DOWNLOAD_MAXSIZE=5000)
    assert "error" in item


def test_without_scrapys_compression_packed_bodies_stay_packed(site: Site) -> None:
    packed = gzip.compress(HTML)
    site.page(f"{HOST}/", Page(packed, headers={"Content-Encoding": "gzip"}))
    item, _ = look(site, "/", COMPRESSION_ENABLED=False)
    assert (item["body"], item["cut"]) == (packed[:MOST], len(packed) > MOST)


def test_a_sitemap_may_be_larger_than_a_page(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_ubi.adapter.components.truncate.MOST_BYTES", 50_000)
    pages = [f"{HOST}/{number}{'x' * 1000}" for number in range(60)]
    entries = "".join(f"<url><loc>{page}</loc></url>" for page in pages)
    body = f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'
    site.page(f"{HOST}/robots.txt", Page(f"Sitemap: {HOST}/map.xml\n", headers={"Content-Type": "text/plain"}))
    site.page(f"{HOST}/map.xml", Page(body))  # as HTML
    site.page(f"{HOST}/", "page")
    settings = {"UBI_MAX_BODY": f"all({MOST})", "UBI_SITEMAPS": 2000, "ROBOTSTXT_OBEY": True, "RETRY_ENABLED": False}
    (outcome,) = crawl(Look, site.proxy, settings={"UBI_MAX_BODY": MOST, **settings}, start_urls=[f"{HOST}/"])
    found = {visit.url for visit in site.visits} & set(pages)
    assert MOST / 1000 < len(found) < 60, "more than of a page, and no more than of a sitemap"
    assert outcome.stats["ubi/body/truncated"] == 1


class Media(Spider):
    """Loads a page beside the scheduler, as media pipelines do."""

    name = "media"
    start_urls = (f"{HOST}/",)

    async def parse(self, response: Response) -> Any:
        beside = await self.crawler.engine.download_async(Request(f"{HOST}/beside"))
        yield {"page": len(response.body), "beside": len(beside.body)}


def test_what_bypasses_the_scheduler_is_never_cut(site: Site) -> None:
    site.page(f"{HOST}/", Page(HTML))
    site.page(f"{HOST}/beside", Page(HTML))
    (outcome,) = crawl(Media, site.proxy, settings={"UBI_MAX_BODY": MOST})
    assert outcome.items == [{"page": MOST, "beside": len(HTML)}]
