"""UBI_REPLAY: a spider over WARC files gives the items of the crawl that wrote them, and nothing is sent."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import FormRequest, Request, Spider
from scrapy.http import Response
from scrapy.settings import Settings

from scrapy_ubi.addon.turn_on import refusal
from scrapy_ubi.outputs.replay.archive import Archive
from scrapy_ubi.outputs.warc import members
from scrapy_ubi.outputs.warc.foreign import files_of
from tests.outputs.raw_site import RawSite
from tests.outputs.test_warc import answer
from tests.support.crawls import Outcome, crawl, items_of

HOST = "http://a.example"
SAME = b"<p>the same on two pages</p>" * 80
HTML = b"Content-Type: text/html"


def links(*paths: str) -> bytes:
    return "".join(f"<a href='{path}'>x</a>" for path in paths).encode()


PAGES = {
    "/robots.txt": answer("200 OK", b"User-agent: *\nDisallow: /forbidden\nCrawl-delay: 0.01\n"),
    "/": answer("200 OK", links("/gz", "/1", "/2", "/moved", "/404", "/forbidden", "/503", "/empty"), HTML),
    "/gz": answer("200 OK", gzip.compress(links("/1", "/3")), HTML, b"Content-Encoding: gzip"),
    "/1": answer("200 OK", SAME, HTML, b"X-Number: caf\xe9"),
    "/2": answer("200 OK", SAME, HTML, b"Set-Cookie: a=1", b"Set-Cookie: b=2"),
    "/3": answer("200 OK", b"<title>third</title>", HTML),
    "/moved": answer("302 Found", b"", b"Location: /there"),
    "/there": answer("200 OK", b"<title>there</title>", HTML),
    "/form": answer("200 OK", b"answer", HTML),
    "/empty": answer("204 No Content", b"", length=False),
    "/503": answer("503 Busy", b"busy", HTML),
}


class Walk(Spider):
    name = "walk"
    start_urls = (HOST + "/",)
    # With cookies, tldextract asks the network for the public suffix list.
    custom_settings = {"HTTPERROR_ALLOW_ALL": True, "RETRY_ENABLED": False, "COOKIES_ENABLED": False}  # noqa: RUF012

    def parse(self, response: Response) -> Iterator[Any]:
        numbers = response.headers.getlist("X-Number") + response.headers.getlist("Set-Cookie")
        yield {
            "url": response.url, "status": response.status, "body": response.body, "headers": numbers,
            "key": response.meta["ubi_key"], "redirects": response.meta.get("redirect_urls"),
        }  # fmt: skip
        if response.url == HOST + "/3":
            yield FormRequest(HOST + "/form", formdata={"a": "1"}, callback=self.parse)
        if "text" in str(response.headers.get("Content-Type")):
            for link in response.css("a::attr(href)").getall():
                yield response.follow(link, self.parse)


class Further(Walk):
    """Asks for what the crawl has not loaded."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield from super().parse(response)
        if response.url == HOST + "/3":
            yield Request(HOST + "/new", self.parse, errback=self.failed)
            yield Request(HOST + "/3", self.parse, method="POST", body=b"x", errback=self.failed)

    def failed(self, failure: Any) -> Iterator[Any]:
        yield {"url": failure.request.url, "failed": failure.type.__name__}


def run(spider: type[Spider], directory: Path, proxy: str, **settings: Any) -> Outcome:
    usual = {"ROBOTSTXT_OBEY": True, "UBI_DIR": str(directory)}
    (outcome,) = crawl(spider, proxy, settings=usual | settings)
    return outcome


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """The directory of a crawl, and its items."""
    directory = tmp_path_factory.mktemp("agent")
    with RawSite() as site:
        site.pages = {HOST + path: raw for path, raw in PAGES.items()}
        outcome = run(Walk, directory, site.proxy, UBI_FAST=True, UBI_STORES="warc(size=4000)")
    assert len(list((directory / "out/warc").glob("*.warc.gz"))) > 1 and len(outcome.items) >= 9
    return directory, items_of([outcome])


