"""The store `warc`: other people's readers find no fault, and bodies are what the site has sent."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
from argparse import Namespace
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import brotli
import pytest
import surt
from fastwarc.warc import ArchiveIterator as FastIterator
from fastwarc.warc import WarcRecordType
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request, Spider
from scrapy.http import Response
from warcio.archiveiterator import ArchiveIterator
from warcio.bufferedreaders import BufferedReader
from warcio.checker import Checker

from scrapy_ubi.outputs.warc import members
from scrapy_ubi.outputs.warc.cdxj import key
from scrapy_ubi.outputs.warc.met import PROFILE
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
        "200 Fine, \xe4h", b"x", b"Set-Cookie: a=1", b"Set-Cookie: b=2", b"X-Word: caf\xc3\xa9", b"X-Empty:", HTML
    ),
    "/empty": answer("200 OK", b"", HTML),
    "/same/1": answer("200 OK", TEXT, HTML),
    "/same/2": answer("200 OK", TEXT, HTML, b"X-Other: yes"),
    "/small/1": answer("200 OK", b"small", HTML),
    "/small/2": answer("200 OK", b"small", HTML),
    "/closed": answer("200 OK", TEXT + b"until the end", HTML, length=False),
    "/404": answer("404 Not Found", b"no such page", b"Content-Type: text/plain"),
}
PAGES["/odd"] = (
    b"HTTP/1.1 200 OK\r\nx-ODD-name: 1\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n"
    b"X-odd-Name: 2\r\n\r\n3\r\nodd\r\n0\r\n\r\n"
)
PAGES["/linked"] = answer("200 OK", b"linked", HTML)
URLS = [
    "http://a.example//x", "http://a.example/./x/../y/", "http://a.example/a%2Fb", "http://a.example./x", "http://a.example",
    "http://WWW2.a.example:80/A/?B=2&a=1", "http://u:p@a.example:8080/%25", "http://127.0.0.1/", "http://[::1]:8/x",
]  # fmt: skip
HOSTS = (
    "a.example www.a.example www2.b.Example a..b.example a.example. 127.0.0.1 010.1.1.1 1.2 3232235777 999.1.1.1 "
    "bücher.example %66oo.example a_b.example [::1] u:p@a.example 1password.example a.example: a.example:80 "
    "a.example:443 a.example:8080 a.example:0 4294967297 0x7f.1"
).split()
SEGMENTS = st.sampled_from(
    ["", "..", ".", "...", ".well-known", "a%2Fb", "%2e", "%2525", "%23", "%3F", "ü", "%c3", "%0A", "b c", "x.aspx",
     "(a(abcdefghijklmnopqrstuvwx))", "(abcdefghijklmnopqrstuvwx)"]
) | st.text(st.characters(codec="ascii", exclude_categories=["Cc"], exclude_characters="#?"), max_size=6)  # fmt: skip
ARGUMENTS = st.sampled_from(
    ["a=1", "A=2", "b", "b=", "", "sid=" + "a1" * 16, "mysid=" + "D" * 32, "jsessionid=" + "B2" * 16, "x=%26", "z=%25",
     "ASPSESSIONIDABCDEFGH=" + "A" * 24, "cfid=1&cftoken=2", "ü", "?"]
) | st.text(st.characters(codec="ascii", exclude_categories=["Cc"], exclude_characters="#"), max_size=6)  # fmt: skip
BODIES = {path: raw.split(b"\r\n\r\n", 1)[1] for path, raw in PAGES.items()} | {"/chunked": TEXT, "/odd": b"odd"}


class Walk(Spider):
    """Each page, in this order."""

    name = "walk"
    # A POST on a kept connection that the site has just closed is sent again by the retry middleware alone.
    custom_settings = {"RETRY_HTTP_CODES": [], "HTTPERROR_ALLOW_ALL": True, "USER_AGENT": "walker"}  # noqa: RUF012

    async def start(self) -> Any:
        for path in PAGES:
            if path not in ("/robots.txt", "/target", "/linked"):
                method = "HEAD" if path == "/head" else "GET"
                yield Request(HOST + path, method=method, meta={"handle_httpstatus_all": path != "/redirect"})
        yield Request(HOST + "/post", method="POST", body=b"a=1")

    def parse(self, response: Response) -> Iterator[Any]:
        if response.url.endswith("/odd"):
            yield response.follow("/linked")


def walked(directory: Path, **settings: Any) -> Path:
    """The directory of the WARC files of a crawl."""
    with RawSite() as site:
        site.pages = {HOST + path: raw for path, raw in PAGES.items()}
        usual = {"UBI_DIR": str(directory), "UBI_STORES": "warc", "UBI_MAX_BODY": 200_000, "ROBOTSTXT_OBEY": True}
        crawl(Walk, site.proxy, settings=usual | settings)
    return directory / "out/warc"


class Found(NamedTuple):
    """A record as warcio reads it; `headers` and `line` are those of the HTTP message."""

    kind: str
    head: dict[str, str]
    body: bytes
    headers: list[tuple[str, str]]
    line: str


def records(path: Path) -> list[Found]:
    """All records of a file."""
    found = []
    with path.open("rb") as file:
        for one in ArchiveIterator(file):
            http = one.http_headers
            head = dict(one.rec_headers.headers)
            line = f"{http.protocol} {http.statusline}" if http else ""
            found.append(Found(one.rec_type, head, one.raw_stream.read(), http.headers if http else [], line))
    return found


def check(path: Path) -> None:
    """Two readers find no fault in a file."""
    checker = Checker(Namespace(inputs=[str(path)], verbose=True))
    with mock.patch.dict(BufferedReader.DECOMPRESSORS):
        BufferedReader.DECOMPRESSORS.pop("br", None)  # it wants an attribute that brotli 1.2 has not
        checker.process_all()
    assert checker.exit_value == 0
    with path.open("rb") as file:
        count = 0
        for one in FastIterator(file, parse_http=False):
            count += 1
            if "WARC-Block-Digest" in one.headers:
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


def test_digests_are_in_base32() -> None:
    for digest in (bytes(20), b"\xff" * 20, *(os.urandom(20) for _ in range(100))):
        assert members.base32(digest) == base64.b32encode(digest).decode()


def test_readers_find_no_fault(warc: Path) -> None:
    check(warc)


def raw(path: Path, url: str) -> bytes:
    """The block of a response."""
    with path.open("rb") as file:
        for one in FastIterator(file, WarcRecordType.response, parse_http=False):
            if one.headers["WARC-Target-URI"] == HOST + url:
                return bytes(one.reader.read())
    raise LookupError(url)


ALIKE = ("/chunked", "/same/1", "/same/2")


def of_kind(path: Path, kind: str) -> dict[str, Found]:
    """Records of a kind, by the path of their URL."""
    return {one.head["WARC-Target-URI"].removeprefix(HOST): one for one in records(path) if one.kind == kind}


def test_bodies_are_what_the_site_has_sent(warc: Path) -> None:
    found = of_kind(warc, "response")
    for path, body in BODIES.items():
        if path not in (*ALIKE, "/long"):
            assert found[path].body == body, path
    long = found["/long"]
    assert long.head["WARC-Truncated"] == "length" and (RANDOM * 400).startswith(long.body)
    assert 200_000 <= len(long.body) < len(RANDOM * 400)
    assert len(set(found) - set(BODIES)) == 1  # /post
    assert all(one.head["WARC-IP-Address"] == "127.0.0.1" for one in found.values())
    times = [one.head["WARC-Date"] for one in found.values()]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", when) for when in times)


def test_a_payload_that_was_met_is_a_revisit(warc: Path) -> None:
    responses, revisits = of_kind(warc, "response"), of_kind(warc, "revisit")
    (first,) = (path for path in ALIKE if path in responses)
    assert responses[first].body == TEXT
    assert set(revisits) == {*ALIKE} - {first}
    for one in revisits.values():
        assert one.body == b"" and one.head["WARC-Profile"] == PROFILE
        assert one.head["WARC-Refers-To"] == responses[first].head["WARC-Record-ID"]
        assert one.head["WARC-Refers-To-Target-URI"] == HOST + first
        assert one.head["WARC-Refers-To-Date"] == responses[first].head["WARC-Date"]
        assert one.head["WARC-Payload-Digest"] == responses[first].head["WARC-Payload-Digest"]
    assert ("X-Other", "yes") in (revisits.get("/same/2") or responses["/same/2"]).headers


def test_heads_fit_the_bodies(warc: Path) -> None:
    found = of_kind(warc, "response")
    headers = found["/headers"].headers
    assert [value for name, value in headers if name == "Set-Cookie"] == ["a=1", "b=2"]
    assert b"X-Word: caf\xc3\xa9\r\n" in raw(warc, "/headers")
    assert dict(found["/gzip"].headers)["Content-Encoding"] == "gzip"
    assert dict(found["/closed"].headers)["Content-Length"] == str(len(BODIES["/closed"]))
    assert "Content-Length" not in dict(found["/304"].headers)
    for path, one in found.items():
        named = {name.lower() for name, _ in one.headers}
        assert "transfer-encoding" not in named, path
        if path not in ("/long", "/304", "/head"):
            assert dict(one.headers)["Content-Length"] == str(len(one.body)), path


def test_reasons_are_kept_as_far_as_the_handler_tells(warc: Path, request: pytest.FixtureRequest) -> None:
    found = of_kind(warc, "response")
    is_fast = "[fast]" in request.node.name
    assert found["/redirect"].line == ("HTTP/1.1 302 Elsewhere for now" if is_fast else "HTTP/1.1 302 Found")
    assert found["/404"].line == "HTTP/1.1 404 Not Found"


def test_heads_are_as_they_came_where_the_handler_tells(warc: Path, request: pytest.FixtureRequest) -> None:
    head = raw(warc, "/odd").partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]
    if "[fast]" in request.node.name:
        assert head == [
            b"x-ODD-name: 1", b"content-type: text/plain", b"X-Crawler-Transfer-Encoding: chunked", b"X-odd-Name: 2",
            b"Content-Length: 3",
        ]  # fmt: skip
    else:
        assert {*head} - {b"X-Crawler-Transfer-Encoding: chunked"} == {
            b"Content-Length: 3", b"Content-Type: text/plain", b"X-Odd-Name: 1", b"X-Odd-Name: 2",
        }  # fmt: skip


def test_the_way_from_the_seed_is_in_letters(warc: Path) -> None:
    metadata = of_kind(warc, "metadata")
    assert b"hopsFromSeed: R\r\n" in metadata["/target"].body
    assert b"hopsFromSeed: P\r\n" in metadata["/robots.txt"].body
    assert b"hopsFromSeed: L\r\n" in metadata["/linked"].body
    assert b"hopsFromSeed" not in metadata["/404"].body


@pytest.mark.parametrize("url", URLS)
def test_keys_of_the_index_are_those_of_surt(url: str) -> None:
    assert key(url) == surt.surt(url)


@given(
    st.sampled_from(["http://", "https://"]),
    st.sampled_from(HOSTS),
    st.lists(SEGMENTS, max_size=4),
    st.lists(ARGUMENTS, max_size=4),
)
def test_keys_of_any_url_are_those_of_surt(scheme: str, host: str, path: list[str], query: list[str]) -> None:
    url = f"{scheme}{host}{''.join(f'/{one}' for one in path)}{'?' if query else ''}{'&'.join(query)}"
    assert key(url) == surt.surt(url)


def test_requests_and_what_is_known_of_pages(warc: Path) -> None:
    responses, requests, metadata = (of_kind(warc, kind) for kind in ("response", "request", "metadata"))
    assert set(requests) == set(metadata) == set(responses) | set(of_kind(warc, "revisit"))
    for path, one in requests.items():
        if path in responses:
            assert one.head["WARC-Concurrent-To"] == responses[path].head["WARC-Record-ID"]
        assert one.line.split(" ")[1] == path
        assert dict(one.headers)["Host"] == "a.example" and dict(one.headers)["User-Agent"] == "walker"
    assert requests["/post"].body == b"a=1" and requests["/head"].line.startswith("HEAD ")
    assert f"via: {HOST}/redirect\r\n".encode() in metadata["/target"].body
    assert re.search(rb"fetchTimeMs: \d+\r\n", metadata["/404"].body)
    (info,) = (one for one in records(warc) if one.kind == "warcinfo")
    assert info.head["WARC-Filename"] == warc.name and b"format: WARC File Format 1.1" in info.body


def test_each_line_of_the_index_reads_its_record(warc: Path) -> None:
    path = warc.with_name(warc.name.removesuffix("warc.gz") + "cdxj")
    lines = path.read_bytes().splitlines(keepends=True)
    assert lines == sorted(lines)
    known = {one.head["WARC-Record-ID"]: one for one in records(warc) if one.kind in ("response", "revisit")}
    for line in lines:
        key, stamp, text = line.decode().split(" ", 2)
        fields = json.loads(text)
        assert key == surt.surt(fields["url"]) and fields["filename"] == warc.name
        data = warc.read_bytes()[int(fields["offset"]) :][: int(fields["length"])]
        (one,) = ArchiveIterator(BytesIO(data))
        head = dict(one.rec_headers.headers)
        assert head["WARC-Target-URI"] == fields["url"] and head["WARC-Payload-Digest"] == fields["digest"]
        assert re.sub(r"[-T:]", "", head["WARC-Date"])[:14] == stamp
        assert known.pop(head["WARC-Record-ID"]).line.split(" ")[1] == fields["status"]
    assert not known


def test_what_is_left_out_when_asked(tmp_path: Path) -> None:
    asked = "warc(request=no, metadata=no, robots=no, revisit=no, gzip=zlib)"
    (path,) = walked(tmp_path, UBI_STORES=asked).glob("*.gz")
    check(path)
    assert {one.kind for one in records(path)} == {"warcinfo", "response"}
    found = of_kind(path, "response")
    assert "/robots.txt" not in found and all(found[one].body == TEXT for one in ALIKE)


def test_files_end_within_one_page_of_the_size(tmp_path: Path) -> None:
    paths = sorted(walked(tmp_path, UBI_STORES="warc(size=3000)").glob("*.warc.gz"))
    assert len(paths) > 3
    for path in paths:
        check(path)
        kinds = [one.kind for one in records(path)]
        assert kinds[0] == "warcinfo"
        own = path.with_name(path.name.removesuffix("warc.gz") + "cdxj").read_bytes().splitlines()
        assert len(own) == sum(kind in ("response", "revisit") for kind in kinds)
