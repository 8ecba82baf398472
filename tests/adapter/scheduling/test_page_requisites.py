"""Requisites of pages: archived with them, politely, once, and unseen by the spider."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from lxml import html
from scrapy import Request, Spider
from scrapy.exceptions import CloseSpider
from scrapy.http import Response, TextResponse
from warcio.archiveiterator import ArchiveIterator

from scrapy_ubi.adapter.requests.check import REQUISITE
from scrapy_ubi.adapter.scheduling import page_requisites
from scrapy_ubi.adapter.scheduling.page_requisites import Mark
from tests.support.crawls import Outcome, crawl, items_of, total
from tests.support.site import Page, Site

HOST, OTHER = "http://h0.example", "http://h1.example"
CSS = {"Content-Type": "text/css"}
PNG = {"Content-Type": "image/png"}
SETTINGS: dict[str, Any] = {"ROBOTSTXT_OBEY": True, "UBI_STORES": ["warc(requisites=yes)", "larm"]}


class Walk(Spider):
    """All links of HOST, and an item of each page."""

    name = "walk"
    start_urls = (f"{HOST}/",)
    allowed_domains = ("h0.example",)

    def parse(self, response: Response) -> Iterator[Any]:
        yield f"{response.url} {response.meta.get('depth', 0)}"
        if isinstance(response, TextResponse):
            yield from response.follow_all(css="a::attr(href)")


def build(site: Site) -> None:
    """Three pages of one host; styles, images, a font and a script of two."""
    both = '<link rel="stylesheet" href="/a.css"><img src="/pic.png"><a href="/pic.png">larger</a>'
    site.page(f"{HOST}/", f'{both}<a href="/1">1</a><a href="/2">2</a><script src="{OTHER}/s.js"></script>')
    site.page(f"{HOST}/1", f'{both}<img src="x.png" srcset="/x2.png 2x"><img src="{OTHER}/no.png"><a href="/2">2</a>')
    site.page(f"{HOST}/2", f'{both}<link rel="icon" href="/gone.ico"><style>p {{background: url(/moved.png)}}</style>')
    site.page(f"{HOST}/a.css", Page("@import 'b.css';", headers=CSS))
    site.page(f"{HOST}/b.css", Page(f"@import 'a.css'; @font-face {{src: url({OTHER}/f.woff2#iefix)}}", headers=CSS))
    for url in (f"{HOST}/pic.png", f"{HOST}/x.png", f"{HOST}/x2.png", f"{OTHER}/new.png", f"{OTHER}/no.png"):
        site.page(url, Page(url, headers=PNG))
    site.page(f"{OTHER}/s.js", Page("1", headers={"Content-Type": "text/javascript"}))
    site.page(f"{OTHER}/f.woff2", Page("font", headers={"Content-Type": "font/woff2"}))
    site.redirect(f"{HOST}/moved.png", f"{OTHER}/new.png")
    site.page(f"{OTHER}/robots.txt", "User-agent: *\nDisallow: /no\n")


def crawled(site: Site, directory: Path, agents: int = 1, **settings: Any) -> list[Outcome]:
    """A crawl whose agents have their directories here."""
    return crawl(Walk, site.proxy, agents, settings=SETTINGS | settings, place=directory)


def archived(directory: Path) -> dict[str, list[tuple[str, bytes]]]:
    """URL -> content type or Location, and body of its responses, by the indexes."""
    found: dict[str, list[tuple[str, bytes]]] = {}
    for index in directory.glob("*/out/warc/*.cdxj"):
        for line in index.read_text().splitlines():
            fields = json.loads(line.split(" ", 2)[2])
            with (index.parent / fields["filename"]).open("rb") as file:
                file.seek(int(fields["offset"]))
                record = next(iter(ArchiveIterator(file)))
                kind = record.http_headers.get_header("Location") or record.http_headers.get_header("Content-Type")
                body = record.content_stream().read()
            if record.rec_type == "response":
                found.setdefault(fields["url"], []).append((kind or "", body))
    return found


def missing(archive: dict[str, list[tuple[str, bytes]]]) -> set[str]:
    """What a browser would ask the archive for, and not get: by other means than those of the crawl."""
    lacking = set[str]()
    for url, answers in archive.items():
        for kind, body in answers:
            lacking |= {one for one in needed(url, kind, body) if one not in archive}
    return lacking


def needed(url: str, kind: str, body: bytes) -> set[str]:
    """What one answer needs."""
    text = body.decode("utf-8", "replace")
    if kind.startswith("http"):
        return {kind}
    if kind.startswith("text/css"):
        return {urljoin(url, one).partition("#")[0] for one in in_style(text)}
    if not kind.startswith("text/html") or not text.strip():
        return set()
    tree = html.fromstring(body)
    found = [] if tree.xpath("//link[@rel='icon']") else ["/favicon.ico"]
    found += [str(one) for one in tree.xpath("//img/@src|//script/@src|//link[@rel='stylesheet' or @rel='icon']/@href")]
    found += [one.split()[0] for listed in tree.xpath("//img/@srcset") for one in str(listed).split(",")]
    found += [one for style in tree.xpath("//style/text()|//*/@style") for one in in_style(str(style))]
    return {urljoin(url, one).partition("#")[0] for one in found if not one.startswith("data:")}


def in_style(text: str) -> list[str]:
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    found = re.findall(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)", text)
    return [one or other for one, other in found if not (one or other).startswith("data:")]


@pytest.mark.parametrize(("agents", "more"), [(1, {}), (2, {}), (1, {"UBI_FAST": True, "UBI_LEAN": True})])
def test_all_that_pages_need_is_archived_once_and_the_spider_sees_pages_alone(
    site: Site, tmp_path: Path, agents: int, more: dict[str, Any]
) -> None:
    build(site)
    filters = ["scope(hosts=h0.example)", "depth(1)"]
    outcomes = crawled(site, tmp_path, agents, UBI_FILTERS=filters, **more)
    assert items_of(outcomes) == [f"{HOST}/ 0", f"{HOST}/1 1", f"{HOST}/2 1", f"{HOST}/pic.png 1"]
    asked = {url: number for url, number in site.urls().items() if not url.endswith("/robots.txt")}
    assert asked.pop(f"{HOST}/pic.png") == 2  # as a page, and as what pages need
    assert set(asked.values()) == {1} and asked[f"{HOST}/favicon.ico"]
    archive = archived(tmp_path)
    assert missing(archive) - {f"{OTHER}/favicon.ico"} == {f"{OTHER}/no.png"}  # robots.txt forbids it
    assert archive[f"{HOST}/gone.ico"] and f"{OTHER}/no.png" not in asked
    told = {
        name: total(outcomes, f"ubi/requisites/{name}") for name in ("fetched", "failed/http/404", "left_out/robots")
    }
    assert told == {"fetched": 8, "failed/http/404": 2, "left_out/robots": 1}
    assert not any(stat.startswith("ubi/failed/") for outcome in outcomes for stat in outcome.stats)
    assert total(outcomes, "ubi/store/larm/pages") == 4  # other stores have pages alone
    links = [path.read_text() for path in tmp_path.glob("a*/out/larm/*/links.log")]
    assert links and not any(".css" in text or ".ico" in text for text in links)
    assert max(site.most_at_once.values()) == 1


def test_without_the_argument_nothing_looks_for_any(site: Site, tmp_path: Path) -> None:
    build(site)
    (outcome,) = crawled(site, tmp_path, UBI_STORES=["warc"])
    assert f"{HOST}/a.css" not in site.urls()
    assert not any(stat.startswith("ubi/requisites/") for stat in outcome.stats)


def test_bounds_hold_and_what_is_left_out_is_counted(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of many images; style sheets that import each other without end; a file that is too large."""
    monkeypatch.setattr(page_requisites, "MOST_OF_PAGE", 4)
    monkeypatch.setattr(page_requisites, "MOST_NESTING", 2)
    monkeypatch.setattr(page_requisites, "MOST_BYTES", 1000)
    icon = '<link rel="icon" href="data:,">'
    images = icon + "".join(f'<img src="/{number}.png">' for number in range(9))
    site.page(f"{HOST}/", f'<link rel="stylesheet" href="/0.css"><img src="/large.png">{images}')
    site.page(f"{HOST}/large.png", Page(b"x" * 2000, headers=PNG))
    for number in range(9):
        site.page(f"{HOST}/{number}.css", Page(f"@import '{number + 1}.css'; p {{color: red}}", headers=CSS))
        site.page(f"{HOST}/{number}.png", Page(f"{number}", headers=PNG))
    (outcome,) = crawled(site, tmp_path)
    asked = Counter(url.rpartition(".")[2] for url in site.urls())
    assert asked["png"] == 3 and asked["css"] == 3
    found = {stat.rpartition("/")[2]: number for stat, number in outcome.stats.items() if "requisites/left_out" in stat}
    assert found == {"number": 7, "bytes": 1, "nesting": 1}


