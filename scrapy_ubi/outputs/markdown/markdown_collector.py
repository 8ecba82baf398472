"""`collect markdown -o FILE.jsonl | DIR`: all agents' pages as lines of JSON, as chunks, or as a tree of files.

Rules of this module:

* Of a page that was visited again the latest visit counts.
* A tree mirrors the sites (`file_names`); each file begins with what is known of its page, as YAML. `index.jsonl` in it
  has a line a page, with its URL and its file. A tree is written beside and renamed; what is there under its name is
  replaced only where it is such a tree, or empty.
* What comes from a disk is read whole, or counted as damaged.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.outputs.collector import Collector, CollectTally, Out
from scrapy_ubi.outputs.markdown.chunks import chunks
from scrapy_ubi.outputs.markdown.file_names import FileNames
from scrapy_ubi.outputs.markdown.markdown_store import ENDING, MarkdownStore

LINES = (".jsonl", ".jsonlines", ".jl", ".ndjson")
INDEX = "index.jsonl"
_TEXTS = ("id", "url", "canonical", "title", "language", "date", "time", "kind", "markdown")
_HEAD = ("url", "canonical", "title", "language", "date", "time")


def is_tree(output: str) -> bool:
    """Whether what is written under this name is a tree of files."""
    return output != "-" and not output.endswith(LINES)


def check_tree(output: Path) -> None:
    """Raise UbiDirectoryError where something else has this name."""
    if not os.path.lexists(output):
        return
    if output.is_dir() and not output.is_symlink() and ((output / INDEX).is_file() or not any(output.iterdir())):
        return
    raise UbiDirectoryError(
        f"{output} is there already, and it is no tree of Markdown that may be replaced: give another name, or "
        f"one that ends with {LINES[0]} for a file of lines."
    )


class MarkdownCollector(Collector):
    """`size`: the most characters of a chunk; None: whole pages."""

    def __init__(
        self, outs: Sequence[Out], place: Path | None, told: Callable[[int, int], None], size: int | None = None
    ) -> None:
        super().__init__(outs, MarkdownStore.name, ENDING, place, told, latest=True)
        self._size = size

    def collect(self, file: IO[bytes]) -> CollectTally:
        """Write lines to a file. Raises UbiNothingCollected, OSError."""
        for record, data in self._records():
            for line in [data] if self._size is None else _chunk_lines(record, self._size):
                file.write(line)
        return self.tally

    def collect_into(self, path: Path) -> CollectTally:
        """Write a tree there. Raises UbiNothingCollected, OSError."""
        path.mkdir(parents=True)
        names = FileNames()
        with (path / INDEX).open("w", encoding="utf-8", errors="replace") as index:
            for record, _ in self._records():
                name = names.give(record["url"], record["id"])
                file = path / name
                file.parent.mkdir(parents=True, exist_ok=True)
                with file.open("x", encoding="utf-8", errors="replace", newline="\n") as page:
                    page.write(_front(record) + record["markdown"])
                facts = {key: value for key, value in record.items() if key != "markdown"}
                index.write(json.dumps({"file": name, **facts}, ensure_ascii=False) + "\n")
        return self.tally

    def _records(self) -> Iterator[tuple[dict[str, Any], bytes]]:
        for found in self.pages():
            for data in found:
                record = read_record(data)
                if record is None:
                    self.tally.damaged += 1
                else:
                    yield record, data


def read_record(data: bytes) -> dict[str, Any] | None:
    """A page as the store has it; None where that is no such line."""
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not all(isinstance(record.get(key), str) for key in _TEXTS):
        return None
    return record


def _chunk_lines(record: dict[str, Any], size: int) -> Iterator[bytes]:
    for number, chunk in enumerate(chunks(record["markdown"], size, record["title"])):
        line = {
            "id": f"{record['id']}-{number}",
            "url": record["url"],
            "title": record["title"],
            "language": record["language"],
            "path": chunk.path,
            "text": chunk.text,
            "characters": len(chunk.text),
            "words": len(chunk.text.split()),
        }
        yield f"{json.dumps(line, ensure_ascii=False)}\n".encode("utf-8", "replace")


def _front(record: dict[str, Any]) -> str:
    """What is known of a page, in YAML: strings of JSON are strings of YAML."""
    lines = [f"{key}: {json.dumps(record[key], ensure_ascii=False)}" for key in _HEAD if record[key]]
    return "\n".join(["---", *lines, "---", "", ""])


def replace_tree(beside: Path, output: Path) -> None:
    """Give a tree its name. Raises OSError, UbiDirectoryError."""
    check_tree(output)
    if output.exists():
        old = output.with_name(f"{output.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        output.rename(old)
        beside.rename(output)
        shutil.rmtree(old, ignore_errors=True)
    else:
        output.parent.mkdir(parents=True, exist_ok=True)
        beside.rename(output)
