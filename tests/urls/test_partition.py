"""The partition key: what counts for one host, or one registered domain."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.urls import normal_form, partition, partition_key
from tests.urls.test_normal import url_like, usual


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://h1.example/a", "h1.example"),
        ("https://h1.example/a", "h1.example"),
        ("http://H1.example.:80?b", "h1.example"),
        ("http://h1.example:8080/", "h1.example:8080"),
        ("https://h1.example:80/", "h1.example:80"),
        ("http://user:pw@h1.example/", "h1.example"),
        ("http://h1.example@h2.example/", "h2.example"),
        ("http://bücher.example/", "xn--bcher-kva.example"),
        ("http://127.1:81/", "127.0.0.1:81"),
        ("http://[0::1]:80/", "[::1]"),
        ("http://[::1]:81/", "[::1]:81"),
        (" http://h1.example/ü\n", "h1.example"),
    ],
)
def test_by_host(url: str, key: str) -> None:
    assert partition_key(url) == partition_key(url, "host") == key
    assert partition_key(str(normal_form(url)), "host") == key


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://site.co.uk/", "site.co.uk"),
        ("http://a.b.site.co.uk:8080/", "site.co.uk"),
        ("https://www.example.com/", "example.com"),
        ("http://www.xn--bcher-kva.de/", "xn--bcher-kva.de"),
        ("http://www.bücher.de/", "xn--bcher-kva.de"),
        ("http://a.b.c.kawasaki.jp/", "b.c.kawasaki.jp"),  # a wildcard in the list
        ("http://x.city.kawasaki.jp/", "city.kawasaki.jp"),  # and an exception to it
        ("http://user.github.io/", "github.io"),
        # no registered domain
        ("http://h1.site.example/", "h1.site.example"),
        ("http://h1.example:8080/", "h1.example:8080"),
        ("http://localhost:6800/", "localhost:6800"),
        ("http://co.uk/", "co.uk"),
        ("http://127.0.0.1:81/", "127.0.0.1:81"),
        ("http://[::1]:81/", "[::1]:81"),
    ],
)
def test_by_domain(url: str, key: str) -> None:
    assert partition_key(url, "domain") == partition_key(str(normal_form(url)), "domain") == key


@pytest.mark.parametrize("text", ["", "/a", "mailto:a@h.example", "http:///a", "http://a..b/", "http://h/\ud800"])
def test_what_has_no_normal_form_has_no_key(text: str) -> None:
    assert partition_key(text) is None
    assert partition_key(text, "domain") is None


@given(st.one_of(url_like, usual, st.text()))
def test_the_key_is_that_of_the_normal_form(text: str) -> None:
    form = normal_form(text)
    for by in ("host", "domain"):
        assert partition_key(text, by) == (None if form is None else partition_key(form, by))


@given(url_like)
def test_what_a_key_looks_like(text: str) -> None:
    """It stands in beats, lists with commas, names of files: no space, comma or slash, no control character."""
    key = partition_key(text)
    if key is not None:
        assert key.isascii() and len(key) <= 253 + 6
        assert set(key) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_.:[]")


def test_the_list_of_suffixes_is_never_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: object, **kwargs: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", refused)
    monkeypatch.setattr(socket.socket, "connect", refused)
    partition.extractor.cache_clear()
    partition.registered_domain.cache_clear()
    assert partition_key("http://a.site.co.uk/", "domain") == "site.co.uk"


def test_what_is_remembered_is_bounded() -> None:
    assert partition.registered_domain.cache_parameters()["maxsize"] == partition.DOMAINS_KEPT
