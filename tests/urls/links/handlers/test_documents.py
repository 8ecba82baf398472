"""Links of feeds, sitemaps, style sheets and JSON."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.urls.links.handlers import css, feed, header, json_urls, sitemap, unpacked
from scrapy_ubi.urls.links.handlers.bounds import MOST_DEPTH, FetchedBody, Unreadable, Values
from scrapy_ubi.urls.links.handlers.handler_choice import kind_of
from tests.urls.links.handlers.given import fetched, found, read

RSS = """<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY e "x">]>
<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>t &e;</title><link>http://a.example/</link>
<atom:link rel="self" href="http://a.example/feed"/><atom:link rel="next" href="http://a.example/feed?page=2"/>
<image><url>http://a.example/logo.png</url><link>http://a.example/about</link></image>
<item><link> http://a.example/1?a=1&amp;b=2
</link><guid>http://a.example/g1</guid><comments>http://a.example/1#c</comments>
<enclosure url="http://a.example/1.mp3"/></item>
<item><link><![CDATA[http://a.example/2]]></link><guid isPermaLink="false">http://a.example/g2</guid>
<description>&lt;a href="http://a.example/no"&gt;</description></item><item><guid>tag:3</guid></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://a.example/blog/"><link href="." />
<link rel="self" href="atom.xml"/><link rel="edit" href="edit"/>
<entry xml:base="2026/"><link rel="alternate" href="post"/><content src="full"/><link rel="enclosure" href="a.mp3"/>
</entry><entry><link href="/other"/></entry></feed>"""
RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
<channel rdf:about="http://a.example/"><link>http://a.example/</link></channel>
<item rdf:about="http://a.example/1"><link>http://a.example/1</link></item></rdf:RDF>"""
SITEMAP = """<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml"
 xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"><url><loc> http://a.example/1 </loc>
<xhtml:link rel="alternate" hreflang="de" href="http://a.example/de/1"/>
<image:image><image:loc>http://a.example/1.png</image:loc></image:image></url>
<url><loc>http://a.example/2</loc><lastmod>2026-11-27</lastmod></url></urlset>"""
INDEX = "<sitemapindex><sitemap><loc>http://a.example/s1.xml.gz</loc></sitemap></sitemapindex>"
READERS: dict[str, Callable[[FetchedBody], Values]] = {
    "feed": feed.links, "sitemap": sitemap.links, "css": css.links, "json": json_urls.links, "header": header.links,
}  # fmt: skip


def test_rss() -> None:
    assert found(feed.links, fetched(RSS)) == [
        "http://a.example/",
        "http://a.example/feed?page=2",
        "http://a.example/about",
        "http://a.example/1?a=1&b=2",
        "http://a.example/g1",
        "http://a.example/1#c",
        "http://a.example/2",
    ]


def test_atom_and_rdf() -> None:
    base = "http://a.example"
    expected = [f"{base}/blog/", f"{base}/blog/2026/post", f"{base}/blog/2026/full", f"{base}/other"]
    assert found(feed.links, fetched(ATOM)) == expected
    assert found(feed.links, fetched(ATOM.encode("utf-16"))) == expected
    assert found(feed.links, fetched(RDF)) == [f"{base}/", f"{base}/1", f"{base}/1"]


def test_a_feed_that_breaks_off_gives_what_came_before_and_says_so() -> None:
    values, cut = read(feed.links, fetched(RSS[: RSS.index("<item><link><!")]))
    assert values == found(feed.links, fetched(RSS))[:6]
    assert cut is not None and cut.reason == "malformed"


@pytest.mark.parametrize("size", range(1, 40))
def test_a_bare_ampersand_stands_for_itself_wherever_a_chunk_ends(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """libxml2 would leave out what follows it: another URL."""
    monkeypatch.setattr(unpacked, "CHUNK", size)
    body = "<urlset><url><loc>http://a.example/?a=1&b=2&amp;c=&#51;&d</loc></url></urlset>"
    assert found(sitemap.links, fetched(body)) == ["http://a.example/?a=1&b=2&c=3&d"]


def test_in_a_cdata_section_an_ampersand_is_written_as_it_is() -> None:
    body = "<urlset><url><loc><![CDATA[http://a.example/?a&b&amp;]]></loc></url></urlset>"
    assert found(sitemap.links, fetched(body)) == ["http://a.example/?a&b&amp;"]


def test_sitemaps() -> None:
    pages = ["http://a.example/1", "http://a.example/de/1", "http://a.example/2"]
    assert found(sitemap.links, fetched(SITEMAP)) == pages
    packed = gzip.compress(SITEMAP.encode())
    assert found(sitemap.links, fetched(packed)) == pages
    values, cut = read(sitemap.links, fetched(packed[:-12]))
    assert values == pages and cut is not None and cut.reason == "malformed"
    assert found(sitemap.links, fetched(INDEX)) == ["http://a.example/s1.xml.gz"]
    lines = "\ufeffhttp://a.example/1\r\n\nhttps://a.example/2\nftp://a.example/\nhttp://a.example/3"
    expected = ["https://a.example/2", "http://a.example/3"]
    assert found(sitemap.links, fetched(lines)) in (expected, ["http://a.example/1", *expected])


@pytest.mark.parametrize("links", [feed.links, sitemap.links])
def test_what_is_no_such_document_is_unreadable(links: Callable[[FetchedBody], Values]) -> None:
    for body in ("", "<html><link>http://a.example/</link></html>", "no XML", gzip.compress(b"no XML")):
        _values, cut = read(links, fetched(body))
        assert isinstance(cut, Unreadable) and cut.reason == "malformed", body


def test_depth_is_bounded() -> None:
    deep = "<rss><link>http://a.example/</link>" + "<a>" * 10_000 + "<link>http://a.example/deep</link>"
    values, cut = read(feed.links, fetched(deep))
    assert values == ["http://a.example/"] and cut is not None and cut.reason == "depth"
    shallow = "<rss>" + "<a>" * (MOST_DEPTH - 2) + "<link>http://a.example/deep</link>" + "</a>" * (MOST_DEPTH - 2)
    assert found(feed.links, fetched(shallow + "</rss>")) == ["http://a.example/deep"]


def test_entities_are_neither_replaced_nor_fetched(tmp_path: Any) -> None:
    secret = tmp_path / "secret"
    secret.write_text("http://a.example/secret")
    laughs = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(12))
    outer = f'<!DOCTYPE rss SYSTEM "file://{secret}" [<!ENTITY e0 "http://a.example/laugh">{laughs}'
    outer += f'<!ENTITY file SYSTEM "file://{secret}">]>'
    body = f"{outer}<rss><link>&file;</link><link>&e12;</link><link href='&e12;'/><link>http://a.example/</link></rss>"
    values, _ = read(feed.links, fetched(body))
    assert not any("secret" in value for value in values) and sum(map(len, values)) < 100_000


def test_a_packed_bomb_is_read_up_to_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap, "MOST_BYTES", 1_000_000)
    entry = b"<url><loc>http://a.example/</loc></url>"
    values, cut = read(sitemap.links, fetched(gzip.compress(b"<urlset>" + entry * 1_000_000)))
    assert cut is not None and cut.reason == "bytes" and 20_000 < len(values) < 30_000


def test_style_sheets() -> None:
    sheet = r"""@import "a.css"; @IMPORT 'b.css' screen; @import url(c.css);
    /* url(no1) "*/ x { background: url( "d.png" ) } y { content: "url(no2)"; src: URL(e\).png), url('f\
g.png') }
    z { x: url(data:image/png;base64,AA), my-url(no3), url(); y: url(h.png } """
    assert found(css.links, fetched(sheet)) == ["a.css", "b.css", "c.css", "d.png", "e).png", "fg.png", "h.png"]
    assert css.unescaped(r"\41 b\000042c\zz") == "AbBczz"
    assert found(css.links, fetched('x { a: url("open\n url(b.png) } /* url(c.png)')) == ["b.png"]


def test_json() -> None:
    data = {
        "@context": "https://schema.org", "http://a.example/name": 1, "url": "http://a.example/1",
        "list": [["HTTPS://a.example/2", "see http://a.example/no"], "http:/no", "ftp://a.example/no"],
        "text": 'a "http://a.example/no" b', "slash": "http://a.example/ü?\"'",
    }  # fmt: skip
    expected = ["http://a.example/1", "HTTPS://a.example/2", "http://a.example/ü?\"'"]
    for text in (
        json.dumps(data),
        json.dumps(data, ensure_ascii=False, indent=2),
        json.dumps(data).replace("/", r"\/"),
    ):
        assert found(json_urls.links, fetched(text)) == expected
        assert found(json_urls.links, fetched(text.encode("utf-16"))) == expected
    assert found(json_urls.links, fetched("[" * 1_000_000 + '"http://a.example/"')) == ["http://a.example/"]
    long = json.dumps(["http://a.example/" + "a" * 10_000, "http://a.example/"])
    assert found(json_urls.links, fetched(" " * 2_500_000 + long)) == ["http://a.example/"]


VOCABULARY = {
    "@context": ["https://schema.org", {"@vocab": "http://v.example/", "t": {"@id": "http://v.example/t", "x": ["]"]}}],
    "@type": ["https://schema.org/Product", "http://b.example/"],
    "url": "https://a.example/1",
    "x": {"@context": "http://c.example/", "version": "https://a.example/v", "$schema": "http://json-schema.org/draft"},
    "@graph": [{"@context": {}, "@type": None, "@id": "http://a.example/#me"}],
    "home": {"version": "https://jsonfeed.org/version/1.1", "feed_url": "https://a.example/f"},
}
LINKS = ["https://a.example/1", "https://a.example/v", "http://a.example/#me", "https://a.example/f"]


@pytest.mark.parametrize("indent", [None, 2])
def test_names_of_vocabularies_are_no_links(indent: int | None) -> None:
    for text in (json.dumps(VOCABULARY, indent=indent), json.dumps(VOCABULARY, indent=indent).replace("/", r"\/")):
        assert found(json_urls.links, fetched(text)) == LINKS


@pytest.mark.parametrize("value", ['"half', "[[[", '[{"a": 1', "", "1"])
def test_a_vocabulary_that_does_not_end_is_read_once(value: str) -> None:
    text = ('"@context":' + value) * 20_000
    assert found(json_urls.links, fetched(text)) == []


def test_linked_data_in_html_is_read() -> None:
    data = json.dumps(VOCABULARY)
    page = (
        f"<p>x<script type='application/ld+json'>{data}</script><script>\"http://no.example/\"</script>"
        '<SCRIPT id=x type="application/ld+json;charset=utf-8">"http://k.example/"</SCRIPT>'
        '<script type=application/ld+json>"http://l.example/"'
    )
    assert list(filter(None, json_urls.embedded(page))) == [*LINKS, "http://k.example/", "http://l.example/"]
    for hostile in ("<script ", "<script type=application/ld+json>", '<script a><script type="'):
        assert not any(json_urls.embedded(hostile * 100_000))


@given(st.recursive(st.sampled_from(["http://a.example/\\", "https://b.example/", 'x"http://', "\\"]), st.lists))
def test_json_is_read_as_its_parser_reads_it(data: Any) -> None:
    def urls(value: Any) -> list[str]:
        if isinstance(value, str):
            return [value] if value.startswith(("http://", "https://")) else []
        return [url for one in value for url in urls(one)]

    assert found(json_urls.links, fetched(json.dumps(data))) == urls(data)


@pytest.mark.parametrize(
    ("content_type", "body", "kind"),
    [
        ("text/html", RSS, "html"),
        ("application/rss+xml", "", "feed"),
        ("application/xml", RSS, "feed"),
        ("text/xml", f"<!-- <html> -->{ATOM}", "feed"),
        ("", RDF.encode("utf-16"), "feed"),
        ("application/octet-stream", b"junk\n%PDF-1.4", "pdf"),
        ("application/pdf", b"", "pdf"),
        ("application/gzip", gzip.compress(INDEX.encode(), mtime=0), "sitemap"),
        ("application/xml", SITEMAP, "sitemap"),
        ("application/xml", "<data/>", ""),
        ("application/xhtml+xml", "", "html"),
        ("image/svg+xml", "<svg xmlns='x'/>", ""),
        ("application/ld+json", "", "json"),
        ("text/plain", '{"a": 1}', "json"),
        ("text/plain", "some text", ""),
        ("application/zip", b"PK", ""),
        ("", b"", ""),
        ("text/css", "", "css"),
    ],
)
def test_kinds(content_type: str, body: str | bytes, kind: str) -> None:
    assert kind_of(fetched(body, content_type)) == kind


def test_kinds_by_the_path() -> None:
    assert kind_of(fetched("a { }", "text/plain", "http://a.example/x.css?v=1")) == "css"
    assert kind_of(fetched("http://a.example/", "text/plain", "http://a.example/sitemap.txt")) == "sitemap"
    assert kind_of(fetched("http://a.example/", "text/plain", "http://[/x")) == ""


TEXTS = """<rss>|<urlset><url><loc>|</loc>|<link>|</link>|<link href='&e;'|<![CDATA[|]]>|<!--|xml:base="http://[|url(|/*
|<!DOCTYPE a [<!ENTITY e 'b'>]>|<?xml version='1.0' encoding='utf-16'?>|"|'|\\|@import|"http://a.example|%PDF-"""
PARTS = st.sampled_from(
    [
        *(text.encode() for text in TEXTS.split("|")),
        *(b"http://a.example/\n", b"\xff\xfe", b"\x1f\x8b\x08\x00", zlib.compress(b"<rss/>")),
        gzip.compress(b"<rss><link>http://a.example/</link>", mtime=0),
    ]
)


@pytest.mark.parametrize("name", READERS)
@given(st.lists(PARTS | st.binary(max_size=20), max_size=12).map(b"".join), st.sampled_from(["", "text/xml"]))
def test_whatever_the_bytes_nothing_else_is_raised_and_what_comes_is_bounded(
    name: str, body: bytes, content_type: str
) -> None:
    text = body.decode("latin-1")
    received = FetchedBody("http://a.example/", content_type, {"link": text, "refresh": text}, body)
    values, _ = read(READERS[name], received)
    assert len(values) <= 4 * len(body) + 10 and all(isinstance(value, str) for value in values)
    assert kind_of(received) in ("", "html", "feed", "sitemap", "pdf", "css", "json")
