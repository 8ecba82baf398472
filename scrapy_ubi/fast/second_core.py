"""Large pages are unpacked and parsed in a second thread, while this process has a core to spare (UBI_LEAN).

The libraries that unpack (isal, zlib, brotli, zstd) and the link extractor's parser (lexbor) let other threads run
meanwhile. A page costs a little more then, but the loop's thread less, which is what bounds an agent. Rules of this
module:

* Whether it pays is looked at every `EVERY` seconds (`spare_cores.Switch`). Where the process may use one core there is
  no thread and no timer; while it is off, a page costs nothing.
* What the thread makes is what the loop would make of the same bytes: `at_once` of one encoding, and `Page` of a body
  taken for UTF-8 (`parsed_ahead`). It is used where HttpCompressionMiddleware, or the link extractor, asks for it: all
  middlewares have their turn as before. Whatever else there is (a broken stream, a bomb, an error) is done anew in the
  loop, with its errors and stats.
* Pages of one download slot go on in the order in which they came: a small one waits for a large one before it.
* At most `MOST_PAGES` pages and `MOST_BYTES` of them are with the thread, or wait to be taken; others are the loop's.

| private name | used for |
| --- | --- |
| `HttpCompressionMiddleware._decode` | asked for each encoding of a body; of this crawl's middleware only |
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from codecs import BOM_UTF8
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Self

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.http import Response

from scrapy_ubi.adapter.components.find_scheduler import scheduler_of
from scrapy_ubi.adapter.extraction.parsed_ahead import LEAST, ParsedPage, parsed_ahead
from scrapy_ubi.adapter.requests.decompress import at_once
from scrapy_ubi.adapter.scrapy_private.engines import engine_of
from scrapy_ubi.adapter.scrapy_private.runs import is_scrapys_process
from scrapy_ubi.fast.calls import Call
from scrapy_ubi.fast.path import LeanPath, path_of
from scrapy_ubi.fast.spare_cores import Cores, CoresSeen, Switch
from scrapy_ubi.fast.unpacking import MOST
from scrapy_ubi.ground.timer import Timer
from scrapy_ubi.urls.links.costly import is_costly
from scrapy_ubi.urls.links.page import Page

logger = logging.getLogger("scrapy_ubi")

EVERY = 2.0  # s
MOST_PAGES = 16
MOST_BYTES = 8 << 20  # unpacked; parsed they are 100 MB at the very worst
GROWS = 16  # how many times its bytes a compressed page is given; HTML grows 4 to 10 times
LEAST_PACKED = 6_000  # bytes of a compressed page that is parsed as well
LEAST_UNPACKED = 20_000  # bytes of a compressed page that is only unpacked
LOOKED_AT = 20_000  # bytes of a page that tell whether it is in UTF-8
ENCODINGS = frozenset({b"gzip", b"x-gzip", b"br", b"zstd"})


class Job:
    """One page for the thread. `body`: as transferred; `encoding`: of it, b"" for none; `size`: bytes that it may come
    to; `is_parsed`: whether it is to be parsed."""

    __slots__ = ("body", "done", "encoding", "is_parsed", "page", "parsed", "size")

    def __init__(self, body: bytes, encoding: bytes, size: int, is_parsed: bool, done: asyncio.Future[None]) -> None:
        self.body = body
        self.encoding = encoding
        self.size = size
        self.is_parsed = is_parsed
        self.done = done
        self.page: bytes | None = None
        self.parsed: ParsedPage | None = None

    def work(self) -> None:
        """Unpack the page, and parse it. In any thread; raises what the parser raises."""
        page = self.body
        if self.encoding:
            unpacked = at_once(self.encoding.decode("latin-1"), page, self.size)
            if unpacked is None or len(unpacked) >= self.size:
                return
            page = unpacked
        self.page = page
        if self.is_parsed and len(page) >= LEAST and _begins_in_utf8(page):
            written = page.removeprefix(BOM_UTF8)
            self.parsed = ParsedPage(written, None if is_costly(written) else Page(written))


def _begins_in_utf8(page: bytes) -> bool:
    """Whether a page may be in UTF-8; not all of it is looked at, as no other thread runs meanwhile."""
    try:
        page[:LOOKED_AT].decode()
    except UnicodeDecodeError as error:
        return error.start > LOOKED_AT - 4
    return True


class Worker:
    """A thread that works on jobs, in their order, between `start` and `end`."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._is_running = False

    def start(self) -> None:
        """Start the thread, where there is none."""
        if not self._is_running:
            self._is_running = True
            self._loop = asyncio.get_running_loop()
            threading.Thread(target=self._run, name="ubi-second-core", args=(self._jobs,), daemon=True).start()

    def put(self, job: Job) -> None:
        """Have a job done; its future is resolved in the loop then, whatever came out."""
        self._jobs.put(job)

    def end(self) -> None:
        """Let the thread end after what it was given."""
        if self._is_running:
            self._is_running = False
            self._jobs.put(None)
            self._jobs = SimpleQueue()  # of the next thread: the one that ends takes nothing more

    def _run(self, jobs: SimpleQueue[Job | None]) -> None:
        while (job := jobs.get()) is not None:
            try:
                job.work()
            except Exception:  # noqa: BLE001 - the loop meets the same error when it does this work
                job.parsed = None
            try:
                self._loop.call_soon_threadsafe(_resolve, job.done)
            except RuntimeError:  # the loop is closed: nobody waits
                return
            del job  # its page is not to live until the next one comes


