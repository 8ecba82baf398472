"""The spider behind `scrapy ubi map`: Scrapy's downloader, asked for one list after the other.

Rules of this module:

* robots.txt is asked for before anything else of an authority, and obeyed: also where a redirect leads to. It is read
  by the rules of the crawl (`adapter.robots`): one that cannot be read forbids everything.
* A host is left alone for as long as its last answer took, `MOST_PAUSE` at most, or for `delay`; longer where
  robots.txt asks for it, up to `MOST_DELAY`.
* A public site leads to no private address, as it is written.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import urljoin, urlsplit

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadTimeoutError,
    IgnoreRequest,
)
from scrapy.http import Response, TextResponse
from scrapy.http.request import NO_CALLBACK
from scrapy.settings import BaseSettings, Settings, get_settings_priority

from scrapy_ubi.adapter.robots import fetch
from scrapy_ubi.adapter.robots.cache import Known
from scrapy_ubi.adapter.robots.rules import Parsers
from scrapy_ubi.cli.mapping.site_walk import Fetched, SiteWalk, UbiNotMapped, authority
from scrapy_ubi.cli.mapping.url_list import UrlList
from scrapy_ubi.policy.robots import record, text
from scrapy_ubi.urls.links.handlers.sitemap import MOST_BYTES
from scrapy_ubi.urls.private import host_of, is_private_host

MOST_PAUSE, MOST_DELAY = 5.0, 60.0  # s
MOST_REDIRECTS = 5
ROBOTS_TIMEOUT = 15.0  # s
MOST_AUTHORITIES = 1000  # whose robots.txt are kept
SETTINGS: dict[str, Any] = {
    "BOT_NAME": "scrapy-ubi",
    "ROBOTSTXT_OBEY": True,
    "DOWNLOADER_MIDDLEWARES": {"scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None},  # it is obeyed here
    "DOWNLOAD_TIMEOUT": 60,
    "DOWNLOAD_MAXSIZE": MOST_BYTES,
    "DOWNLOAD_WARNSIZE": 0,
    "RETRY_HTTP_CODES": [500, 502, 504, 522, 524, 408],  # not 429 and 503, which ask for peace
    "LOG_LEVEL": "CRITICAL",
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "COOKIES_ENABLED": True,
}


_ERRORS: dict[type[Exception], str] = {
    DownloadCancelledError: "larger than 50 MB",
    CannotResolveHostError: "the host is unknown",
    DownloadTimeoutError: "no answer in time",
    DownloadConnectionRefusedError: "nothing listens there",
}


class MapSpider(Spider):
    """Walks through the lists of `sites`; what comes of it is in `outcome`."""

    name = "map"

    def __init__(
        self, sites: list[str], urls: UrlList, outcome: MapOutcome, delay: float | None, links: bool,
        tell: Callable[[str], None], **arguments: Any,
    ) -> None:  # fmt: skip
        super().__init__(**arguments)
        self._sites = sites
        self._urls = urls
        self._outcome = outcome
        self._delay = delay
        self._links = links
        self._tell = tell

    async def start(self) -> AsyncIterator[Any]:
        """Walk. What is wrong is kept for the command."""
        fetcher = PoliteFetcher(self.crawler, self._delay)
        walk = SiteWalk(fetcher, self._urls, links=self._links, tell=self._tell)
        try:
            for site in self._sites:
                fetcher.let_private(site)
                await walk.run(site)
                if walk.is_full:
                    self._outcome.is_full = True
                    break
            self._outcome.is_whole = True
        except UbiNotMapped as error:
            self._outcome.error = error
        except Exception as error:  # noqa: BLE001 - to be raised by the command, with its traceback
            self._outcome.fault = error
        finally:
            self._outcome.sitemaps, self._outcome.feeds = walk.sitemaps, walk.feeds
        for nothing in list[Request]():  # an asynchronous generator, as Scrapy wants it
            yield nothing


class MapOutcome:
    """How a walk has ended. `is_whole`: it came to its end; `is_full`: with as many URLs as were asked for;
    `error`: why there is nothing; `fault`: a bug."""

    def __init__(self) -> None:
        self.is_whole = self.is_full = False
        self.error: UbiNotMapped | None = None
        self.fault: Exception | None = None
        self.sitemaps = self.feeds = 0


class PoliteFetcher:
    """Loads lists through a crawler's downloader."""

    def __init__(self, crawler: Crawler, delay: float | None) -> None:
        self._crawler = crawler
        self._obeys = crawler.settings.getbool("ROBOTSTXT_OBEY")
        self._agent = str(crawler.settings["ROBOTSTXT_USER_AGENT"] or crawler.settings["USER_AGENT"] or "")
        self._parsers = Parsers(crawler, lambda: None)
        self._delay = delay
        self._robots: dict[str, tuple[Known | None, list[str], str]] = {}  # None: it cannot be read
        self._free_at: dict[str, float] = {}  # by host
        self._private: set[str] = set()  # private hosts that a person has named
        crawler.signals.connect(fetch.count_bytes, signals.bytes_received)

    def let_private(self, site: str) -> None:
        """Let this host be asked, though it be private."""
        if is_private_host(host := host_of(site)):
            self._private.add(host)

    async def sitemaps_of(self, url: str) -> tuple[list[str], str]:
        """See `Fetcher`."""
        known, sitemaps, said = await self._robots_of(authority(url))
        if known is None:
            raise UbiNotMapped(f"{authority(url)}/robots.txt cannot be read ({said}): nothing of it may be fetched.")
        return sitemaps, said

    async def fetch(self, url: str) -> Fetched:
        """See `Fetcher`."""
        for _ in range(MOST_REDIRECTS + 1):
            if why := await self._refusal(url):
                return Fetched(url, why)
            meta = {"dont_redirect": True, "handle_httpstatus_all": True}
            try:
                response = await self._load(Request(url, meta=meta, callback=NO_CALLBACK, dont_filter=True))
            except Exception as error:  # noqa: BLE001 - whatever a download handler raises
                return Fetched(url, _why(error))
            location = response.headers.get("Location")
            if response.status in (301, 302, 303, 307, 308) and location:
                url = urljoin(response.url, location.decode("utf-8", "replace"))
            elif response.status != 200:
                return Fetched(response.url, f"status {response.status}")
            else:
                page = response if isinstance(response, TextResponse) else None
                return Fetched(response.url, "", page, response.body)
        return Fetched(url, "too many redirects")

    async def _refusal(self, url: str) -> str:
        """Why this URL is not loaded; "" where it may be."""
        try:
            host = host_of(url)
            is_web = url.startswith(("http://", "https://")) and bool(host) and bool(Request(url).url)
        except ValueError:
            is_web = False
        if not is_web:
            return "no URL of the web"
        if is_private_host(host) and host not in self._private:
            return "at a private address"
        if not self._obeys:
            return ""
        known, _, said = await self._robots_of(authority(url))
        if known is None:
            return f"robots.txt cannot be read ({said})"
        return "" if self._parsers.allows(known, url, self._agent) else "robots.txt forbids it"

    async def _robots_of(self, of: str) -> tuple[Known | None, list[str], str]:
        """What is known of the robots.txt of an authority: None, and why, where it cannot be read; the sitemaps that it
        names, and its address."""
        found = self._robots.get(of)
        if found is None:
            found = await self._ask(of)
            if len(self._robots) >= MOST_AUTHORITIES:
                self._robots.clear()
            self._robots[of] = found
        return found

    async def _ask(self, of: str) -> tuple[Known | None, list[str], str]:
        url = f"{of}/robots.txt"
        nothing = Known(record.RobotsRecord(0.0))
        try:
            response, _ = await fetch.fetch(url, False, ROBOTS_TIMEOUT, self._load)
        except IgnoreRequest:
            return nothing, [], url
        except Exception as error:  # noqa: BLE001 - as above
            return (None if self._obeys else nothing), [], _why(error)
        if response is None or not 200 <= response.status < 300:
            if response is not None and record.is_unreachable(response.status) and self._obeys:
                return None, [], f"status {response.status}"
            return nothing, [], url
        stopped = "download_stopped" in response.flags
        known, sitemaps = self._parsers.read(text.beginning(response.body, stopped), self._agent, 0.0)
        return known, sitemaps, response.url

    async def _load(self, request: Request) -> Response:
        """Load when the host may be asked again."""
        host = urlsplit(request.url).netloc
        await asyncio.sleep(max(0.0, self._free_at.get(host, 0.0) - time.monotonic()))
        began = time.monotonic()
        try:
            assert self._crawler.engine is not None
            return await self._crawler.engine.download_async(request)
        finally:
            took = time.monotonic() - began
            pause = min(took, MOST_PAUSE) if self._delay is None else self._delay
            known, _, _ = self._robots.get(authority(request.url), (None, [], ""))
            asked = min(known.record.delay, MOST_DELAY) if known is not None and self._obeys else 0.0
            if len(self._free_at) >= MOST_AUTHORITIES:
                self._free_at.clear()
            self._free_at[host] = time.monotonic() + max(pause, asked)


def settings_of(given: BaseSettings) -> Settings:
    """The settings of a walk; what a person has given on the command line wins."""
    own = Settings()
    own.setdict(SETTINGS, "project")
    for name in given:
        if isinstance(name, str) and (given.getpriority(name) or 0) >= get_settings_priority("cmdline"):
            own.set(name, given[name], "cmdline")
    return own


def _why(error: Exception) -> str:
    for kind, why in _ERRORS.items():
        if isinstance(error, kind):
            return why
    return type(error).__name__
