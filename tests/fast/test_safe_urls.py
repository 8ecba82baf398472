"""The safe form of a URL: w3lib's, whatever the URL, and whatever its encoding."""

from __future__ import annotations

from urllib.parse import ParseResult, urlparse

import scrapy.http.request as requests
from hypothesis import example, given
from hypothesis import strategies as st
from scrapy import Request
from scrapy.utils import httpobj
from w3lib.url import safe_url_string

from scrapy_ubi.fast import safe_urls
from scrapy_ubi.fast.safe_urls import FastSafeUrls, parts_of, safe_form

PIECES = [
    *"http:// https:// HTTP:// http: // h h.example H.example a-b.example xn--a.example".split(),
    *"a--b.example 1.2.3.4 1.2 08 localhost [::1] a.b 3.com".split(),
    *":80 :443 :8080 :0 :99999 :08 / /a /A/b //".split(),
    *". .. /../ /./ ? ?a=b ?a=b&c=d # #f % %7e %7E %zz %C3%BC ; , = + @ user:pw@".split(),
    *"' ( ) * ! $ & ~ _ | \\ ^ ` { } [ ] \" < > \t \n \u00fc \u4e2d \x00 \x7f \u2028".split(" "),
    "a" * 64,
]  # fmt: skip
ENCODINGS = st.sampled_from(
    ["utf-8", "utf8", "ascii", "iso-8859-1", "cp1252", "utf-16", "utf-7", "shift_jis", "cp037", "hz"]
)
urls = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=8).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=8).map(lambda pieces: "http://h.example/" + "".join(pieces)),
    st.text(st.characters(max_codepoint=127), max_size=20).map("https://www.a-b.example/".__add__),
    st.from_regex(safe_urls.is_safe.__self__, fullmatch=True),
)


def outcome(function: object, *arguments: str) -> object:
    try:
        return function(*arguments)  # type: ignore[operator]
    except Exception as error:  # noqa: BLE001 - compared
        return type(error)


@example("http://h.example/a?b=c&d=%20'", "utf-16")
@example("http://h.example:80/", "utf-8")
@example("http://h.example:99999/", "utf-8")
@given(urls, ENCODINGS)
def test_the_safe_form_is_that_of_w3lib(url: str, encoding: str) -> None:
    assert outcome(safe_form, url, encoding) == outcome(safe_url_string, url, encoding)


def test_usual_urls_are_not_taken_apart() -> None:
    for url in (
        "http://h0001.example/p/12345.html",
        "https://www.a-b.example/a/b_c-d?page=2&sort=up",
        "http://a.example:8080/",
        "http://127.0.0.1:65535/a%20b/%C3%BC.html",
        "http://localhost/",
    ):
        assert safe_form(url) is url


@example("http://h;p?a;b#c;d")
@example("http://h/a;b/c")
@given(urls)
def test_the_parts_are_those_of_python(url: str) -> None:
    assert outcome(parts_of, url) == outcome(urlparse, url)
    assert type(parts_of("http://h.example/a?b")) is ParseResult


def test_requests_ask_here_while_a_spider_is_open_and_no_longer() -> None:
    undo = FastSafeUrls.change()
    try:
        assert requests.safe_url_string is safe_form  # type: ignore[attr-defined]
        assert httpobj.urlparse is parts_of  # type: ignore[attr-defined, comparison-overlap]
        assert Request("http://h.example/a b").url == "http://h.example/a%20b"
    finally:
        undo()
    assert requests.safe_url_string is safe_url_string  # type: ignore[attr-defined]
    assert httpobj.urlparse is urlparse  # type: ignore[attr-defined]


def test_another_function_in_its_place_stays(monkeypatch: object) -> None:
    theirs = lambda url, encoding: url  # noqa: E731
    monkeypatch.setattr(requests, "safe_url_string", theirs)  # type: ignore[attr-defined]
    FastSafeUrls.change()()
    assert requests.safe_url_string is theirs  # type: ignore[attr-defined]