def _resolve(done: asyncio.Future[None]) -> None:
    if not done.done():  # else who waited was cancelled
        done.set_result(None)


class _Turn:
    """The pages of one download slot, one after the other."""

    __slots__ = ("lock", "pages")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()  # first come, first served
        self.pages = 0


class HandOver:
    """Hands the large pages of one crawl to a thread, in place of HttpCompressionMiddleware's turn. `count`: for stats;
    `note`: for people."""

    def __init__(
        self, path: LeanPath, middleware: Any, count: Callable[[str], object], note: Callable[[str], object]
    ) -> None:
        self._path, self._middleware, self._count, self._note = path, middleware, count, note
        self._worker = Worker()
        self._plain: Call = middleware.process_response
        self._stands_in = False  # for the middleware, which is `_plain` then
        self._is_on = False
        self._turns: dict[str, _Turn] = {}  # of slots of which pages wait
        self._pages = self._bytes = 0  # with the thread, or waiting to be taken
        self._job: Job | None = None  # of the page that the middleware has now

    def take_over(self) -> bool:
        """From now on; False where it cannot be."""
        if not self._stands_in:
            plain = self._path.replace_call(self._middleware.process_response, self.process_response)
            if plain is None:
                return False
            self._plain, self._stands_in = plain, True
            self._unpack = self._middleware._decode
            self._middleware._decode = self._decode
        self._worker.start()
        self._is_on = True
        parsed_ahead.wanted_by.add(self)
        return True

    def stand_down(self) -> None:
        """No more. Those that wait go on in their turn; then the middleware has its place again, the thread its end."""
        self._is_on = False
        parsed_ahead.wanted_by.discard(self)
        self._stand_back()

    def close(self) -> None:
        """Let the thread end."""
        self._worker.end()

    def process_response(self, request: Request, response: Response) -> Any:
        """As the middleware's; an awaitable where the page has to wait."""
        job = self._job_of(request, response) if self._is_on else None
        slot = request.meta.get("download_slot", "")
        if job is None and slot not in self._turns:
            return self._plain(request=request, response=response)
        return self._wait(slot, job, request, response)

    async def _wait(self, slot: str, job: Job | None, request: Request, response: Response) -> Any:
        turn = self._turns.setdefault(slot, _Turn())
        turn.pages += 1
        try:
            async with turn.lock:
                if job is not None:
                    await job.done
                return self._go_on(job, request, response)
        finally:
            if job is not None:
                self._pages -= 1
                self._bytes -= job.size
            turn.pages -= 1
            if not turn.pages:
                del self._turns[slot]
                self._stand_back()

    def _go_on(self, job: Job | None, request: Request, response: Response) -> Any:
        self._job = job
        try:
            answer = self._plain(request=request, response=response)
        finally:
            self._job = None
        if job is not None:
            self._count("ubi/second_core/pages")
            self._note("second_core")
            if job.parsed is not None:
                self._count("ubi/second_core/parsed")
                if isinstance(answer, Response) and answer.body is job.page:
                    parsed_ahead.keep(answer, job.parsed, self._taken)
        return answer

    def _taken(self) -> None:
        self._count("ubi/second_core/parsed_used")

    def _decode(self, body: bytes, encoding: bytes, max_size: int) -> bytes:
        """As the middleware's."""
        job = self._job
        page = job.page if job is not None and job.body is body and job.encoding == encoding else None
        if page is not None and len(page) < (max_size or MOST):
            return page
        return bytes(self._unpack(body, encoding, max_size))

    def _job_of(self, request: Request, response: Response) -> Job | None:
        """What is to be done of a page by the thread, which is told; None where that is nothing."""
        body, encodings = response.body, response.headers.getlist("Content-Encoding")
        if len(body) < (LEAST_PACKED if encodings else LEAST) or request.method == "HEAD":
            return None
        encoding = encodings[0].strip().lower() if encodings else b""
        if encodings and (len(encodings) > 1 or encoding not in ENCODINGS):
            return None
        size = len(body) * (GROWS if encoding else 1)
        if self._pages and (self._pages >= MOST_PAGES or self._bytes + size > MOST_BYTES):
            self._count("ubi/second_core/left")
            return None
        is_html = b"html" in (response.headers.get("Content-Type") or b"")
        is_parsed = is_html and parsed_ahead.spend_credit(request)
        if not is_parsed and (not encoding or len(body) < LEAST_UNPACKED):
            return None
        job = Job(body, encoding, size, is_parsed, asyncio.get_running_loop().create_future())
        self._pages += 1
        self._bytes += size
        self._worker.put(job)
        return job

    def _stand_back(self) -> None:
        if self._stands_in and not self._is_on and not self._turns:
            self._path.replace_call(self._middleware.process_response, self._plain)
            self._stands_in = False
            if self._middleware._decode == self._decode:
                self._middleware._decode = self._unpack
            self.close()


