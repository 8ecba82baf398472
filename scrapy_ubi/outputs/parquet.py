"""Items as Parquet: a directory of files with one schema, and `_SUCCESS` in it when it is whole.

Rules of this module:

* The schema is that of all items, so they are read twice: once to see what each field holds, from a file of lines that
  is kept meanwhile, then to be written. Memory has one row group.
* A field that is not in every item, or is null in some, is null there. Whole numbers and fractions together are
  fractions. A field that is of different kinds otherwise is text: texts as they are, the rest as JSON. What differs is
  told (`remarks`); nothing is left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from scrapy_ubi.errors import UbiDirectoryError

SUCCESS = "_SUCCESS"
LINES = "lines.jsonl"
PART = "part-{:05}.parquet"
ROWS, BYTES = 10_000, 32 << 20  # of a row group
GROUPS = 100  # of a file
MOST_FIELDS = 1_000  # of an object
DEEPEST = 16
EXACT = 1 << 53  # whole numbers up to which fractions are exact
LONG = 1 << 63
MOST_REMARKS = 20

WORDS = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a fraction",
    "text": "text",
    "list": "a list",
    "object": "an object",
    "long": "a number of more than 64 bits",
}


def pyarrow() -> Any:
    """The library. Raises UbiDirectoryError."""
    try:
        import_module("pyarrow.parquet")
        return import_module("pyarrow")
    except ImportError:
        raise UbiDirectoryError("Parquet needs pyarrow: run pip install 'scrapy-ubi[parquet]'.") from None


class Shape:
    """What was seen of a field: how many values of each kind, and of what is in them."""

    def __init__(self, depth: int = 0) -> None:
        self.kinds: Counter[str] = Counter()
        self.fields: dict[str, Shape] = {}
        self.inexact = False  # a whole number that a fraction cannot be
        self._depth = depth

    @cached_property
    def element(self) -> Shape:
        """What is in lists."""
        return Shape(self._depth + 1)

    def add(self, value: object) -> None:
        """See one value."""
        kind = _kind(value)
        self.kinds[kind] += 1
        if kind == "int":
            self.inexact = self.inexact or abs(value) > EXACT  # type: ignore[arg-type]
        elif isinstance(value, list) and self._depth < DEEPEST:
            for one in value:
                self.element.add(one)
        elif isinstance(value, dict) and self._depth < DEEPEST and len(self.fields) <= MOST_FIELDS:
            for name, one in value.items():
                if name not in self.fields:
                    self.fields[name] = Shape(self._depth + 1)
                self.fields[name].add(one)

    @property
    def kind(self) -> str:
        """The kind of the column: that of all values, else "text"."""
        kinds = self.kinds.keys() - {"null"}
        if kinds == {"int", "float"}:
            return "text" if self.inexact else "float"
        only = next(iter(kinds)) if len(kinds) == 1 else "text"
        if only == "object" and not 0 < len(self.fields) <= MOST_FIELDS:
            return "text"
        return "text" if only in ("list", "object") and self._depth >= DEEPEST else "text" if only == "long" else only

    def arrow(self, pa: Any) -> Any:
        """Its type."""
        if self.kind == "list":
            return pa.list_(self.element.arrow(pa))
        if self.kind == "object":
            return pa.struct([pa.field(_clean(name), shape.arrow(pa)) for name, shape in self.fields.items()])
        return {"bool": pa.bool_(), "int": pa.int64(), "float": pa.float64(), "text": pa.string()}[self.kind]

    def fit(self, value: Any) -> Any:
        """A value as its column has it."""
        if value is None:
            return None
        kind = self.kind
        if kind == "text":
            return _clean(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        if kind == "list":
            return [self.element.fit(one) for one in value]
        if kind == "object":
            return {_clean(name): shape.fit(value.get(name)) for name, shape in self.fields.items()}
        return float(value) if kind == "float" else value

    def remarks_on(self, name: str) -> Iterator[str]:
        """Yield a sentence for each field in it that holds several kinds, from the value of this name on."""
        kinds = {kind: number for kind, number in self.kinds.items() if kind != "null"}
        if len(kinds) > 1:
            told = ", ".join(f"{WORDS[kind]} in {number:,}" for kind, number in sorted(kinds.items()))
            word = "fractions" if self.kind == "float" else "text"
            yield f"Field {name!r:.100} is {told}: it is written as {word}."
        elif self.kinds["object"] and self.kind == "text":
            yield f"Field {name!r:.100} holds objects without fields, or with more than {MOST_FIELDS:,}: it is JSON."
        elif self.kinds["long"]:
            yield f"Field {name!r:.100} holds numbers of more than 64 bits: it is written as text."
        for field, shape in self.fields.items():
            yield from shape.remarks_on(f"{name}.{field}" if name else field)
        yield from self.element.remarks_on(f"{name}[]") if self.kinds["list"] else ()


def _clean(text: str) -> str:
    """A text as UTF-8 has it: halves of characters, which JSON may hold, become escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _kind(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return "int" if -LONG <= value < LONG else "long"
    kinds = {type(None): "null", bool: "bool", float: "float", str: "text", list: "list", dict: "object"}
    return kinds[type(value)]


class ParquetWriter:
    """Writes items into the new directory `place`. `rows`: how many; `remarks`: what differs between them."""

    def __init__(self, place: Path) -> None:
        self._pa = pyarrow()
        self._place = place
        self.rows = 0
        self.remarks: list[str] = []

    def write(self, pages: Iterable[list[bytes]]) -> None:
        """Write the items of all pages, as lines of JSON, and the mark of success. Raises OSError, UbiError."""
        self._place.mkdir(parents=True)
        spool = self._place / LINES
        whole = Shape()
        with spool.open("wb") as file:
            for records in pages:
                for data in records:
                    file.write(data)
                    for line in data.splitlines():
                        whole.add(_read(line))
                        self.rows += 1
        if len(whole.fields) > MOST_FIELDS:
            raise UbiDirectoryError(f"The items have more than {MOST_FIELDS:,} fields: collect them as JSON lines.")
        self._say(whole)
        self._write(spool, whole)
        spool.unlink()
        (self._place / SUCCESS).touch()

    def _say(self, whole: Shape) -> None:
        seldom = [
            f"{name} ({sum(shape.kinds.values()):,})"
            for name, shape in whole.fields.items()
            if sum(shape.kinds.values()) < self.rows
        ]
        self.remarks = [sentence for shape in [whole] for sentence in shape.remarks_on("")]
        if len(self.remarks) > MOST_REMARKS:
            more = len(self.remarks) - MOST_REMARKS
            self.remarks = [*self.remarks[:MOST_REMARKS], f"So it is with {more:,} fields more."]
        if seldom:
            shown = ", ".join(seldom[:MOST_REMARKS]) + (", ..." if len(seldom) > MOST_REMARKS else "")
            self.remarks.append(f"Not each of {self.rows:,} items has these fields, which are null then: {shown}.")

    def _write(self, spool: Path, whole: Shape) -> None:
        pa = self._pa
        schema = pa.schema([pa.field(_clean(name), shape.arrow(pa)) for name, shape in whole.fields.items()])
        writer, number, groups = None, 0, 0
        try:
            for rows in _groups(spool):
                if writer is None or groups == GROUPS:
                    if writer is not None:
                        writer.close()
                    writer = pa.parquet.ParquetWriter(self._place / PART.format(number), schema, compression="zstd")
                    number, groups = number + 1, 0
                columns = [
                    pa.array([shape.fit(row.get(name)) for row in rows], field.type)
                    for (name, shape), field in zip(whole.fields.items(), schema, strict=True)
                ]
                writer.write_table(pa.Table.from_arrays(columns, schema=schema))
                groups += 1
        finally:
            if writer is not None:
                writer.close()


def _groups(spool: Path) -> Iterator[list[dict[str, Any]]]:
    rows, size = list[dict[str, Any]](), 0
    with spool.open("rb") as file:
        for line in file:
            rows.append(_read(line))
            size += len(line)
            if len(rows) >= ROWS or size >= BYTES:
                yield rows
                rows, size = [], 0
    if rows:
        yield rows


def _read(line: bytes) -> dict[str, Any]:
    try:
        item = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UbiDirectoryError(
            f"An item is no JSON in UTF-8 ({str(error)[:80]}): with another FEED_EXPORT_ENCODING collect JSON lines."
        ) from None
    if not isinstance(item, dict):
        raise UbiDirectoryError(f"An item is no object: {line[:80]!r}.")
    return item
