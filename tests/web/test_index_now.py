"""IndexNow: whose notices are believed, how many, and that they become seeds."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from scrapy_ubi.web import index_now
from scrapy_ubi.web.index_now import IndexNow, is_heard, notice_of
from scrapy_ubi.web.problem import Problem
from scrapy_ubi.web.security import Access
from scrapy_ubi.web.web_app import WebApp
from tests.web.served import JSON, Crawl, reader_of

KEY = "0123456789abcdef"
HOSTS = frozenset({"site.example", "*.news.example"})
PAGE = "https://site.example/new"


class Keys:
    """Files of keys, and what was fetched; `clock` is set by hand."""

    def __init__(self) -> None:
        self.files = {f"https://site.example/{KEY}.txt": KEY}
        self.fetched: list[str] = []
        self.now = 0.0

    async def fetch(self, url: str) -> bytes:
        self.fetched.append(url)
        if url not in self.files:
            raise OSError("no such host")
        return self.files[url].encode()

    def clock(self) -> float:
        return self.now


def many(**changes: Any) -> dict[str, Any]:
    return {"host": "site.example", "key": KEY, "keyLocation": None, "urlList": [PAGE], **changes}


@pytest.mark.parametrize(
    ("host", "heard"),
    [
        ("site.example", True), ("www.site.example", False), ("a.news.example", True), ("news.example", False),
        ("evilnews.example", False), ("site.example:8080", False), ("", False),
    ],
)  # fmt: skip
def test_whose_notices_are_heard(host: str, heard: bool) -> None:
    assert is_heard(host, HOSTS) is heard


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"host": "evil.example"}, 422),
        ({"urlList": [PAGE, "https://evil.example/"]}, 422),
        ({"urlList": ["https://site.example@evil.example/"]}, 422),
        ({"urlList": ["ftp://site.example/"]}, 422),
        ({"urlList": ["https://[site.example/"]}, 422),
        ({"keyLocation": "https://evil.example/key.txt"}, 422),
        ({"keyLocation": "http://127.0.0.1/key.txt"}, 422),
        ({"key": "short"}, 400),
        ({"key": "../../etc/passwd"}, 400),
    ],
)
def test_what_is_none_of_that_host_is_refused(changes: dict[str, Any], status: int) -> None:
    with pytest.raises(Problem) as refused:
        notice_of(many(**changes), HOSTS)
    assert refused.value.status == status


def test_a_key_is_believed_for_a_day_and_doubted_for_a_minute() -> None:
    async def body() -> None:
        keys = Keys()
        notices = IndexNow(HOSTS, keys.fetch, keys.clock)
        right, wrong = notice_of(many(), HOSTS), notice_of(many(key="another-key-of-mine"), HOSTS)
        await notices.believe(right)
        await notices.believe(right)
        assert len(keys.fetched) == 1
        for _ in range(2):
            with pytest.raises(Problem) as refused:
                await notices.believe(wrong)
            assert refused.value.status == 403
        assert len(keys.fetched) == 2
        keys.now = 61.0
        with pytest.raises(Problem):
            await notices.believe(wrong)
        assert len(keys.fetched) == 3
        keys.now = 86_500.0
        await notices.believe(right)
        assert len(keys.fetched) == 4

    asyncio.run(body())


def test_a_host_says_only_so_much_and_keys_are_not_guessed() -> None:
    async def body() -> None:
        keys = Keys()
        notices = IndexNow(HOSTS, keys.fetch, keys.clock)
        right = notice_of(many(urlList=[PAGE] * 1000), HOSTS)
        for _ in range(10):
            await notices.believe(right)
        with pytest.raises(Problem) as refused:
            await notices.believe(right)
        assert refused.value.status == 429 and int(refused.value.headers["Retry-After"]) > 3000
        keys.now = 3700.0
        await notices.believe(right)
        statuses = []
        for number in range(20):
            with pytest.raises(Problem) as refused:
                await notices.believe(notice_of(many(key=f"guess-number-{number}"), HOSTS))
            statuses.append(refused.value.status)
        assert statuses == [403] * index_now.CHECKS + [429] * 10
        assert len(keys.fetched) == 1 + index_now.CHECKS

    asyncio.run(body())


def test_notices_become_seeds_and_nothing_else_does() -> None:
    async def body() -> None:
        crawl, keys = Crawl(), Keys()
        reader = reader_of(crawl)
        app = WebApp(reader, Access("127.0.0.1"), IndexNow(HOSTS, keys.fetch, keys.clock))
        try:
            async with TestClient(TestServer(app.application)) as client:
                body = json.dumps({"host": "site.example", "key": KEY, "urlList": [PAGE, f"{PAGE}?2"]})
                answer = await client.post("/indexnow", data=body, headers=JSON)
                assert answer.status == 200 and (await answer.json())["sent"] == 2
                answer = await client.get("/indexnow", params={"url": PAGE, "key": KEY})
                assert answer.status == 200
                assert [seed[b"url"] for seed in crawl.shelf.seeds.waiting.values()] == [
                    PAGE.encode(), f"{PAGE}?2".encode(), PAGE.encode()
                ]  # fmt: skip
                assert {seed[b"force"] for seed in crawl.shelf.seeds.waiting.values()} == {b"1"}
                for method, path, status in (
                    ("GET", f"/indexnow?url=http://evil.example/&key={KEY}", 422),
                    ("GET", f"/indexnow?url={PAGE}&key=not-the-right-key", 403),
                    ("GET", f"/indexnow?key={KEY}", 400),
                    ("PUT", "/indexnow", 405),
                    ("POST", "/api/seeds", 403),
                ):
                    answer = await client.request(method, path, data=b"{}" if method == "POST" else None)
                    assert answer.status == status, (path, await answer.text())
                answer = await client.post("/indexnow", data=body, headers={"Content-Type": "text/plain"})
                assert answer.status == 415
                assert len(crawl.shelf.seeds.waiting) == 3
        finally:
            reader.close()

    asyncio.run(body())
