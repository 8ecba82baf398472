"""Unanticipated errors: what is one, what is written of it, and when they are a burst."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DownloadTimeoutError, IgnoreRequest
from scrapy.http import Response
from scrapy.spidermiddlewares.httperror import HttpError
from twisted.web.client import ResponseFailed

from scrapy_ubi.adapter.components import ending
from scrapy_ubi.adapter.process import error_log
from scrapy_ubi.adapter.process.error_log import Burst, ErrorLog, is_anticipated
from scrapy_ubi.adapter.scrapy_private.versions import FileException
from tests.support.crawls import Outcome, crawl
from tests.support.site import Page, Site, links

SCRAPER = "scrapy.core.scraper"
SPIDER = object()  # of the crawl whose log it is
HOST = "http://h.example"


class Book:
    """An error log, and all it told."""

    def __init__(self, path: Path, number: int = 0) -> None:
        self.now = 0.0
        self.path = path
        self.counted: Counter[str] = Counter()
        self.noted: Counter[str] = Counter()
        self.stopped: list[str] = []
        self.log = ErrorLog(
            path, Burst(number, 10.0), lambda: self.now,
            count=self._count, note=self._note, stop=self.stopped.append, spider=SPIDER,
        )  # fmt: skip

    def _count(self, name: str) -> None:
        self.counted[name] += 1

    def _note(self, name: str) -> None:
        self.noted[name] += 1

    @property
    def text(self) -> str:
        return self.path.read_text() if self.path.exists() else ""


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    before = list(logging.getLogger().handlers)
    book = Book(tmp_path / "errors.log", number=3)
    book.log.listen()
    yield book
    book.log.close()
    assert logging.getLogger().handlers == before


def raised(error: BaseException) -> BaseException:
    """The error, with a traceback."""
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001 - any
        return caught


def test_an_error_is_written_with_what_was_done_and_its_traceback(book: Book) -> None:
    book.log.met("callback", raised(KeyError("price")), "parse of <GET http://h.example/\n1>")
    (headline, *trace) = book.text.splitlines()
    assert headline.endswith(" callback: parse of <GET http://h.example/ 1>")
    assert trace[0] == "Traceback (most recent call last):"
    assert "in raised" in book.text and "KeyError: 'price'" in trace
    assert book.counted == {"ubi/errors/callback": 1}
    assert book.noted == {"error/callback": 1}


def test_without_an_error_there_is_no_file(book: Book) -> None:
    assert not book.path.exists()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (DownloadTimeoutError("slow"), True),
        (IgnoreRequest("no"), True),
        (HttpError(None, "404"), True),  # type: ignore[arg-type]
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (ResponseFailed([]), True),
        (FileException("download-error"), True),
        (UnicodeError("label too long"), True),
        (EOFError(), True),  # a compressed body that ends too early
        (KeyError("x"), False),
        (TypeError(), False),
        (ValueError(), False),
        (AssertionError(), False),
        (MemoryError(), False),
    ],
)
def test_what_is_anticipated_of_a_download(error: Exception, expected: bool) -> None:
    assert is_anticipated(error) is expected


@pytest.mark.parametrize("name", ["scrapy.utils.signal", "scrapy.core.engine", "twisted", "asyncio", "scrapy_ubi"])
def test_what_is_logged_with_a_traceback_is_met(book: Book, name: str) -> None:
    logging.getLogger(name).error("Error on %s", "handler", exc_info=raised(ValueError("x")))
    assert book.counted == {"ubi/errors/elsewhere": 1}
    assert f"elsewhere: {name}: Error on handler" in book.text


def test_what_is_logged_otherwise_is_not(book: Book) -> None:
    error = raised(ValueError("x"))
    logging.getLogger("scrapy.core.engine").error("no traceback")
    logging.getLogger("scrapy.core.engine").warning("a warning", exc_info=error)
    logging.getLogger("walk").exception("a spider's own log", exc_info=error)
    logging.getLogger("scrapyd").error("another's", exc_info=error)
    logging.getLogger(SCRAPER).error("told by a signal", exc_info=error)
    logging.getLogger("scrapy.pipelines.media").error("a picture", exc_info=raised(FileException("404")))
    logging.getLogger("asyncio").error("nothing", exc_info=(None, None, None))
    assert not book.counted and not book.text
    logging.getLogger("scrapy.pipelines.media").error("a mistake", exc_info=error)
    assert book.counted == {"ubi/errors/elsewhere": 1}


def test_errors_of_another_crawl_in_this_process_are_not_ours(tmp_path: Path) -> None:
    mine, other = object(), object()
    log = ErrorLog(tmp_path / "e", Burst(0, 1), lambda: 0.0, count=[].append, note=[].append, stop=print, spider=mine)
    counts: list[str] = []
    log._count = counts.append
    log.listen()
    try:
        for spider in (mine, other):
            logging.getLogger("scrapy.utils.signal").error("x", exc_info=raised(ValueError()), extra={"spider": spider})
    finally:
        log.close()
    assert counts == ["ubi/errors/elsewhere"]


class Nasty(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize("error", [Nasty(), ValueError("\x1b[2J\x00\ud800"), RecursionError(), KeyError("x" * 100_000)])
def test_whatever_the_error_it_is_written(book: Book, error: Exception) -> None:
    book.log.met("pipeline", raised(error), "an item")
    exc_info = (type(error), error, raised(error).__traceback__)
    told = {"name": "asyncio", "levelno": logging.ERROR, "msg": "%d", "args": ("no number",), "exc_info": exc_info}
    book.log._ear.emit(logging.makeLogRecord(told))
    assert book.text.count(type(error).__name__) >= 2
    assert not set(book.text) & {"\x1b", "\x00"}
    assert len(book.text) < 2 * error_log.LONGEST + 5000


def test_old_errors_make_room_for_new_ones(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    book.log._file.maxBytes = 10_000
    for number in range(200):
        book.log.met("callback", raised(KeyError(f"number {number}")), "parse")
    files = sorted(book.path.parent.iterdir())
    assert len(files) == 1 + error_log.FILES
    assert all(file.stat().st_size <= 10_000 for file in files)
    assert "number 199" in book.text


def test_a_log_that_cannot_be_written_is_counted_and_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    book = Book(tmp_path / "gone" / "errors.log")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            book.log.met("callback", raised(KeyError("x")), "parse")
    assert book.counted == {"ubi/errors/callback": 3, "ubi/errors/unwritten": 3}
    assert sum("cannot be written" in record.getMessage() for record in caplog.records) == 1


def test_a_burst_stops_once(book: Book) -> None:
    for _ in range(5):
        book.log.met("callback", raised(KeyError("x")), "parse")
    (sentence,) = book.stopped
    assert sentence == (
        "3 unanticipated errors within 10 s, the last one KeyError in a callback: the agent stops (UBI_ERROR_BURST). "
        f"They are in {book.path}."
    )


def errors(burst: Burst, *times: float) -> list[bool]:
    return [burst.error(now) for now in times]


@pytest.mark.parametrize("name", ["twisted", "asyncio", "scrapy.utils.signal", "scrapy_ubi"])
@pytest.mark.parametrize("extra", [{}, {"spider": None}])
def test_what_may_be_of_something_else_in_the_process_makes_no_burst(
    book: Book, name: str, extra: dict[str, Any]
) -> None:
    for _ in range(10):
        logging.getLogger(name).error("Error on %s", "handler", exc_info=raised(ValueError("x")), extra=extra)
    assert book.counted == {"ubi/errors/elsewhere": 10} and not book.stopped


def test_errors_of_a_log_that_name_the_spider_make_a_burst(book: Book) -> None:
    logger = logging.getLogger("scrapy.utils.signal")
    for _ in range(3):
        logger.error("Error on %s", "handler", exc_info=raised(ValueError("x")), extra={"spider": SPIDER})
    assert book.counted == {"ubi/errors/elsewhere": 3} and len(book.stopped) == 1


def test_errors_in_close_succession_are_a_burst() -> None:
    assert errors(Burst(3, 10.0), 0, 9, 10, 11) == [False, False, True, True]
    assert errors(Burst(3, 10.0), 0, 9, 10.1, 18, 21) == [False, False, False, True, False]
    assert errors(Burst(1, 10.0), 0) == [True]
    assert errors(Burst(0, 10.0), *range(100)) == [False] * 100


@pytest.mark.parametrize(("pages", "expected"), [(0, True), (6, True), (7, False), (100, False)])
def test_errors_among_many_pages_are_none(pages: int, expected: bool) -> None:
    burst = Burst(3, 10.0)
    burst.pages = 1000
    errors(burst, 0, 1)
    burst.pages += pages
    assert burst.error(2) is expected


def test_a_task_that_nobody_awaits_is_met(book: Book) -> None:
    async def forgotten() -> None:
        raise KeyError("forgotten")

    async def main() -> None:
        asyncio.get_running_loop().call_soon(_raise)
        task: Any = asyncio.ensure_future(forgotten())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        del task

    asyncio.run(main())
    assert book.counted["ubi/errors/elsewhere"] == 2
    assert "forgotten" in book.text and "handle" in book.text


def _raise() -> None:
    raise KeyError("handle")


class Pipeline:
    def process_item(self, item: Any) -> Any:
        if "bad" in item["url"]:
            raise LookupError("bad item")
        return item


class Middleware:
    def process_response(self, request: Request, response: Response) -> Response:
        if "breaks" in response.url:
            raise TypeError("a mistake in a middleware")
        return response


class Breaks(Spider):
    """Goes wrong in every place."""

    name = "breaks"
    start_urls = (f"{HOST}/",)
    custom_settings: ClassVar[dict[str, Any]] = {
        "ITEM_PIPELINES": {Pipeline: 1},
        "DOWNLOADER_MIDDLEWARES": {Middleware: 1},
        "RETRY_ENABLED": False,
    }

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Breaks:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.received, signals.response_received)
        return spider

    def received(self, response: Response) -> None:
        if "handler" in response.url:
            raise ZeroDivisionError

    def parse(self, response: Response) -> Iterator[Any]:
        for path in ("bad", "callback", "handler", "breaks", "fine"):
            yield Request(f"{HOST}/{path}", self.parse_page)
        yield Request(f"{HOST}/missing", errback=self.failed)
        yield Request(f"{HOST}/absent")
        yield Request("http://nowhere.example/")

    def parse_page(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        if "callback" in response.url:
            raise KeyError("price")

    def failed(self, failure: Any) -> None:
        raise AttributeError("in an errback")


def test_every_unanticipated_error_is_in_the_log_and_the_crawl_goes_on(site: Site, tmp_path: Path) -> None:
    site.page(f"{HOST}/", links())
    for path in ("bad", "callback", "handler", "breaks", "fine"):
        site.page(f"{HOST}/{path}", "page")
    log = tmp_path / "agent" / "errors.log"
    (outcome,) = crawl(Breaks, site.proxy, settings={"UBI_DIR": str(tmp_path / "agent")})
    assert outcome.reason == "finished"
    assert sorted(item["url"] for item in outcome.items) == [
        f"{HOST}/{path}" for path in ("callback", "fine", "handler")
    ]
    stats = {name: value for name, value in outcome.stats.items() if name.startswith("ubi/errors/")}
    assert stats == {f"ubi/errors/{where}": 1 for where in ("callback", "download", "elsewhere", "errback", "pipeline")}
    entries = log.read_text()
    for said in (
        f" callback: parse_page of <GET {HOST}/callback>",
        f" errback: failed of <GET {HOST}/missing>",
        f" pipeline: an item (dict) of <GET {HOST}/bad>",
        f" download: <GET {HOST}/breaks> for parse_page",
        " elsewhere: scrapy.utils.signal: Error caught on signal handler",
    ):
        assert entries.count(said) == 1, entries
    assert entries.count("Traceback") >= 5
    assert "in parse_page" in entries and "in process_item" in entries
    assert outcome.stats["ubi/failed/exception/TypeError"] == 1


def broken(site: Site, **settings: Any) -> Outcome:
    """A crawl of 60 pages; the callback raises at each but the first."""

    class Broken(Spider):
        name = "broken"
        start_urls = (f"{HOST}/",)

        def parse(self, response: Response) -> Iterator[Any]:
            if response.url != f"{HOST}/":
                raise KeyError("every time")
            for number in range(60):
                yield Request(f"{HOST}/{number}")

    site.page(f"{HOST}/", "seed")
    for number in range(60):
        site.page(f"{HOST}/{number}", Page("page"))
    (outcome,) = crawl(Broken, site.proxy, settings=settings)
    return outcome


def test_a_burst_of_errors_stops_the_agent_cleanly_and_the_process_ends_with_a_failure(
    site: Site, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended_badly: list[object] = []
    with monkeypatch.context() as patched:
        patched.setattr(ending, "end_badly", ended_badly.append)
        outcome = broken(site, UBI_ERROR_BURST=10)
    assert outcome.reason == "error_burst"
    assert len(ended_badly) == 1, "the exit status says so"
    assert outcome.stats["ubi/done"] < 40
    assert 10 <= outcome.stats["ubi/errors/callback"] < 30
    said = [record.getMessage() for record in caplog.records if "UBI_ERROR_BURST" in record.getMessage()]
    assert len(said) == 1 and "KeyError in a callback: the agent stops" in said[0]


def test_errors_stop_nothing_by_default(site: Site) -> None:
    """As with plain Scrapy: the pages that give items may come after those that fail."""
    outcome = broken(site)
    assert outcome.reason == "finished"
    assert outcome.stats["ubi/errors/callback"] == 60


def test_the_log_is_in_the_agents_directory(site: Site, tmp_path: Path) -> None:
    outcome = broken(site, UBI_DIR=str(tmp_path / "agent"))
    assert outcome.reason == "finished"
    assert (tmp_path / "agent" / "errors.log").read_text().count("KeyError: 'every time'") >= 50
