"""An agent with a store that gives its items to a receiver, in a directory that outlasts it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from scrapy import Request

from scrapy_ubi.outputs.part_writer import Bundle
from scrapy_ubi.outputs.stores import Page
from scrapy_ubi.outputs.writer import Writer
from tests.support.memory_store import MemoryStore

STARTS = itertools.count(1_800_000_000.0)


class DeliveringAgent:
    """A writer with such a store; `rows` is the agent's, which outlasts it as well."""

    def __init__(self, place: Path, store: Any, rows: MemoryStore | None = None, crawl: str = "crawl") -> None:
        self.place, self.store, self.rows = place, store, rows if rows is not None else MemoryStore()
        started = next(STARTS)  # names of parts hold it
        self.writer = Writer(place, crawl, "a", 1 << 20, clock=lambda: started)
        self.writer.delivering.append(store)
        self.mark: Any = None  # of a flush that is not written yet
        self.writer.recover(self.rows)

    def page(self, name: str, *items: Any, kind: str = "ok", attempt: int = 0) -> None:
        """End a page with these items; a number n is the item {"n": n}."""
        whole = [item if isinstance(item, dict) else {"n": item} for item in items]
        kept = {number: {self.store.name: self.store.item(item)} for number, item in enumerate(whole)}
        page = Page(name, attempt, kind, Request("http://a.example/"), numbered=kept)
        data = self.store.page(page)
        assert data is not None
        self.writer.put([Bundle(self.store, name, attempt, kind, data, len(data))])

    def flush(self) -> None:
        """As a flush of the disk, which stays the same until it is written. Raises StoreHeldBack."""
        mark = self.mark = self.mark or self.writer.mark("run")
        batch = self.rows.batch()
        for row, value in self.writer.rows(mark):
            batch.put(row, value)
        self.rows.write(batch)
        self.writer.settled(mark)
        self.mark = None

    def kill(self) -> None:
        """Its thread writes no more."""
        self.writer._call(self.writer._let_go)

    def end(self) -> None:
        """As a crawl that ends."""
        self.writer.finish(self.rows)

    def files(self) -> list[str]:
        return sorted(path.name for path in (self.place / "out" / self.store.name).glob("*.jsonl*"))
