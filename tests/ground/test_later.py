"""Modules that are imported when they are first used, and by another thread where the first one may not wait."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from scrapy_ubi.ground import later

LIMIT = 60.0  # s


def test_a_name_is_that_of_the_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ubi_later_one.py").write_text("VALUE = [1]\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    one = later.Later("ubi_later_one")
    assert "ubi_later_one" not in sys.modules
    assert one.VALUE == [1] and one.VALUE is sys.modules["ubi_later_one"].VALUE
    with pytest.raises(AttributeError):
        _ = one.nothing


def test_who_asks_does_not_wait_and_one_thread_loads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ubi_later_two.py").write_text("import threading\nBY = threading.current_thread().name\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    asked = [later.is_loaded("ubi_later_two")]
    assert asked == [False]
    end = time.monotonic() + LIMIT
    while not later.is_loaded("ubi_later_two"):
        assert time.monotonic() < end
        time.sleep(0.001)
    assert sys.modules["ubi_later_two"].BY == "ubi-import-ubi_later_two" != threading.current_thread().name


def test_what_is_loaded_at_once_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ubi_later_three.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    later.load("ubi_later_three")
    assert later.is_loaded("ubi_later_three")


@pytest.mark.processes
def test_turning_the_add_on_on_imports_neither_numpy_nor_redis_py() -> None:
    code = "import sys, scrapy_ubi.addon.turn_on; print([name for name in ('numpy', 'redis') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT, check=True)
    assert done.stdout.strip() == "[]"
