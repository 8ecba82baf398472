"""Length, schemes, extensions, depth."""

from __future__ import annotations

import pytest

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
