"""The page on Scrapy's own tests gives users the reasons that `make scrapy-suite` reads, and the other way round."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_each_difference_has_its_reason_in_the_docs() -> None:
    entries = tomllib.loads((ROOT / "tests/conformance/differences.toml").read_text())["difference"]
    page = (ROOT / "docs/reference/scrapy-suite.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith(("| tests", "| ---"))]
    assert len(rows) == len(entries), "a row for each entry, in the same order"
    for entry, row in zip(entries, rows, strict=True):
        assert entry["reason"] in row
        assert all(test.partition("::")[0].removeprefix("tests/") in row for test in entry["tests"])
