"""Which robots.txt holds for a request."""

from __future__ import annotations

import pytest
from scrapy import Request

from scrapy_ubi.adapter.robots.authority import authority_of


@pytest.mark.parametrize(
    ("url", "authority"),
    [
        ("http://user:word@H.example:80/x?y", "http://h.example"),
        ("https://h.example:443", "https://h.example"),
        ("https://h.example:80/", "https://h.example:80"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
        ("ftp://h.example/", None),
        ("data:,x", None),
        ("file:///tmp/x", None),
        ("http:///x", None),
    ],
)
def test_a_robots_txt_is_that_of_scheme_host_and_port(url: str, authority: str | None) -> None:
    assert authority_of(Request(url)) == authority
