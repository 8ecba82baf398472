"""Requests go through the pool of proxies (UBI_PROXY_POOL).

Rules of this module:

* It is not there without a pool. It stands before Scrapy's cookies and HttpProxyMiddleware: a proxy and its cookies are
  one session, by the meta key `cookiejar`, unless the request has a jar of its own, which then keeps to one proxy.
* What it has put into `meta` is taken out when the load has ended, but for the jar, and for the name in `ubi_proxy`: a
  redirect or a retry gets its own.
* A response that says that the host has banned the proxy becomes a retry through another one, as by Scrapy's retry
  middleware, within RETRY_TIMES; then it goes on as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.http import Response

from scrapy_ubi.adapter.components.find_scheduler import scheduler_of
from scrapy_ubi.adapter.downloads.gate import Withdrawn
from scrapy_ubi.adapter.downloads.proxy_pool import LOOKED
from scrapy_ubi.adapter.feedback.host_feedback import NO_ANSWER
from scrapy_ubi.adapter.requests.decompress import can_unpack, unpack
from scrapy_ubi.adapter.robots.fetch import load_of
from scrapy_ubi.adapter.scrapy_private.downloader import is_no_tunnel
from scrapy_ubi.protocol.host import HostState

if TYPE_CHECKING:
    from scrapy_ubi.adapter.components.scheduler import UbiScheduler

PRIORITY = 690  # before CookiesMiddleware (700) and HttpProxyMiddleware (750), inside redirects and retries
META, JAR = "ubi_proxy", "cookiejar"
PROXY_REFUSES = 407
MOST_BANS_OF_A_PAGE = 3  # retries at least, where RETRY_TIMES is less


class UbiProxyMiddleware:
    """Chooses, and learns from what comes."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._most_retries = max(crawler.settings.getint("RETRY_TIMES"), MOST_BANS_OF_A_PAGE)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> UbiProxyMiddleware:
        return cls(crawler)

    @property
    def _scheduler(self) -> UbiScheduler:
        scheduler = scheduler_of(self._crawler)
        assert scheduler is not None
        return scheduler

    def process_request(self, request: Request) -> None:
        meta = request.meta
        before = meta.pop(META, None)
        if before is not None and meta.get(JAR) == before:
            del meta[JAR]
        proxies = self._scheduler.proxies
        if "proxy" in meta or proxies is None or not request.url.startswith("http"):
            return
        host, state = self._host_of(request)
        if not host:
            return
        name, proxy, wait = proxies.choose(host, _session(meta.get(JAR)), state)
        if wait and state is not None and self._is_of_page(request):  # what is in no queue goes on
            self._crawler.stats.inc_value("ubi/proxies/none_free")
            proxies.postpone(state, wait)
            raise Withdrawn(f"{request} waits for a proxy")
        meta["proxy"], meta[META] = proxy, name
        meta.setdefault(JAR, name)

    def process_response(self, request: Request, response: Response) -> Response | Request:
        name, proxies = self._take_out(request), self._scheduler.proxies
        if name is None or proxies is None:
            return response
        host, state = self._host_of(request)
        if response.status == PROXY_REFUSES:
            proxies.failed(name, host, at_once=True)
            return self._again(request, "proxy_refused") or response
        if not proxies.is_ban(response.status, lambda: _body_of(response)):
            jar = request.meta.get(JAR)
            proxies.answered(name, state, "" if jar == name else _session(jar))
            return response
        self._crawler.stats.inc_value("ubi/proxies/bans")
        proxies.banned(name, state)
        return self._again(request, "proxy_banned") or response

    def process_exception(self, request: Request, exception: Exception) -> None:
        name, proxies = self._take_out(request), self._scheduler.proxies
        if name is None or proxies is None:
            return
        if isinstance(exception, NO_ANSWER) or is_no_tunnel(exception):
            self._crawler.stats.inc_value("ubi/proxies/failed")
            proxies.failed(name, self._host_of(request)[0])

    def _host_of(self, request: Request) -> tuple[str, HostState | None]:
        """The host of any request, and its state where there is one here."""
        hosts = self._scheduler.gate.hosts
        host, state = hosts.key_for(request), hosts.state_of(request)
        return host, state if state is not None else self._scheduler.node.frontier.find(host)

    def _is_of_page(self, request: Request) -> bool:
        """Whether this is a page of the queue, or the robots.txt that one waits for: that goes back to its queue."""
        load = load_of(request)
        return load.of_page if load is not None else self._scheduler.gate.hosts.is_page(request)

    def _take_out(self, request: Request) -> str | None:
        """The name of the proxy, where it is one of the pool: a request made of this one is to get its own."""
        name, proxies = request.meta.get(META), self._scheduler.proxies
        if proxies is None or not isinstance(name, str) or name not in proxies.names:
            return None
        for key in ("proxy", "_auth_proxy"):
            request.meta.pop(key, None)
        request.headers.pop("Proxy-Authorization", None)
        return name

    def _again(self, request: Request, reason: str) -> Request | None:
        """The request, to be made once more; None where that was often enough."""
        spider = self._crawler.spider
        if spider is None or request.meta.get("dont_retry"):
            return None
        return get_retry_request(request, spider=spider, reason=reason, max_retry_times=self._most_retries)


def _session(jar: object) -> str:
    """What tells a session with a jar of its own from others; empty for one without."""
    return "" if jar is None else repr(jar)


def _body_of(response: Response) -> bytes:
    """The beginning of a body as it is meant; as it came where it cannot be unpacked."""
    encodings = [
        part.strip().lower()
        for value in response.headers.getlist("Content-Encoding")
        for part in value.decode("latin-1").split(",")
    ]
    if not encodings or not can_unpack(encodings):
        return response.body
    found = unpack(response.body, encodings, LOOKED)
    return response.body if found is None else found
