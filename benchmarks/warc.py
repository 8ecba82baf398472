"""The store `warc`: CPU time of a page's records, with isal and with zlib, beside warcio's writer.

    python benchmarks/warc.py          # made pages of 10 and 50 kB; wants the development dependencies

All write response, request and metadata records of the same pages as gzip members into memory. warcio writes the same
three with its defaults. What compressing alone takes is a row of its own.
"""

from __future__ import annotations

import sys
import tempfile
from io import BytesIO
from pathlib import Path

from links import made_page
from rounds import options, save, table, take_turns
from scrapy import Request
from scrapy.http import HtmlResponse
from scrapy.settings import Settings
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from scrapy_ubi.outputs.part_writer import Part
from scrapy_ubi.outputs.stores import Page
from scrapy_ubi.outputs.warc import members
from scrapy_ubi.outputs.warc.warc_store import WarcStore

SIZES = ((10_000, 40), (50_000, 200))
PAGES = 200
HEADERS = {
    "Content-Type": "text/html; charset=utf-8", "Server": "nginx", "Date": "Thu, 26 Nov 2026 22:38:06 GMT",
    "Last-Modified": "Thu, 26 Nov 2026 20:00:00 GMT", "ETag": '"5f3e-1"', "Cache-Control": "max-age=600",
}  # fmt: skip
ASKED = {"User-Agent": "mybot (+http://example.com)", "Accept": "text/html,*/*;q=0.8", "Accept-Encoding": "gzip, br"}


def pages(size: int, links: int) -> list[Page]:
    made, found = made_page(size, links), []
    for number in range(PAGES):
        request = Request(f"http://h{number % 9}.example/d/p{number}.html", headers=ASKED)
        body = made + b"<!-- %d -->" % number
        came = HtmlResponse(request.url, body=body, headers=HEADERS, encoding="utf-8", protocol="HTTP/1.1")
        found.append(Page(f"{number:016x}", 0, "ok", request, received=came, response=came, began=1.79e9, came=1.79e9))
    return found


def ours(made: list[Page], place: Path, **arguments: str):
    def way(turn: int) -> None:
        store = WarcStore({name: (value,) for name, value in arguments.items()}, Settings())
        part = Part(place, store, f"{turn}-{id(store)}", 0.0)
        for page in made:
            store.write(page, part)
        part.close()

    return way


def theirs(made: list[Page]):
    def way(turn: int) -> None:
        writer = WARCWriter(BytesIO(), gzip=True)
        for page in made:
            came, request = page.received, page.request
            assert came is not None
            status = StatusAndHeaders("200 OK", list(HEADERS.items()), protocol="HTTP/1.1")
            asked = StatusAndHeaders("GET / HTTP/1.1", list(ASKED.items()), is_http_request=True)
            response = writer.create_warc_record(request.url, "response", BytesIO(came.body), http_headers=status)
            writer.write_record(response)
            writer.write_record(writer.create_warc_record(request.url, "request", http_headers=asked))
            text = b"via: http://a.example/\r\nfetchTimeMs: 12\r\n"
            writer.write_record(writer.create_warc_record(request.url, "metadata", payload=BytesIO(text)))

    return way


def only(made: list[Page], compress):
    def way(turn: int) -> None:
        for page in made:
            compress(page.body)

    return way


def main() -> None:
    opts = options(__doc__, 9)
    isal = members.by_isal()
    if isal is None:
        sys.exit("isal is not installed")
    figures = {}
    with tempfile.TemporaryDirectory() as place:
        for size, links in SIZES:
            made = pages(size, links)
            ways = {
                "warc (isal)": ours(made, Path(place), gzip="isal"),
                "warc(request=no, metadata=no)": ours(made, Path(place), gzip="isal", request="no", metadata="no"),
                "warc(gzip=zlib)": ours(made, Path(place), gzip="zlib"),
                "warcio": theirs(made),
                "isal alone, of the bodies": only(made, isal),
                "zlib alone, of the bodies": only(made, members.by_zlib),
            }
            figures[f"{size // 1000} kB"] = take_turns(ways, PAGES, opts.rounds)
    rows = {name: [f"{each[name] * 1e3:.3f}" for each in figures.values()] for name in next(iter(figures.values()))}
    table("ms a page", list(figures), rows)
    save(opts.json, {"seconds": figures})


if __name__ == "__main__":
    main()
