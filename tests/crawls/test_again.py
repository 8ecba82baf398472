"""A start after the end of a crawl (UBI_AGAIN), for a crawl of one agent and for a group."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

import pytest

from scrapy_ubi.transport.in_process import MemoryHub
from tests.agent import crawler
from tests.agent.groups import SEEDS, ends
from tests.crawls.ring import Walk, ring
from tests.support.crawls import crawl
from tests.support.site import Site

SAID = "The crawl of this name is finished: nothing is fetched"


def test_alone(site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "scrapy_ubi")
    urls = ring(site)
    for again, times, said in (("never", 1, 0), ("never", 1, 1), ("always", 2, 1), ("never", 2, 2)):
        settings = {"UBI_DIR": str(tmp_path / "a"), "UBI_AGAIN": again, "LOG_LEVEL": "INFO"}
        (outcome,) = crawl(Walk, site.proxy, settings=settings)
        assert outcome.reason == "finished"
        assert site.urls() == dict.fromkeys(urls, times)
        assert caplog.text.count(SAID) == said


@pytest.mark.parametrize("forgotten", [False, True], ids=["redis knows", "redis has forgotten"])
def test_in_a_group(caplog: pytest.LogCaptureFixture, forgotten: bool) -> None:
    caplog.set_level(logging.INFO, "scrapy_ubi")

    async def run() -> None:
        hub, log = MemoryHub(), crawler.Log()
        settings = dataclasses.replace(crawler.SETTINGS, again="never")
        group = [crawler.Crawler(hub, name, log, settings) for name in ("a", "b")]
        for one in group:
            one.start(SEEDS)
        await ends(*group)
        log.judge(SEEDS)
        before = sum(log.fetched.values())
        if forgotten:  # with no disk either, nothing is known of that crawl
            hub.flush()
        later = crawler.Crawler(hub, "c", log, settings)
        later.start(SEEDS)
        await ends(later)
        assert sum(log.fetched.values()) == (2 * before if forgotten else before)

    crawler.crawl(run)
    assert caplog.text.count(SAID) == (not forgotten)
