"""UbiLinkExtractor beside Scrapy's LinkExtractor: the same links, and the exceptions, one by one."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scrapy.http import HtmlResponse, TextResponse, XmlResponse
from scrapy.link import Link
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

import scrapy_ubi
from scrapy_ubi.adapter.extraction import linkextractor
from scrapy_ubi.adapter.extraction.linkextractor import UbiLinkExtractor
from scrapy_ubi.urls.links.page import Page
from tests.support.crawls import crawl, items_of
from tests.support.site import Site
from tests.urls.links.pages import ADDRESS, BASES, HREFS, PAGES, page, tidy

CHOICES: list[dict[str, Any]] = [
    {},
    {"allow": r"page|h\.example", "deny": ["x$", re.compile("b")]},
    {"allow_domains": "h.example", "deny_domains": ["www.h.example"]},
    {"deny_domains": ["h.example", "Example.COM"]},
    {"deny_extensions": ()},
    {"deny_extensions": ["html", "tar.gz", "b/c"]},
    {"restrict_text": ["t[ew]", "b"], "unique": False},
    {"tags": "*", "attrs": ["href", "src"]},
    {"tags": ["a", "img", "frame", "iframe"], "attrs": ("src", "href"), "deny_extensions": []},
    {"tags": "*", "attrs": "*", "deny_tags": "base", "deny_attrs": ["rel", "class", "name", "target", "alt"]},
    {"tags": None},
    {"attrs": None},
    {"tags": "A"},
    {"attrs": "xlink:href"},
    {"attrs": "HREF"},
    {"canonicalize": True},
    {"canonicalize": True, "unique": False},
    {"strip": False},
    {"process_value": lambda value: None if "b" in value else value.replace("page", "p q")},
    {"restrict_css": ".m"},
    {"restrict_css": [".m", "li", "div"], "unique": False},
    {"restrict_css": "li", "canonicalize": True},
    {"restrict_xpaths": "//li"},
]


def same(response: HtmlResponse, **arguments: Any) -> None:
    """Of a page that nobody has looked at, and of one that was parsed for a selector."""
    fresh, parsed = response.replace(), response
    links = LinkExtractor(**arguments).extract_links(parsed)
    ours = UbiLinkExtractor(**arguments)
    for each in (fresh, parsed):
        assert ours.extract_links(each) == links
        assert ours.extract_urls(each) == [link.url for link in links]


@pytest.mark.parametrize("number", range(len(CHOICES)))
def test_a_made_corpus_with_every_argument(number: int) -> None:
    arguments = CHOICES[number]
    for text in PAGES:
        same(page(text), **arguments)
    for base in (ADDRESS, BASES[number % len(BASES)]):
        same(
            page("".join(f"<li><a href='{href}'>text of {href}</a>" for href in HREFS if "'" not in href), base),
            **arguments,
        )


@given(tidy, st.sampled_from(BASES), st.sampled_from(CHOICES))
def test_what_both_parsers_read_alike_has_the_same_links(text: str, address: str, arguments: dict[str, Any]) -> None:
    same(page(text, address), **arguments)


@pytest.mark.parametrize("charset", ["utf-8", "latin-1", "windows-1251", "shift_jis", "gb18030"])
def test_encodings(charset: str) -> None:
    text = "<a href='/é?ü=я日'>é я 日</a>"
    same(page(text, charset=charset))
    body = f"<meta charset={charset}>{text}".encode(charset, "xmlcharrefreplace")
    same(HtmlResponse(ADDRESS, body=body))


@pytest.mark.parametrize("charset", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_where_an_encoding_does_not_keep_ascii_queries_are_utf_8_as_in_a_browser(charset: str) -> None:
    text = "<a href='/é?ü=я日'>é я 日</a><a href='/?q=1'>1</a>"
    for parsed in (False, True):
        response = page(text, charset=charset)
        assert not parsed or response.css("a")
        assert [(link.url, link.text) for link in UbiLinkExtractor().extract_links(response)] == [
            (f"http://{urlsplit(ADDRESS).netloc}/%C3%A9?%C3%BC=%D1%8F%E6%97%A5", "é я 日"),
            (f"http://{urlsplit(ADDRESS).netloc}/?q=1", "1"),
        ]


@pytest.mark.parametrize(
    "arguments",
    [
        {"tags": ()},
        {"tags": None},
        {"deny_tags": ("a", "area")},
        {"tags": "a", "deny_tags": "a", "attrs": ["href", "src"]},
    ],
)
@pytest.mark.parametrize("more", [{}, {"restrict_css": "body"}, {"attrs": "*"}, {"unique": False}])
def test_no_tags_no_links(arguments: dict[str, Any], more: dict[str, Any]) -> None:
    same(page("<div><a href=x>x</a></div>"), **{**arguments, **more})


@given(st.binary(max_size=300), st.sampled_from(["utf-8", "latin-1", "utf-16", "shift_jis", "nonsense"]))
@example(b"<a href='http://[x'>", "utf-8")
@example(b"\x00<a href=\x00x>", "utf-8")
@example(b"<base href='http://[x'><a href=y>", "utf-8")
def test_no_bytes_raise(body: bytes, charset: str) -> None:
    marked = b"<a href=" + body + b">x</a><img srcset='" + body + b"'><meta name=robots content=" + body
    more = {"obey_nofollow": True, "frames": True, "canonical": True, "srcset": True}
    for extractor in (UbiLinkExtractor(), UbiLinkExtractor(tags="*", attrs="*", deny_extensions=(), **more)):
        for each in (body, marked):
            links = extractor.extract_links(page(each, charset=charset))
            assert all(type(link) is Link for link in links)
            assert extractor.extract_urls(page(each, charset=charset)) == [link.url for link in links]


@given(
    st.text(st.sampled_from("<>/abdehirtfmlp='\" \n#?&;"), max_size=200) | st.text(max_size=100), st.text(max_size=20)
)
def test_no_text_raises(text: str, address: str) -> None:
    UbiLinkExtractor().extract_links(HtmlResponse(address, body=text.encode("utf-8", "replace"), encoding="utf-8"))


class Rules(CrawlSpider):
    name = "rules"
    start_urls = ("http://h.example/",)
    extractor: type[LinkExtractor] = LinkExtractor

    def __init__(self) -> None:
        self.rules = (Rule(self.extractor(allow="/x"), callback="item", follow=True), Rule(self.extractor(), "item"))
        super().__init__()

    def item(self, response: HtmlResponse) -> Any:
        yield {"url": response.url, "text": response.meta["link_text"], "depth": response.meta["depth"]}


class OurRules(Rules):
    extractor = scrapy_ubi.LinkExtractor


def test_a_crawl_by_rules_is_the_same() -> None:
    with Site() as site:
        site.page("http://h.example/", "<a href=/x?a=1>1</a><a href='/y z'>2</a><a href=/z.pdf>3</a>")
        site.page("http://h.example/x?a=1", "<base href=/q/><a href=r>4</a><a href=../x>5</a><a href=#here>6</a>")
        for path in ("/y%20z", "/q/r", "/x", "/q/"):
            site.page(f"http://h.example{path}", "<a href=/>home</a>")
        theirs, ours = (items_of(crawl(spider, site.proxy)) for spider in (Rules, OurRules))
    by_url = [sorted(items, key=lambda item: item["url"]) for items in (theirs, ours)]
    assert by_url[0] == by_url[1]
    assert len(ours) >= 4


def test_it_is_scrapys_where_only_scrapys_can() -> None:
    same(page("<ul><li><a href=x>x</a></ul><a href=y>y</a>"), restrict_xpaths="//li")
    xml = XmlResponse(ADDRESS, body=b"<r><a href='x'>y</a></r>")
    assert UbiLinkExtractor().extract_links(xml) == LinkExtractor().extract_links(xml) != []
    text = TextResponse(ADDRESS, body=b"<a href=x>y</a>")
    assert UbiLinkExtractor().extract_links(text) == LinkExtractor().extract_links(text) != []
    # `!=` and :contains() are cssselect's own
    same(page("<p>x<a href=x>x</a></p><p>z<a href=y>y</a>"), restrict_css="p:contains('z')")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("allow_res", [re.compile(r"\.html")]),
        ("deny_res", [re.compile(r"\.html")]),
        ("allow_domains", {"other.example"}),
        ("deny_domains", {"other.example"}),
        ("deny_extensions", {".html"}),
        ("restrict_text", [re.compile("t")]),
        ("canonicalize", True),
        ("restrict_xpaths", ["//p"]),
    ],
)
def test_what_is_set_later_counts_from_then_on(name: str, value: object) -> None:
    response = page("<a href=/x?b&a#f>t</a><a href=/b.html>u</a><p><a href=http://other.example/>v</a></p>")
    ours, theirs = UbiLinkExtractor(), LinkExtractor()
    before = ours.extract_links(response)
    for extractor in (ours, theirs):
        setattr(extractor, name, value)
    links = theirs.extract_links(response)
    assert ours.extract_links(response) == links != before
    assert ours.extract_urls(response) == [link.url for link in links]


def test_links_are_whole() -> None:
    (link,) = UbiLinkExtractor().extract_links(page("<a href=x rel=nofollow>y</a>"))
    assert set(Link.__slots__) == {"url", "text", "fragment", "nofollow"}, "UbiLinkExtractor sets these four itself"
    assert link == Link(ADDRESS.replace("page.html?q=1", "x"), "y", "", True)
    assert repr(copy.deepcopy(link)) == repr(link) and copy.copy(link) == link


@pytest.mark.parametrize(
    "arguments", [{}, {"tags": ["a", "p"], "allow": "a", "deny_domains": "b.example"}, {"restrict_xpaths": "//p"}]
)
def test_an_extractor_may_be_copied_and_pickled(arguments: dict[str, Any]) -> None:
    """As Scrapy's: a spider's rules may be sent to another process."""
    response = HtmlResponse(ADDRESS, body=b"<p><a href=a>1</a><a href=b>2</a>", encoding="utf-8")
    extractor = UbiLinkExtractor(**arguments)
    links = extractor.extract_links(response)
    pickled = pickle.loads(pickle.dumps(extractor))  # noqa: S301 - by this very test
    for other in (copy.copy(extractor), copy.deepcopy(extractor), pickled):
        assert links and other.extract_links(response) == links


def test_extractors_of_one_page_parse_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []
    monkeypatch.setattr(linkextractor, "Page", lambda data: parsed.append(data) or Page(data))
    one, other = UbiLinkExtractor(allow="/x$"), UbiLinkExtractor(restrict_css="p")
    first, second = page("<a href=x>1</a><p><a href=y>2</a>"), page("<a href=z>3</a>")
    for response, found in ((first, ["1"]), (first, ["1"]), (second, []), (first, ["1"])):
        assert [link.text for link in one.extract_links(response)] == found
    assert [link.text for link in other.extract_links(first)] == ["2"]
    assert [response.body for response in (first, second, first)] == parsed


def test_matches_as_scrapys() -> None:
    ours, theirs = (kind(allow="x", deny_domains="b.example") for kind in (UbiLinkExtractor, LinkExtractor))
    for url in ("http://a.example/x", "http://b.example/x", "http://a.example/y"):
        assert ours.matches(url) == theirs.matches(url)


@pytest.mark.parametrize("option", ["obey_nofollow", "frames", "canonical", "srcset"])
def test_more_is_refused_where_scrapys_extractor_does_the_work(option: str) -> None:
    for arguments in ({"restrict_xpaths": "//p"}, {"restrict_css": "p:contains('x')"}):
        with pytest.raises(ValueError, match=f"{option}: not with restrict_xpaths"):
            UbiLinkExtractor(**arguments, **{option: True})


def urls(text: str, **arguments: Any) -> list[str]:
    return [
        link.url.removeprefix("http://www.example.com/a-b/c_d/")
        for link in UbiLinkExtractor(**arguments).extract_links(page(text))
    ]


def test_nofollow_is_obeyed_if_asked() -> None:
    some = "<a href=1>1</a><a href=2 rel='me NoFollow'>2</a>"
    assert urls(some) == ["1", "2"]
    assert urls(some, obey_nofollow=True) == ["1"]
    for says in ("nofollow", "NOINDEX,NoFollow", "none", "noarchive, none"):
        assert urls(f"<meta name=Robots content='{says}'>{some}", obey_nofollow=True) == []
        assert urls(f"<meta name=robots content='{says}'>{some}") == ["1", "2"]
    for meta in (
        "<meta name=robots content=noindex>",
        "<meta name=googlebot content=none>",
        "<meta name=robots content>",
    ):
        assert urls(meta + some, obey_nofollow=True) == ["1"]


def test_frames_canonical_and_srcset_in_the_order_of_the_page() -> None:
    text = (
        "<link rel=icon href=i><link rel='x CANONICAL' href=c><a href=1>1</a><iframe src=f></iframe>"
        "<img src=no srcset='s1 1x, s2.png 2x'><picture><source srcset=s3></picture><a href=2>2</a>"
    )
    assert urls(text, frames=True) == ["1", "f", "2"]
    assert urls(text, canonical=True) == ["c", "1", "2"]
    assert urls(text, srcset=True) == ["1", "s1", "s3", "2"]
    assert urls(text, srcset=True, frames=True, canonical=True, deny_extensions=()) == "c 1 f s1 s2.png s3 2".split()
    assert urls("<frameset><frame src=f><frame src=g>", frames=True) == ["f", "g"]


def both(text: str | bytes, **arguments: Any) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """URL and text of the links of a page: Scrapy's, and ours."""
    extractors = LinkExtractor(**arguments), UbiLinkExtractor(**arguments)
    first, second = (
        [(link.url.rpartition("/")[2], link.text) for link in each.extract_links(page(text))] for each in extractors
    )
    return first, second


