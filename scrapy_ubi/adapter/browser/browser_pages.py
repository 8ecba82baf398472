"""Pages that the crawl has fetched, as a browser shows them: by the download handler of scrapy-playwright.

Rules of this module:

* The settings of scrapy-playwright hold (`PLAYWRIGHT_LAUNCH_OPTIONS`, `PLAYWRIGHT_BROWSER_TYPE`, a browser elsewhere),
  but the browser has no way into the net: `CrawlLoads` answers all that a page asks for, and what would go another way
  (a socket, a worker, the browser's own updates) meets a proxy that is not there.
* `MOST_PAGES` are shown at once, or as many as PLAYWRIGHT_MAX_PAGES_PER_CONTEXT says; others wait.
* A page is shown when nothing was under way for half a second, or after `SETTLES` as it is then. It may take
  `MOST_SECONDS`, whatever its scripts do.
* The browser is started with the first page, and ends with the crawl.

What one page loads is answered by the crawl, never by the browser itself. The page is the one that the crawl has
fetched. What its scripts ask for is loaded beside the scheduler, as media are: robots.txt, the delay and the owner of
each host, cookies, proxies and private networks hold for it.

* Scripts, and what scripts fetch (GET and POST), are loaded: `MOST_LOADS` a page, `MOST_LOAD_BYTES` each. Style sheets
  are answered as empty. Images, media, fonts, frames, sockets, beacons, and another page in place of this one are not.
* Scripts are kept for the next pages, `MOST_KEPT` bytes of them.
* What of the page's own host could not be loaded makes the page fail: it would lack what it should show. What
  robots.txt forbids does not, nor what other hosts owe.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page, Route
from playwright.async_api import Request as BrowserRequest
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response, TextResponse
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.misc import build_from_crawler
from scrapy_playwright.handler import ScrapyPlaywrightDownloadHandler
from scrapy_playwright.page import PageMethod

MOST_PAGES = 4
BEGINS, SETTLES = 60.0, 60.0  # s: for the document with its scripts, and for what they load; delays of hosts count
MOST_SECONDS = 180.0
MOST_SHOWN_BYTES = 16 << 20  # of a page as it is shown
CONTEXT = "ubi"
NOWHERE = "http://127.0.0.1:9"  # the discard port: nothing is there

MOST_LOADS = 100  # of a page
MOST_LOAD_BYTES = 8 << 20  # of a load
MOST_KEPT = 64 << 20  # bytes of scripts
LOADED = frozenset({"script", "fetch", "xhr"})
METHODS = frozenset({"GET", "POST"})
PASSED_ON = frozenset({"accept", "authorization", "content-type", "origin", "referer"})  # headers, and all x-*
KEPT_BACK = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive"})
OF_PAGE = ("cookiejar", "proxy", "http_proxy", "ubi_rate")  # meta that holds for what a page loads as well

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
        if len(shown.body) > MOST_SHOWN_BYTES:
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


class _Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class KeptScripts:
    """Scripts of the pages before, those used last; tasks of those under way, so that one load serves all."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, _Answer] = OrderedDict()
        self._bytes = 0
        self.under_way: dict[str, asyncio.Task[_Answer | None]] = {}

    def find(self, url: str) -> _Answer | None:
        """The script of this URL, where it is kept."""
        if (answer := self._answers.get(url)) is not None:
            self._answers.move_to_end(url)
        return answer

    def keep(self, url: str, answer: _Answer) -> None:
        """Keep a script that came well, and may be kept."""
        said = answer.headers.get("cache-control", "").lower()
        if answer.status != 200 or "no-store" in said or url in self._answers:
            return
        self._answers[url] = answer
        self._bytes += len(answer.body)
        while self._bytes > MOST_KEPT:
            self._bytes -= len(self._answers.popitem(last=False)[1].body)


