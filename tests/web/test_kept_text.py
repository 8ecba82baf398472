"""The text of one page, of what stores have written."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from scrapy_ubi.cli.commands.redis_connection import UbiNotFound
from scrapy_ubi.cli.monitor.document import Document
from scrapy_ubi.web import kept_text

URL = "http://a.example/ä?b=1"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """The outputs of a stopped agent."""
    path = tmp_path / "a1/out"
    path.mkdir(parents=True)
    (tmp_path / "a1/agent.json").write_text('{"agent": "a1", "crawl": "c"}')
    (path / "crawl.json").write_text('{"crawl": "c", "agent": "a1", "run": "r", "began": 1.0}')
    return path


def write(out: Path, name: str, *records: dict[str, Any], end: str = "\n", age: int = 0) -> None:
    file = out / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(json.dumps(one, ensure_ascii=False) for one in records) + end)
    os.utime(file, (1e9 - age, 1e9 - age))


def text(out: Path, url: str = URL, start: int = 0, limit: int = 1000) -> Document:
    opts = argparse.Namespace(dir=[str(out.parent)], crawl=None, url=url, start=start, limit=limit)
    return kept_text.run(Settings(), opts)


def test_markdown_comes_before_the_text_of_an_index_and_the_newest_first(out: Path) -> None:
    write(out, "index/p.ndjson", {"index": {"_id": "x"}}, {"url": URL, "text": "of the index", "time": "9"})
    assert text(out)["text"] == "of the index" and text(out)["store"] == "index"
    write(out, "markdown/p-0.jsonl", {"url": URL, "markdown": "older file", "time": "8"}, age=9)
    write(
        out, "markdown/p-1.jsonl.open",
        {"url": URL, "markdown": "second", "time": "2", "title": "T"}, {"url": URL, "markdown": "first", "time": "1"},
        {"url": "http://b.example/", "canonical": URL, "markdown": "a copy", "time": "9"},
    )  # fmt: skip
    assert text(out) == {
        "store": "markdown", "url": URL, "title": "T", "time": "2", "characters": 6, "start": 0, "next": None,
        "text": "second",
    }  # fmt: skip


@pytest.mark.parametrize("spelt", ["http://a.example/x%20y", "http://a.example/x y", "http://a.example/x%20y#there"])
def test_a_page_is_found_in_another_spelling(out: Path, spelt: str) -> None:
    write(out, "markdown/p.jsonl", {"url": "http://a.example/x%20y", "markdown": "it"})
    assert text(out, spelt)["text"] == "it"


def test_a_page_is_found_by_what_it_calls_its_canonical_url(out: Path) -> None:
    write(out, "markdown/p.jsonl", {"url": "http://a.example/1?session=2", "canonical": URL, "markdown": "it"})
    assert text(out)["text"] == "it"


def test_pieces_make_the_whole(out: Path) -> None:
    whole = "".join(f"{number} é " for number in range(100))
    write(out, "markdown/p.jsonl", {"url": URL, "markdown": whole})
    read, start = "", 0
    while start is not None:
        piece = text(out, start=start, limit=37)
        read, start = read + piece["text"], piece["next"]
    assert read == whole and piece["characters"] == len(whole)
    assert text(out, start=10_000)["text"] == ""


def test_what_is_damaged_or_still_being_written_is_passed_over(out: Path) -> None:
    write(out, "markdown/p.jsonl.open", {"url": URL, "markdown": "whole"}, {"url": URL, "markdown": "more"}, end="")
    file = out / "markdown/p.jsonl.open"
    file.write_text(f'{{"url": "{URL}", \n[["{URL}"]]\n"{URL}"\n' + file.read_text())
    assert text(out)["text"] == "whole"


def test_what_is_not_there_is_a_sentence(out: Path) -> None:
    with pytest.raises(UbiNotFound, match=r"No text of pages is kept in .*UBI_STORES = \['markdown'\]"):
        text(out)
    write(out, "markdown/p.jsonl", {"url": "http://a.example/", "markdown": URL})
    with pytest.raises(UbiNotFound, match=r"No text of http://a\.example/"):
        text(out)
