"""Filters that look at one thing: length, scheme, extension, depth, whether the URL is known."""

from __future__ import annotations

import pytest

from scrapy_ubi.urls.filters import Link
from scrapy_ubi.urls.filters.chain import parse
from scrapy_ubi.urls.filters.filter_text import FilterError
from scrapy_ubi.urls.filters.simple import Visited
from tests.urls.filters.links import why


def test_length_is_that_of_the_url_as_found() -> None:
    url = "http://a.example/x"
    assert why(f"length({len(url)})", url) == ""
    assert why(f"length({len(url) - 1})", url) == "longer"
    assert why(f"length({len(url)})", url + "#y") == "longer"


@pytest.mark.parametrize(
    ("url", "refused"),
    [
        ("http://a.example/", ""),
        ("HTTPS://a.example/", ""),
        ("ftp://a.example/", "ftp"),
        ("mailto:a@a.example", "mailto"),
        ("JavaScript:alert(1)", "javascript"),
        (" http://", ""),
        ("", "none"),
        ("data:,x", "data"),
    ],
)
def test_schemes(url: str, refused: str) -> None:
    assert why("schemes(http, https)", url) == refused


def test_one_scheme() -> None:
    assert why("schemes(HTTPS)", "http://a.example/") == "http"
    assert why("schemes(HTTPS)", "https://a.example/") == ""


@pytest.mark.parametrize(
    ("path", "extension"),
    [
        ("", ""),
        ("a", ""),
        ("a.pdf", "pdf"),
        ("a.PDF?b=c.zip", "pdf"),
        ("a.pdf;v=1.2", "pdf"),
        ("a.pdf/", ""),
        ("a.pdf/b", ""),
        ("a?b.pdf", ""),
        ("a#b.pdf", ""),
        ("a.tar.gz", ""),
        (".pdf", "pdf"),
    ],
)
def test_unwanted_extensions(path: str, extension: str) -> None:
    assert why("extensions(-pdf, -ZIP)", f"http://a.example/{path}") == extension


def test_wanted_extensions_let_paths_without_any_pass() -> None:
    for path in ("", "a", "a/", "a.html", "b/a.HTM?x", "a.d/"):
        assert why("extensions(html, htm)", f"http://a.example/{path}") == ""
    assert why("extensions(html, htm)", "http://a.example/a.php") == "php"
    assert why("extensions(html, htm)", "http://a.example/a.") == "."


def test_depth() -> None:
    assert why("depth(2)", "http://a.example/", depth=2) == ""
    assert why("depth(2)", "http://a.example/", depth=3) == "deeper"


LINK = Link("http://a.example/", "http://a.example/")


def test_it_refuses_what_the_crawl_knows() -> None:
    visited = parse("visited")
    assert isinstance(visited, Visited) and str(visited) == "visited"
    assert visited.refuses(LINK) == ""
    visited.is_known = LINK.__eq__
    assert visited.refuses(LINK) == "known"
    assert visited.refuses(LINK._replace(depth=3)) == ""
    assert visited == parse("visited()"), "what it knows is the crawl's, not its own"


def test_it_takes_no_arguments() -> None:
    with pytest.raises(FilterError, match="has an argument"):
        parse("visited(7)")
