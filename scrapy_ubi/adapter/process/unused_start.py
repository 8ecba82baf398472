"""A spider of a former Scrapy, whose `start_requests` nobody calls any more."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import unwrap
from typing import Any

import scrapy
from scrapy import Spider


def remarks(spider: Spider) -> Iterator[str]:
    """What `remarks_on_class` says of this spider."""
    return remarks_on_class(type(spider))


def remarks_on_class(cls: type[Spider]) -> Iterator[str]:
    """A sentence for people where a spider has a `start_requests` of its own and no `start`, and this Scrapy's `start`
    does not call it."""
    if not _is_own(cls, "start_requests") or _is_own(cls, "start"):
        return
    start: Any = unwrap(cls.start)
    if "start_requests" not in start.__code__.co_names:
        yield (
            f"{cls.__module__}.{cls.__qualname__} has no start(), which is what Scrapy {scrapy.__version__} calls "
            "(plain, too): its start_requests() is not called, and the crawl begins with start_urls only. "
            "Rename it: async def start(self)."
        )


def _is_own(cls: type[Spider], name: str) -> bool:
    """Whether this comes from a class that is not Scrapy's."""
    owner = next((each for each in cls.__mro__ if name in vars(each)), None)
    return owner is not None and owner.__module__.partition(".")[0] != "scrapy"
