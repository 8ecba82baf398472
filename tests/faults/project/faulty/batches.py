"""A pipeline that writes items in batches, as people write them for a database that is far away."""

from __future__ import annotations

import asyncio
import sqlite3


class Batches:
    """Keeps a hundred items back, and writes them together; what it holds when the process is killed is gone."""

    def __init__(self, path):
        self.rows = []
        self.database = sqlite3.connect(path, timeout=60, check_same_thread=False)
        self.database.execute("PRAGMA synchronous = off")  # processes are killed here, machines are not
        self.database.execute("CREATE TABLE IF NOT EXISTS items (url TEXT, title TEXT)")

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler.settings["BATCHES_DATABASE"])

    def process_item(self, item):
        self.rows.append((item["url"], item["title"]))
        if len(self.rows) >= 100:
            self.write()
        return item

    def write(self):
        with self.database:
            self.database.executemany("INSERT INTO items VALUES (?, ?)", self.rows)
        self.rows.clear()

    def close_spider(self):
        self.write()
        self.database.close()


class FlushedBatches(Batches):
    """One that is told when to write."""

    def ubi_flush_items(self):
        self.write()


class AwaitedBatches(Batches):
    """One that writes in a thread, and keeps each item once."""

    def __init__(self, path):
        super().__init__(path)
        self.lock = asyncio.Lock()
        with self.database:
            self.database.execute("CREATE UNIQUE INDEX IF NOT EXISTS urls ON items (url)")

    async def process_item(self, item):
        self.rows.append((item["url"], item["title"]))
        if len(self.rows) >= 100:
            await self.ubi_flush_items()
        return item

    async def ubi_flush_items(self):
        async with self.lock:
            rows, self.rows = self.rows, []
            try:
                await asyncio.to_thread(self.insert, rows)
            except BaseException:
                self.rows[:0] = rows
                raise

    def insert(self, rows):
        with self.database:
            self.database.executemany("INSERT OR REPLACE INTO items VALUES (?, ?)", rows)

    async def close_spider(self):
        await self.ubi_flush_items()
        self.database.close()