@pytest.mark.parametrize(
    ("text", "scrapys", "ours"),
    [
        # anchors that are not closed, or closed out of turn
        ("<a href=1>1<li><a href=2>2", [("1", "12"), ("2", "2")], [("1", "1"), ("2", "2")]),
        ("<p><a href=1>x<p>y</a>", [("1", "xy")], [("1", "x")]),
        ("<a href=1><table><td><a href=2>y</a></table>z</a>", [("1", ""), ("2", "y")], [("1", "yz"), ("2", "y")]),
        # what is in a template is no part of the page
        ("<template><a href=1>x</a></template><a href=2>y</a>", [("1", "x"), ("2", "y")], [("2", "y")]),
        ("<a href=1>x<template>t</template></a>", [("1", "xt")], [("1", "x")]),
        # nothing follows a frameset; something may follow the end of the page
        ("<frameset></frameset><a href=1>x</a>", [("1", "x")], []),
        ("</br><a href=1>x</a></html><a href=2>y</a>", [("1", "x")], [("1", "x"), ("2", "y")]),
        # elements of SVG are no scripts, styles, titles
        ("<svg><style><a href=1>x</a></style></svg>", [], [("1", "x")]),
        ("<script/><a href=1>x</a>", [("1", "x")], []),
        ("<div>" * 3000 + "<a href=1>x</a>", [], [("1", "x")]),  # libxml2 gives up at 2,048 levels
        ("<a href=1><pre>\nx</pre></a>", [("1", "\nx")], [("1", "x")]),
    ],
)
def test_where_the_parsers_differ(text: str, scrapys: list[tuple[str, str]], ours: list[tuple[str, str]]) -> None:
    assert both(text) == (scrapys, ours)
    parsed = page(text)
    parsed.css("title")
    found = [(link.url.rpartition("/")[2], link.text) for link in UbiLinkExtractor().extract_links(parsed)]
    assert found == scrapys, "the links of the tree that the spider sees"


