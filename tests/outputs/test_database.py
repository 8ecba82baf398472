"""The pipelines of the docs that write into a database: a page that is fetched twice has one row for each item."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from scrapy import Spider
from scrapy.http import Response

from tests.support.crawls import crawl
from tests.support.site import Site

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "items-into-a-database.md"
HOME = "http://shop.example/"


class Things(Spider):
    name = "things"
    start_urls = [HOME]  # noqa: RUF012 - as Spider has it
    times = 0

    def parse(self, response: Response) -> Iterator[Any]:
        Things.times += 1
        for thing in ("hat", "coat"):
            yield {"thing": thing, "times": Things.times}


@pytest.fixture(params=["SqlitePipeline", "BulkSqlitePipeline"])
def pipeline(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where the pipeline of the docs can be imported from."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (source,) = [block for block in blocks if f"class {request.param}:" in block]
    module = ModuleType("docs_pipelines")
    exec(source, module.__dict__)  # noqa: S102 - our own page
    sys.modules["docs_pipelines"] = module
    yield f"docs_pipelines.{request.param}"
    del sys.modules["docs_pipelines"]


def test_two_crawls_of_a_page_write_one_row_for_each_item(site: Site, tmp_path: Path, pipeline: str) -> None:
    site.page(HOME, "things")
    Things.times = 0
    settings = {"UBI_STORES": ["items"], "ITEM_PIPELINES": {pipeline: 1}, "ITEMS_DATABASE": str(tmp_path / "db")}
    for number in range(2):
        crawl(Things, site.proxy, settings={**settings, "UBI_DIR": str(tmp_path / f"a{number}")})
    with closing(sqlite3.connect(tmp_path / "db")) as database:
        rows = database.execute("SELECT id, item FROM items ORDER BY id").fetchall()
    assert [json.loads(item) for _, item in rows] == [{"thing": "hat", "times": 2}, {"thing": "coat", "times": 2}]
    assert [name[16:] for name, _ in rows] == ["-0", "-1"]
