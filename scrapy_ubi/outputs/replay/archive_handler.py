"""The download handler of a replay: each request is answered by the archive, or fails as `NotArchived`.

Rules of this module:

* The archive is read in one thread; the loop waits for none of it. It is opened before the spider starts.
* A response has the flag "replayed": the store `warc` keeps none of it, as nothing was loaded. (With that of Scrapy's
  HTTP cache, "cached", its body would be taken for one that is unpacked already.)
* What has come truncated has the flag that it had in its crawl.
"""

from __future__ import annotations

import asyncio
import logging
import re
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

from scrapy import Request, signals
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import Crawler
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes

from scrapy_ubi.adapter.requests.page_outcome import NotArchived
from scrapy_ubi.adapter.requests.reason_phrase import REPLAYED, keep_reason
from scrapy_ubi.outputs.replay.archive import Answer, Archive
from scrapy_ubi.outputs.warc.foreign import BrokenRecord, files_of, unchunked
from scrapy_ubi.settings import UbiSettings

logger = logging.getLogger(__name__)

MOST = 1 << 30  # bytes of a record, where DOWNLOAD_MAXSIZE has no bound
FLAGS = {"length": "download_stopped", "disconnect": "dataloss", "time": "download_stopped"}

_replays: WeakKeyDictionary[Crawler, _Replay] = WeakKeyDictionary()


class ReplayHandler(BaseDownloadHandler):
    """The handler of every scheme that would lead to a network."""

    lazy = False  # the archive is opened before the spider starts

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if crawler not in _replays:
            _replays[crawler] = _Replay(crawler)
        self._replay = _replays[crawler]

    async def download_request(self, request: Request) -> Response:
        """The recorded response. Raises NotArchived, OSError."""
        return await self._replay.answer(request)

    async def close(self) -> None:
        self._replay.close()


class _Replay:
    """The archive of one crawl, behind its thread."""

    def __init__(self, crawler: Crawler) -> None:
        settings = crawler.settings
        paths, _ = files_of(UbiSettings.from_scrapy(settings, "spider").replay)
        self._archive = Archive(paths, settings.getint("DOWNLOAD_MAXSIZE") or MOST)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ubi-replay")
        self._crawler = crawler
        self._files = len(paths)
        self._opening: asyncio.Task[None] | None = None
        self._closed = False
        crawler.signals.connect(self._opened, signals.spider_opened)
        crawler.signals.connect(self._tell, signals.spider_closed)

    async def answer(self, request: Request) -> Response:
        """The recorded response of a request. Raises NotArchived, OSError."""
        await self._opened()
        began = monotonic()
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(
            self._thread, self._archive.find_answer, request.method, request.url, request.body
        )
        if found is None:
            self._count("ubi/replay/missing")
            raise NotArchived(f"{request} is not in the WARC files of UBI_REPLAY")
        request.meta["download_latency"] = monotonic() - began
        self._count("ubi/replay/answered")
        return _response(request, found)

    async def _opened(self) -> None:
        """The index is made, once."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())
        await asyncio.shield(self._opening)

    async def _open(self) -> None:
        logger.info("UBI_REPLAY: requests are answered from %d WARC files, and none is sent.", self._files)
        await asyncio.get_running_loop().run_in_executor(self._thread, self._archive.build_index)
        logger.info("UBI_REPLAY: the files have %d responses.", self._archive.records)

    def _tell(self) -> None:
        for what, number in (
            ("ubi/replay/records", self._archive.records),
            ("ubi/replay/broken", self._archive.broken),
        ):
            if number:
                self._count(what, number)

    def _count(self, what: str, number: int = 1) -> None:
        self._crawler.stats.inc_value(what, number)

    def close(self) -> None:
        """End the thread, when what it does is done."""
        if not self._closed:
            self._closed = True
            _replays.pop(self._crawler, None)
            self._thread.submit(self._archive.close)
            self._thread.shutdown(wait=False)


def _response(request: Request, found: Answer) -> Response:
    version, status, reason = found.message.line
    if not re.fullmatch(rb"[1-9][0-9]{2}", status):
        raise NotArchived(f"{request} has no status in the WARC files of UBI_REPLAY") from BrokenRecord(status)
    headers, body = Headers(), found.message.body
    why = FLAGS.get(found.head.get("warc-truncated", ""))
    for name, value in found.message.headers:
        if name.lower() == b"transfer-encoding":
            if value.rpartition(b",")[2].strip().lower() == b"chunked":
                body = unchunked(body, is_cut=why is not None)
        else:
            headers.appendlist(name, value)
    kind: Any = responsetypes.from_args(headers=headers, url=request.url, body=body)
    response: Response = kind(
        url=request.url, status=int(status), headers=headers, body=body, request=request,
        flags=[REPLAYED, *([why] if why else [])], protocol=version.decode("latin-1"), ip_address=_address(found.head),
    )  # fmt: skip
    keep_reason(response, reason.decode("latin-1"))
    return response


def _address(head: dict[str, str]) -> Any:
    try:
        return ip_address(head["warc-ip-address"])
    except (KeyError, ValueError):
        return None
