"""Hooks on the running engine: what becomes of requests, transfers, the spider's idle moments and its closing.

Rules of this module:

* Scrapy keeps no references to what is wrapped here (it looks each up by name at every call), so wrapping them on the
  instance is enough. Every wrapper calls what it wraps with the arguments it was given.
* A user's own DOWNLOADER may lack handlers or slots. Then these hooks do nothing.

| name | used for |
| --- | --- |
| `engine._slot.remove_request` | the one moment after a request's last output, whatever became of it |
| `engine._slot.close` | the crawl is being closed: nothing may wait for a permit any more |
| `engine._slot.closing` | whether the spider is being closed: a signal that comes then waits for the end of it |
| `engine._slot.nextcall.schedule` | to make the engine look for requests now, not at its next heartbeat in 5 s |
| `engine._spider_idle`, its use of `engine.signals` | who holds the spider open at idle; to do so last |
| `engine.scraper.enqueue_scrape` | what became of a request: a response, or the error that ended it |
| `engine._handle_downloader_output` | a request that a downloader middleware gave in place of a response |
| `engine.downloader.handlers.download_request_async` | where a transfer starts, so that it can be cancelled |
| `engine.download_async` of the instance | what media pipelines call: how a download beside the queue ends |
| `handlers._get_handler`, `HTTP11DownloadHandler._pool`, Twisted's `_clientProtocol` | the connection of a request |
| `downloader._get_slot`, `Slot.lastseen`, `jitter` | a slot never used delays nothing, on a machine just booted, too |
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from scrapy import Request, signals
from scrapy.core.downloader import Slot
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.core.engine import ExecutionEngine
from scrapy.exceptions import DontCloseSpider
from scrapy.http import Response
from scrapy.signalmanager import SignalManager
from scrapy.utils.httpobj import urlparse_cached
from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from scrapy_ubi.adapter.scrapy_private import download_handlers, socket_gate
from scrapy_ubi.adapter.scrapy_private.versions import jitter_of

START_LOOK = 0.02  # s between two looks whether the engine runs

Download = Callable[[Request], Awaitable[Response]]

_closes: ContextVar[bool] = ContextVar("closes", default=False)  # whether what runs is part of a spider's closing


class EngineHooks:
    """The hooks on one running engine. Made in the scheduler's `open`, when the engine has its slot."""

    def __init__(self, engine: ExecutionEngine) -> None:
        slot = engine._slot
        assert slot is not None, "the engine has no slot before it opens the spider"
        self._engine = engine
        self._slot = slot

    def needs_backout(self) -> bool:
        """Whether the engine asks for no further request: its places are taken, or the spider is being closed."""
        return self._engine.needs_backout()

    def on_removed(self, removed: Callable[[Request], None]) -> None:
        """Call `removed(request)` when the engine lets go of a request, exactly once for each it took."""
        original = self._slot.remove_request

        def remove_request(request: Request) -> None:
            try:
                removed(request)
            finally:
                original(request)

        self._slot.remove_request = remove_request  # type: ignore[method-assign]

    def on_closing(self, closing: Callable[[], None]) -> None:
        """Call `closing()` when the spider is being closed, before the engine waits for the requests under way."""
        original = self._slot.close

        async def close() -> None:
            closing()
            await original()

        self._slot.close = close  # type: ignore[method-assign]

    def outlast_signals(self) -> None:
        """Let Scrapy's `close_spider_async` end when the spider is closed, also where it is being closed already.

        Else the first Ctrl-C or SIGTERM ends a process that closes for another reason before it is done. What the
        closing itself calls (a handler of `spider_closed` may stop the crawler) does not wait for it.
        """
        engine, slot, original, ended = self._engine, self._slot, self._engine.close_spider_async, asyncio.Event()

        async def close_spider_async(*, reason: str = "cancelled") -> None:
            if engine.spider is None or (slot.closing is not None and _closes.get()):
                await original(reason=reason)
            elif slot.closing is not None:
                await ended.wait()
            else:
                _closes.set(True)
                try:
                    await original(reason=reason)
                finally:
                    ended.set()

        engine.close_spider_async = close_spider_async  # type: ignore[method-assign]

    def outlast_start(self) -> None:
        """Let Scrapy's `stop_async` of the crawler, called while the spider is opened, wait until the engine runs.

        Else the first Ctrl-C or SIGTERM stops nothing then, and ends the process of an agent that has just joined.
        """
        engine, crawler, original = self._engine, self._engine.crawler, self._engine.crawler.stop_async

        async def stop_async() -> None:
            # No signal of Scrapy's tells of it: `engine_started` comes before.
            while crawler.crawling and engine.spider is not None and not engine.running:  # noqa: ASYNC110
                await asyncio.sleep(START_LOOK)
            await original()

        crawler.stop_async = stop_async  # type: ignore[method-assign]

    def on_outcome(self, outcome: Callable[[Response | Failure, Request], bool | Awaitable[None]]) -> None:
        """Call `outcome(result, request)` when a scheduled request has its final response or error, before the spider
        does. When it returns True the spider is not told: no callback, errback or log line; what can be awaited means
        the same, and the request is let go of after it."""
        original = self._engine.scraper.enqueue_scrape

        def enqueue_scrape(result: Response | Failure, request: Request) -> Deferred[Any]:
            is_over = outcome(result, request)
            if not is_over:
                return original(result, request)
            return succeed(None) if is_over is True else Deferred.fromFuture(asyncio.ensure_future(is_over))

        self._engine.scraper.enqueue_scrape = enqueue_scrape  # type: ignore[method-assign]

    def on_successor(self, successor: Callable[[Request, Request], None]) -> None:
        """Call `successor(new, request)` when a downloader middleware gave a new request in place of the response of a
        scheduled one (a redirect, a retry), before the new one is enqueued."""
        original = self._engine._handle_downloader_output

        def handle_downloader_output(result: Request | Response | Failure, request: Request) -> Deferred[Any]:
            if isinstance(result, Request):
                successor(result, request)
            return original(result, request)

        self._engine._handle_downloader_output = handle_downloader_output  # type: ignore[method-assign]

    def at_idle(self, asked: Callable[[bool], bool]) -> None:
        """Call `asked(held)` when all receivers of `spider_idle` have been asked, however they were connected: whether
        one of them holds the spider open. When it returns True the spider stays open in any case."""
        engine, original = self._engine, self._engine._spider_idle

        def spider_idle() -> None:
            usual = engine.signals
            engine.signals = _Idle(usual, asked)  # type: ignore[assignment]
            try:
                original()
            finally:
                engine.signals = usual

        engine._spider_idle = spider_idle  # type: ignore[method-assign]

    def around_transfers(
        self, carry: Callable[[Request, Download], Awaitable[Response]], reach: socket_gate.Reaches | None = None
    ) -> None:
        """Let `carry(request, download)` do every transfer, by awaiting `download(request)` or not. `reach` says which
        addresses Scrapy's own handler may connect to.

        A user's own DOWNLOADER that has no such handlers is left as it is: its loads cannot be cancelled.
        """
        handlers = getattr(self._engine.downloader, "handlers", None)
        original: Download | None = getattr(handlers, "download_request_async", None)
        if handlers is None or original is None:
            return
        most = download_handlers.most_kept()
        downloads: dict[object, Download] = {}  # by handler

        def prepared(handler: object) -> Download:
            scrapys = getattr(handler, "scrapys", handler)  # ours has one as well, for what it leaves to Scrapy
            if isinstance(scrapys, HTTP11DownloadHandler):
                socket_gate.gate(scrapys._pool, _transport, reach)
                download_handlers.bound(scrapys._pool, most)
            elif download_handlers.sends_again(handler):
                download_handlers.send_once(handler)
                return download_handlers.telling(original)
            return socket_gate.asking(handler, original)

        async def download_request_async(request: Request) -> Response:
            handler = handlers._get_handler(urlparse_cached(request).scheme)
            download = downloads.get(handler)
            if download is None:
                download = downloads[handler] = prepared(handler)
            return await carry(request, download)

        handlers.download_request_async = download_request_async

    def around_downloads(self, make: Callable[[Request, Download], Awaitable[Response]]) -> None:
        """Let `make(request, download)` make every download beside the scheduler, by awaiting `download(request)`."""
        original = self._engine.download_async

        async def download_async(request: Request) -> Response:
            return await make(request, original)

        self._engine.download_async = download_async  # type: ignore[method-assign]

    def let_first_pass(self) -> None:
        """Let the first request of each download slot pass at once.

        Scrapy's slots were last used at 0 of a monotonic clock, which may have begun with the machine: there, until a
        delay is over, each would keep its first request, and a place of the downloader with it. A user's own
        DOWNLOADER that has no such slots is left as it is.
        """
        downloader = self._engine.downloader
        original = getattr(downloader, "_get_slot", None)
        if original is None:
            return

        def get_slot(*args: Any, **named: Any) -> tuple[str, Any]:
            key, slot = original(*args, **named)
            if isinstance(slot, Slot) and slot.delay and not getattr(slot, "lastseen", 1):
                slot.lastseen = -slot.delay * (1 + jitter_of(slot))
            return key, slot

        downloader._get_slot = get_slot  # type: ignore[method-assign]

    def wake(self) -> None:
        """Make the engine look for requests, and whether it is idle, at once. Harmless at any time, in the loop."""
        if self._engine.running and self._engine.scraper.slot is not None and self._slot.closing is None:
            self._slot.nextcall.schedule()


class _Idle:
    """The signals of an engine while it asks whether the spider may be closed: `asked` has the last word."""

    def __init__(self, usual: SignalManager, asked: Callable[[bool], bool]) -> None:
        self._usual = usual
        self._asked = asked

    def send_catch_log(self, signal: object, **named: Any) -> list[tuple[Any, Any]]:
        """As `SignalManager.send_catch_log`."""
        results = self._usual.send_catch_log(signal, **named)
        if signal is signals.spider_idle:
            errors = [result.value for _, result in results if isinstance(result, Failure)]
            if self._asked(any(isinstance(error, DontCloseSpider) for error in errors)):
                not_over = DontCloseSpider("the crawl is not over everywhere")
                results.append((self._asked, Failure(not_over)))  # type: ignore[no-untyped-call]
        return results

    def __getattr__(self, name: str) -> Any:
        return getattr(self._usual, name)


def _transport(connection: Any) -> Any:
    """The transport of what Twisted's pool hands out: a protocol, or a wrapper that tries once more."""
    return getattr(connection, "_clientProtocol", connection).transport