pieces = st.sampled_from(
    [
        "<a href=x>",
        "<a href='",
        "<AREA HREF=y ",
        "</a>",
        "<p>",
        "<td>",
        "<table>",
        "<title>",
        "<base href=b>",
        "<svg>",
        "<!--",
    ]
)


@given(
    st.lists(pieces | st.text(max_size=4)).map("".join) | st.binary(),
    st.sampled_from(["utf-8", "latin-1", "shift_jis"]),
)
@example("<a href>x</a><A HREF=y>x<!-- c -->y<?z a?></a><area href=z>", "utf-8")
@example("<svg><a xlink:href=x href=y>z</a></svg><x:a href=q>r</x:a>", "utf-8")
@example("", "utf-8")
def test_of_a_page_that_was_parsed_links_are_scrapys_whatever_it_is(text: str | bytes, charset: str) -> None:
    for arguments in CHOICES[:10]:
        try:
            links = LinkExtractor(**arguments).extract_links(parsed := page(text, charset=charset))
        except ValueError:  # a <base> that is no URL: then it was not parsed, either
            continue
        ours = UbiLinkExtractor(**arguments)
        if ours._off_tree:
            assert ours.extract_links(parsed) == links
            assert ours.extract_urls(parsed) == [link.url for link in links]


def test_what_a_spider_drops_from_a_page_is_no_link() -> None:
    parsed = page("<nav><a href=1>1</a></nav><p><a href=2>2</a></p>")
    parsed.css("nav")[0].drop()
    assert [link.text for link in UbiLinkExtractor().extract_links(parsed)] == ["2"]
    assert len(UbiLinkExtractor(obey_nofollow=True).extract_links(parsed)) == 2, "which lexbor parses anew"


