"""LARM's files: fields of each line, links and their types, and pages that come back byte for byte."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse, Response
from scrapy.settings import Settings

from scrapy_ubi.adapter.extraction.linkextractor import UbiLinkExtractor
from scrapy_ubi.outputs import larm, larm_links
from scrapy_ubi.outputs.collector import Collector, find_outputs
from scrapy_ubi.outputs.graph.graph_store import ENDING
from scrapy_ubi.outputs.graph.numbered import Numbered, ends_of
from scrapy_ubi.outputs.larm import LarmStore
from scrapy_ubi.outputs.larm_links import FRAME, LINK, REDIRECT, LinkLines, parse_page, read
from scrapy_ubi.outputs.part_writer import Part
from scrapy_ubi.outputs.stores import Page as Kept
from scrapy_ubi.urls import normal_form
from tests.docs.test_blocks import names_in
from tests.outputs.kept import collected
from tests.support.crawls import Walk, crawl
from tests.support.site import Page, Site, links

HOME = "http://a.example/"
HOSTILE = "<title>A\ttitle\nof\r\n two\x0blines</title>"


def html(body: str, url: str = HOME) -> HtmlResponse:
    return HtmlResponse(url, body=body.encode(), encoding="utf-8", headers={"Content-Type": "text/html; x"})


def read_page(page: HtmlResponse) -> tuple[str, list[tuple[str, int, str]]]:
    """The title, and each line of links.log: where a link leads to, its type, its text."""
    parsed = parse_page(page.text)
    assert parsed is not None
    links = read(page, page.text, parsed)
    lines = LinkLines().format_links(page.url, links, normal_form).decode().split("\n")[:-1]
    fields = [line.split("\t") for line in lines]
    assert {len(one) for one in fields} <= {5} and {one[0] for one in fields} <= {page.url}
    return links.title, [(one[1], int(one[3]), one[4]) for one in fields]


def test_links_are_told_with_their_types_and_texts() -> None:
    page = html(
        '<title>T</title><a href="/x">a <b>text</b></a><a href="y"><img alt="ALT"></a><area href="z" alt="area">'
        '<iframe src="f"></iframe><a href="mailto:a@b">m</a><a href="http://[bad">b</a>'
    )
    title, found = read_page(page)
    assert title == "T"
    assert found[:4] == [
        ("http://a.example/x", LINK, "a text"),
        ("http://a.example/y", LINK, "ALT"),
        ("http://a.example/z", LINK, "area"),
        ("http://a.example/f", FRAME, ""),
    ]


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0; url=/next", "next"), ("5;URL='next'", "next"), ('3 , url = "next" x', "next"), ("1.5 next", "next"),
        ("0;next", "next"), ("0", None), ("0;", None), ("url=next", None), ("0; url=", None), ("", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("more", ["", "<area href='z'>"])
def test_a_meta_refresh_is_a_redirect(content: str, target: str | None, more: str) -> None:
    escaped = content.replace('"', "&quot;")
    found = read_page(html(f'<meta HTTP-EQUIV=Refresh content="{escaped}"><a href="x">t</a>{more}'))[1]
    expected = [(f"http://a.example/{target}", REDIRECT, "")] if target else []
    assert found[: len(expected) + 1] == [*expected, ("http://a.example/x", LINK, "t")]


def test_link_elements_count_where_they_are_hyperlinks() -> None:
    page = html(
        '<base href="/d/"><link rel=stylesheet href=s.css><link rel="shortcut icon" href=i>'
        '<link rel="Canonical" href=c>'
        '<link rel="alternate" title="A\tfeed" href="f"><link rel="alternate stylesheet" href=s2><link rel=next>'
        '<link href=none><link rel=preload href=p><a href="x">t</a>'
    )
    assert read_page(page)[1] == [
        ("http://a.example/d/c", LINK, ""),
        ("http://a.example/d/f", LINK, "A feed"),
        ("http://a.example/d/x", LINK, "t"),
    ]


SITE = [f"http://{host}.example/{path}" for host in "ab" for path in ("", "d/", "d/e/x.html?q=1", "d/e/y", "d//odd")]
VALUES = "x /x ../x ../../x ./x ?y=2 #top http://a.example/x http://B.example/ /%7e // a:b ... /a/../b .?x".split(" ")


@pytest.mark.parametrize("forms", [larm_links.FORMS, 3])
def test_what_is_remembered_of_other_pages_changes_no_line(forms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(larm_links, "FORMS", forms)
    chance, remembering = random.Random(forms), LinkLines()
    for _ in range(200):
        body = "".join(
            f'<{tag} {"src" if tag == "iframe" else "href"}="{chance.choice(VALUES)}">{number}</{tag}>'
            for number, tag in enumerate(chance.choices(("a", "a", "a", "iframe"), k=chance.randrange(8)))
        )
        page = html(body, chance.choice(SITE))
        parsed = parse_page(page.text)
        assert parsed is not None
        links = read(page, page.text, parsed)
        lines = remembering.format_links(page.url, links, normal_form)
        assert lines == LinkLines().format_links(page.url, links, normal_form), body


class Remembering(Walk):
    """Remembers the bodies that it was given."""

    def parse(self, response: Response) -> Iterator[Any]:
        self.crawler.bodies[response.url] = response.body
        yield from super().parse(response)


def test_every_page_comes_back_byte_for_byte(site: Site, tmp_path: Path) -> None:
    urls = [f"http://h{number % 3}.example/{number}" for number in range(9)]
    site.page(HOME, HOSTILE + links(*urls, "http://b.example/moved", "http://b.example/bytes"))
    for url in urls:
        site.page(url, HOSTILE + links(HOME, *urls) + "<a href='/x'>\t a \n b</a>")
    site.redirect("http://b.example/moved", urls[0] + "?x")
    site.page(urls[0] + "?x", "moved here")
    site.page("http://b.example/bytes", Page(bytes(range(256)) * 10))

    def prepare(crawlers: list[Crawler]) -> None:
        crawlers[0].bodies = {}

    (outcome,) = crawl(Remembering, site.proxy, settings={"UBI_STORES": "larm"}, with_crawlers=prepare, place=tmp_path)
    (directory,) = (path for path in (tmp_path / "a0/out/larm").iterdir() if path.is_dir())
    pages = names_in("docs/reference/stores.md", "def pages")["pages"]
    found = {page.url: page for page in pages(directory)}
    bodies = outcome.crawler.bodies
    assert {url: page.body for url, page in found.items() if page.status == 200} == bodies
    assert len(bodies) == 12
    assert found[HOME].title == "A title of two lines"
    stored = [line.split("\t") for line in (directory / "store.log").read_text().split("\n")[:-1]]
    assert {len(fields) for fields in stored} == {10}
    by_url = {fields[1]: fields for fields in stored}
    assert by_url[urls[0] + "?x"][3] == "2" and by_url["http://b.example/moved"][4] == "302"
    lines = [line.split("\t") for line in collected(tmp_path / "a0", store="larm", ending="links.log")]
    assert {len(fields) for fields in lines} == {5}
    assert ["http://b.example/moved", urls[0] + "?x", urls[0] + "?x=", "2", ""] in lines  # as store.log and frontier
    assert {(one[0], one[1]) for one in lines if one[3] == "0"} >= {(HOME, url) for url in urls}
    assert all(one[4] == "a b" for one in lines if one[1].endswith("/x"))


def graph_of(directory: Path, place: Path) -> set[tuple[str, str]]:
    """The arcs of what one agent has kept."""
    place.mkdir()
    graph = Numbered(Collector(find_outputs([directory]), "graph", ENDING, place), place)
    urls = [node.url.decode() for node in graph.nodes()]
    return {(urls[begin], urls[end]) for arcs in graph.arcs() for begin, end in zip(*ends_of(arcs), strict=True)}


@pytest.mark.parametrize("limit", [0, 1])
def test_the_log_has_what_the_page_has_and_the_graph_what_the_spider_asks_for(
    site: Site, tmp_path: Path, limit: int
) -> None:
    """What is promised of each: they differ by frames, and by what Scrapy's middlewares drop before it comes here."""
    page, frame, deep = (f"http://b.example/{name}" for name in ("page", "frame", "deep"))
    site.page(HOME, links(page) + f'<iframe src="{frame}"></iframe>')
    site.page(page, links(deep, HOME))
    site.page(deep, "the end")

    crawl(Walk, site.proxy, settings={"UBI_STORES": ["larm", "graph"], "DEPTH_LIMIT": limit}, place=tmp_path)
    fields = [line.split("\t") for line in collected(tmp_path / "a0", store="larm", ending="links.log")]
    logged = {(one[0], one[2]) for one in fields if one[3] == "0"}
    assert logged == {(HOME, page), (page, deep), (page, HOME)}
    assert {(one[0], one[2]) for one in fields if one[3] == "1"} == {(HOME, frame)}
    dropped = {(page, deep), (page, HOME)} if limit else set()
    assert graph_of(tmp_path / "a0", tmp_path / "place") == logged - dropped


