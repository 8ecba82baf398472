"""What tells the partition key of a URL, and what URLs of one key surely begin with."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.urls import normal_form
from scrapy_ubi.urls.host_keys import HostOf, host_keys, starts_of
from scrapy_ubi.urls.host_shards import HostShards
from tests.urls.test_normal import url_like, usual

WHOLE = host_keys("host", None, None, normal_form)
DOMAIN = host_keys("domain", None, None, normal_form)
CUT = host_keys("host", None, HostShards({"h1.example": 3}), normal_form)


@given(url_like | usual | st.from_regex(r"https?://h1\.example/[^\n]*", fullmatch=True))
def test_a_url_that_begins_so_has_that_key(url: str) -> None:
    for host_of in (WHOLE, DOMAIN, CUT):
        key = host_of(url)
        for host in {"h1.example", "h1.example:8080", "site.co.uk", *([key] if key is not None else [])}:
            if url.startswith(starts_of(host, host_of)) and url.isascii():
                assert key == host


@pytest.mark.parametrize(
    ("key", "kind", "count"),
    [
        ("h1.example", "whole", 2),
        ("h1.example", "cut", 0),
        ("h1.example#1", "cut", 0),
        ("h2.example", "cut", 2),
        ("www.site.co.uk", "domain", 0),
        ("site.co.uk", "domain", 2),
        ("h1.example:8080", "whole", 0),
        ("[::1]", "whole", 0),
        ("127.0.0.1", "whole", 0),
        ("h1.example/a", "whole", 0),
        ("", "whole", 0),
    ],
)
def test_usual_hosts_have_two_ways_to_begin(key: str, kind: Literal["whole", "cut", "domain"], count: int) -> None:
    host_of: HostOf = {"whole": WHOLE, "cut": CUT, "domain": DOMAIN}[kind]
    assert len(starts_of(key, host_of)) == count
