"""The arguments that a crawl is being started with.

`Crawler.crawl` and `Crawler.crawl_async` give them to the spider and keep them nowhere; but add-ons are loaded while
these functions run, and their own variables hold them. Relied on: both call `_apply_settings`, which loads the add-ons,
themselves, and name their variables `self`, `args` and `kwargs`.
"""

from __future__ import annotations

import inspect
from typing import Any

from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings

_STARTS = {
    inspect.unwrap(function).__code__
    for function in (getattr(Crawler, name, None) for name in ("crawl", "crawl_async"))
    if function is not None
}


def start_arguments(settings: BaseSettings) -> tuple[Crawler, tuple[Any, ...], dict[str, Any]] | None:
    """The crawler that is being started with these settings, and the positional and named arguments of its spider;
    None where no crawl is being started (`get_crawler` of a test)."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code in _STARTS:
            names = frame.f_locals
            if {"self", "args", "kwargs"} <= names.keys() and names["self"].settings is settings:
                return names["self"], tuple(names["args"]), dict(names["kwargs"])
        frame = frame.f_back
    return None