LINKED = (
    '<title> T </title><a href="/x"> a  b </a><a href="../y?b=1&amp;a=2">y</a><a href>n</a><a href="http://[b">bad</a>'
    '<a name="n">n</a><a href=" /s p ">s</a><a href="#f"><img alt="ALT"></a><a href="//c.example/z">z\xa0</a>'
)


@pytest.mark.parametrize("more", ["", "<area href=/area alt=x>", "<base href=http://b.example/d/>"])
def test_the_log_is_the_same_whether_the_link_extractor_has_parsed_the_page(tmp_path: Path, more: str) -> None:
    logs = []
    for parsed in (False, True):
        store, page = LarmStore({}, Settings()), html(LINKED + more, f"{HOME}d/p.html")
        if parsed:
            UbiLinkExtractor().extract_links(page)
        payload = store.page(Kept("k", 0, "ok", Request(page.url), page.url, response=page))
        assert payload is not None and (payload.links is not None) is parsed
        part = Part(tmp_path, store, f"part{parsed}", 0.0)
        store.write(payload, part)
        part.write()
        logs.append({path.name: path.read_bytes() for path in (tmp_path / f"larm/part{parsed}").iterdir()})
    assert logs[0] == logs[1] and logs[0]["links.log.open"].count(b"\n") >= 5


