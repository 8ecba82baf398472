"""Whether a change of the stores changes their files: the same pages through all stores, and the sum of each file.

    python benchmarks/outputs_bytes.py [--pages DIR...] [--most 2000] > before     # in one worktree
    python benchmarks/outputs_bytes.py [--pages DIR...] [--most 2000] > after      # in the other; then compare

Times and random bits are the same in every run, so files of the same formats are the same, byte for byte. Pages are
made ones, those of `odd_pages`, and the *.html below these directories; of a third the links are read by
UbiLinkExtractor, of another third a tree is made (`response.css`). For an older version, copy this file there.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from links import made_page
from scrapy import Request
from scrapy.http import HtmlResponse, Response, TextResponse, XmlResponse
from scrapy.settings import Settings

from scrapy_ubi.adapter.extraction.linkextractor import UbiLinkExtractor
from scrapy_ubi.adapter.requests.inflight import Flight, Flights
from scrapy_ubi.adapter.requests.observers import Observers
from scrapy_ubi.outputs import stores
from scrapy_ubi.outputs.page_outputs import PageOutputs
from scrapy_ubi.outputs.writer import Writer
from scrapy_ubi.urls.normaliser import Normaliser

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support.memory_store import MemoryStore

STORES = ["items", "larm", "warc(size=3e6)", "graph", "index", "duplicates"]
BEGAN = 1_795_000_000.0  # unix time
HEADERS = {"Content-Type": "text/html; charset=utf-8", "Server": "nginx", "ETag": '"5f3e-1"'}
WORDS = "crawl page Straße 中文 x&amp;y &lt;b&gt; tab\there line\nend null\x00 space  \u2028 a&nbsp;b".split(" ")
VALUES = (
    "/a/b.html",
    "c.html",
    "../up.html",
    "../../up/up.html",
    "./here",
    "?q=1&amp;r=2",
    "#frag",
    "",
    " /blank ",
    "//other.example/x",
    "http://H.EXAMPLE/Caps",
    "https://h2.example:8443/p?q#f",
    "mailto:a@b.example",
    "javascript:void(0)",
    "/ü/ö.html",
    "/a b",
    "/dots/../x",
    "/dots/./y",
    "http://[::1",
    "/tab\tin",
    "/%7euser/",
    "/x;p=1",
    "ftp://f.example/",
    "/q?ü=ö",
    "/a//b",
    "http://h.example",
    "HTTP://h.example/x",
    "...",
    ".?x",
    "/p?a='b'",
    "data:text/html,x",
    "http:relative",
    "a:b",
)

LINKS = (  # of a value, a word, and a long word
    '<a href="{0}">{1}</a>',
    "<A HREF='{0}'>{1} <b>{1}</b></A>",
    "<a href>{1}</a>",
    '<a name="{1}">',
    '<area href="{0}" alt="{1}">',
    '<iframe src="{0}"></iframe>',
    '<a href="{0}"><img alt="{1}"></a>',
    '<b><a href="{0}"><div>{1}</b>x</a>',
    '<table><tr><a href="{0}">{1}</a></table>',
    '<a href="{0}">',
    '<svg><a href="{0}">{1}</a></svg>',
    '<a href="{0}">{2}</a>',
    "<!-- <a href=x> -->{1}",
    "<template><a href=x>t</a></template>",
    "<p>{1}",
    '<frame src="{0}">',
    "<script>'<a href=1>'</script>",
)
HEADS = (
    "",
    "<title>T\t1 </title>",
    '<base href="/based/">',
    '<base href="http://o.example/x/y">',
    "<title></title>",
)


def odd_pages(count: int) -> Iterator[bytes]:
    """Pages of what is seldom."""
    chance = random.Random(count)

    def link() -> str:
        value, word = chance.choice(VALUES), chance.choice(WORDS)
        return chance.choice(LINKS).format(value, word, word * chance.choice((1, 400)))

    for _ in range(count):
        head = chance.choice(HEADS)
        yield f"<html><head>{head}</head><body>{''.join(link() for _ in range(chance.randrange(30)))}".encode()


def bodies(directories: list[str], most: int) -> Iterator[bytes]:
    """All pages, in their order."""
    yield from itertools.chain((made_page(10_000, 40), made_page(500, 3), b"", b"\xff\xfe<a href=x>"), odd_pages(400))
    files = sorted(path for each in directories for path in Path(each).rglob("*.html") if path.is_file())
    for path in files[:: max(1, len(files) // most)]:
        with suppress(OSError):
            yield path.read_bytes()


def response(number: int, body: bytes, request: Request) -> Response:
    """What came, with a head that differs from page to page."""
    headers: dict[str, Any] = dict(HEADERS)
    url, status, kind = request.url, 200, HtmlResponse
    flags, protocol = [], "HTTP/1.1"
    if number % 11 == 3:
        headers["Content-Type"] = "text/html; charset=iso-8859-1"
    if number % 13 == 5:
        headers |= {"Set-Cookie": ["a=1", "b=2; x=\xe4"], "X-Odd": b"\xff\r\n y", "Transfer-Encoding": "chunked"}
    if number % 17 == 7:
        status, headers["Location"] = 301, "/moved?x=1"
    if number % 19 == 9:
        kind, headers["Content-Type"] = random.Random(number).choice(
            ((TextResponse, "text/plain"), (Response, "image/png"), (XmlResponse, "text/xml"))
        )
    if number % 23 == 11:
        flags = [random.Random(number).choice(("dataloss", "download_stopped", "truncated", "cached"))]
    if number % 29 == 13:
        protocol, status = "h2", random.Random(number).choice((404, 304, 204, 500))
    return kind(url, status, headers, body, flags=flags, request=request, protocol=protocol)


class Files:
    """All pages through all stores, in a directory."""

    def __init__(self, place: Path) -> None:
        settings, self.flights, normal = Settings({"UBI_CRAWL": "bytes"}), Flights(), Normaliser()
        made = stores.make(STORES, settings)
        self.now = BEGAN
        self.writer = Writer(place, "bytes", "a", 1 << 40, clock=lambda: BEGAN)
        self.writer.recover(MemoryStore())
        for store in made:
            store.normal_form = normal.function
        crawler: Any = SimpleNamespace(request_fingerprinter=None)
        self.outputs = PageOutputs(crawler, made, self.writer, self.flights, normal, _named, lambda name: None)
        self.observers = Observers(self.flights)
        self.observers.add(self.outputs)
        self.extractor = UbiLinkExtractor()

    def clock(self) -> float:
        """Unix time in the loop: that of the page."""
        return self.now

    def take(self, number: int, body: bytes) -> None:
        self.now += 0.137
        chance = random.Random(number)
        query = chance.choice(("", "?x=1", "?id=3&SID=0123456789abcdef0123456789abcdef", "?é=1"))
        request = Request(
            f"http://{chance.choice(('', 'www.'))}h{number % 7}.example/d{number % 5}/{number}.html{query}",
            headers={"User-Agent": "bytes", **({"Referer": f"http://h0.example/{number // 3}"} if number % 2 else {})},
            method="POST" if number % 31 == 1 else "GET", body=b"a=1" if number % 31 == 1 else b"",
        )  # fmt: skip
        if number % 37 == 1:
            request.meta["redirect_urls"] = ["http://h0.example/before"]
        came = response(number, body, request)
        entry = SimpleNamespace(key=number, depth=number % 6, request="{}")
        visit: Any = SimpleNamespace(entry=entry, again=None, closed=False)
        flight = self.flights.add(Flight(request, "h.example", visit, began=1.0))
        for begun in self.observers.begun:
            begun(flight)
        self.outputs.received(flight, came)
        if number % 41:
            self.outputs.answered(flight, came)
        self._spider(number, came, flight)
        self.outputs.ended(flight)
        self.flights.remove(request)
        if number % 500 == 0:
            self.writer.mark("run").ready.wait()

    def _spider(self, number: int, came: Response, flight: Flight) -> None:
        found: list[str] = []
        if isinstance(came, HtmlResponse):
            if number % 3 == 1:
                came.css("title")
            if number % 3 == 2 or number % 7 == 0:
                found = self.extractor.extract_urls(came)
        assert flight.links is not None
        flight.links.urls += found
        if number % 17 == 7:
            flight.links.moved.append(came.urljoin("/moved?x=1"))
        for item in range(number % 4):
            one = {"url": came.url, "number": item, "text": WORDS[item]}
            self.outputs.yielded(flight, came, one)
            self.outputs._scraped(one, came)


def _named(visit: Any, request: Request) -> str:
    return f"{visit.entry.key:016x}"


def random_bits() -> Any:
    """What stands for os.urandom: the same bytes in every run, however many are asked for at once."""
    left, number = bytearray(), itertools.count()

    def take(count: int) -> bytes:
        while len(left) < count:
            left.extend(hashlib.sha512(next(number).to_bytes(8)).digest())
        found = bytes(left[:count])
        del left[:count]
        return found

    return take


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", nargs="*", default=[], metavar="DIR", help="more pages, the *.html below")
    parser.add_argument("--most", type=int, default=2000, help="of these, about so many at most (%(default)s)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write the files there, and keep them")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as own:
        place = args.keep or Path(own)
        place.mkdir(parents=True, exist_ok=True)
        files = Files(place)
        with (
            mock.patch("os.urandom", random_bits()),
            mock.patch.object(time, "time", files.clock),
            mock.patch.object(time, "monotonic", lambda: 2.0),
        ):
            pages = 0
            for pages, body in enumerate(bodies(args.pages, args.most), 1):
                files.take(pages, body)
            files.writer.finish(MemoryStore())
        total = 0
        for path in sorted(path for path in (place / "out").rglob("*") if path.is_file()):
            data = path.read_bytes()
            total += len(data)
            print(hashlib.sha256(data).hexdigest()[:24], len(data), path.relative_to(place))
        print(f"{pages} pages, {total} bytes")


if __name__ == "__main__":
    main()