def replayed(live: tuple[Path, list[Any]], spider: type[Spider] = Walk, **settings: Any) -> Outcome:
    """No site is there: what went to the network would fail."""
    wanted = {
        "UBI_REPLAY": [str(live[0] / "out/warc/*.warc.gz")],
        "UBI_FAST": True,
        "DOWNLOAD_DELAY": 50,
        "UBI_STORES": "warc",
    }
    return run(spider, live[0], "http://127.0.0.1:1", **wanted | settings)


def test_items_are_those_of_the_crawl(live: tuple[Path, list[Any]]) -> None:
    outcome = replayed(live, UBI_REDIS_URL="redis://127.0.0.1:1/0")
    assert items_of([outcome]) == live[1] and outcome.reason == "finished"
    assert "ubi/replay/missing" not in outcome.stats and "ubi/replay/broken" not in outcome.stats
    assert outcome.stats["ubi/replay/answered"] >= 11
    assert not list((live[0] / "replay/out/warc").glob("*")), "what was not loaded is in no archive"
    assert items_of([replayed(live)]) == live[1], "a second time"


def test_files_without_an_index_are_walked_through(live: tuple[Path, list[Any]], tmp_path: Path) -> None:
    """Also a plain one, of all records one after the other."""
    joined = tmp_path / "all.warc"
    with joined.open("wb") as file:
        for path in sorted((live[0] / "out/warc").glob("*.warc.gz")):
            file.writelines(text for _, _, text in members.members(path.read_bytes()))
    outcome = replayed(live, UBI_REPLAY=str(joined))
    assert items_of([outcome]) == live[1] and not outcome.stats.get("ubi/replay/broken")


def test_what_is_not_in_the_files_is_a_failure_with_a_name(live: tuple[Path, list[Any]]) -> None:
    outcome = replayed(live, Further)
    failed = [item for item in outcome.items if "failed" in item]
    assert sorted(item["url"] for item in failed) == [HOST + "/3", HOST + "/new"]
    assert {item["failed"] for item in failed} == {"NotArchived"}
    assert outcome.stats["ubi/replay/missing"] == 2
    assert len(outcome.items) == len(live[1]) + 2


def test_broken_files_are_counted_and_the_rest_is_read(live: tuple[Path, list[Any]], tmp_path: Path) -> None:
    data = b"".join(path.read_bytes() for path in sorted((live[0] / "out/warc").glob("*.warc.gz")))
    spans = [(offset, length) for offset, length, _ in members.members(data)]
    hole = spans[len(spans) // 2]
    path = tmp_path / "cut.warc.gz"
    path.write_bytes(data[: hole[0]] + b"\0" * hole[1] + data[sum(hole) : -3])
    archive = Archive(files_of([str(path)])[0], 1 << 20)
    archive.build_index()
    assert archive.broken == 2  # the hole, and the last record
    assert archive.find_answer("GET", HOST + "/", b"") is not None
    archive.close()
    (tmp_path / "cut.cdxj").write_bytes(
        b'x 20260101000000 {"url": "http://a.example/", "offset": "1", "length": "5"}\nno line\nx 2 []\n'
    )
    archive = Archive([path], 1 << 20)
    archive.build_index()
    assert archive.broken == 2 and archive.find_answer("GET", HOST + "/", b"") is None and archive.broken == 3
    archive.close()


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.warc.gz"
    fields = [("WARC-Target-URI", HOST + "/"), ("WARC-Date", "2026-01-01T00:00:00Z")]
    bomb = members.record("response", fields, b"HTTP/1.1 200 OK\r\n\r\n", bytes(1 << 24))
    path.write_bytes(gzip.compress(bomb))
    archive = Archive([path], 1 << 20)
    archive.build_index()
    assert archive.records == 1 and archive.find_answer("GET", HOST + "/", b"") is None and archive.broken == 1
    archive.close()


def test_a_start_without_files_is_refused() -> None:
    said = refusal(Settings({"UBI_REPLAY": "/nowhere/*.warc.gz"}))
    assert said is not None and "UBI_REPLAY" in said and "no file" in said
