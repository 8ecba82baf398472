"""Since when a process has been on its way to its crawl."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from scrapy_ubi.adapter.process import process_start
from scrapy_ubi.ground import clock

ASK = """
import sys, time
begun = time.time()
from scrapy_ubi.adapter.process import process_start
from scrapy_ubi.ground import clock
{before}
ages = [clock.now() - process_start.asked_for() for _ in range(3)]
print(time.time() - begun, *ages)
"""


def ask(before: str = "") -> tuple[float, float, list[float]]:
    """How long a process has lived at least and at most, and what it says three times."""
    begun = time.time()
    out = subprocess.run([sys.executable, "-c", ASK.format(before=before)], capture_output=True, text=True, check=True)
    most = time.time() - begun
    least, *ages = map(float, out.stdout.split())
    return least, most, ages


def test_the_first_crawl_of_a_process_was_asked_for_when_that_was_started() -> None:
    least, most, ages = ask()
    assert least - 0.02 <= ages[0] <= most + 0.02, "a tick of the system's clock is a hundredth"
    assert all(age < least / 10 for age in ages[1:]), "the next ones were asked for later"


def test_a_process_that_has_run_for_long_was_not_started_for_its_crawl() -> None:
    least, _, ages = ask("process_start.LONGEST = 0.0")
    assert ages[0] < least / 10


@pytest.mark.parametrize("text", ["", "no such thing", "1 (a) b) S " + "x " * 30, "1 (a) S " + "9" * 400 + " " * 30])
def test_where_the_system_does_not_tell_it_is_when_this_was_imported(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stat = tmp_path / "stat"
    stat.write_text(text)
    monkeypatch.setattr(process_start, "STAT", stat)
    assert 0 <= process_start.started() <= clock.now()
    assert process_start.started() == process_start.IMPORTED
    stat.unlink()
    assert process_start.started() == process_start.IMPORTED
