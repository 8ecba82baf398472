"""Outermost at the spider: marks what the scheduler could not tell otherwise.

* What `start()` yields is a *seed*: every agent of the crawl runs `start()`, so seeds are taken once in the whole
  cluster, also with `dont_filter=True` (`adapter.scheduling.seeds`). In a trial there is one agent, and each with
  `dont_filter=True` is taken: the contracts of several callbacks may have one URL.
* What a callback yields with `dont_filter=True` is meant to be fetched again: it gets a *nonce* and so a key of its
  own. The nonce is made of the page's key and the request's number among its output. So a page that is fetched a second
  time after a crash asks for the same requests again, not for new ones.
* Requests of callbacks are handed to the engine here instead of being passed on: Scrapy would start a task for each.
* Plain links of callbacks are taken here as one object. Those of `start()` become requests, as seeds are few.
* What a page was parsed into is let go at the end of its output. Page and tree hold each other, so they would stay in
  memory, a hundred kB and more each, until Python looks for garbage among old objects: 30 MB of pages at a time.
* Items of `start()` come once in the whole cluster, too (`start_items`).
* Without our scheduler (a crawler without an engine, as in users' tests) everything passes as it is, and plain links
  become requests.
* Most links of a page are known. Their requests go no further than this, as the engine would send two signals about
  each; unless somebody listens who would miss them.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_ubi.adapter.components.find_scheduler import own_scheduler, scheduler_of
from scrapy_ubi.adapter.components.scheduler import SEED, UbiScheduler
from scrapy_ubi.adapter.extraction.plainlinks import NO_SCHEDULER, PlainLinks, expanded
from scrapy_ubi.adapter.process.start_errors import process_ended
from scrapy_ubi.adapter.requests.check import NONCE
from scrapy_ubi.adapter.requests.seed_marks import MARKS, why_no_marks
from scrapy_ubi.adapter.scrapy_private.middlewares import only_scrapy_listens
from scrapy_ubi.adapter.scrapy_private.parsed_page import forget_tree

# While the engine backs out it drains start() without a pause: 100,000 URLs would block the loop for two seconds.
PAUSE_EVERY = 64
LOOK_EVERY = 0.05  # s between two looks whether start() may go on


SEED_MARKS = frozenset(MARKS.values())

_NO_LIMITS = (
    "start() yields {}, with ubi_limits, ubi_scope or ubi_label in its meta: they have no effect without "
    "UBI_HOST_LIMITS. Set it, to {{}} where all hosts are to have no limits."
)
_BAD_MARK = "start() yields {}, of which a mark does not hold, and has no effect: {}."


class UbiSpiderMiddleware:
    """Between the engine and all other spider middlewares: it sees every request last."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> UbiSpiderMiddleware:
        """Raises SystemExit with one sentence where an add-on after ours has set another scheduler."""
        if own_scheduler(crawler.settings) is None:
            raise process_ended(
                f"SCHEDULER was set to {crawler.settings['SCHEDULER']!r} after scrapy_ubi.Addon, by another add-on: "
                "take that one, or scrapy_ubi.Addon, out of ADDONS."
            )
        return cls(crawler)

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        count = 0
        if (scheduler := self._scheduler()) is None:
            async for output in start:
                for found in self._as_scrapy(output):
                    yield found
            return
        trial, items = scheduler.is_trial, scheduler.start_items
        try:
            async for output in start:
                for found in scheduler.page_links.seeds(output) if isinstance(output, PlainLinks) else (output,):
                    if isinstance(found, Request):
                        _mark_seed(found, trial)
                        if not SEED_MARKS.isdisjoint(found.meta):
                            _judge_marks(scheduler, found)
                    elif found is not None and not await items.is_own(found):
                        continue
                    yield found
                    count += 1
                    if count % PAUSE_EVERY == 0:
                        await self._turn_of_others(scheduler)
            async for found in items.rest():
                yield found
        finally:
            scheduler.start_ended()

    @staticmethod
    async def _turn_of_others(scheduler: UbiScheduler) -> None:
        """Let others run, and wait as long as further seeds should not come: start() may have millions."""
        await asyncio.sleep(0)
        while scheduler.start_waits:  # noqa: ASYNC110 - nothing tells of less being in the way
            await asyncio.sleep(LOOK_EVERY)

    @staticmethod
    async def _turn_of_pages(scheduler: UbiScheduler) -> None:
        await asyncio.sleep(0)
        while scheduler.output_waits:  # noqa: ASYNC110 - as above
            await asyncio.sleep(LOOK_EVERY)

    def process_spider_output(self, response: Response, result: Iterable[Any]) -> Iterable[Any]:
        """Yields None where others should have their turn; to Scrapy that is nothing. Where further links have to wait
        it yields None again and again, and who takes the output pauses (`fast.pieces`)."""
        if (scheduler := self._scheduler()) is None:
            for found in result:
                yield from self._as_scrapy(found)
            return
        hand_over = None
        for number, found in enumerate(result, 1):
            if hand_over is None:  # not before: the callback itself may let somebody listen
                unheard = self._is_unheard()
                hand_over = self._taker(response, unheard, scheduler)
                flight, observers = scheduler.flights.get(response.request), scheduler.observers
                page = flight.visit if flight is not None else None
            if observers.refuses and flight is not None and observers.refuse(flight, response, found):
                continue
            if isinstance(found, Request):
                hand_over(found)
                if number % PAUSE_EVERY == 0:
                    yield None
                    while scheduler.output_waits:
                        yield None
            elif isinstance(found, PlainLinks):
                for _ in scheduler.page_links.take_links(found, response, page, hand_over, unheard):
                    yield None
                    while scheduler.output_waits:
                        yield None
            else:
                if flight is not None and found is not None:
                    for yielded in observers.yielded:
                        yielded(flight, response, found)
                yield found
        forget_tree(response)

    async def process_spider_output_async(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        if (scheduler := self._scheduler()) is None:
            async for found in result:
                for each in self._as_scrapy(found):
                    yield each
            return
        hand_over, number = None, 0
        async for found in result:
            number += 1
            if hand_over is None:
                unheard = self._is_unheard()
                hand_over = self._taker(response, unheard, scheduler)
                flight, observers = scheduler.flights.get(response.request), scheduler.observers
                page = flight.visit if flight is not None else None
            if observers.refuses and flight is not None and observers.refuse(flight, response, found):
                continue
            if isinstance(found, Request):
                hand_over(found)
                if number % PAUSE_EVERY == 0:  # a callback that waits for nothing itself would never stop
                    await self._turn_of_pages(scheduler)
            elif isinstance(found, PlainLinks):
                for _ in scheduler.page_links.take_links(found, response, page, hand_over, unheard):
                    await self._turn_of_pages(scheduler)
            else:
                if flight is not None and found is not None:
                    for yielded in observers.yielded:
                        yielded(flight, response, found)
                yield found
        forget_tree(response)

    def _is_unheard(self) -> bool:
        """Whether no listener would miss requests that are not sent signals about."""
        return only_scrapy_listens(self._crawler, signals.request_scheduled, signals.request_dropped)

    def _taker(self, response: Response, unheard: bool, scheduler: UbiScheduler) -> Callable[[Request], None]:
        """What takes the requests that the page of this response yields. `unheard`: no listener would miss
        them."""
        crawl, page, enqueue = self._crawler.engine.crawl, response.request, scheduler.enqueue
        looks = unheard and not scheduler.asks_each  # else each is a matter of the engine

        def hand_over(request: Request) -> None:
            # Spiders copy meta from page to page; marks that came along are not this request's.
            meta = request.meta
            if meta:
                meta.pop(NONCE, None)
                meta.pop(SEED, None)
            enqueue.mark_child(request, page)
            if not (looks and enqueue.is_known(request)):
                crawl(request)

        return hand_over

    def _as_scrapy(self, found: Any) -> Iterable[Any]:
        """What Scrapy is to get where there is no scheduler of ours."""
        return expanded(self._crawler, found, NO_SCHEDULER) if isinstance(found, PlainLinks) else (found,)

    def _scheduler(self) -> UbiScheduler | None:
        return scheduler_of(self._crawler)


def _judge_marks(scheduler: UbiScheduler, request: Request) -> None:
    """Say once of marks of a seed that they have no effect, and why."""
    if scheduler.node.limits.idle:
        scheduler.notices.once("seed marks", _NO_LIMITS.format(request))
    elif why := why_no_marks(request.meta):
        scheduler.notices.once(f"seed marks {why.partition(':')[0]}", _BAD_MARK.format(request, why))


def _mark_seed(request: Request, trial: bool) -> None:
    request.meta[SEED] = True
    if trial and request.dont_filter:
        request.meta[NONCE] = secrets.token_hex(8)
