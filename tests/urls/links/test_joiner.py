"""Joining and judging: letter by letter what Scrapy, urllib and w3lib make of the same text."""

from __future__ import annotations

import re
import tracemalloc
from urllib.parse import urljoin, urlparse

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scrapy.linkextractors import IGNORED_EXTENSIONS
from scrapy.utils.url import url_has_any_extension, url_is_from_any_domain
from w3lib.url import safe_url_string

from scrapy_ubi.urls.links.allowed import Allowed, DeniedExtensions, Domains
from scrapy_ubi.urls.links.joiner import Joiner, plain
from tests.urls.links.pages import ADDRESS, BASES, HREFS, hrefs


def at_length(base: str, address: str, encoding: str, value: str) -> str | None:
    """What Scrapy's extractor does to a value."""
    try:
        return urljoin(address, safe_url_string(urljoin(base, value), encoding=encoding))
    except ValueError:
        return None


@pytest.mark.parametrize("base", BASES)
def test_every_value_on_every_base(base: str) -> None:
    for encoding in ("utf-8", "latin-1", "shift_jis"):
        joiner = Joiner(base, ADDRESS, encoding)
        for value in HREFS:
            assert joiner.join(value) == at_length(base, ADDRESS, encoding, value), (base, value)


@given(hrefs | st.text(max_size=20), st.sampled_from(BASES))
@example("http://h.example/a'b?c#d", ADDRESS)
def test_any_text(value: str, base: str) -> None:
    assert Joiner(base, base, "utf-8").join(value) == at_length(base, base, "utf-8", value)


def test_usual_links_take_the_short_way() -> None:
    joiner = Joiner("http://www.ex-1.example:8080/a-b/c_1/p.html", ADDRESS, "utf-8")
    assert joiner.folder == "http://www.ex-1.example:8080/a-b/c_1/"
    for value in ("x-1.html#a", "/wiki/Talk:X?a=1&b=2", "https://h-2.example/x", "../x", "../../x/", "./x", "?a", "#a"):
        assert joiner.shortly(value) is not None, value
    for value in ("a b", "é", "mailto:x", "//h/x", "a;", ""):
        assert joiner.shortly(value) is None, value


