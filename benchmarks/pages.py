"""The pages that benchmarks write: figures as cells, and tables put where a document has room for them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

END = "<!-- end of tables -->"


def spread(values: Sequence[float], form: str = "{:.2f}") -> str:
    """Median (least-most); a single value alone."""
    if len(values) == 1:
        return form.format(values[0])
    return f"{form.format(statistics.median(values))} ({form.format(min(values))}-{form.format(max(values))})"


def into_document(path: str, begin: str, tables: str) -> None:
    """Put the tables where a document has room for them, between two marks."""
    document = Path(path)
    before, found, rest = document.read_text(encoding="utf-8").partition(begin)
    _, end, after = rest.partition(END)
    if not found or not end:
        raise ValueError(f"{path} has no room for tables: no {begin} and {END}")
    document.write_text(f"{before}{begin}\n{tables}\n{end}{after}", encoding="utf-8")
