"""Scrapy's bound on the pages that callbacks and pipelines have.

| name | used for |
| --- | --- |
| `engine.scraper.slot.max_active_size` | bytes from which on no request is handed out |
"""

from __future__ import annotations

from typing import Any

from scrapy.crawler import Crawler

from scrapy_ubi.adapter.scrapy_private.engines import engine_of


def raise_bound(crawler: Crawler, more: int) -> None:
    """Let there be so many bytes more, or less. Nothing is done where no page is taken any more, or the name lacks."""
    slot: Any = getattr(getattr(engine_of(crawler), "scraper", None), "slot", None)
    if hasattr(slot, "max_active_size"):
        slot.max_active_size += more
