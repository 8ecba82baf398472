"""The pieces of a page's output, requests and items, taken in fewer steps (UBI_LEAN): items one by one while none
waits.

Scrapy starts CONCURRENT_ITEMS tasks for each page, to which it hands each piece. Rules of this module:

* Where no pipeline is a coroutine, an item mostly waits for nothing, and the next one follows when it has passed. One
  that does wait (for what a plain function returned, for a receiver of a signal) goes on in the task in which it began,
  and the others of its page are taken meanwhile, CONCURRENT_ITEMS at once: it may wait for one of them.
* Where one is a coroutine, CONCURRENT_ITEMS of them pass at once, as before.
* What escapes the processing of one piece ends that piece only, and is logged.
* After each item garbage is looked for, as Scrapy's own way would have left enough of it (`adapter.process.garbage`).
* Others have their turn after `SLICE` pieces, or where the outermost middleware yields None. It does so as long as the
  page has to wait with further links (`UbiScheduler.output_waits`): then it is asked again after a pause.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Coroutine, Generator, Iterable, Iterator
from inspect import iscoroutinefunction, unwrap
from types import coroutine
from typing import Any

from scrapy import Request, Spider
from scrapy.core.scraper import Scraper
from scrapy.http import Response
from scrapy.logformatter import LogFormatter, LogFormatterResult
from scrapy.pipelines import ItemPipelineManager
from scrapy.settings import SETTINGS_PRIORITIES, default_settings
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.defer import aiter_errback, iter_errback
from twisted.python.failure import Failure

from scrapy_ubi.adapter.components.find_scheduler import scheduler_of
from scrapy_ubi.adapter.process.garbage import GarbageTurns
from scrapy_ubi.fast.tweaks import is_written

SLICE = 32  # pieces of output between two turns of the loop
PAUSE = 0.02  # s until output that waits is asked for again

scraper_log = logging.getLogger("scrapy.core.scraper")  # where people look for what is said of a page


class ItemsUnsaid(LogFormatter):
    """In place of Scrapy's for one scraper: no record of an item that no handler would write."""

    def scraped(self, item: Any, response: Response | Failure | None, spider: Spider) -> LogFormatterResult:
        said = is_written(scraper_log, logging.DEBUG)
        return super().scraped(item, response, spider) if said else None  # type: ignore[return-value]  # is documented


