"""The browser's place in Scrapy (`UBI_BROWSER`): it shows a page that all other middlewares are through with, where
scripts make the pages of its host (`adapter.browser`).

Rules of this module: it is imported where UBI_BROWSER is not off, and needs scrapy-playwright.
"""

from __future__ import annotations

import logging

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.http import HtmlResponse, Response

from scrapy_ubi.adapter.browser.browser_pages import BrowserFailed, BrowserPages
from scrapy_ubi.adapter.browser.shown_pages import ShownPages
from scrapy_ubi.adapter.components.find_scheduler import scheduler_of
from scrapy_ubi.adapter.components.scheduler import UbiScheduler

PRIORITY = 10  # outside all of Scrapy's: redirects, retries and unpacking are done
OWN_BROWSER = "playwright"  # meta key: scrapy-playwright has loaded this page, as the project wants it

logger = logging.getLogger("scrapy_ubi.browser")


class UbiBrowserMiddleware:
    """Gives pages as the browser shows them, where they are made by scripts."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._pages = BrowserPages(crawler, self._host_of, self._count)
        self._shown: ShownPages | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> UbiBrowserMiddleware:
        return cls(crawler)

    def _scheduler(self) -> UbiScheduler | None:
        return scheduler_of(self._crawler)

    def _host_of(self, url: str) -> str | None:
        scheduler = self._scheduler()
        return None if scheduler is None else scheduler.gate.hosts.of_url(url)

    def _count(self, name: str) -> None:
        self._crawler.stats.inc_value(name)

    async def process_response(self, request: Request, response: Response) -> Response | Request:
        """Give a page as it came, or as the browser shows it."""
        if type(response) is not HtmlResponse or request.method != "GET" or request.meta.get(OWN_BROWSER):
            return response
        scheduler = self._scheduler()
        state = None if scheduler is None else scheduler.gate.hosts.state_of(request)
        if scheduler is None or state is None:
            return response
        if self._shown is None:
            self._shown = ShownPages(scheduler.node, scheduler.settings, self._pages.show, self._count)
        if response.request is None:
            response.request = request
        try:
            return await self._shown.given(state, response)
        except BrowserFailed as error:
            self._count(f"ubi/browser/failed/{error.why}")
            scheduler.notices.once(f"browser/{error.why}", f"The browser could not show a page: {error}", logging.ERROR)
            return self._again(request, error)

    def _again(self, request: Request, error: BrowserFailed) -> Request:
        """The same request for another try. Raises the error where there is none left."""
        spider, settings = self._crawler.spider, self._crawler.settings
        assert spider is not None, "a page is under way"
        if settings.getbool("RETRY_ENABLED") and not request.meta.get("dont_retry"):
            again = get_retry_request(request, spider=spider, reason=f"browser/{error.why}")
            if again is not None:
                return again
        raise error
