"""Whether the process is Scrapy's: inside of a CrawlerProcess that runs, and nowhere else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from scrapy_ubi.adapter.scrapy_private.scrapys_process import is_scrapys_process

PROCESS = """
import scrapy
from scrapy.crawler import {cls}
from scrapy_ubi.adapter.scrapy_private.scrapys_process import is_scrapys_process

class Walk(scrapy.Spider):
    name = "walk"

    async def start(self):
        print(is_scrapys_process())
        return
        yield

process = {cls}({{"LOG_ENABLED": False, "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor"}})
process.crawl(Walk)
process.start()
"""


def test_a_test_is_none() -> None:
    assert not is_scrapys_process()


@pytest.mark.processes
@pytest.mark.parametrize("cls", ["CrawlerProcess", "AsyncCrawlerProcess"])
def test_what_a_crawler_process_runs_is_one(cls: str) -> None:
    code = PROCESS.format(cls=cls)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "True\n", done.stderr
