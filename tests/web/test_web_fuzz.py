"""Whatever is asked: never a status of 500, always an object of JSON, and no change without the token."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from unittest.mock import patch
from urllib.parse import quote

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrapy_ubi.web import reader, verbs
from scrapy_ubi.web.readings import READINGS
from scrapy_ubi.web.verbs import VERBS
from tests.web.served import JSON, RIGHT, TOKEN, Crawl, served

METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE")
NAMES = (*READINGS, *VERBS, "about", "crawl", "history", "nothing", "..", "%2e%2e", "hosts/", "")
FIELDS = (
    *("sort", "limit", "search", "after", "agent", "copies", "shards", "host", "url", "reason", "minutes"),
    *("values", "names", "all", "wait", "force", "urls", "priority", "connection", "dir", "crawl", "redis_url", "file"),
)
TEXTS = st.one_of(
    st.sampled_from(
        ["a1", "h1.example", "http://h1.example/x", "1", "0", "-1", "queued", "0 h", "inf h", "-inf x", "*"]
    ),
    st.text(max_size=40),
)
JSONS: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
BODIES = st.one_of(
    st.binary(max_size=60),
    JSONS.map(lambda value: json.dumps(value).encode()),
    st.dictionaries(st.sampled_from(FIELDS), JSONS, max_size=4).map(lambda value: json.dumps(value).encode()),
)
QUERIES = st.lists(st.tuples(st.one_of(st.sampled_from(FIELDS), TEXTS), TEXTS), max_size=4)
HEADERS = st.dictionaries(
    st.sampled_from(["Host", "Origin", "Content-Type", "Authorization", "Sec-Fetch-Site", "Accept", "Cookie"]),
    st.one_of(
        st.sampled_from(
            ["127.0.0.1", "localhost", "application/json", "evil.example", f"Bearer {TOKEN[:-1]}", "Bearer"]
        ),
        st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30),
    ),
    max_size=4,
)
CASE = st.tuples(st.sampled_from(METHODS), st.sampled_from(NAMES), QUERIES, BODIES, HEADERS)


def ask(cases: list[Any], usual: dict[str, str]) -> Crawl:
    """Ask all of these; the crawl afterwards."""
    crawl = Crawl()

    async def body() -> None:
        async with served(crawl) as client:
            for method, name, query, content, headers in cases:
                said = "&".join(f"{quote(key)}={quote(value, safe='')}" for key, value in query)
                url = client.make_url("/").human_repr() + f"api/{name}?{said}"
                async with asyncio.timeout(60):
                    answer = await client.session.request(
                        method, url, data=content, headers={**usual, **headers}, allow_redirects=False
                    )
                    text = await answer.text()
                assert answer.status < 500, (method, url, content, headers, text)
                if text and answer.content_type == "application/json":
                    made = json.loads(text)
                    assert ("error" in made) == (answer.status >= 400), (method, url, text)

    with patch.object(reader, "PATIENCE", 0.05), patch.object(verbs, "WAITS", 0.05):  # no agent is there to answer
        asyncio.run(body())
    return crawl


SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
LOOSE = settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=SLOW)


@LOOSE
@given(st.lists(CASE, min_size=5, max_size=20))
def test_without_the_token_nothing_changes(cases: list[Any]) -> None:
    crawl = ask(cases, JSON)
    said = [name for name in crawl.shelf.control if not name.startswith(b"ask:")]
    assert not said and not crawl.shelf.seeds.waiting


@LOOSE
@given(st.lists(CASE, min_size=5, max_size=20))
def test_with_the_token_nothing_breaks(cases: list[Any]) -> None:
    ask(cases, RIGHT)
