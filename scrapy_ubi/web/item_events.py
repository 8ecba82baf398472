"""Items as they come, as server-sent events: what the store `stream` has in Redis, for who looks.

Rules of this module:

* Who looks holds up nobody: the stream is read without a group, and where it has let go of items before they were read,
  an event `gap` says so.
* The id of an event is the item's place in the stream: a browser that comes back goes on there.
* Each viewer has one batch in memory, and at most `MOST_VIEWERS` look. Who does not take an event within the server's
  patience is sent away.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands.crawl_choice import choose_crawl
from scrapy_ubi.cli.commands.items import NOW, START, line_of
from scrapy_ubi.cli.commands.redis_connection import connect
from scrapy_ubi.transport.item_stream import ItemStream, read_id
from scrapy_ubi.web.problem import Problem
from scrapy_ubi.web.reader import CrawlReader

MOST_VIEWERS = 16
BATCH = 100  # items
EVERY = 1.0  # s between two looks
QUIET = 15.0  # s after which a line without meaning shows who has left

NO_STREAM = "Without a Redis there is no stream of items: set UBI_REDIS_URL, and name 'stream' in UBI_STORES."


class _Found(NamedTuple):
    """What one look has found: where to go on, and events."""

    place: str
    events: list[str]
    more: bool


def place_of(text: object) -> str:
    """A place that is asked for. Raises ValueError."""
    said = str(text)
    if said in (NOW, START):
        return said
    if not re.fullmatch(r"[0-9]{1,19}-[0-9]{1,19}", said):
        raise ValueError("there are now, start, and places such as 1795250421089-0")
    return said


class ItemEvents:
    """The events of one crawl's items."""

    def __init__(self, reader: CrawlReader) -> None:
        self._reader = reader
        self.viewers = 0
        self._closed = asyncio.Event()

    @asynccontextmanager
    async def viewer(self, place: str) -> AsyncIterator[AsyncIterator[str]]:
        """The events for one viewer, behind this place. Raises Problem."""
        if self._reader.source != "redis":
            raise Problem(409, "refused", NO_STREAM)
        if self.viewers >= MOST_VIEWERS:
            raise Problem(503, "busy", f"{MOST_VIEWERS} follow the items already.", {"Retry-After": "10"})
        self.viewers += 1
        try:
            found = await self._reader.run(_look, place=place)
            yield self._events(found)
        finally:
            self.viewers -= 1

    def close(self) -> None:
        """Send all viewers away."""
        self._closed.set()

    async def _events(self, found: _Found) -> AsyncIterator[str]:
        quiet = 0.0
        while not self._closed.is_set():
            if found.events:
                yield "".join(found.events)
                quiet = 0.0
            elif quiet >= QUIET:
                yield ": nothing new\n\n"
                quiet = 0.0
            if not found.more:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closed.wait(), EVERY)
                quiet += EVERY
            try:
                found = await self._reader.run(_look, place=found.place)
            except Problem as problem:
                found = _Found(found.place, [_event("trouble", json.dumps(problem.document()))], more=False)


def _look(settings: BaseSettings, opts: argparse.Namespace) -> _Found:
    """Look once. Raises UbiError."""
    with connect(settings, opts) as to:
        stream = ItemStream(to.client, opts.crawl or choose_crawl(settings, opts, to).crawl)
        with to.explained():
            place, events = opts.place, list[str]()
            if place == NOW:
                return _Found("{}-{}".format(*stream.last_id()), [], more=False)
            place = "0-0" if place == START else place
            entries = stream.after(place, BATCH)
            if not entries and stream.last_id() < read_id(place):
                return _Found("0-0", [_event("lost", json.dumps({"after": place}))], more=True)
            gone = stream.gone_to() if entries else (0, 0)
            if gone > read_id(place):
                events.append(_event("gap", json.dumps({"after": place, "to": "{}-{}".format(*gone)})))
            for at, fields in entries:
                if (line := line_of(at, fields)) is not None:
                    events.append(f"id: {at}\n{_event('item', line.rstrip())}")
                place = at
            return _Found(place, events, len(entries) == BATCH)


def _event(name: str, data: str) -> str:
    return f"event: {name}\ndata: {data}\n\n"
