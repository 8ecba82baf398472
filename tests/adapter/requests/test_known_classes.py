"""Which classes a text may name: the project's own, wherever in it they are; nothing is imported for a name."""

from __future__ import annotations

import dataclasses
import enum
import http
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scrapy import Item, Request, Spider
from scrapy.settings import Settings
from scrapy.spiders import CrawlSpider

from scrapy_ubi.adapter.requests.item_classes import class_name
from scrapy_ubi.adapter.requests.known_classes import KnownClasses

FILES = {
    "__init__.py": "",
    "items.py": """
        import dataclasses, enum, pydantic, scrapy
        from typing import NamedTuple
        from {outside} import Shared

        class Book(scrapy.Item):
            title = scrapy.Field()

        @dataclasses.dataclass
        class Author:
            name: str

            class Status(enum.Enum):
                ALIVE = 1

        class Point(NamedTuple):
            x: int

        class Get(scrapy.Request):
            pass

        class Model(pydantic.BaseModel):
            name: str

        class Row(dict):
            pass

        def function(): ...
        helper = object()
    """,
    "late.py": """
        import dataclasses

        @dataclasses.dataclass
        class Late:
            name: str

        def __getattr__(name):
            raise AssertionError("a module was asked")
    """,
    "spiders.py": """
        import scrapy

        class Walk(scrapy.Spider):
            name = "walk"
    """,
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A project of several modules, in a package of its own; its name."""
    name = f"project_{abs(hash(tmp_path))}"
    (tmp_path / name).mkdir()
    for file, text in FILES.items():
        (tmp_path / name / file).write_text(textwrap.dedent(text.replace("{outside}", f"{name}_outside")))
    outside = "import dataclasses\n@dataclasses.dataclass\nclass Shared:\n    a: int\n"
    (tmp_path / f"{name}_outside.py").write_text(outside)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    for module in [module for module in sys.modules if module.startswith(name)]:
        del sys.modules[module]


def load(module: str) -> Any:
    __import__(module)
    return sys.modules[module]


def test_items_anywhere_in_the_project_are_known_and_what_it_takes_from_others(project: str) -> None:
    items, spiders = load(f"{project}.items"), load(f"{project}.spiders")
    known = KnownClasses(spiders.Walk, Settings())
    for cls in (
        items.Book,
        items.Author,
        items.Author.Status,
        items.Point,
        items.Get,
        items.Model,
        items.Row,
        items.Shared,
    ):
        assert known.get(class_name(cls)) is cls
    for name in (
        "items.function",
        "items.helper",
        "items",
        "items.Author.__init__",
        "items.Nothing",
        "items.dataclasses",
    ):
        assert known.get(f"{project}.{name}") is None


def test_a_module_that_is_imported_later_is_known_from_then_on_and_never_by_its_name(project: str) -> None:
    known = KnownClasses(load(f"{project}.spiders").Walk, Settings())
    assert known.get(f"{project}.late.Late") is None
    assert f"{project}.late" not in sys.modules
    late = load(f"{project}.late")
    assert known.get(f"{project}.late.Late") is late.Late
    assert known.get(f"{project}.late.Nothing") is None


def test_the_packages_of_spider_modules_belong_to_the_project(project: str) -> None:
    items = load(f"{project}.items")
    assert KnownClasses(Spider, Settings()).get(f"{project}.items.Book") is None
    settings = Settings({"SPIDER_MODULES": [f"{project}.spiders"]})
    assert KnownClasses(Spider, settings).get(f"{project}.items.Book") is items.Book


@pytest.mark.parametrize("name", ["os.system", "subprocess.Popen", "scrapy.Item", "", ".", "x" * 999])
def test_nothing_else_is_known(name: str) -> None:
    class Walk(CrawlSpider):
        name = "walk"

    known = KnownClasses(Walk, Settings())
    assert known.get(name) is None
    assert known.get("http.HTTPStatus") is http.HTTPStatus


@dataclasses.dataclass
class Here:
    a: int


class Colour(enum.Enum):
    RED = 1


class Pair(NamedTuple):
    a: int


class Own(Request):
    """A class of requests."""


class Book(Item):
    """An item."""


def test_a_spider_of_a_script_knows_the_script() -> None:
    class Walk(Spider):
        name = "walk"

    known = KnownClasses(Walk, Settings())
    for cls in (Here, Colour, Pair, Own, Book):
        assert known.get(class_name(cls)) is cls
