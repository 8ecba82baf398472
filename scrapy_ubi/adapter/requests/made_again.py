"""What middlewares and the downloader put on a request while it is fetched, and put on it again wherever it is fetched:
it does not travel.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from scrapy import Request
from scrapy.downloadermiddlewares.httpcompression import ACCEPTED_ENCODINGS
from scrapy.http.headers import Headers
from scrapy.resolver import dnscache
from scrapy.settings import BaseSettings


class MadeAgain:
    """Meta that is made again. `timeout` is DOWNLOAD_TIMEOUT, s."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout

    def holds(self, key: object, value: object, request: Request) -> bool:
        """Whether a middleware or the downloader set this and will set it again where the request is fetched."""
        if key == "download_timeout":
            return bool(value == self._timeout)
        if key == "download_slot":  # a copy for a retry or redirect has one: the downloader's, or the user's
            copied = "retry_times" in request.meta or "redirect_times" in request.meta
            return copied and value in usual_slots(request)
        return key in ("proxy", "_auth_proxy") and "_scheme_proxy" in request.meta  # of this machine's environment


def default_headers(settings: BaseSettings) -> dict[bytes, list[bytes]]:
    """Headers that the downloader middlewares set where a request has none."""
    headers = Headers({name: value for name, value in settings.getdict("DEFAULT_REQUEST_HEADERS").items() if value})
    headers.setdefault("User-Agent", settings.get("USER_AGENT") or "Scrapy")
    headers.setdefault("Accept-Encoding", b", ".join(ACCEPTED_ENCODINGS))
    return dict(headers.items())


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def proxy_host(proxy: object) -> str:
    """The host of a proxy, as UBI_PROXIES names it; never its password."""
    return _host_of(proxy if "://" in proxy else f"http://{proxy}") if isinstance(proxy, str) else ""


def usual_slots(request: Request) -> list[str]:
    """The slots that Scrapy's downloader gives by itself to the URL, and to the one that led to it by a redirect."""
    came_by = request.meta.get("redirect_urls")
    urls = [request.url, *(came_by if isinstance(came_by, list) else ())]
    hosts = [_host_of(url) for url in urls if isinstance(url, str)]
    return [*hosts, *(dnscache.get(host, host) for host in hosts)]  # addresses: CONCURRENT_REQUESTS_PER_IP