def test_a_style_sheet_that_is_a_page_brings_what_it_needs(site: Site, tmp_path: Path) -> None:
    site.page(f"{HOST}/", '<a href="/a.css">style</a>')
    site.page(f"{HOST}/a.css", Page("p {background: url(x.png)}", headers=CSS))
    site.page(f"{HOST}/x.png", Page("x", headers=PNG))
    (outcome,) = crawled(site, tmp_path, UBI_DUPLICATES="near(3, skip)")
    assert items_of([outcome]) == [f"{HOST}/ 0", f"{HOST}/a.css 1"]
    assert site.urls()[f"{HOST}/x.png"] == 1 and not missing(archived(tmp_path))


def test_of_a_page_that_may_not_be_kept_nothing_is_asked_for(site: Site, tmp_path: Path) -> None:
    site.page(f"{HOST}/", '<head><meta name="robots" content="noarchive"></head><img src="/x.png">')
    crawled(site, tmp_path)
    assert f"{HOST}/x.png" not in site.urls()


class Stops(Walk):
    """Closes after its first page, unless it is to go on."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield response.url
        if not self.settings["TEST_GO_ON"]:
            raise CloseSpider("enough")


@pytest.mark.parametrize("requisites", ["yes", "no"])
def test_what_waits_survives_a_restart_and_is_no_page_even_when_it_is_wanted_no_longer(
    site: Site, tmp_path: Path, requisites: str
) -> None:
    site.page(f"{HOST}/", '<link rel="icon" href="/x.png">')
    site.page(f"{HOST}/robots.txt", "User-agent: *\nCrawl-delay: 0.3\n")
    site.page(f"{HOST}/x.png", Page("x", headers=PNG))
    settings = {**SETTINGS, "UBI_DIR": str(tmp_path)}
    first = crawl(Stops, site.proxy, settings=settings)
    settings |= {"UBI_STORES": [f"warc(requisites={requisites})"], "TEST_GO_ON": True}
    second = crawl(Stops, site.proxy, settings=settings)
    assert (first[0].reason, second[0].reason) == ("enough", "finished")
    assert items_of([*first, *second]) == [f"{HOST}/"]
    assert site.urls()[f"{HOST}/x.png"] == 1
    assert total(second, "ubi/failed/callback/RuntimeError") == (requisites == "no")


@pytest.mark.parametrize("value", [None, 1, [1], ["1", 1], [True, 1], [1, 2, 3], {}])
def test_a_mark_that_does_not_hold_leads_nowhere(value: Any) -> None:
    assert Mark.from_request(Request(HOST, meta={REQUISITE: value})) == Mark(0, 0)
    assert Mark.from_request(Request(HOST)) is None
    assert Mark.from_request(Request(HOST, meta={REQUISITE: [10**9, 10**9]})) == Mark(5000, 5)
