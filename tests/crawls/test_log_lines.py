"""The log of a small crawl is about as long as that of plain Scrapy."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import moved_names

MORE = 10  # records at INFO and above


@pytest.mark.processes
def test_a_small_crawl_says_little_more_than_plain_scrapy(tmp_path: Path) -> None:
    records = {}
    for switch in ("on", "off"):
        (directory := tmp_path / switch).mkdir()
        done = subprocess.run(
            [sys.executable, "-m", moved_names.__name__, str(directory), switch],
            capture_output=True, text=True, timeout=180, check=True, cwd=Path(moved_names.__file__).parents[2],
        )  # fmt: skip
        records[switch] = re.findall(r"^\d{4}-.* \[\S+\] (?:INFO|WARNING|ERROR): .*", done.stderr, re.MULTILINE)
    assert 0 < len(records["on"]) <= len(records["off"]) - 1 + MORE, records  # off, one says that it is
