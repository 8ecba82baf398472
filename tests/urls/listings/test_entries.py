"""Entries of sitemaps and feeds, and their times."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.urls.links.handlers.bounds import LinksCut, Unreadable
from scrapy_ubi.urls.listings.entries import (
    Entries,
    Listed,
    feed_entries,
    read_time,
    shown_time,
    sitemap_entries,
    start_of,
)

A, B = "http://a.example/1", "http://a.example/2"
XML = f"""<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
 xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"><url><loc> {A} </loc><lastmod>2026-11-27</lastmod>
<image:image><image:loc>http://a.example/1.png</image:loc></image:image></url><url><lastmod>2026</lastmod></url>
<url><loc>{B}</loc></url></urlset>"""
INDEX = f"<sitemapindex><sitemap><loc>{A}</loc><lastmod>2026-11-27</lastmod></sitemap></sitemapindex>"
RSS = f"""<rss><channel><link>http://a.example/</link><pubDate>Sat, 28 Nov 2026 11:00:00 GMT</pubDate>
<image><link>http://a.example/logo</link></image><item><link>{A}</link><guid>http://a.example/g</guid>
<pubDate>Sat, 28 Nov 2026 10:00:00 GMT</pubDate></item><item><guid>{B}</guid></item>
<item><guid isPermaLink="false">{B}3</guid></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://a.example/x/"><link href="/"/>
<updated>2026</updated>
<entry><link rel="edit" href="e"/><link href="../1"/><link rel="alternate" href="no"/>
<updated>2026-11-27T01:02:03Z</updated></entry></feed>"""
JSON = {
    "version": "https://jsonfeed.org/version/1.1",
    "items": [{"url": A, "date_published": "2026-11-27", "date_modified": "2026-11-28"}, {"id": "no"}, {"url": B}],
}


def read(entries: Entries) -> tuple[list[Listed], str]:
    """All entries, and why there may be more."""
    found = []
    try:
        found += [entry for entry in iter_of(entries, found) if entry is not None]
    except LinksCut as cut:
        return found, cut.reason
    return found, ""


def iter_of(entries: Entries, found: list[Listed]) -> Entries:
    """The entries; those that came before an error are kept."""
    while True:
        try:
            entry = next(entries)
        except StopIteration:
            return
        if entry is not None:
            found.append(entry)
        yield None


def test_sitemaps_of_any_form() -> None:
    expected = [Listed(A, "2026-11-27"), Listed("", "2026"), Listed(B)]
    for body in (XML.encode(), gzip.compress(XML.encode()), XML.encode("utf-16"), b"\xef\xbb\xbf" + XML.encode()):
        assert read(sitemap_entries(body)) == (expected, "")
    assert read(sitemap_entries(f"# no URL\n{A}\r\n{B}".encode())) == ([Listed(A), Listed(B)], "")
    assert read(sitemap_entries(INDEX.encode())) == ([Listed(A, "2026-11-27", is_sitemap=True)], "")


def test_feeds_of_any_form() -> None:
    when = "Sat, 28 Nov 2026 10:00:00 GMT"
    assert read(feed_entries(RSS.encode())) == ([Listed(A, when), Listed(B)], "")
    assert read(feed_entries(ATOM.encode())) == ([Listed(A, "2026-11-27T01:02:03Z")], "")
    assert read(feed_entries(json.dumps(JSON).encode())) == ([Listed(A, "2026-11-28"), Listed(B)], "")


@pytest.mark.parametrize("read_entries", [sitemap_entries, feed_entries])
@pytest.mark.parametrize("body", [b"", b"no", b"{}", b"[1]", b'{"version": 1}', b"<html><loc>x</loc></html>", b"["])
def test_what_is_no_such_list_is_unreadable(read_entries: Callable[[bytes], Entries], body: bytes) -> None:
    with pytest.raises(Unreadable):
        list(read_entries(body))


@pytest.mark.parametrize("read_entries", [sitemap_entries, feed_entries])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_of_its_own_refuse_a_document(read_entries: Callable[[bytes], Entries], encoding: str) -> None:
    laughs = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(12))
    text = f'<!DOCTYPE x [<!ENTITY e0 "ha">{laughs}]><urlset><url><loc>{A}&e12;</loc></url></urlset>'
    assert read(read_entries(text.encode(encoding))) == ([], "entities")


def test_a_bomb_is_read_up_to_its_bound() -> None:
    body = gzip.compress(b"<urlset>" + f"<url><loc>{A}</loc></url>".encode() * 200_000)
    found, cut = read(sitemap_entries(body, 1_000_000))
    assert cut == "bytes" and 10_000 < len(found) < 40_000


def test_one_that_breaks_off_says_so() -> None:
    broken = XML[: XML.index("<url><lastmod>")].encode()
    assert read(sitemap_entries(broken)) == ([Listed(A, "2026-11-27")], "malformed")


urls = st.text(alphabet="abc/?=&;#%é<>\"' ", max_size=20).map(lambda rest: f"http://a.example/{rest.strip()}")


@given(st.lists(st.tuples(urls, st.sampled_from(["", "2026-11-27", "2026-11-27T01:02:03+01:00", "odd"])), min_size=1))
def test_what_is_written_by_the_rules_is_read_back(entries: list[tuple[str, str]]) -> None:
    rows = "".join(
        f"<url><loc>{escape(url)}</loc>{f'<lastmod>{when}</lastmod>' if when else ''}</url>" for url, when in entries
    )
    assert read(sitemap_entries(f"<urlset>{rows}</urlset>".encode())) == ([Listed(*one) for one in entries], "")


pieces = st.sampled_from(
    "<urlset>|</urlset>|<url>|</url>|<loc>|</loc>|<rss>|<item>|</item>|<link>|<entry>|<guid>|http://a.example/|&amp;|&|"
    '<![CDATA[|]]>|<!DOCTYPE x [<!ENTITY|\x00|{|"items": [|é|\n|<sitemapindex>|<sitemap>|<lastmod>'.split("|")
)


@given(st.binary(max_size=300) | st.lists(pieces, max_size=40).map(lambda parts: "".join(parts).encode()))
def test_whatever_the_bytes_nothing_else_is_raised(body: bytes) -> None:
    for read_entries in (sitemap_entries, feed_entries):
        for entry in read(read_entries(body))[0]:
            assert isinstance(entry, Listed)


@pytest.mark.parametrize(
    ("text", "when", "shown"),
    [
        ("2026-11-28T01:02:03Z", 1795827723.0, "2026-11-28T01:02:03+00:00"),
        ("2026-11-28T02:02:03+01:00", 1795827723.0, "2026-11-28T02:02:03+01:00"),
        (" 2026-11-28 ", 1795910399.0, "2026-11-28"),
        ("Sat, 28 Nov 2026 01:02:03 GMT", 1795827723.0, "2026-11-28T01:02:03+00:00"),
        ("2026-11", 0.0, ""),
        ("0001-01-01", 0.0, "0001-01-01"),
        ("yesterday at noon", 0.0, ""),
        ("", 0.0, ""),
    ],
)
def test_times(text: str, when: float, shown: str) -> None:
    assert (read_time(text), shown_time(text)) == (when, shown)


@given(st.text(max_size=50))
def test_any_text_may_stand_for_a_time(text: str) -> None:
    assert read_time(text) >= 0
    assert isinstance(shown_time(text), str)
    start = start_of(text)
    assert start is None or isinstance(start, float)
