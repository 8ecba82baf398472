"""The digest of a spider's code: the same for the same sources of the project, whatever libraries there are."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from scrapy import Spider

from scrapy_ubi.adapter.process import spider_code
from scrapy_ubi.adapter.process.spider_code import digest


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
    first = digest(spider())
    assert len(first) == 8 and digest(spider()) == first
    text = (package / "one.py").read_bytes()
    (package / "one.py").write_bytes(text.replace(b"\n", b"\r\n"))
    assert digest(spider()) == first
    (package / "base.py").write_text((package / "base.py").read_text() + "# more\n")
    second = digest(spider())
    assert second != first
    (package / "one.py").write_bytes(text + b"# more\n")
    assert digest(spider()) not in (first, second)


def test_libraries_tell_nothing(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert digest(Spider) == ""
    paths = dict.fromkeys(("stdlib", "platstdlib", "purelib", "platlib"), str(package.parent))
    monkeypatch.setattr(spider_code.sysconfig, "get_paths", lambda: paths)
    assert digest(spider()) == "", "it is installed there"
    assert digest(spider(), ["codeproject.spiders"]), "but it is the project's own"


def test_what_cannot_be_read_or_is_large_has_none(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = spider()
    monkeypatch.setattr(spider_code, "LARGEST", 10)
    assert digest(found) == ""
    monkeypatch.undo()
    (package / "one.py").unlink()
    assert digest(found) == ""
