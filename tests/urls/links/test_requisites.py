"""What a page or style sheet needs to be shown: all of it, within bounds, whatever the bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.urls.links import requisites
from scrapy_ubi.urls.links.requisites import may_be_style, requisites_of_page, requisites_of_style

AT = "http://h.example/d/page"
HERE = "http://h.example/d/"
FAVICON = "http://h.example/favicon.ico"
PIECES = st.lists(
    st.sampled_from([
        "<img src=", "<img srcset='", "<link rel=stylesheet href=", "<style>", "</style>", "@import ", "url(", ")", "'",
        '"', ">", " 1x, ", ",", "(", "\\", "/*", "*/", "a.png", "//x.example/", "http://[", "data:,", "#", "\x00", "é",
        "\ud800", "<base href=", "@namespace ", ";", "<svg><use xlink:href=", "<p style='", " ", "\n",
    ])
    | st.text(max_size=5),
    max_size=40,
).map("".join)  # fmt: skip


@pytest.mark.parametrize(
    ("html", "urls"),
    [
        ('<img src="a.png">', ["a.png"]),
        ('<img src=" a.png\n">', ["a.png"]),
        ('<img srcset="a.png 1x, b.png 2x,c.png 100w">', ["a.png", "b.png", "c.png"]),
        ('<picture><source srcset="a.avif"><img src="a.png"></picture>', ["a.avif", "a.png"]),
        ('<img loading=lazy data-src="a.png">', ["a.png"]),
        ('<link rel="alternate Stylesheet" href="a.css"><link rel="next" href="no">', ["a.css"]),
        ('<link rel="shortcut icon" href="a.ico"><link rel="canonical" href="no">', ["a.ico"]),
        ('<link rel=preload as=font href=a.woff2><link rel=preload as=fetch href=no>', ["a.woff2"]),
        ('<script src="a.js"></script><script>"b.js"</script>', ["a.js"]),
        ("<style>@import 'a.css'; p { background: url( b.png ) } /* url(no) */</style>", ["a.css", "b.png"]),
        ('<p style="background: url(&quot;a.png&quot;)">', ["a.png"]),
        ('<table background="a.png"></table><video poster="b.png" src="no"></video>', ["a.png", "b.png"]),
        ('<input type="image" src="a.png"><input src="no">', ["a.png"]),
        ('<svg><image href="a.png" /><use xlink:href="b.svg#c" /><use href="#c" /></svg>', ["a.png", "b.svg"]),
        ('<object data="a.svg"></object><iframe src="no"></iframe><a href="no.png">x</a>', ["a.svg"]),
        ('<noscript><img src="a.png"></noscript>', ["a.png"]),
        ('<img src="data:,x"><img src="javascript:x"><img src=""><img src="#x">', []),
        ('<img src="a.png#x"><img src="a.png">', ["a.png"]),
        ("<style>@namespace url(http://www.w3.org/1999/xhtml); p { background: url(a.png) }</style>", ["a.png"]),
    ],
)  # fmt: skip
def test_what_a_page_needs_is_found(html: str, urls: list[str]) -> None:
    found = requisites_of_page(html, AT).urls
    assert [url for url in found if url != FAVICON] == [HERE + url for url in urls]
    assert (FAVICON in found) == ("icon" not in html)


def test_urls_are_joined_to_the_base_of_the_page() -> None:
    html = (
        '<base href="//o.example/b/"><img src="a.png"><img src="/a.png"><script src="https://x.example/s.js"></script>'
    )
    found = ["http://o.example/b/a.png", "http://o.example/a.png", "https://x.example/s.js"]
    assert requisites_of_page(html, AT).urls == [*found, FAVICON]


def test_what_a_style_sheet_needs_is_found() -> None:
    css = b"""@charset "utf-8"; @import url("a.css") screen; @import 'b.css'; /* url(no) */ q { content: "url(no)" }
    @font-face { src: url(f.eot?#iefix), url( 'f.woff2' ) } p { background: URL(a\\20 b.png), url(data:,x), url(#x) }"""
    urls = ["a.css", "b.css", "f.eot", "f.woff2", "a%20b.png"]
    assert [url.removesuffix("?") for url in requisites_of_style(css, AT).urls] == [HERE + url for url in urls]


@given(PIECES)
def test_whatever_the_text_there_is_no_exception_and_all_are_urls_of_the_web(text: str) -> None:
    for found in (requisites_of_page(text, AT), requisites_of_style(text.encode("utf-8", "surrogatepass"), AT)):
        assert all(url.startswith(("http://", "https://")) and "#" not in url for url in found.urls)
        assert len(found.urls) == len(set(found.urls))


def test_bounds_are_kept_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requisites, "MOST_TEXT", 1000)
    monkeypatch.setattr(requisites, "MOST_LOOKED_AT", 10)
    found = requisites_of_page("".join(f"<img src={number}.png>" for number in range(1000)), AT)
    assert 0 < len(found.urls) <= 11 and found.left_out == {"bytes": 1, "number": 1}
    assert requisites_of_page(f'<img src="{"a" * 9000}">', AT).left_out["url"] == 0  # cut before its end
    monkeypatch.setattr(requisites, "MOST_TEXT", 1_000_000)
    found = requisites_of_page(f"<p {' '.join(f'a{number}=1' for number in range(40_000))}><img src=a.png>", AT)
    assert found.urls == [] and found.left_out == {"costly": 1}


@pytest.mark.parametrize(
    ("url", "may"), [("a.css", True), ("css?f=a", True), ("a", True), ("a.PNG?x", False), ("f.woff2", False)]
)
def test_endings_tell_what_is_no_style_sheet(url: str, may: bool) -> None:
    assert may_be_style(HERE + url) is may