def test_page_files_are_begun_before_they_are_too_large(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(larm, "MOST", 100)
    store = LarmStore({}, Settings())
    part = Part(tmp_path, store, "part", 0.0)
    for number, size in enumerate((60, 40, 1, 150, 10)):
        response = html("x" * size)
        payload = store.page(Kept(f"{number}", 0, "ok", Request(HOME), HOME, response=response))
        assert payload is not None
        store.write(payload, part)
    part.write()
    part.seal()
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "larm/part").glob("*.pfl")}
    assert sizes == {"pagefile_1.pfl": 100, "pagefile_2.pfl": 1, "pagefile_3.pfl": 150, "pagefile_4.pfl": 10}


def test_a_store_of_the_users_own_is_as_the_page_says(tmp_path: Path) -> None:
    heads = names_in("docs/reference/stores.md", "class Heads")["Heads"]({}, Settings())
    payload = heads.page(Kept("k", 0, "ok", Request(HOME), response=html("x")))
    part = Part(tmp_path, heads, "part", 0.0)
    heads.write(payload, part)
    assert part.end_of("json.gz") and payload["url"] == HOME


def test_links_within_links_have_a_bounded_text() -> None:
    page = html("<a href=/x><object>" * 9_000 + "word " * 20_000)
    parsed = parse_page(page.text)
    assert parsed is not None
    found = read(page, page.text, parsed)
    assert len(found.values) == len(found.texts) == 9_000
    assert sum(map(len, found.texts)) <= 9_000 * larm_links.LONGEST


def test_pages_that_are_not_read_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = LarmStore({}, Settings())
    part = Part(tmp_path, store, "part", 0.0)

    def title_of(response: HtmlResponse) -> bytes:
        payload = store.page(Kept("01", 0, "ok", Request(HOME), HOME, response=response))
        assert payload is not None
        store.write(payload, part)
        part.write()
        return (tmp_path / "larm/part/store.log.open").read_bytes().splitlines()[-1].split(b"\t")[7]

    for _ in range(2):
        assert title_of(html("<title>T</title>" + "<div><a href=/x>x</a>" * 20_000)) == b""
    assert not (tmp_path / "larm/part/links.log.open").exists()
    assert store.unread == 2 and len(caplog.records) == 1 and HOME in caplog.text
    assert title_of(html("<title>T</title><a href=/x>x</a>" + "<tr><td>x<td>y" * 6_000)) == b"T"
    assert (tmp_path / "larm/part/links.log.open").exists()
    assert store.unread == 2
