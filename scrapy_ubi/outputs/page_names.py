"""What an item is called, for pipelines that write to a database: the same however often its page is fetched."""

from __future__ import annotations

from typing import Any

from scrapy.crawler import Crawler

from scrapy_ubi.adapter.requests.observers import Observers
from scrapy_ubi.adapter.scrapy_private.engines import scheduler_in
from scrapy_ubi.outputs.page_outputs import PageOutputs


def item_id(crawler: Crawler, item: Any) -> str:
    """`<page>-<ordinal>` for an item that a callback has yielded, while it is in the pipelines: the page's name (its
    key), and the number of the item among those of its page, from 0.

    It is known for the object that the callback has yielded: ask in the first pipeline that makes another of it. ''
    for items of start() and of errbacks, for others than that object, and where UBI_STORES names no store.
    """
    observers = getattr(scheduler_in(crawler), "observers", None)
    outputs = observers.find_observer(PageOutputs) if isinstance(observers, Observers) else None
    return outputs.identity(item) if outputs is not None else ""
