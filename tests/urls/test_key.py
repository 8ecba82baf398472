"""The key of a request."""

from __future__ import annotations

import mmh3
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.protocol import ring
from scrapy_ubi.urls import key, url_key

requests = st.tuples(st.sampled_from(["GET", "POST", "get", "", "G"]) | st.text(), st.text(), st.binary(), st.text())


def test_keys_are_golden() -> None:
    """If this fails, every page of a crawl that is resumed is fetched again. Do not adapt the values."""
    url = "http://h1.example/a"
    assert f"{url_key('GET', url):016x}" == "0adf16f788bf88ba"
    assert f"{url_key('GET', url, b'', 'n1'):016x}" == "26adef7c2e3409a0"
    assert f"{url_key('POST', url, b'a=1'):016x}" == "4868eb6ca55208fa"
    assert f"{url_key('POST', url):016x}" == "c8a5d4b8a6d9c925"


def test_a_plain_get_is_the_hash_of_its_url() -> None:
    url = "http://h1.example/a"
    assert url_key("GET", url) == mmh3.hash64(url, key.URL_SEED, signed=False)[0]
    assert key.URL_SEED != ring.HOST_SEED


@given(requests, requests)
def test_different_requests_have_different_keys(
    one: tuple[str, str, bytes, str], two: tuple[str, str, bytes, str]
) -> None:
    assert (url_key(*one) == url_key(*two)) == (one == two)
    assert 0 <= url_key(*one) < 1 << 64


def test_the_parts_are_told_apart() -> None:
    url = "http://h1.example/a"
    alike = [
        ("GET", url, b"", ""),
        ("GE", "T" + url, b"", ""),
        ("POST", url, b"", ""),
        ("POST", url, b"x", ""),
        ("POST", url, b"", "x"),
        ("POST", url + "x", b"", ""),
        ("POSTx", url, b"", ""),
        ("", url, b"", ""),
        ("GET", url, b"1", ""),
        ("GET", url, b"", "1"),
        ("GET", url + "1", b"", ""),
        ("GET", "\0" + "3 0 19 GET" + url, b"", ""),
    ]
    assert len({url_key(*request) for request in alike}) == len(alike)


def test_a_lone_surrogate_has_a_key() -> None:
    assert url_key("GET", "\ud800") != url_key("GET", "\ud801")
