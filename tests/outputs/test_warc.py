"""The store `warc`: other people's readers find no fault, and bodies are what the site has sent."""

from __future__ import annotations

import gzip
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import brotli
import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from tests.outputs.raw_site import RawSite
from tests.support.crawls import crawl

HOST = "http://a.example"
TEXT = b"<html>" + b"a page with words, " * 200 + b"</html>"
RANDOM = bytes(range(256)) * 8


def answer(status: str, body: bytes, *headers: bytes, length: bool = True) -> bytes:
    lines = [f"HTTP/1.1 {status}".encode("latin-1"), *headers]
    if length:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join([*lines, b"", body])


CHUNKED = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (TEXT[:100], TEXT[100:])) + b"0\r\n\r\n"
HTML = b"Content-Type: text/html; charset=utf-8"
PAGES: dict[str, bytes] = {
    "/robots.txt": answer("200 OK", b"User-agent: *\nDisallow: /no\n", b"Content-Type: text/plain"),
    "/chunked": answer("200 OK", CHUNKED, HTML, b"Transfer-Encoding: chunked", length=False),
    "/gzip": answer("200 OK", gzip.compress(TEXT), HTML, b"Content-Encoding: gzip"),
    "/br": answer("200 OK", brotli.compress(TEXT), HTML, b"Content-Encoding: br"),
    "/long": answer("200 OK", RANDOM * 400, HTML),
    "/304": b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n",
    "/head": answer("200 OK", b"", HTML),
    "/redirect": answer("302 Elsewhere for now", b"gone", b"Location: /target"),
    "/target": answer("200 OK", b"here", HTML),
    "/headers": answer(
        "200 Fine, \xe4h", b"x", b"Set-Cookie: a=1", b"Set-Cookie: b=2", b"X-Word: caf\xc3\xa9 \xff", b"X-Empty:", HTML
    ),
    "/empty": answer("200 OK", b"", HTML),
    "/same/1": answer("200 OK", TEXT, HTML),
    "/same/2": answer("200 OK", TEXT, HTML, b"X-Other: yes"),
    "/small/1": answer("200 OK", b"small", HTML),
    "/small/2": answer("200 OK", b"small", HTML),
    "/closed": answer("200 OK", TEXT + b"until the end", HTML, length=False),
    "/404": answer("404 Not Found", b"no such page", b"Content-Type: text/plain"),
}
BODIES = {path: raw.split(b"\r\n\r\n", 1)[1] for path, raw in PAGES.items()} | {"/chunked": TEXT}


class Walk(Spider):
    """Each page, in this order."""

    name = "walk"
    custom_settings = {"RETRY_ENABLED": False, "HTTPERROR_ALLOW_ALL": True, "USER_AGENT": "walker"}  # noqa: RUF012

    async def start(self) -> Any:
        for path in PAGES:
            if path not in ("/robots.txt", "/target"):
                yield Request(HOST + path, method="HEAD" if path == "/head" else "GET", meta={"handle_httpstatus_all": path != "/redirect"})
        yield Request(HOST + "/post", method="POST", body=b"a=1")

    def parse(self, response: Response) -> Iterator[Any]:
        yield from ()


def walked(directory: Path, **settings: Any) -> Path:
    """The directory of the WARC files of a crawl."""

    def prepare(crawlers: list[Crawler]) -> None:
        crawlers[0].settings.set("UBI_DIR", str(directory), "cmdline")

    with RawSite() as site:
        site.pages = {HOST + path: raw for path, raw in PAGES.items()}
        settings = {"UBI_STORES": "warc", "UBI_MAX_BODY": 200_000, "ROBOTSTXT_OBEY": True} | settings
        crawl(Walk, site.proxy, settings=settings, with_crawlers=prepare)
    return directory / "out/warc"


def records(path: Path) -> list[tuple[str, dict[str, str], bytes, list[tuple[str, str]], str]]:
    """Kind, head, payload, HTTP headers, status line of each record, as warcio reads them."""
    found = []
    with path.open("rb") as file:
        for one in ArchiveIterator(file):
            http = one.http_headers
            head = dict(one.rec_headers.headers)
            found.append((
                one.rec_type, head, one.raw_stream.read(), http.headers if http else [],
                f"{http.protocol} {http.statusline}" if http else "",
            ))  # fmt: skip
    return found


def check(path: Path) -> None:
    """Two readers find no fault in a file."""
    checker = Checker(Namespace(inputs=[str(path)], verbose=True))
    checker.process_all()
    assert checker.exit_value == 0
    with path.open("rb") as file:
        count = 0
        for one in FastIterator(file, parse_http=False):
            count += 1
            if "WARC-Block-Digest" in one.headers:
                one.freeze()
                assert one.verify_block_digest(), dict(one.headers)
            if "WARC-Payload-Digest" in one.headers and one.headers["WARC-Type"] != "revisit":
                one.parse_http()
                assert one.verify_payload_digest(), dict(one.headers)
        assert count


@pytest.fixture(scope="module", params=[False, True], ids=["scrapy", "fast"])
def warc(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("agent")
    (path,) = walked(directory, UBI_FAST=request.param).glob("*.warc.gz")
    return path


def test_readers_find_no_fault(warc: Path) -> None:
    check(warc)


def test_bodies_are_what_the_site_has_sent(warc: Path) -> None:
    found = {head["WARC-Target-URI"]: (head, body) for kind, head, body, *_ in records(warc) if kind == "response"}
    for path, body in BODIES.items():
        if path != "/same/2":
            assert path == "/long" or found[HOST + path][1] == body, path
    head, body = found[HOST + "/long"]
    assert head["WARC-Truncated"] == "length" and (RANDOM * 400).startswith(body) and len(body) >= 200_000
