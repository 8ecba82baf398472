"""What is private or undocumented of Scrapy's feed exports, and why it is needed.

| name | used for |
| --- | --- |
| `crawler.extensions.middlewares` | to find the feed exporters, a user's derived class included |
| `FeedExporter.feeds`, `.storages`, `FileFeedStorage.path` | which feeds there are, and which of them are local files |
| `FeedExporter._get_uri_params` | the name of a feed, before its file is opened |
| `FeedExporter.slots`, `FeedSlot.file`, `.itemcount` | to flush what was exported since the last flush |
| `FeedExporter._start_new_batch` | the moment before a file is opened (that happens at its first item) |
| `FeedExporter._schedule_slot_close` | a full batch is closed a turn of the loop later: to flush it before |
| `FeedExporter._close_slot` | the same, in Scrapy 2.17 |
| `PostProcessingManager` | what is compressed cannot be flushed |
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlparse
from weakref import WeakKeyDictionary

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import (
    FeedExporter,
    FeedSlot,
    FileFeedStorage,
    StdoutFeedStorage,
)
from scrapy.extensions.postprocessing import PostProcessingManager

from scrapy_ubi.adapter.scrapy_private.versions import feed_uri


@dataclass(frozen=True, slots=True)
class Feed:
    """One feed of a crawl: `uri` is as the user wrote it, `options` are complete. `kind`: a file of this machine,
    standard output, or anything else, which Scrapy keeps in a temporary file until the feed is closed."""

    uri: str
    options: dict[str, Any]
    kind: Literal["file", "stdout", "remote"]

    @property
    def batches(self) -> bool:
        """Whether it is split into several files."""
        return bool(self.options.get("batch_item_count"))

    @property
    def processed(self) -> bool:
        """Whether what is written is compressed, or otherwise processed on its way."""
        return "postprocessing" in self.options


class FeedSlots:
    """The feeds of one crawler, as its feed exporters have them."""

    def __init__(self, crawler: Crawler) -> None:
        extensions = crawler.extensions.middlewares if crawler.extensions is not None else ()
        self._exporters = [one for one in extensions if isinstance(one, FeedExporter)]
        self._flushed: WeakKeyDictionary[FeedSlot, int] = WeakKeyDictionary()  # -> its items then

    def feeds(self) -> list[Feed]:
        """All feeds."""
        return [
            Feed(uri, options, _kind(exporter, uri))
            for exporter in self._exporters
            for uri, options in exporter.feeds.items()
        ]

    def name(self, feed: Feed, spider: Spider, **params: Any) -> str:
        """The name of this feed's first file; `params` stand for those of Scrapy."""
        found = self._exporters[0]._get_uri_params(spider, feed.options.get("uri_params"))
        return feed_uri(feed.uri, {**found, **params})

    def watch(self, opening: Callable[[Path, dict[str, Any]], None] | None) -> None:
        """Flush full batches before they are closed; and call `opening(path, options)`, where there is such, for every
        local file that a feed is to be appended to, before it is opened."""
        for exporter in self._exporters:
            self._flush_full_batches(exporter)
            if opening is not None:
                _tell_of_files(exporter, opening)

    def _flush_full_batches(self, exporter: FeedExporter) -> None:
        original = getattr(exporter, "_schedule_slot_close", None)
        if original is None:
            _flush_as_they_close(exporter, self._flush)
            return

        def schedule_slot_close(slot: FeedSlot, spider: Spider) -> Any:
            with suppress(OSError):  # Scrapy says so when it closes the file
                self._flush(slot)
            return original(slot, spider)

        exporter._schedule_slot_close = schedule_slot_close  # type: ignore[method-assign]

    def flush(self) -> None:
        """Give all that was exported to the operating system. Raises OSError, with the name of the feed, when a file
        does not take it: call it again."""
        for exporter in self._exporters:
            for slot in exporter.slots:
                if slot.itemcount != self._flushed.get(slot, 0):
                    self._flush(slot)

    def _flush(self, slot: FeedSlot) -> None:
        file: Any = slot.file
        if file is not None and not isinstance(file, PostProcessingManager) and not getattr(file, "closed", False):
            try:
                file.flush()
            except OSError as error:
                raise OSError(error.errno, error.strerror, slot.uri) from error
        self._flushed[slot] = slot.itemcount


def _flush_as_they_close(exporter: FeedExporter, flush: Callable[[FeedSlot], None]) -> None:
    """Flush a full batch when its closing begins: Scrapy 2.17 closes it at the end of the crawl, and makes a coroutine
    of that when the batch is full."""
    original = exporter._close_slot

    def close_slot(slot: FeedSlot, spider: Spider) -> Any:
        with suppress(OSError):
            flush(slot)
        return original(slot, spider)

    exporter._close_slot = close_slot  # type: ignore[method-assign]


def _kind(exporter: FeedExporter, uri: str) -> Literal["file", "stdout", "remote"]:
    storage = exporter.storages.get(urlparse(uri).scheme, exporter.storages["file"])
    if isinstance(storage, type) and issubclass(storage, FileFeedStorage):
        return "file"
    return "stdout" if isinstance(storage, type) and issubclass(storage, StdoutFeedStorage) else "remote"


def _tell_of_files(exporter: FeedExporter, opening: Callable[[Path, dict[str, Any]], None]) -> None:
    original = exporter._start_new_batch

    def start_new_batch(*args: Any, **named: Any) -> FeedSlot:
        slot = original(*args, **named)
        storage = slot.storage
        if isinstance(storage, FileFeedStorage) and storage.write_mode == "ab":
            opening(Path(storage.path), slot.feed_options)
        return slot

    exporter._start_new_batch = start_new_batch  # type: ignore[method-assign]


def path_of(name: str) -> Path:
    """The path of the local file with this name (a path or a `file:` URI)."""
    return Path(FileFeedStorage(name).path)
