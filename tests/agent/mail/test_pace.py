"""A node in a large group reads everybody's beats less often, and says when its lease keeps it from doing so enough."""

from __future__ import annotations

import asyncio

import pytest

from scrapy_ubi.protocol.beat import LEFT, Beat
from scrapy_ubi.protocol.read_interval import lease_wanted, reads_apart
from scrapy_ubi.transport.in_process import MemoryHub
from tests.agent.crawler import LIMIT, SETTINGS, Crawler, Log, crawl

SEEDS = ["http://h0.example/0"]
OTHERS = 448  # agents that have left: their beats are read like all


def test_a_crawl_ends_though_beats_are_read_less_often(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log()
        gone = Beat("0123abcd", 0, 200, "0" * 16, flags=LEFT).line(1).encode()
        hub.shelf(SETTINGS.crawl).beats.update({f"gone{number}".encode(): gone for number in range(OTHERS)})
        crawlers = [Crawler(hub, name, log) for name in ("a0", "a1")]
        for crawler in crawlers:
            crawler.start(SEEDS)
        await asyncio.wait_for(asyncio.gather(*(crawler.task for crawler in crawlers)), LIMIT)
        log.judge(SEEDS)
        apart = reads_apart(OTHERS + 2, SETTINGS.heartbeat_interval, SETTINGS.lease_timeout)
        assert apart == pytest.approx(4 * SETTINGS.heartbeat_interval)
        assert [crawler.beats.apart for crawler in crawlers] == [apart, apart]

    crawl(run)
    said = [record.getMessage() for record in caplog.records if "UBI_LEASE_TIMEOUT" in record.getMessage()]
    assert len(said) == 2, "once each"
    assert all(f"a lease of {lease_wanted(OTHERS + 2, SETTINGS.heartbeat_interval):g} s" in text for text in said)