@pytest.mark.parametrize(
    "value",
    [
        "x/../y", "a//b", "a;b", "a b", "é", "/größe?ü#ö", "a[1]|b", "?x=a'b", "http://u:p@h.example/x", "HTTP://H.Example/X",
        "http://bücher.example/", "http://[::1]:8000/x?y", "http://h.example:65535/a/../b", "http://h.example/é/./x",
    ],
)  # fmt: skip
def test_only_the_rarest_take_the_long_way(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for base in (
        "http://h.example:22840/a/b",
        "http://u:p@h.example/a/b?c",
        "http://[::1]/a/b",
        "http://H.Example/a/é",
    ):
        joiner = Joiner(base, base, "utf-8")
        wanted = at_length(base, base, "utf-8", value)
        joiner.join(value)
        with monkeypatch.context() as patch:
            patch.setattr(Joiner, "_at_length", lambda *_: "the long way")
            assert joiner.join(value) == wanted


HOSTS = """
h.example H.Example bücher.example xn--bcher-kva.example 1.2.3.4 [::1] [::1 h_x h. .h h%41 ℌ.example a/b ß.de
""".split()
origins = st.builds(
    "{}://{}{}{}".format,
    st.sampled_from(["http", "https", "HTTP", "Https", "ftp", "http:", ""]),
    st.sampled_from(["", "u@", "u:p@", "ü:%41@", "@", "a:b:c@"]),
    st.sampled_from([*HOSTS, "", "x" * 70 + ".example"]),
    st.sampled_from(["", ":", ":80", ":8080", ":22840", ":65535", ":65536", ":0", ":080", ":x", ":8é"]),
)
SIGNS = [*"abA019-_.~%;:@!$&'()*+,=/?#[]|{}^`<>\\\"", *" éß日\u00a0\u3000\x7f\x85\ud800\t"]
PIECES = "../ /.. ./ // /. ..;x %41 %e9 %2E%2e &amp; ?a=b #c".split()
texts = st.lists(st.sampled_from([*SIGNS, *PIECES]), max_size=8).map("".join)
odd_links = st.builds("{}{}{}".format, origins | st.just(""), st.sampled_from(["", "/", "?", "#"]), texts)


@given(odd_links, odd_links, st.sampled_from(["utf-8", "latin-1", "shift_jis"]))
@example("x", "http://[::1", "utf-8")
def test_however_it_is_written(value: str, base: str, encoding: str) -> None:
    for each in (base, "http://h.example:22840" + base.partition("://")[2]):
        address = "http://h.example/x"
        assert Joiner(each, address, encoding).join(value) == at_length(each, address, encoding, value), (each, value)


def test_a_long_address_takes_no_memory_to_speak_of() -> None:
    address = "http://h.example/" + "a/" * 30_000
    tracemalloc.start()
    try:
        joiner = Joiner(address, address, "utf-8")
        assert joiner.join("../../x") == address[:-4] + "x"
        assert joiner.join("../" * 40_000 + "x") == "http://h.example/x"
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_hosts_of_any_length_are_not_kept() -> None:
    domains = Domains(["h.example"])
    assert [domains.hold(f"http://{'x' * 100_000}.h.example/"), domains.hold("http://a.h.example/")] == [True, True]
    assert list(domains._known) == ["a.h.example"]


def test_the_function_of_a_user_is_given_joined_urls_and_its_answer_is_joined_again() -> None:
    told: list[str] = []

    def process(value: str) -> str | None:
        told.append(value)
        return {"http://www.example.com/x": "/é y", "http://www.example.com/z": None}.get(value, value)

    joiner = Joiner("http://www.example.com/", "http://www.example.com/", "utf-8", process)
    assert joiner.join("x") == "http://www.example.com/%C3%A9%20y"
    assert joiner.join("z") is None
    assert joiner.join("a b") == "http://www.example.com/a%20b"
    assert told == ["http://www.example.com/x", "http://www.example.com/z", "http://www.example.com/a b"]


@pytest.mark.parametrize("url", [*HREFS, *BASES])
def test_plain_urls_are_safe_as_they_are(url: str) -> None:
    assert not plain(url) or safe_url_string(url) == url


@given(hrefs, st.sampled_from(BASES))
def test_extensions_as_scrapy_has_them(value: str, base: str) -> None:
    url = at_length(base, base, "utf-8", value)
    for extensions in ({f".{each}" for each in IGNORED_EXTENSIONS}, {".x", ".", ".b/c", ".PDF", ".b.pdf"}, set()):
        if url is not None:
            assert DeniedExtensions(extensions).on(url) == url_has_any_extension(urlparse(url), extensions), url


@given(st.lists(hrefs, max_size=4), st.sampled_from(BASES))
def test_domains_as_scrapy_has_them(values: list[str], base: str) -> None:
    names = {"example.com", "H.Example", "www.example.com", "h.example:8080", "b.example"}
    domains = Domains(names)
    for value in values * 2:
        url = at_length(base, base, "utf-8", value)
        if url is not None:
            assert domains.hold(url) == url_is_from_any_domain(url, names), url


def test_everything_is_asked_and_what_cannot_be_parsed_does_not_pass() -> None:
    allowed = Allowed([re.compile("x$|y$|pdf$")], [re.compile("y$")], {"a.example"}, {"b.a.example"}, {".pdf"})
    assert allowed.passes("http://a.example/x")
    for url in ("http://a.example/", "http://a.example/xy", "http://c.example/x", "http://b.a.example/x"):
        assert not allowed.passes(url), url
    assert not allowed.passes("http://a.example/x.pdf")
    assert not allowed.passes("mailto:x@a.example")
    assert not allowed.passes("http://[x")
    assert not Allowed([], [], (), (), {".pdf"}).passes("ftp://[x")
