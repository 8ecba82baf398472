"""An agent's directory with the records of such pages."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from scrapy.settings import Settings

from scrapy_ubi.outputs.duplicates.duplicates_store import DuplicatesStore
from scrapy_ubi.outputs.part_writer import Bundle
from scrapy_ubi.outputs.stores import Page
from scrapy_ubi.outputs.writer import Writer
from tests.outputs.duplicates.planted import Planted, response_of
from tests.support.memory_store import MemoryStore


def agent(directory: Path, pages: Iterable[Planted]) -> Path:
    """The directory, of an agent that has ended."""
    directory.mkdir()
    rows, store = MemoryStore(), DuplicatesStore({}, Settings())
    writer = Writer(directory, "crawl", directory.name, 1 << 20)
    writer.recover(rows)
    for page in pages:
        response = response_of(page)
        name = blake2b(page.url.encode(), digest_size=8).hexdigest()
        assert response.request is not None
        payload = store.page(Page(name, 0, "ok", response.request, response=response))
        writer.put([Bundle(store, name, 0, "ok", payload, len(page.html))])
    mark = writer.mark("run")
    batch = rows.batch()
    for row, value in writer.rows(mark):
        assert value is not None
        batch.put(row, value)
    rows.write(batch)
    writer.settled(mark)
    writer.finish(rows)
    return directory
