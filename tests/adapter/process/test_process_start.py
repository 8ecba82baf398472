"""Since when a process has been on its way to its crawl, and the digest of its spider's code."""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from scrapy import Spider

from scrapy_ubi.adapter.process import process_start
from scrapy_ubi.adapter.process.process_start import code_digest
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


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    place = tmp_path / "codeproject"
    place.mkdir()
    (place / "__init__.py").touch()
    (place / "base.py").write_text("import scrapy\n\nclass Base(scrapy.Spider):\n    name = 'one'\n")
    (place / "one.py").write_text("from codeproject.base import Base\n\nclass One(Base):\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield place
    for name in [name for name in sys.modules if name.startswith("codeproject")]:
        del sys.modules[name]


def spider() -> type:
    for name in [name for name in sys.modules if name.startswith("codeproject")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    found = importlib.import_module("codeproject.one").One
    assert isinstance(found, type)
    return found


def test_it_changes_with_the_spider_and_with_its_bases_and_not_with_line_ends(package: Path) -> None:
    first = code_digest(spider())
    assert len(first) == 8 and code_digest(spider()) == first
    text = (package / "one.py").read_bytes()
    (package / "one.py").write_bytes(text.replace(b"\n", b"\r\n"))
    assert code_digest(spider()) == first
    (package / "base.py").write_text((package / "base.py").read_text() + "# more\n")
    second = code_digest(spider())
    assert second != first
    (package / "one.py").write_bytes(text + b"# more\n")
    assert code_digest(spider()) not in (first, second)


def test_libraries_tell_nothing(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert code_digest(Spider) == ""
    paths = dict.fromkeys(("stdlib", "platstdlib", "purelib", "platlib"), str(package.parent))
    monkeypatch.setattr(process_start.sysconfig, "get_paths", lambda: paths)
    assert code_digest(spider()) == "", "it is installed there"
    assert code_digest(spider(), ["codeproject.spiders"]), "but it is the project's own"


def test_what_cannot_be_read_or_is_large_has_none(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = spider()
    monkeypatch.setattr(process_start, "LARGEST_SOURCE", 10)
    assert code_digest(found) == ""
    monkeypatch.undo()
    (package / "one.py").unlink()
    assert code_digest(found) == ""
