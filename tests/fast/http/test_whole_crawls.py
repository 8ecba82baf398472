"""Whole crawls with UBI_FAST: what a spider sees is what it sees with Scrapy's handlers."""

from __future__ import annotations

import gzip
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import FormRequest, Response
from twisted.python.failure import Failure

from tests.support.crawls import crawl, items_of, total
from tests.support.site import HANG_UP, Page, Site

HOSTS = [f"http://h{number}.example" for number in range(8)]
AGENTS = pytest.mark.parametrize("agents", [1, 2])
FAST = pytest.mark.parametrize("fast", [True, False])
HANDLER = "scrapy_ubi's own handler"


class Everything(Spider):
    """A page for each thing that goes through a download handler."""

    name = "everything"
    handle_httpstatus_list = (404,)

    async def start(self) -> AsyncIterator[Any]:
        for path in ("plain", "gzip", "endless", "moved", "once", "none", "empty", "large", "long"):
            yield self.request(path)
        yield self.request("head", method="HEAD")
        yield self.request("login")
        yield FormRequest(f"{HOSTS[1]}/form", formdata={"name": "ü"}, callback=self.parse, errback=self.failed)
        yield self.request("slow", meta={"download_timeout": 0.3, "dont_retry": True})
        yield self.request("hangs-up", meta={"dont_retry": True})

    def request(self, path: str, **arguments: Any) -> Request:
        host = HOSTS[sum(path.encode()) % len(HOSTS)]
        return Request(f"{host}/{path}", self.parse, errback=self.failed, **arguments)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {
            "url": response.url,
            "status": response.status,
            "body": response.body[:100],
            "length": len(response.body),
            "class": type(response).__name__,
            "flags": response.flags,
            "protocol": response.protocol,
            "address": str(response.ip_address),
            "cookies": response.headers.getlist("Set-Cookie"),
            "latency": response.meta["download_latency"] > 0,
        }
        if response.url.endswith("/login"):
            yield response.follow("/account", self.parse, errback=self.failed)

    def failed(self, failure: Failure) -> Iterator[Any]:
        yield {"failed": failure.type.__name__, "url": failure.request.url}  # type: ignore[attr-defined]


def prepare(site: Site) -> None:
    def page(path: str, answer: Any, **headers: str) -> None:
        host = HOSTS[sum(path.encode()) % len(HOSTS)]
        site.page(f"{host}/{path}", answer, **headers)

    page("plain", "<p>plain</p>")
    page("gzip", Page(gzip.compress(b"<p>packed</p>"), headers={"Content-Encoding": "gzip"}))
    page("endless", Page("<p>", chunks=[b"one", b"two"]))
    page("moved", Page("", 302, {"Location": f"{HOSTS[3]}/there"}))
    site.page(f"{HOSTS[3]}/there", "arrived")
    page("once", lambda visit: Page("later", 503 if visit.number == 1 else 200))
    page("none", Page("nothing here", 404))
    page("empty", "")
    page("large", "<html>" + "x" * 300_000)
    page("long", Page("y" * 150_000, headers={"Content-Type": "text/plain"}))
    page("head", "a body that is not sent")
    page("login", Page("in", headers={"Set-Cookie": "who=me"}))
    host = HOSTS[sum(b"login") % len(HOSTS)]
    site.page(f"{host}/account", lambda visit: Page(visit.headers.get("cookie", "nobody")))
    site.page(f"{HOSTS[1]}/form", lambda visit: Page(f"{visit.method} {visit.body.decode()}"))
    page("hangs-up", Page("", HANG_UP))


@AGENTS
@FAST
def test_a_spider_sees_the_same(site: Site, agents: int, fast: bool, caplog: pytest.LogCaptureFixture) -> None:
    prepare(site)
    slow = f"{HOSTS[sum(b'slow') % len(HOSTS)]}/slow"
    settings = {"UBI_FAST": fast, "RETRY_HTTP_CODES": [503], "UBI_HOST_FAILURES": 0, "UBI_MAX_BODY": 200_000}
    with site.hold(slow), caplog.at_level(logging.INFO):
        outcomes = crawl(Everything, site.proxy, agents, settings)
    assert [outcome.reason for outcome in outcomes] == ["finished"] * agents
    assert (HANDLER in caplog.text) == fast
    assert (total(outcomes, "ubi/http/opened") > 0) == (total(outcomes, "ubi/http/reused") > 0) == fast
    items = items_of(outcomes)
    by_path = {item["url"].rpartition("/")[2]: item for item in items}
    assert len(items) == len(by_path) == 15
    assert by_path["slow"]["failed"] == "DownloadTimeoutError"
    assert by_path["hangs-up"]["failed"] == "DownloadFailedError"
    assert by_path["gzip"]["body"] == b"<p>packed</p>" and by_path["endless"]["body"] == b"<p>onetwo"
    assert by_path["there"]["body"] == b"arrived" and by_path["once"]["body"] == b"later"
    assert by_path["none"]["status"] == 404 and by_path["empty"]["length"] == by_path["head"]["length"] == 0
    assert by_path["account"]["body"] == b"who=me" and by_path["form"]["body"] == b"POST name=%C3%BC"
    assert by_path["large"]["length"] == 200_000 and "truncated" in by_path["large"]["flags"]
    assert by_path["long"]["length"] == 150_000 and by_path["plain"]["address"] == "127.0.0.1"
