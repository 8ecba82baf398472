"""One object in several requests of a page: in plain Scrapy their callbacks see what the others put into it.

Rules of this module:

* Whether a request holds objects is read off what its meta, its cb_kwargs and its callbacks (partials have arguments)
  were packed to: it costs nothing where there are none. Lists and dicts that Scrapy and download handlers have in meta
  are none of the spider's.
* An agent that has the request itself hands the very object out (`kept_requests`). Another agent, and a restart, have a
  copy. So in a group each key under which a page shares an object is named once.
* An object that goes from page to page, one request after the other, is not shared: each callback has the only copy.
* The last `MOST_SEEN` objects are remembered, with references: an address alone would be that of another object soon.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import PurePath
from re import Pattern
from typing import Any
from uuid import UUID

from scrapy import Request

MOST_SEEN = 1_000

# Beginnings of keys in meta that are Scrapy's, or say how a page is fetched: constants of a spider, most of them.
_OF_OTHERS = ("redirect_", "handle_httpstatus_", "download_", "playwright", "zyte_api", "splash", "impersonate", "ubi_")


def holds_objects(packed: Mapping[str, Any]) -> bool:
    """Whether a request whose fields were packed to these has objects of the spider's in its meta, cb_kwargs or
    callbacks."""
    arguments: dict[str, Any] = packed.get("cb_kwargs", {})
    if any(type(value) in (dict, list) for value in arguments.values()):
        return True
    if type(packed.get("callback")) is dict or type(packed.get("errback")) is dict:  # a partial: it may
        return True
    meta: dict[str, Any] = packed.get("meta", {})
    return any(type(value) in (dict, list) and not key.startswith(_OF_OTHERS) for key, value in meta.items())


class SharedObjects:
    """The objects in the requests that came in last, and the pages that have yielded these."""

    def __init__(self) -> None:
        self._seen: OrderedDict[int, tuple[object, object]] = OrderedDict()

    @property
    def remembered(self) -> int:
        """How many objects are remembered."""
        return len(self._seen)

    def shared(self, request: Request, page: object) -> list[str]:
        """Where `request`, which `page` yields (None: no page does), has an object that another request of the page
        has: `cb_kwargs['item']`."""
        found = []
        for name, value in _objects(request):
            seen = self._seen.pop(id(value), None)
            if seen is not None and seen[1] is page:
                found.append(name)
            self._seen[id(value)] = (value, page)
            if len(self._seen) > MOST_SEEN:
                self._seen.popitem(last=False)
        return found


def _objects(request: Request) -> Iterator[tuple[str, object]]:
    for kind, function in (("callback", request.callback), ("errback", request.errback)):
        if isinstance(function, partial):
            arguments: list[tuple[object, object]] = [*enumerate(function.args), *function.keywords.items()]
            yield from ((f"{kind}({key})", value) for key, value in arguments if _changes(value))
    for key, value in request.cb_kwargs.items():
        if _changes(value):
            yield f"cb_kwargs[{key!r}]", value
    for key, value in request.meta.items():
        if _changes(value) and not str(key).startswith(_OF_OTHERS):
            yield f"meta[{key!r}]", value


def _changes(value: object) -> bool:
    return not isinstance(value, _IMMUTABLE)


_IMMUTABLE = (
    *(str, bytes, int, float, complex, tuple, frozenset, range, type, type(None)),
    *(date, time, timedelta, tzinfo, Decimal, Enum, Pattern, PurePath, UUID),
)
