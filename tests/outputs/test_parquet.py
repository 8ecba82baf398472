"""Items as Parquet: one schema of all items, what differs said, a mark of success."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.outputs import parquet
from scrapy_ubi.outputs.parquet import SUCCESS, ParquetWriter

reader = pytest.importorskip("pyarrow.parquet")


def written(place: Path, *items: Any) -> ParquetWriter:
    writer = ParquetWriter(place)
    writer.write([[json.dumps(item).encode() + b"\n"] for item in items])
    return writer


def read(place: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = reader.read_table(place).to_pylist()
    return found


def test_items_come_back_as_they_were(tmp_path: Path) -> None:
    items = [
        {"url": "http://a.example/", "n": 1, "ok": True, "price": 1.5, "tags": ["a", "ä"], "at": {"x": 1, "y": [[]]}},
        {"url": "http://b.example/", "n": 2, "ok": False, "price": 2.0, "tags": [], "at": {"x": 2, "y": [["z"]]}},
    ]
    writer = written(tmp_path / "out", *items)
    assert read(tmp_path / "out") == items and writer.rows == 2 and not writer.remarks
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [SUCCESS, "part-00000.parquet"]


def test_what_differs_is_said_and_nothing_is_left_out(tmp_path: Path) -> None:
    writer = written(tmp_path / "out", {"a": 1, "b": 1}, {"a": "one", "b": 2.5, "c": None}, {"a": {"x": 1}, "b": None})
    assert read(tmp_path / "out") == [
        {"a": "1", "b": 1.0, "c": None}, {"a": "one", "b": 2.5, "c": None}, {"a": '{"x": 1}', "b": None, "c": None},
    ]  # fmt: skip
    assert writer.remarks == [
        "Field 'a' is a whole number in 1, an object in 1, text in 1: it is written as text.",
        "Field 'b' is a fraction in 1, a whole number in 1: it is written as fractions.",
        "Not each of 3 items has these fields, which are null then: c (1).",
    ]


def test_numbers_that_no_column_holds_are_text(tmp_path: Path) -> None:
    written(tmp_path / "out", {"a": 1 << 70, "b": (1 << 60) + 1}, {"a": 2, "b": 0.5})
    assert read(tmp_path / "out") == [{"a": str(1 << 70), "b": str((1 << 60) + 1)}, {"a": "2", "b": "0.5"}]


def test_many_items_are_several_files_of_one_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROWS", 3)
    monkeypatch.setattr(parquet, "GROUPS", 2)
    written(tmp_path / "out", *({"n": number} if number else {"n": None, "late": "x"} for number in range(20, -1, -1)))
    assert len([*(tmp_path / "out").glob("part-*")]) == 4
    assert [row["n"] for row in read(tmp_path / "out")] == [*range(20, 0, -1), None]


def test_no_items_are_a_directory_with_the_mark_alone(tmp_path: Path) -> None:
    written(tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [SUCCESS]


@pytest.mark.parametrize("line", [b"{", b"[1]\n", '{"a": "ä"}'.encode("latin-1")])
def test_what_is_no_item_is_a_sentence(tmp_path: Path, line: bytes) -> None:
    with pytest.raises(UbiDirectoryError, match="An item is no"):
        ParquetWriter(tmp_path / "out").write([[line]])
    assert not (tmp_path / "out" / SUCCESS).exists()


def test_without_pyarrow_a_sentence_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(parquet, "import_module", missing)
    with pytest.raises(UbiDirectoryError, match=r"pip install 'scrapy-ubi\[parquet\]'"):
        ParquetWriter(tmp_path / "out")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.dictionaries(st.text(min_size=1, max_size=3), VALUES, max_size=4), max_size=5))
def test_whatever_items_hold_there_is_a_row_for_each(tmp_path_factory: Any, items: list[dict[str, Any]]) -> None:
    place = tmp_path_factory.mktemp("items") / "out"
    writer = written(place, *items)
    assert writer.rows == len(items)
    if any(items):
        rows = read(place)
        assert len(rows) == len(items)
        for row, item in zip(rows, items, strict=True):
            assert all((row[name] is None) == (item.get(name) is None) for name in row)
