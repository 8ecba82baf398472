"""A writer and a store of rows in memory, as an agent's disk drives them; and what was collected of a directory."""

from __future__ import annotations

from collections import Counter
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar

from scrapy_ubi.outputs.collector import Collector, Out, find_outputs
from scrapy_ubi.outputs.part_writer import Bundle, Part
from scrapy_ubi.outputs.writer import Writer
from tests.support.memory_store import MemoryStore

MOST = 1 << 20


class Lines:
    """A store of lines."""

    name: ClassVar[str] = "items"
    separator: ClassVar[str] = "."

    def __init__(self, size: float = 1e9, seconds: float = 1e9) -> None:
        self.size, self.seconds = size, seconds

    def write(self, payload: Any, part: Part) -> None:
        part.append("jsonl", payload)

    def sealed(self, files: Any) -> None:
        """Nothing is to be done."""


class Kept:
    """The outputs of one agent in a directory; `rows` is its store, which outlasts a crash."""

    def __init__(self, directory: Path, rows: MemoryStore | None = None, agent: str = "a", **store: float) -> None:
        self.directory, self.rows = directory, rows if rows is not None else MemoryStore()
        self.store = Lines(**store)
        self.writer = Writer(directory, "crawl", agent, MOST)
        self.writer.recover(self.rows)

    def page(self, name: str, *lines: str, attempt: int = 0, kind: str = "ok") -> None:
        data = "".join(f"{line}\n" for line in lines).encode()
        self.writer.put([Bundle(self.store, name, attempt, kind, data, len(data))])

    def flush(self, run: str = "run", settle: bool = True) -> None:
        """As a flush of the disk."""
        mark = self.writer.mark(run)
        batch = self.rows.batch()
        for row, value in self.writer.rows(mark):
            batch.put(row, value)
        self.rows.write(batch)
        if settle:
            self.writer.settled(mark)

    def written(self) -> None:
        """Wait until all is written, without a flush."""
        self.writer.rows(self.writer.mark(""))

    def close(self) -> None:
        self.writer.finish(self.rows)

    def files(self, pattern: str = "*") -> list[str]:
        return sorted(path.name for path in (self.directory / "out").glob(f"items/{pattern}"))


def collected(*directories: Path, run: str = "", store: str = "items", ending: str = "jsonl") -> list[str]:
    """The lines of all parts."""
    outs: list[Out] = [out for out in find_outputs(directories) if not run or out.run == run]
    file = BytesIO()
    Collector(outs, store, ending).collect(file)
    return file.getvalue().decode().splitlines()


def counted(*directories: Path) -> Counter[str]:
    return Counter(collected(*directories))
