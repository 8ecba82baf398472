"""What the downloader middlewares, and the downloader, put on a request while it is fetched, and will put on it again
wherever it is fetched: that does not travel.

Rules of this module:

* Nobody can tell whether a spider has set such a header or value, or a middleware. So one is left out only where what
  sets it again is sure to come to the same: Scrapy's own middleware is on, and nothing of the project's before it has a
  look at requests. A project may switch off CookiesMiddleware and send Cookie headers of its own, or set another
  User-Agent where there is none.
* What else passes a middleware stays with retries and redirects, as in plain Scrapy.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from urllib.parse import urlsplit

from scrapy import Request, Spider
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.downloadermiddlewares.defaultheaders import DefaultHeadersMiddleware
from scrapy.downloadermiddlewares.downloadtimeout import DownloadTimeoutMiddleware
from scrapy.downloadermiddlewares.httpcompression import ACCEPTED_ENCODINGS, HttpCompressionMiddleware
from scrapy.downloadermiddlewares.httpproxy import HttpProxyMiddleware
from scrapy.downloadermiddlewares.useragent import UserAgentMiddleware
from scrapy.http.headers import Headers
from scrapy.resolver import dnscache
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

MIDDLEWARES = "DOWNLOADER_MIDDLEWARES"
_NEUTRAL = ("scrapy.", "scrapy_ubi.")  # packages whose middlewares do not look at what others set


class MadeAgain:
    """What is made again under one agent's settings, for one spider."""

    def __init__(self, spider: Spider, settings: BaseSettings) -> None:
        placed = _placed(settings)
        sure = {*_sure_middlewares(placed)}
        self.cookie_header = CookiesMiddleware in placed and settings.getbool("COOKIES_ENABLED")
        """Whether a Cookie header is made of the jar's cookies, whatever it was before."""
        self.headers = _default_headers(spider, settings, sure)
        """Headers that middlewares set where a request has none."""
        self._usual_headers = _default_headers(spider, settings, placed)  # whatever stands before what sets them
        self._usual_timeout: float | None = None
        if DownloadTimeoutMiddleware in placed:
            self._usual_timeout = getattr(spider, "download_timeout", settings.getfloat("DOWNLOAD_TIMEOUT"))
        self._timeout = self._usual_timeout if DownloadTimeoutMiddleware in sure else None
        environment = HttpProxyMiddleware(settings.get("HTTPPROXY_AUTH_ENCODING"))
        self._proxies = [url for _, url in environment.proxies.values()]  # what meta has may have no hash
        self._is_derived = any(
            isinstance(one, type) and issubclass(one, HttpProxyMiddleware) and one is not HttpProxyMiddleware
            for one in placed
        )

    def holds(self, key: object, value: object, request: Request) -> bool:
        """Whether a middleware or the downloader set this in meta, and will set it again where the request is
        fetched."""
        if key == "download_timeout":
            return self._timeout is not None and bool(value == self._timeout)
        if key == "download_slot":  # a copy for a retry or redirect has one: the downloader's, or the user's
            copied = "retry_times" in request.meta or "redirect_times" in request.meta
            return copied and value in usual_slots(request)
        if key == "_auth_proxy":
            return self.has_password_of_environment(request)
        return key == "proxy" and self._is_proxy_of_environment(request)

    def has_password_of_environment(self, request: Request) -> bool:
        """Whether Proxy-Authorization is for a proxy of this machine's environment, whatever the proxy is by now."""
        return request.meta.get("_auth_proxy") in self._proxies or (
            self._is_derived and "_scheme_proxy" in request.meta
        )

    def _is_proxy_of_environment(self, request: Request) -> bool:
        """Whether the request was given the proxy of this machine's environment, or by a middleware derived from
        Scrapy's. (Its mark may come with the meta of another request, beside a proxy of the spider's.)"""
        given = request.meta.get("proxy")
        return "_scheme_proxy" in request.meta and (self._is_derived or given in self._proxies)

    def is_usual(self, request: Request, meta: Container[str], headers: Container[bytes]) -> bool:
        """Whether a request carries nothing but such meta and headers, and the values that Scrapy's middlewares set:
        also where one of the project's stands before these, so that nobody can tell who has."""
        timeout, usual = self._usual_timeout, self._usual_headers
        return all(
            key in meta or (key == "download_timeout" and timeout is not None and bool(value == timeout))
            for key, value in request.meta.items()
        ) and all(name in headers or usual.get(name) == values for name, values in request.headers.items())


def _placed(settings: BaseSettings) -> list[type]:
    """The downloader middlewares, in the order in which they see a request."""
    by_priority = settings.get_component_priority_dict_with_base(MIDDLEWARES)
    placed = [(priority, path) for path, priority in by_priority.items() if priority is not None]
    return [load_object(path) for _, path in sorted(placed, key=lambda one: one[0])]


def _sure_middlewares(placed: list[type]) -> Iterator[type]:
    """Scrapy's downloader middlewares before which none of others sees a request."""
    for middleware in placed:
        if str(getattr(middleware, "__module__", "")).startswith(_NEUTRAL):
            yield middleware
        elif hasattr(middleware, "process_request"):
            return


def _default_headers(spider: Spider, settings: BaseSettings, sure: Container[type]) -> dict[bytes, list[bytes]]:
    headers = Headers()
    if DefaultHeadersMiddleware in sure:
        headers.update({name: value for name, value in settings.getdict("DEFAULT_REQUEST_HEADERS").items() if value})
    agent = getattr(spider, "user_agent", settings.get("USER_AGENT"))
    if UserAgentMiddleware in sure and agent:
        headers.setdefault("User-Agent", agent)
    if HttpCompressionMiddleware in sure and settings.getbool("COMPRESSION_ENABLED"):
        headers.setdefault("Accept-Encoding", b", ".join(ACCEPTED_ENCODINGS))
    return dict(headers.items())


def host_name(url: str) -> str:
    """The host of a URL as OffsiteMiddleware has it; empty for what has none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def usual_slots(request: Request) -> list[str]:
    """The slots that Scrapy's downloader gives by itself to the URL, and to the one that led to it by a redirect."""
    came_by = request.meta.get("redirect_urls")
    urls = [request.url, *(came_by if isinstance(came_by, list) else ())]
    hosts = [host_name(url) for url in urls if isinstance(url, str)]
    return [*hosts, *(dnscache.get(host, host) for host in hosts)]  # addresses: CONCURRENT_REQUESTS_PER_IP
