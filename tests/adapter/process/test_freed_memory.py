"""Memory that was freed is given back where the C library can do so; elsewhere nothing happens."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from scrapy_ubi.adapter.process import freed_memory

PROCESS = """
from pathlib import Path
from scrapy_ubi.adapter.process.freed_memory import give_back

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

kept = [bytes(3000) for _ in range(40_000)]
del kept[:-1]  # the last one keeps the heap from shrinking by itself
before = resident()
give_back()
print(before - resident())
"""


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="another C library than glibc")
def test_what_lies_free_in_the_heap_is_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", PROCESS], capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) > 50_000_000


def test_elsewhere_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    freed_memory.malloc_trim.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    try:
        freed_memory.give_back()
    finally:
        freed_memory.malloc_trim.cache_clear()
