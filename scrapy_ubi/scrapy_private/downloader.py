"""What Scrapy's downloader knows of a request it has fetched.

| name | used for |
| --- | --- |
| `downloader.slots`, meta key `download_slot` | the delay of the slot that a request went through |
| `http11.TunnelError` | a proxy that opens no tunnel says nothing of the host |
"""

from __future__ import annotations

from scrapy import Request
from scrapy.core.downloader.handlers.http11 import TunnelError
from scrapy.crawler import Crawler


def slot_delay(crawler: Crawler, request: Request) -> float:
    """The delay (s) of the download slot that a request went through; 0.0 where a user's own DOWNLOADER has none."""
    slots = getattr(crawler.engine.downloader, "slots", {})
    return float(getattr(slots.get(request.meta.get("download_slot")), "delay", 0.0))


def is_no_tunnel(error: Exception) -> bool:
    """Whether a proxy has opened no tunnel to the host."""
    return isinstance(error, TunnelError)
