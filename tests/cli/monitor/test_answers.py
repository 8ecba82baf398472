"""Answers of agents of other versions: what an older one does not say is empty, what a newer one adds is ignored."""

from __future__ import annotations

import json
from typing import Any

from scrapy_ubi.cli.monitor.answers import read_answer

COUNTS = {"queued": 1, "done": 2, "failed": 0}
ROW = {"host": "h1.example", "state": "", "role": "owner", **COUNTS, "next": None, "error": ""}


def answer(row: dict[str, Any]) -> Any:
    """What is made of an answer with this row."""
    data = {"agent": "a1", "ask": "hosts", "total": 1, "cut": False, "rows": [row]}
    return read_answer("a1", "hosts", json.dumps(data).encode())


def test_a_row_without_what_was_added_later_is_read() -> None:
    assert answer(ROW)["rows"] == [
        {**ROW, "learned": "", "loads": "", "delay": None, "needs": None, "complete": "", "bytes": 0}
    ]


def test_a_row_with_more_than_is_known_is_read() -> None:
    later = {"learned": "x", "loads": "8", "delay": 2.5, "needs": 40.0, "complete": "all", "bytes": 9}
    assert answer({**ROW, **later, "new": 1})["rows"] == [{**ROW, **later}]


def test_what_was_added_later_must_hold_where_it_is_said() -> None:
    assert answer({**ROW, "learned": 3}) == "learned is missing or not what it should be"
    assert answer({**ROW, "delay": "soon"}) == "delay is missing or not what it should be"