def test_where_selectors_differ() -> None:
    assert both("<table><tr><td><a href=1>x</a></table>", restrict_css="table > tr") == ([("1", "x")], [])
    assert both("<div class=m><a href=1>x</a></div>", restrict_css=".M") == ([], [("1", "x")])
    assert both("<!DOCTYPE html><div class=m><a href=1>x</a></div>", restrict_css=".M") == ([], [])
    assert both("<a href=1 rel=nofollow>x</a>", restrict_css="a[rel='NOFOLLOW']") == ([], [("1", "x")])
    assert both("<a href=1>x</a>", restrict_css="a:enabled") == ([], [("1", "x")])
    assert both("<image src=1>", tags="img", attrs="src", deny_extensions=()) == ([], [("1", "")])


def test_regions_within_regions_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    elements = Page.elements
    monkeypatch.setattr(Page, "elements", lambda *arguments: read.append(1) or elements(*arguments))
    nested = "<a href=0>x</a>" + "<div>" * 100 + "<a href=1>y</a><p><a href=2>z</a></p>"
    same(page(nested), restrict_css=["p", "div"])
    assert len(read) == 4 * 2, "of links and of URLs, of two pages"
    same(page(nested), restrict_css=["div", "p"], unique=False)
    assert len(read) == 4 * (2 + 101)