class CrawlLoads:
    """Answers what one page, fetched with this response, asks for in the browser. `lacks` says whether something of its
    own host could not be loaded."""

    def __init__(
        self,
        crawler: Crawler,
        response: TextResponse,
        kept: KeptScripts,
        host_of: Callable[[str], str | None],
        count: Callable[[str], object],
    ) -> None:
        assert response.request is not None, "it was fetched"
        self._crawler = crawler
        self._response = response
        self._kept = kept
        self._host_of = host_of
        self._count = count
        self._meta = {key: response.request.meta[key] for key in OF_PAGE if key in response.request.meta}
        self._given = self._ended = False
        self._loads = 0
        self._own: set[asyncio.Task[_Answer | None]] = set()  # loads that serve this page only
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.lacks = False

    async def serve_page(self, page: Page, request: Request) -> None:
        """Answer all that this page of the browser asks for from now on."""
        await page.route("**", self._answer)

    def stop_serving(self) -> None:
        """Answer nothing more. What is under way is broken off, but for scripts, which other pages may wait for."""
        if not self._ended:
            self._ended = True
            self._over.set_result(None)
            for task in self._own:
                task.cancel()

    async def _answer(self, route: Route, asked: BrowserRequest) -> None:
        try:
            answer = await self._answer_to(asked)
            if answer is None:
                await route.abort()
            else:
                await route.fulfill(status=answer.status, headers=answer.headers, body=answer.body)
        except PlaywrightError:
            pass  # the page is closed meanwhile

    async def _answer_to(self, asked: BrowserRequest) -> _Answer | None:
        if asked.is_navigation_request():
            return self._document()
        if asked.resource_type == "stylesheet":
            return _Answer(200, {"content-type": "text/css"}, b"")
        if asked.resource_type not in LOADED or asked.method not in METHODS or not _is_http(asked.url):
            self._count("ubi/browser/loads/left_out")
            return None
        if asked.resource_type == "script" and (known := self._kept.find(asked.url)) is not None:
            return known
        if self._ended or self._loads >= MOST_LOADS:
            self._count("ubi/browser/loads/too_many")
            return None
        self._loads += 1
        return await self._load(asked)

    def _document(self) -> _Answer | None:
        """The page itself, which is here; nothing in its place, and no frames in it."""
        if self._given:
            self._count("ubi/browser/loads/left_out")
            return None
        self._given = True
        body = self._response.text.encode("utf-8", "replace")
        return _Answer(200, {"content-type": "text/html; charset=utf-8"}, body)

    async def _load(self, asked: BrowserRequest) -> _Answer | None:
        url, is_script = asked.url, asked.resource_type == "script" and asked.method == "GET"
        task = self._kept.under_way.get(url) if is_script else None
        if task is None:
            task = asyncio.get_running_loop().create_task(self._fetch(asked, is_script))
            if is_script:
                self._kept.under_way[url] = task
                task.add_done_callback(lambda _: self._kept.under_way.pop(url, None))
            else:
                self._own.add(task)
                task.add_done_callback(self._own.discard)
        waited: tuple[asyncio.Future[Any], ...] = (task, self._over)
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        answer = task.result() if task.done() and not task.cancelled() else None
        if self._is_lacking(url, answer):
            self.lacks = True
        return answer

    async def _fetch(self, asked: BrowserRequest, is_script: bool) -> _Answer | None:
        """Load this beside the scheduler. None where there is no answer, as robots.txt forbids it, for example."""
        headers = {name: value for name, value in asked.headers.items() if name in PASSED_ON or name.startswith("x-")}
        headers.setdefault("referer", self._response.url)
        meta: dict[str, Any] = {"handle_httpstatus_all": True, "download_maxsize": MOST_LOAD_BYTES, **self._meta}
        request = Request(
            asked.url,
            method=asked.method,
            headers=headers,
            body=asked.post_data_buffer or b"",
            meta=meta,
            callback=NO_CALLBACK,
        )
        self._count("ubi/browser/loads")
        engine = self._crawler.engine
        assert engine is not None, "a page is under way"
        try:
            response = await engine.download_async(request)
        except IgnoreRequest as error:
            self._count("ubi/browser/loads/refused")
            return _Answer(403, {}, str(error).encode("utf-8", "replace"))
        except Exception:  # noqa: BLE001 - whatever a handler or a middleware of the project raises
            self._count("ubi/browser/loads/failed")
            return None
        answer = _Answer(response.status, _headers(response), response.body)
        if is_script:
            self._kept.keep(asked.url, answer)
        return answer

    def _is_lacking(self, url: str, answer: _Answer | None) -> bool:
        failed = answer is None or answer.status >= 500 or answer.status == 429
        return failed and not self._ended and self._host_of(url) == self._host_of(self._response.url)


def _headers(response: Response) -> dict[str, str]:
    """The headers of a response as the browser gets them: its body is unpacked already."""
    found = {}
    for name, values in response.headers.items():
        key = name.decode("latin-1").lower()
        if key not in KEPT_BACK and key != "set-cookie":  # cookies are the crawl's
            found[key] = b", ".join(values).decode("latin-1")
    return found


def _is_http(url: str) -> bool:
    return url.startswith(("http://", "https://"))