class LeanPieces:
    """Takes the pieces for one scraper. `is_lean`: whether it does, as no pipeline is a coroutine."""

    def __init__(self, scraper: Scraper) -> None:
        self._scraper = scraper
        self._garbage = GarbageTurns()
        if type(scraper.logformatter) is LogFormatter:
            scraper.logformatter = ItemsUnsaid()
        self.is_lean = _waits_for_nothing(scraper.itemproc)
        if self.is_lean:
            self._most = _at_once(scraper)
            scraper.handle_spider_output_async = self._handle  # type: ignore[method-assign]

    async def take_pieces(self, found: Iterator[Any], request: Request, response: Response) -> bool:
        """Take each piece when it comes; False after an error, which is the end."""
        scraper, crawl, count = self._scraper, self._scraper.crawler.engine.crawl, 0
        while True:
            try:
                piece = next(found)
            except StopIteration:
                return True
            except Exception:  # noqa: BLE001 - of the spider or a middleware
                scraper.handle_spider_error(failure(), request, response)
                return False
            count += 1
            if piece is None or count % SLICE == 0:
                await asyncio.sleep(PAUSE if piece is None and self._waits() else 0)
            try:
                if isinstance(piece, Request):
                    crawl(piece)
                elif piece is not None:
                    waiting = await _begun(scraper.start_itemproc_async(piece, response=response))
                    if waiting is not None and not await self._meanwhile(waiting, found, request, response):
                        return False
                    self._garbage.step_done()
            except BaseException as error:  # noqa: BLE001 - of whatever is hooked in
                self._escaped(error, request)

    async def _meanwhile(
        self, waiting: Awaitable[None], found: Iterator[Any], request: Request, response: Response
    ) -> bool:
        """Wait for an item, and take the rest of its page meanwhile; False after an error in that rest."""
        room = self._most - 1
        if room < 1:
            await waiting
            return True
        others = asyncio.create_task(self._side_by_side(found, room, request, response))
        await self._passed(waiting, request)
        return await others

    async def _handle(
        self, result: Iterable[Any] | AsyncIterator[Any], request: Request, response: Response | Failure
    ) -> None:
        """Take output that comes asynchronously, or of an errback. As `Scraper.handle_spider_output_async`, which
        starts CONCURRENT_ITEMS + 1 tasks for each page; here an item has one of its own."""
        await self._side_by_side(result, self._most, request, response)

    async def _side_by_side(
        self, found: Iterable[Any] | AsyncIterator[Any], room: int, request: Request, response: Response | Failure
    ) -> bool:
        """Take the pieces, with so many items at once; False after an error of the output."""
        scraper, crawl, errors = self._scraper, self._scraper.crawler.engine.crawl, list[Failure]()
        free, passing = asyncio.Semaphore(max(1, room)), set[asyncio.Task[None]]()

        def failed(error: Failure) -> None:
            errors.append(error)
            scraper.handle_spider_error(error, request, response)

        def passed(task: asyncio.Task[None]) -> None:
            passing.discard(task)
            free.release()

        count = 0
        if isinstance(found, AsyncIterator):
            pieces = aiter_errback(found, failed)
        else:  # before it becomes asynchronous, where a StopAsyncIteration would be another error
            pieces = as_async_generator(iter_errback(found, failed))
        async for piece in pieces:
            count += 1
            if isinstance(piece, Request):
                async with free:  # after the items before it, as far as they leave no room
                    try:
                        crawl(piece)
                    except BaseException as error:  # noqa: BLE001 - of whatever is hooked in
                        self._escaped(error, request)
            elif piece is not None:
                await free.acquire()
                item = scraper.start_itemproc_async(piece, response=response)
                task = asyncio.create_task(self._passed(item, request))
                passing.add(task)
                task.add_done_callback(passed)
            if not isinstance(piece, Request) or count % SLICE == 0:  # also for the item to begin before what follows
                await asyncio.sleep(PAUSE if piece is None and self._waits() else 0)
        if passing:
            await asyncio.wait(passing)
        return not errors

    def _waits(self) -> bool:
        scheduler = scheduler_of(self._scraper.crawler)
        return scheduler is not None and scheduler.output_waits

    async def _passed(self, item: Awaitable[None], request: Request) -> None:
        """Wait for an item that others do not wait for."""
        try:
            await item
        except BaseException as error:  # noqa: BLE001 - of whatever is hooked in
            self._escaped(error, request)
        self._garbage.step_done()

    def _escaped(self, error: BaseException, request: Request) -> None:
        """Say what has escaped the processing of a piece. A cancellation from inside ends the piece without a word, as
        it ends one of Scrapy's tasks; what ends our own task goes on."""
        if ends_us(error):
            raise error
        if not isinstance(error, asyncio.CancelledError):
            words, spider = "Scraper bug processing %(request)s", self._scraper.crawler.spider
            scraper_log.error(words, {"request": request}, exc_info=True, extra={"spider": spider})


@coroutine
def _begun(item: Coroutine[Any, Any, None]) -> Generator[Any, Any, Awaitable[None] | None]:
    """Run an item's coroutine until it ends, or waits: then the rest of it, to be awaited by the same task."""
    try:
        waits_for = item.send(None)
        if waits_for is None:  # a turn of the loop, which sending a signal takes
            yield
            waits_for = item.send(None)
    except StopIteration:
        return None
    return _rest(item, waits_for)


@coroutine
def _rest(item: Coroutine[Any, Any, None], waits_for: Any) -> Generator[Any, Any, None]:
    """Go on with a coroutine that waits for this, as `await` would."""
    try:
        while True:
            try:
                yield waits_for
            except BaseException as error:  # noqa: BLE001 - the task is cancelled, which the coroutine is to hear
                waits_for = item.throw(error)
            else:
                waits_for = item.send(None)
    except StopIteration:
        return


def ends_us(error: BaseException) -> bool:
    """Whether what was caught ends our own task (or the process), not just something that the task has called.

    What is hooked in may end with what is no Exception: a panic of a library in Rust, a cancellation from inside.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit)


def failure() -> Failure:
    """The exception that is being handled, as Scrapy passes it on."""
    return Failure()  # type: ignore[no-untyped-call]


def _at_once(scraper: Scraper) -> int:
    """So many items of a page may wait at once. That the add-on has Scrapy start few tasks is to save those that have
    nothing to do: here there are none."""
    settings = scraper.crawler.settings
    if settings.getpriority("CONCURRENT_ITEMS") == SETTINGS_PRIORITIES["addon"]:
        return int(default_settings.CONCURRENT_ITEMS)
    return scraper.concurrent_items


def _waits_for_nothing(pipelines: Any) -> bool:
    """Whether items pass the pipelines without a wait. An ITEM_PROCESSOR of the user's own may do anything."""
    if type(pipelines) is not ItemPipelineManager:
        return False
    return not any(iscoroutinefunction(unwrap(each)) for each in pipelines.methods["process_item"])  # type: ignore[arg-type]