def test_of_a_url_in_a_region_and_in_one_within_it_the_one_with_the_text_counts() -> None:
    nested = "<!doctype html><div><a href=x>foo</a><div><a href=x>bar</a></div></div>"
    same(page(nested), restrict_css="div", restrict_text="bar")
    same(page(nested), restrict_css="div", restrict_text="foo")


def test_a_base_that_is_no_url_is_no_base() -> None:
    response = page("<base href='http://[x'><a href=s>t</a>")
    with pytest.raises(ValueError, match="IPv6"):
        LinkExtractor().extract_links(response)
    assert [link.url for link in UbiLinkExtractor().extract_links(response)] == ["http://www.example.com/a-b/c_d/s"]


@pytest.mark.parametrize("parsed", [False, True])
def test_a_base_longer_than_any_url_is_no_base(parsed: bool) -> None:
    """Each link would have its length."""
    response = page("<base href='/" + "\U0001f600" * 4_000 + "/'><a href=s>t</a>")
    assert not parsed or response.css("a")
    assert UbiLinkExtractor().extract_urls(response) == ["http://www.example.com/a-b/c_d/s"]
    assert UbiLinkExtractor().extract_links(response) == [Link("http://www.example.com/a-b/c_d/s", "t")]
    assert UbiLinkExtractor(restrict_xpaths="//a").extract_links(response) == []


def test_where_scrapys_own_does_the_work_a_base_that_is_no_url_raises_nothing_either() -> None:
    text = "<base href='http://[x'><a href=s>t</a>"
    assert urls(text + "<ul><li>" * 40_000) == []
    assert urls(text, restrict_xpaths="//a") == []
    assert UbiLinkExtractor().extract_links(XmlResponse(ADDRESS, body=text.encode())) == []


@pytest.mark.parametrize("opened", ["<object>", "<div>"])
@pytest.mark.parametrize(
    "arguments",
    [{}, {"attrs": ["href", "src"]}, {"restrict_css": "a", "unique": False}],
    ids=["usual", "attributes", "regions"],
)
def test_links_within_links_take_no_gigabytes(opened: str, arguments: dict[str, Any]) -> None:
    """Each of them has the text of all that it is around."""
    links = 60 if "unique" in arguments else 900
    text = "".join(f"<a href={number}>{opened}" for number in range(links)) + "x" * 150_000
    for parsed in (False, True):
        response = page(text)
        assert not parsed or response.css("a")
        found = UbiLinkExtractor(**arguments).extract_links(response)
        assert {link.url.rpartition("/")[2] for link in found} == {str(number) for number in range(links)}
        assert sum(len(link.text) for link in found) <= linkextractor.MOST_TEXT + len(text)
        assert max(len(link.text) for link in found) == 150_000


def test_a_page_that_would_take_lexbor_seconds_is_scrapys() -> None:
    same(page("<a href=1 rel=nofollow>x</a><a href=2>y</a>" + "<ul><li>" * 40_000))
    deep = "<a href=1 rel=nofollow>x</a><a href=2>y</a>" + "<ul><li>" * 5_000
    assert urls(deep) == ["1", "2"]
    assert urls(deep, obey_nofollow=True) == ["2"]
    assert urls("<meta name=robots content=nofollow>" + deep, obey_nofollow=True) == []


def test_a_page_that_would_take_lexbor_gigabytes_is_scrapys() -> None:
    bold = "".join(f"<b {number}>" for number in range(4_000))
    same(page(f"<a href=1>x</a><p>{bold}" + "<p>x" * 4_000 + "<a href=2>y</a>"))
    same(page("<a href=1>x</a>" + "<ul\0><li\0>" * 20_000))
