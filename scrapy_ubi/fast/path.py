"""A request's way through Scrapy in fewer steps (UBI_LEAN): one task from the scheduler to its page's last output.

Scrapy starts a task each to ask the downloader middlewares, to wait for a place, to transfer, and to parse, and
CONCURRENT_ITEMS + 1 more for the output; deferreds pass results from one to the next. Here one task calls the same
middlewares, handlers, signals, callbacks and pipelines, in the same order and with the same arguments. Rules of this
module:

* It does over what `ExecutionEngine`, `Downloader`, `DownloaderMiddlewareManager` and `Scraper` do with a scheduled
  request, so it is for the versions of Scrapy that it was compared with (`COMPARED`), and only where these classes
  are Scrapy's own and the functions that it stands for read as they did then (`compared`): `place` says why it is not
  used.
* What bypasses the scheduler (robots.txt, media, `engine.download_async`) goes Scrapy's way.
* A request that has to wait in Scrapy's downloader (a delay, a full slot) waits there.
* Requests are in Scrapy's own lists (`downloader.active`, the slots of engine, downloader and scraper) as usual, so
  that what counts them there counts right.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import chain
from time import monotonic
from typing import Any

import scrapy
from scrapy import Request, signals
from scrapy.core.downloader import Downloader
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.core.engine import ExecutionEngine
from scrapy.core.scraper import Scraper
from scrapy.core.spidermw import SpiderMiddlewareManager
from scrapy.exceptions import _InvalidOutput
from scrapy.http import Response
from scrapy.logformatter import LogFormatter
from scrapy.utils.defer import _process_pending_io, ensure_awaitable
from scrapy.utils.log import logformatter_adapter
from scrapy.utils.python import global_object_name
from twisted.python.failure import Failure

from scrapy_ubi.adapter.process.garbage import look_early
from scrapy_ubi.fast.calls import Call, lean_calls
from scrapy_ubi.fast.compared import changed
from scrapy_ubi.fast.pieces import ends_us, failure
from scrapy_ubi.fast.spider_output import LeanOutput
from scrapy_ubi.fast.tweaks import is_written

COMPARED = ((2, 19),)  # versions of Scrapy

# Turns of the loop between a response and its callback while start() has more to yield, for the tasks that Scrapy would
# start: in them the engine looks for its next request, finds none, and a start() that waits for that (Scrapy's
# documentation: lazy start) yields its next one.
TURNS = 2

Outcome = Callable[[Response | Failure, Request], bool | Awaitable[None]]
Successor = Callable[[Request, Request], None]

# People and tests know these lines by the names of Scrapy's loggers.
engine_log = logging.getLogger("scrapy.core.engine")
scraper_log = logging.getLogger("scrapy.core.scraper")


def place(engine: ExecutionEngine, outcome: Outcome, successor: Successor, outermost: type | None) -> str:
    """Have scheduled requests go this way from now on; why they do not, in words, or "".

    To be called when the engine has its slot. `outcome(result, request)` hears of each final response or error before
    the spider does, and returns True when the spider is not to be told; `successor(new, request)` of a new request that
    a middleware gave in place of a response. `outermost`: the spider middleware that has to
    be next to the engine, as it yields None where others should have their turn; None: any may be.
    """
    if scrapy.version_info[:2] not in COMPARED:
        return f"it is for Scrapy {' and '.join('.'.join(map(str, each)) for each in COMPARED)}"
    parts = {
        engine: ExecutionEngine,
        engine.downloader: Downloader,
        engine.scraper: Scraper,
        getattr(engine.downloader, "middleware", None): DownloaderMiddlewareManager,
        engine.scraper.spidermw: SpiderMiddlewareManager,
    }
    for part, cls in parts.items():
        if type(part) is not cls:
            return f"{global_object_name(type(part))} is not Scrapy's {cls.__name__}"
        if function := changed(part):
            return f"{function} is not the one that it was compared with"
    path = LeanPath(engine, outcome, successor, outermost)
    engine._start_scheduled_request = path.start  # type: ignore[method-assign]
    return ""


def path_of(engine: ExecutionEngine) -> LeanPath | None:
    """The way that scheduled requests of this engine go, where it is this one."""
    path = getattr(engine._start_scheduled_request, "__self__", None)
    return path if isinstance(path, LeanPath) else None


class LeanPath:
    """The way of the scheduled requests of one engine."""

    def __init__(self, engine: ExecutionEngine, outcome: Outcome, successor: Successor, outermost: type | None) -> None:
        assert engine._slot is not None and engine.spider is not None, "the engine opens a spider"
        self._engine, self._slot, self._spider = engine, engine._slot, engine.spider
        self._downloader: Downloader = engine.downloader
        self._manager = self._downloader.middleware
        self._scraper, self._signals = engine.scraper, engine.signals
        methods = [self._manager.methods[name] for name in ("process_request", "process_response")]
        self._calls = lean_calls(self._manager, chain.from_iterable(methods))
        self._outcome = outcome
        self._successor = successor
        self._output = LeanOutput(engine.scraper, outermost)
        self._says_crawled = type(engine.logformatter).crawled is not LogFormatter.crawled  # at a level of its own?
        self._tasks: dict[Request, asyncio.Task[None]] = {}  # the loop itself holds its tasks weakly

    def replace_call(self, method: Call, call: Call) -> Call | None:
        """Have `call` called in place of a middleware's method, from now on; what was before. It may return an
        awaitable. None where Scrapy calls this method, and nothing is changed."""
        before = self._calls.get(method)
        if before is not None:
            self._calls[method] = call
        return before

    def start(self) -> bool:
        """Start the scheduler's next request; False when it has none. As `ExecutionEngine._start_scheduled_request`."""
        request = self._slot.scheduler.next_request()
        if request is None:
            self._signals.send_catch_log(signals.scheduler_empty)
            return False
        self._slot.add_request(request)
        self._downloader.active.add(request)
        self._tasks[request] = asyncio.get_running_loop().create_task(self._visit(request))
        return True

    async def _visit(self, request: Request) -> None:
        look_early()
        try:
            result = await self._fetched(request)
            if isinstance(result, Request):  # of a middleware: a redirect, for example
                self._successor(result, request)
                self._engine.crawl(result)
            elif not (is_over := self._outcome(result, request)):
                await self._scrape(result, request)
            elif is_over is not True:
                await is_over
        except Exception:  # noqa: BLE001 - of whatever is hooked in; the others of the crawl go on
            engine_log.info("Error while handling downloader output", exc_info=True, extra={"spider": self._spider})
        finally:
            self._tasks.pop(request, None)  # one object may be under way twice
            self._remove(request)

    def _remove(self, request: Request) -> None:
        try:
            self._slot.remove_request(request)
        except Exception:  # noqa: BLE001 - likewise
            engine_log.info("Error while removing request from slot", exc_info=True, extra={"spider": self._spider})
        finally:
            self._slot.nextcall.schedule()

    # The downloader

    async def _fetched(self, request: Request) -> Response | Request | Failure:
        """What the downloader makes of a request. As `ExecutionEngine._download`."""
        try:
            return await self._fetch(request)
        except BaseException as error:  # whatever a handler or a middleware raises is for the errback
            if ends_us(error):
                raise
            return failure()
        finally:
            self._slot.nextcall.schedule()

    async def _fetch(self, request: Request) -> Response | Request:
        try:
            result = await self._download(request)
        finally:
            self._downloader.active.remove(request)
        if isinstance(result, Request):
            return result
        if not isinstance(result, Response):
            raise TypeError(f"Incorrect type: expected Response or Request, got {type(result)}: {result!r}")
        if result.request is None:
            result.request = request
        self._say_crawled(result.request, result)
        self._signals.send_catch_log(
            signal=signals.response_received, response=result, request=result.request, spider=self._spider
        )
        return result

    def _say_crawled(self, request: Request, response: Response) -> None:
        if self._says_crawled or is_written(engine_log, logging.DEBUG):
            words = self._engine.logformatter.crawled(request, response, self._spider)
            if words is not None:
                engine_log.log(*logformatter_adapter(words), extra={"spider": self._spider})

    async def _download(self, request: Request) -> Response | Request:
        """As `DownloaderMiddlewareManager.download_async`."""
        try:
            result = await self._ask(request)
        except Exception as error:  # noqa: BLE001 - middlewares decide what becomes of it
            await _process_pending_io()
            result = await self._manager._process_exception(error, request)
        return result if isinstance(result, Request) else await self._answered(request, result)

    async def _ask(self, request: Request) -> Response | Request:
        """As `DownloaderMiddlewareManager._process_request`: most middlewares have nothing to say, and at once."""
        manager = self._manager
        for method in manager.methods["process_request"]:
            assert method is not None
            call = self._calls.get(method)
            result = call(request=request) if call else manager._handle_mw_method(method, request=request)
            if result is None:
                continue
            result = await ensure_awaitable(result, _warn=global_object_name(method))
            if result is not None and not isinstance(result, Response | Request):
                raise _wrong(method, "None, Response or Request", type(result).__name__)
            if result:
                return result
        return await self._transfer(request)

    async def _answered(self, request: Request, response: Response | None) -> Response | Request:
        """As `DownloaderMiddlewareManager._process_response`."""
        if response is None:
            raise TypeError("Received None in process_response")
        manager, result = self._manager, response
        for method in manager.methods["process_response"]:
            assert method is not None
            if call := self._calls.get(method):
                answer = call(request=request, response=result)
            else:
                answer = manager._handle_mw_method(method, request=request, response=result)
            if not isinstance(answer, Response):
                answer = await ensure_awaitable(answer, _warn=global_object_name(method))
                if isinstance(answer, Request):
                    return answer
                if not isinstance(answer, Response):
                    raise _wrong(method, "Response or Request", type(answer))
            result = answer
        return result

    async def _transfer(self, request: Request) -> Response:
        """As `Downloader._enqueue_request`, where nothing is to be waited for."""
        downloader = self._downloader
        key, slot = downloader._get_slot(request)
        if slot.queue or slot.latercall or slot.delay or slot.free_transfer_slots() <= 0:
            return await downloader._enqueue_request(request)
        request.meta[downloader.DOWNLOAD_SLOT] = key
        slot.active.add(request)
        self._signals.send_catch_log(signal=signals.request_reached_downloader, request=request, spider=self._spider)
        slot.lastseen = monotonic()
        try:
            return await downloader._download(slot, request)
        finally:
            slot.active.remove(request)

    # The spider

    async def _scrape(self, result: Response | Failure, request: Request) -> None:
        """Have the spider told, and take what it yields. As `Scraper.enqueue_scrape`."""
        slot = self._scraper.slot
        if slot is None:
            raise RuntimeError("Scraper slot not assigned")
        slot.add_response_request(result, request)
        slot.next_response_request_deferred()  # which is this one
        try:
            for _ in range(TURNS if self._engine._start is not None else 0):
                await asyncio.sleep(0)
            if isinstance(result, Response) and self._output.is_lean:
                await self._output.take_output(result, request)
            else:
                await self._scraper._scrape(result, request)
        except BaseException as error:  # likewise; Scrapy waits without end after what is no Exception
            if ends_us(error):
                raise
            words = "Scraper bug processing %(request)s"
            scraper_log.error(words, {"request": request}, exc_info=True, extra={"spider": self._spider})
        finally:
            slot.finish_response(result, request)
            self._scraper._check_if_closing()


def _wrong(method: Any, wanted: str, got: object) -> _InvalidOutput:
    return _InvalidOutput(f"Middleware {method.__qualname__} must return {wanted}, got {got}")
