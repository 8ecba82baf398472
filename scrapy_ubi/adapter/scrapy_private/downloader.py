"""What Scrapy's downloader knows of a request it has fetched, and its places.

| name | used for |
| --- | --- |
| `downloader.middleware.middlewares` | the one of ours among them |
| `downloader.slots`, meta key `download_slot` | the delay of the slot that a request went through |
| `http11.TunnelError` | a proxy that opens no tunnel says nothing of the host |
| `downloader.active`, `engine._slot.nextcall` | to leave a place to others, and have the engine look |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from scrapy import Request
from scrapy.core.downloader.handlers.http11 import TunnelError
from scrapy.crawler import Crawler

MOST_WITHOUT = 1000  # requests that wait without a place


def downloader_middlewares(crawler: Crawler) -> Sequence[object]:
    """Return the downloader middlewares of a crawler; none where a user's own DOWNLOADER has none."""
    manager = getattr(crawler.engine.downloader, "middleware", None)
    found: Sequence[object] = getattr(manager, "middlewares", ())
    return found


def slot_delay(crawler: Crawler, request: Request) -> float:
    """The delay (s) of the download slot that a request went through; 0.0 where a user's own DOWNLOADER has none."""
    slots = getattr(crawler.engine.downloader, "slots", {})
    return float(getattr(slots.get(request.meta.get("download_slot")), "delay", 0.0))


def is_no_tunnel(error: Exception) -> bool:
    """Whether a proxy has opened no tunnel to the host."""
    return isinstance(error, TunnelError)


class Places:
    """The places of CONCURRENT_REQUESTS, of one crawler: what only waits leaves its own to the pages."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._left = 0  # how many wait without a place

    @contextmanager
    def left(self, request: Request) -> Iterator[None]:
        """Leave the place of this request meanwhile, if it has one. Beyond `MOST_WITHOUT` it is kept, so that a crawl
        does not run ahead of its files without end."""
        engine = self._crawler.engine
        active: set[Request] | None = getattr(getattr(engine, "downloader", None), "active", None)
        if active is None or request not in active or self._left >= MOST_WITHOUT:
            yield
            return
        active.discard(request)
        self._left += 1
        slot = getattr(engine, "_slot", None)
        if slot is not None:
            slot.nextcall.schedule()
        try:
            yield
        finally:
            self._left -= 1
            active.add(request)
