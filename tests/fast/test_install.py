"""The switch: what UBI_LEAN and UBI_FAST put in place, what is left out, and a package without `scrapy_ubi.fast`."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import scrapy
from scrapy.settings import Settings
from scrapy.utils.misc import load_object

import scrapy_ubi
from scrapy_ubi import fast
from scrapy_ubi.adapter.components.scheduler_builder import REFUSAL
from scrapy_ubi.fast import PARTS, FastPart
from scrapy_ubi.fast.tweaks import LeanStats
from tests.support.builders import applied
from tests.support.site import Site

ROOM = "scrapy_ubi.fast"
OUT = {"OneTask", "SecondCore"} if scrapy.version_info < (2, 18) else set()  # they take a name that 2.17 lacks
FITTING = [part for part in PARTS if part.name not in OUT]


def class_of(part: FastPart) -> Any:
    return getattr(import_module(f"{ROOM}.{part.module}"), part.name)


def extensions() -> set[Any]:
    return {class_of(part) for part in FITTING if part.kind == "extension"}


@pytest.mark.parametrize("users", [{}, {"UBI_LEAN": True}, {"UBI_LEAN": "1"}, {"UBI_LEAN": None}])
def test_all_parts_have_their_place(users: dict[str, Any]) -> None:
    settings = applied(**users)
    assert extensions() <= set(map(load_object, settings.getwithbase("EXTENSIONS")))
    assert load_object(settings["STATS_CLASS"]) is LeanStats


@pytest.mark.parametrize("value", [False, "0", "False"])
@pytest.mark.parametrize("fast", [False, True])
def test_without_it_scrapy_is_as_it_is(value: Any, fast: bool) -> None:
    settings = applied(UBI_LEAN=value, UBI_FAST=fast)
    assert not extensions() & set(map(load_object, settings.getwithbase("EXTENSIONS")))
    assert settings["STATS_CLASS"] == Settings()["STATS_CLASS"]


def test_a_value_that_is_none_is_refused() -> None:
    assert applied(UBI_LEAN="perhaps")[REFUSAL].startswith("UBI_LEAN is 'perhaps'")


@pytest.mark.parametrize("part", FITTING, ids=[part.name for part in FITTING])
def test_every_part_says_what_it_gives_and_what_it_stands_for(part: FastPart) -> None:
    assert part.gives and part.stands_for
    assert class_of(part).__module__ == f"{ROOM}.{part.module}"


@pytest.mark.parametrize("part", PARTS, ids=[part.name for part in PARTS])
def test_every_part_is_in_the_documentation(part: FastPart) -> None:
    page = (Path(__file__).parents[2] / "docs/decisions/0089-pages-of-real-size.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith(("|", "- ")) and f"`{part.name}`" in line]
    figures = re.findall(r"0\.\d\d", part.gives)
    assert any(all(figure in row for figure in figures) for row in rows)


def test_a_part_that_does_not_fit_this_scrapy_is_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    signals = next(part for part in PARTS if part.name == "LeanSignals")
    left = class_of(signals)
    monkeypatch.setitem(sys.modules, f"{ROOM}.signals", None)  # as where an import in it fails
    with caplog.at_level(logging.INFO, ROOM):
        settings = applied()
    assert extensions_but(left) <= set(map(load_object, settings.getwithbase("EXTENSIONS")))
    assert left not in settings.getwithbase("EXTENSIONS")
    said = [record.getMessage() for record in caplog.records if record.name == ROOM]
    assert len(said) == 1 + len(OUT)
    assert any("UBI_LEAN: LeanSignals is left out" in line for line in said)


def extensions_but(left: Any) -> set[Any]:
    return {class_of(part) for part in FITTING if part.kind == "extension" and part.name != left.__name__}


SPIDER = """
import scrapy

class Walk(scrapy.Spider):
    name = "walk"
    start_urls = ["http://a.example/"]
    custom_settings = {"ADDONS": {"scrapy_ubi.Addon": 500}, "UBI_FAST": %s}

    def parse(self, response):
        yield {"url": response.url}
        yield from response.follow_all(css="a")
"""


# An editable installation looks in the checkout for what the copy lacks.
WITHOUT_EDITABLE = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in getattr(finder, "__module__", "")]
from scrapy.cmdline import execute
execute(["scrapy", *sys.argv[1:]])
"""


@pytest.mark.processes
@pytest.mark.parametrize("asked", [False, True], ids=["by default", "UBI_FAST"])
def test_a_package_without_the_room_crawls_as_well(asked: bool, tmp_path: Path) -> None:
    """The package is copied without `scrapy_ubi/fast`, and a crawl is made with the copy."""
    package = Path(scrapy_ubi.__file__).parent
    room = Path(fast.__file__).parent
    shutil.copytree(
        package, tmp_path / "scrapy_ubi",
        ignore=lambda at, names: [each for each in names if Path(at, each) == room or each == "__pycache__"],
    )  # fmt: skip
    (tmp_path / "walk.py").write_text(SPIDER % asked)
    with Site() as site:
        site.page("http://a.example/", '<a href="/b">b</a>')
        site.page("http://a.example/b", "the end")
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "http_proxy": site.proxy}
        asked_for = ["runspider", "walk.py", "-O", "items.jsonl", "-s", "UBI_DIR=agent"]
        command = [sys.executable, "-c", WITHOUT_EDITABLE, *asked_for]
        ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("pages go Scrapy's own way") == 1, ended.stderr
    assert "ERROR" not in ended.stderr and "Traceback" not in ended.stderr
    assert sorted((tmp_path / "items.jsonl").read_text().split()) == [
        '"http://a.example/"}', '"http://a.example/b"}', '{"url":', '{"url":',
    ]  # fmt: skip
