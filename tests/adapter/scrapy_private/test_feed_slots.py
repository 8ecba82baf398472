"""Canaries: what is relied on of Scrapy's feed exports. The table in feedslots says what hangs on each name."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from scrapy import Spider
from scrapy.extensions.feedexport import (
    BlockingFeedStorage,
    FeedExporter,
    FeedSlot,
    FileFeedStorage,
    StdoutFeedStorage,
)
from scrapy.extensions.postprocessing import GzipPlugin, PostProcessingManager
from scrapy.utils.test import get_crawler

from scrapy_ubi.adapter.scrapy_private.feed_slots import FeedSlots, path_of

JSON = {"format": "jl"}
BATCHES = {"format": "jsonlines", "batch_item_count": 2}


class Feeding(Spider):
    name = "feeding"


class Elsewhere(BlockingFeedStorage):
    def __init__(self, uri: str, *, feed_options: Any = None) -> None:
        pass

    def _store_in_thread(self, file: Any) -> None:
        """Nowhere."""


class OwnExporter(FeedExporter):
    """A user's."""


_made: list[FeedExporter] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """No file stays open after a test."""
    yield
    for exporter in _made:
        for slot in exporter.slots:
            if slot.file is not None:
                with suppress(OSError):
                    getattr(slot.file, "file", slot.file).close()
    _made.clear()


def exported(tmp_path: Path, feeds: dict[str, Any], **settings: Any) -> tuple[FeedSlots, FeedExporter, Spider]:
    named = {str(tmp_path / name) if "://" not in name and ":" not in name else name: of for name, of in feeds.items()}
    crawler = get_crawler(Feeding, {"FEEDS": named, "FEED_STORAGES": {"else": Elsewhere}, **settings})
    (exporter,) = (one for one in crawler.extensions.middlewares if isinstance(one, FeedExporter))
    _made.append(exporter)
    return FeedSlots(crawler), exporter, Feeding.from_crawler(crawler)


def test_the_exporters_of_a_crawler_are_found(tmp_path: Path) -> None:
    own = {"EXTENSIONS": {"scrapy.extensions.feedexport.FeedExporter": None, OwnExporter: 0}}
    for settings in ({}, own):
        slots, _, _ = exported(tmp_path, {"x.jl": JSON}, **settings)
        assert [feed.uri for feed in slots.feeds()] == [str(tmp_path / "x.jl")]
    assert FeedSlots(get_crawler(Feeding)).feeds() == []


def test_where_feeds_go(tmp_path: Path) -> None:
    slots, _, _ = exported(
        tmp_path,
        {
            "x.jl": JSON,
            "stdout:": JSON,
            "else://h/%(batch_id)d.jl": BATCHES,
            "z.jl": JSON,
        },
    )
    assert [(feed.kind, feed.batches) for feed in slots.feeds()] == [
        ("file", False),
        ("stdout", False),
        ("remote", True),
        ("file", False),
    ]
    assert FileFeedStorage("x").path == "x" and path_of("file:///a/b%20c") == Path("/a/b c")
    assert issubclass(StdoutFeedStorage, object)


def test_a_feed_has_its_name_before_it_has_a_file(tmp_path: Path) -> None:
    slots, exporter, spider = exported(tmp_path, {"%(name)s-%(batch_id)03d.jl": BATCHES})
    (feed,) = slots.feeds()
    assert slots.name(feed, spider) == str(tmp_path / "feeding-001.jl")
    exporter.open_spider(spider)
    assert exporter.slots[0].uri == str(tmp_path / "feeding-001.jl")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["jsonlines", "csv", "xml", "json", "pickle", "marshal"])
def test_a_flush_brings_all_items_into_the_file(tmp_path: Path, form: str) -> None:
    slots, exporter, spider = exported(tmp_path, {"x": {"format": form}})
    exporter.open_spider(spider)
    slots.flush()
    assert not (tmp_path / "x").exists()
    for word in (b"first", b"second"):
        exporter.item_scraped({"word": word.decode()}, spider)
        assert not (tmp_path / "x").exists() or word not in (tmp_path / "x").read_bytes()
        slots.flush()
        assert word in (tmp_path / "x").read_bytes()


def test_nothing_is_flushed_where_nothing_is_new(tmp_path: Path) -> None:
    slots, exporter, spider = exported(tmp_path, {"x.jl": JSON})
    exporter.open_spider(spider)
    exporter.item_scraped({"n": 1}, spider)
    slots.flush()
    (slot,) = exporter.slots
    assert slot.itemcount == 1
    slot.file.write(b"more")
    slots.flush()
    assert b"more" not in (tmp_path / "x.jl").read_bytes()
    slot.file.close()
    slot.itemcount += 1
    slots.flush()  # nor where the file is closed


def test_a_compressed_feed_is_left_alone(tmp_path: Path) -> None:
    slots, exporter, spider = exported(tmp_path, {"x.jl": {**JSON, "postprocessing": [GzipPlugin]}})
    exporter.open_spider(spider)
    exporter.item_scraped({"n": 1}, spider)
    assert isinstance(exporter.slots[0].file, PostProcessingManager)
    slots.flush()


def test_a_full_batch_is_flushed_before_it_is_closed(tmp_path: Path) -> None:
    slots, exporter, spider = exported(tmp_path, {"%(batch_id)d.jl": BATCHES})
    closed: list[Any] = []
    exporter._close_slot = lambda slot, spider: closed.append(slot)  # type: ignore[method-assign,assignment,return-value]
    slots.watch(None)
    exporter.open_spider(spider)
    exporter.item_scraped({"n": 1}, spider)
    with suppress(TypeError, RuntimeError):  # no loop runs that would close it
        exporter.item_scraped({"n": 2}, spider)
    assert len((tmp_path / "1.jl").read_text().splitlines()) == 2


def test_files_are_told_of_before_they_are_opened(tmp_path: Path) -> None:
    told: list[tuple[Path, str]] = []
    slots, exporter, spider = exported(
        tmp_path,
        {"x.jl": JSON, "new.jl": {**JSON, "overwrite": True}, "else://h/x.jl": JSON},
    )
    slots.watch(lambda path, options: told.append((path, options["format"])))
    exporter.open_spider(spider)
    assert told == [(tmp_path / "x.jl", "jl")] and not (tmp_path / "x.jl").exists()


def test_a_file_that_takes_no_more_is_named(tmp_path: Path) -> None:
    slots, exporter, spider = exported(tmp_path, {"file:///dev/full": JSON})
    exporter.open_spider(spider)
    exporter.item_scraped({"n": 1}, spider)
    for _ in range(2):
        with pytest.raises(OSError, match="No space left") as error:
            slots.flush()
        assert error.value.filename == "file:///dev/full"


def test_a_slot_is_told_apart_by_what_it_is() -> None:
    """It is a key of a weak mapping."""
    assert "__eq__" not in vars(FeedSlot) and "__slots__" not in vars(FeedSlot)
    closes = getattr(FeedExporter, "_schedule_slot_close", FeedExporter._close_slot)
    assert list(inspect.signature(closes).parameters) == ["self", "slot", "spider"]
