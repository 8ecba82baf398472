"""Pages that the crawl has fetched, as a browser shows them: by the download handler of scrapy-playwright.

Rules of this module:

* The settings of scrapy-playwright hold (`PLAYWRIGHT_LAUNCH_OPTIONS`, `PLAYWRIGHT_BROWSER_TYPE`, a browser elsewhere),
  but the browser has no way into the net: `CrawlLoads` answers all that a page asks for, and what would go another way
  (a socket, a worker, the browser's own updates) meets a proxy that is not there.
* `MOST_PAGES` are shown at once, or as many as PLAYWRIGHT_MAX_PAGES_PER_CONTEXT says; others wait.
* A page is shown when nothing was under way for half a second, or after `SETTLES` as it is then. It may take
  `MOST_SECONDS`, whatever its scripts do.
* The browser is started with the first page, and ends with the crawl.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import TextResponse
from scrapy.utils.misc import build_from_crawler
from scrapy_playwright.handler import ScrapyPlaywrightDownloadHandler
from scrapy_playwright.page import PageMethod

from scrapy_ubi.adapter.browser.crawl_loads import CrawlLoads, KeptScripts

MOST_PAGES = 4
BEGINS, SETTLES = 60.0, 60.0  # s: for the document with its scripts, and for what they load; delays of hosts count
MOST_SECONDS = 180.0
MOST_BYTES = 16 << 20  # of a page as it is shown
CONTEXT = "ubi"
NOWHERE = "http://127.0.0.1:9"  # the discard port: nothing is there

logger = logging.getLogger("scrapy_ubi.browser")


class BrowserFailed(Exception):
    """The browser could not show a page; `why` is a word for counting."""

    def __init__(self, why: str, sentence: str) -> None:
        super().__init__(sentence)
        self.why = why


class BrowserPages:
    """The browser of one crawler. `host_of` gives the host of a URL, `count` adds one to a stat."""

    def __init__(self, crawler: Crawler, host_of: Callable[[str], str | None], count: Callable[[str], object]) -> None:
        self._crawler = crawler
        self._host_of = host_of
        self._count = count
        self._handler = build_from_crawler(ScrapyPlaywrightDownloadHandler, crawler)
        if not (self._handler.config.cdp_url or self._handler.config.connect_url):
            self._handler.config.launch_options["proxy"] = {"server": NOWHERE}
        most = crawler.settings.getint("PLAYWRIGHT_MAX_PAGES_PER_CONTEXT") or MOST_PAGES
        self._places = asyncio.Semaphore(most)
        self._kept = KeptScripts()
        context: dict[str, Any] = {
            "service_workers": "block",
            "accept_downloads": False,
            "proxy": {"server": NOWHERE},
        }
        if agent := crawler.settings.get("USER_AGENT"):
            context["user_agent"] = str(agent)
        self._context = context
        crawler.signals.connect(self._close, signals.engine_stopped)

    async def _close(self) -> None:
        await self._handler.close()

    async def show(self, response: TextResponse) -> str:
        """Return the HTML of a page as the browser has it when its scripts have run. Raises BrowserFailed."""
        async with self._places:
            loads = CrawlLoads(self._crawler, response, self._kept, self._host_of, self._count)
            try:
                async with asyncio.timeout(MOST_SECONDS):
                    shown = await self._handler.download_request(self._request(response.url, loads))
            except TimeoutError:
                raise BrowserFailed("timeout", f"{response.url} took longer than {MOST_SECONDS:g} s") from None
            except PlaywrightError as error:
                first = (str(error).splitlines() or [""])[0]
                raise BrowserFailed("browser", f"{response.url}: {first:.300}") from None
            except Exception as error:
                raise BrowserFailed("browser", f"{response.url}: {type(error).__name__}: {error!s:.300}") from error
            finally:
                loads.stop_serving()
        if loads.lacks:
            raise BrowserFailed("load", f"{response.url} asks its host for what could not be loaded")
        if len(shown.body) > MOST_BYTES:
            raise BrowserFailed("large", f"{response.url} has {len(shown.body)} bytes as it is shown")
        self._count("ubi/browser/shown")
        return str(shown.text) if isinstance(shown, TextResponse) else ""

    def _request(self, url: str, loads: CrawlLoads) -> Request:
        async def settle(page: Page) -> None:
            try:
                await page.wait_for_load_state("networkidle", timeout=SETTLES * 1000)
            except PlaywrightError:
                self._count("ubi/browser/unsettled")
            loads.stop_serving()

        return Request(
            url,
            meta={
                "playwright": True,
                "playwright_context": CONTEXT,
                "playwright_context_kwargs": dict(self._context),
                "playwright_page_init_callback": loads.serve_page,
                "playwright_page_methods": [PageMethod(settle)],
                "playwright_page_goto_kwargs": {"wait_until": "domcontentloaded", "timeout": BEGINS * 1000},
            },
        )