class SecondCore:
    """An extension of each crawl: looks when it pays."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._timer = Timer()
        self._pages: HandOver | None = None  # until it has paid once
        crawler.signals.connect(self._opened, signals.spider_opened)
        crawler.signals.connect(self._closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def _opened(self) -> None:
        scheduler = scheduler_of(self._crawler)
        # What is parsed ahead is of the whole process.
        if scheduler is None or scheduler.is_trial or not is_scrapys_process():
            return
        self._note, self._cores, self._switch = scheduler.node.note, Cores(), Switch()
        if self._cores.count >= 2:
            self._wait()

    def _closed(self) -> None:
        self._timer.clear()
        if self._pages is not None:
            self._pages.stand_down()
            self._pages.close()

    def _wait(self) -> None:
        self._looked, self._spent = asyncio.get_running_loop().time(), time.thread_time()
        self._timer.set(EVERY, self._look)

    def _look(self) -> None:
        passed = asyncio.get_running_loop().time() - self._looked
        seen = CoresSeen((time.thread_time() - self._spent) / passed, self._cores.idle(passed))
        was = self._switch.is_on
        if self._switch.look(seen) != was and not self._turn(seen):
            return  # and never look again
        self._wait()

    def _turn(self, seen: CoresSeen) -> bool:
        """Begin, or end; False where pages go another way than the one that this is made for."""
        if not self._switch.is_on:
            assert self._pages is not None
            self._pages.stand_down()
        elif (pages := self._pages or self._hand_over()) is None or not pages.take_over():
            return False
        else:
            self._pages = pages
        where = "a second thread" if self._switch.is_on else "the loop's thread"
        logger.info(
            "UBI_LEAN: large pages are unpacked and parsed in %s from now on: the loop's thread was busy for "
            "%.0f %% of the time, and %.1f of %.4g cores were idle.",
            where, 100 * seen.busy, seen.idle, self._cores.count,
        )  # fmt: skip
        return True

    def _hand_over(self) -> HandOver | None:
        engine = engine_of(self._crawler)
        path = path_of(engine) if engine is not None else None
        middleware = self._crawler.get_downloader_middleware(HttpCompressionMiddleware)
        if path is None or type(middleware) is not HttpCompressionMiddleware:
            return None
        return HandOver(path, middleware, self._crawler.stats.inc_value, self._note)
