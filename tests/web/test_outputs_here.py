"""What the page says of outputs: pages of each store, and the copies found last, of files as the writer leaves them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from scrapy_ubi.adapter.requests.judged import Judged
from scrapy_ubi.outputs.collector import Out
from scrapy_ubi.outputs.duplicates.duplicate_record import Compared, line_of
from scrapy_ubi.web import outputs_here
from scrapy_ubi.web.outputs_here import PageCounts, is_index, newest_copies

LINE = b"0123456789abcdef 0 ok jsonl:0:20\n"


def test_pages_are_counted_once_and_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, index = PageCounts(), tmp_path / "p.idx.open"
    index.write_bytes(LINE * 10)
    counts.look()
    assert counts.count_lines(index, index.stat().st_size) == 10
    monkeypatch.setattr(outputs_here, "MOST_READ", 0)  # from now on nothing may be read
    counts.look()
    assert counts.count_lines(index, index.stat().st_size) == 10
    index.rename(tmp_path / "p.idx")
    assert counts.count_lines(tmp_path / "p.idx", 10 * len(LINE)) == 10
    (tmp_path / "p.idx").write_bytes(LINE * 25)
    assert counts.count_lines(tmp_path / "p.idx", 25 * len(LINE)) is None
    monkeypatch.setattr(outputs_here, "MOST_READ", len(LINE) * 10)
    for expected in (None, 25):
        counts.look()
        assert counts.count_lines(tmp_path / "p.idx", 25 * len(LINE)) == expected
    (tmp_path / "p.idx").write_bytes(LINE * 3)
    counts.look()
    assert counts.count_lines(tmp_path / "p.idx", 3 * len(LINE)) == 3
    assert counts.count_lines(tmp_path / "sealed-meanwhile.idx.open", 100) is None


def test_which_files_are_indexes() -> None:
    assert all(is_index(name) for name in ("a.idx", "a.idx.open", "a/idx", "a/idx.open"))
    assert not any(is_index(name) for name in ("a.jsonl", "idx.jsonl", "a.idx.short"))


def judged(url: str, kind: str, first: str = "") -> bytes:
    return line_of(Compared("h.example", url, 200, Judged(b"d" * 20, 60, b"", kind, first)))


def test_the_copies_found_last(tmp_path: Path) -> None:
    store = tmp_path / "duplicates"
    store.mkdir()
    old, new = store / "a.tsv", store / "b.tsv.open"
    old.write_bytes(judged("http://h.example/old", "exact", "http://h.example/"))
    many = [
        judged(f"http://h.example/{number}", "near" if number % 2 else "", "http://h.example/0")
        for number in range(3000)
    ]
    new.write_bytes(b"".join(many) + b"half a li")
    os.utime(old, (1, 1))
    found = newest_copies([tmp_path, tmp_path / "nothing"])
    assert len(found) == outputs_here.MOST_COPIES
    assert found[0] == {"url": "http://h.example/2999", "kind": "near", "first": "http://h.example/0"}
    assert found[1]["url"] == "http://h.example/2997"
    json.dumps(found)


def test_stores_with_a_directory_for_each_part_count_as_well(tmp_path: Path) -> None:
    for name, data in (
        ("items/c-1.jsonl", b"{}\n"),
        ("items/c-1.idx", LINE),
        ("items/c-2.jsonl.open", b"{}\n{}\n"),
        ("items/c-2.idx.open", LINE * 2),
        ("larm/c-1/links.log", b"x" * 100),
        ("larm/c-1/idx", LINE * 4),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    outputs_here.COUNTS.look()
    rows = {row["store"]: row for row in outputs_here.stores(Out(tmp_path, "c", "a1", "r", 0.0, False))}
    assert [(row["pages"], row["bytes"], row["parts"], row["open_parts"]) for row in rows.values()] == [
        (3, 9 + 3 * len(LINE), 2, 2),
        (4, 100 + 4 * len(LINE), 2, 0),
    ]
