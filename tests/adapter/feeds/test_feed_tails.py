"""Files that are appended to: what is torn is cut off, and nothing else."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.adapter.feeds import feed_tails
from scrapy_ubi.adapter.feeds.feed_tails import mend

LINES = {"format": "jsonlines", "encoding": None}
CSV = {"format": "csv", "encoding": "utf-8"}


def mended(path: Path, content: bytes, options: dict[str, object]) -> bytes:
    path.write_bytes(content)
    mend(path, options)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b""),
        (b'{"a": 1}\n', b'{"a": 1}\n'),
        (b'{"a": 1}\n{"b": ', b'{"a": 1}\n'),
        (b'{"a": 1}\n{"b": 2}', b'{"a": 1}\n{"b": 2}\n'),
        (b'{"a": 1}\n12', b'{"a": 1}\n'),
        (b'{"a": ', b""),
    ],
)
def test_lines(tmp_path: Path, before: bytes, after: bytes) -> None:
    assert mended(tmp_path / "f", before, LINES) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a,b\r\n1,2\r\n", b"a,b\r\n1,2\r\n"),
        (b"a,b\r\n1,", b"a,b\r\n"),
        (b'a,b\r\n1,"two\r\nlin', b"a,b\r\n"),
        (b'a,b\r\n1,"two\r\n', b"a,b\r\n"),
        (b'a,b\r\n1,"two\r\nlines"\r\n', b'a,b\r\n1,"two\r\nlines"\r\n'),
        (b'a,b\r\n1,"say ""x""\n', b"a,b\r\n"),
    ],
)
def test_rows(tmp_path: Path, before: bytes, after: bytes) -> None:
    assert mended(tmp_path / "f", before, CSV) == after


@given(st.lists(st.lists(st.text(max_size=6), min_size=2, max_size=3), max_size=6), st.integers(0, 80), st.data())
def test_wherever_it_is_torn_whole_rows_stay(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], size: int, data: st.DataObject
) -> None:
    """However small the pieces are in which the file is read."""
    stream = io.StringIO(newline="")
    writer, ends = csv.writer(stream), [0]
    for row in rows:
        writer.writerow(row)
        ends.append(len(stream.getvalue().encode("utf-8", "replace")))
    content = stream.getvalue().encode("utf-8", "replace")[:size]
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    with mock.patch.object(feed_tails, "CHUNK", data.draw(st.integers(1, 9))):
        found = mended(path, content, CSV)
    whole = max(end for end in ends if end <= len(content))
    assert content.startswith(found) and len(found) >= whole, "no whole row is cut off"
    assert found == b"" or found.endswith(b"\n")
    assert found.count(b'"') % 2 == 0


@given(st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=5)), max_size=5), st.integers(0, 90))
def test_wherever_it_is_torn_whole_lines_stay(
    tmp_path_factory: pytest.TempPathFactory, items: list[dict[str, str]], size: int
) -> None:
    content = "".join(f"{json.dumps(item)}\n" for item in items).encode()[:size]
    with mock.patch.object(feed_tails, "CHUNK", 7):
        found = mended(tmp_path_factory.getbasetemp() / "lines.jl", content, LINES)
    assert [json.loads(line) for line in found.splitlines()] == items[: found.count(b"\n")]
    assert content.count(b"\n") <= found.count(b"\n") <= content.count(b"\n") + 1


@pytest.mark.parametrize(
    "options",
    [
        {"format": "xml"},
        {"format": "json"},
        {"format": "jsonlines", "encoding": "utf-16"},
        {"format": "jsonlines", "encoding": "no such"},
        {"format": "jsonlines", "postprocessing": ["gzip"]},
        {"format": "csv", "item_export_kwargs": {"quotechar": "'"}},
    ],
)
def test_what_is_not_known_line_by_line_is_left_alone(tmp_path: Path, options: dict[str, object]) -> None:
    assert mended(tmp_path / "f", b'x\n"torn', options) == b'x\n"torn'


def test_there_need_be_no_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mend(tmp_path / "none", LINES)
    mend(tmp_path, LINES)
    assert not caplog.records


def test_a_file_that_cannot_be_mended_is_left_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "f").write_bytes(b"torn")
    with mock.patch.object(Path, "open", side_effect=PermissionError(13, "Permission denied")):
        mend(tmp_path / "f", LINES)
    assert "cannot be looked at (Permission denied)" in caplog.text
