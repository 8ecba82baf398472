"""One host has nearly all that waits while the agents have little to do: said once, with the settings that help."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from scrapy_ubi.agent.report.big_host import LEAST, LOOKS, BigHost
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.settings.loads_at_once import read_loads
from tests.agent.crawler import SETTINGS
from tests.agent.parts import Part

BIG = "big.example"


def told(caplog: pytest.LogCaptureFixture, waiting: Mapping[str, int], in_flight: int = 1, delay: float = 0.0) -> int:
    """How many sentences are said of such queues, in many looks."""
    part = Part(delay)
    part.hold_lease()
    for host, count in waiting.items():
        for key in range(count):
            part.crawl.agent.discovery.discover(host, Entry(len(host) << 32 | key, f"http://{host}/{key}", 0))
    watch = BigHost(part.crawl)
    for look in range(3 * LOOKS):
        watch.check_hosts(sum(waiting.values()), in_flight)
        assert len(caplog.records) in (0, int(look >= LOOKS - 1))
    return len(caplog.records)


def test_it_is_said_once_and_names_the_settings(caplog: pytest.LogCaptureFixture) -> None:
    assert told(caplog, {BIG: LEAST, "small.example": 20}) == 1
    for name in (BIG, "UBI_HOST_CONCURRENCY", "UBI_HOST_SHARDS"):
        assert name in caplog.text


def test_not_of_a_short_queue_or_of_many_hosts_or_where_much_is_in_flight(caplog: pytest.LogCaptureFixture) -> None:
    assert told(caplog, {BIG: LEAST - 30, "small.example": 20}) == 0
    assert told(caplog, {BIG: LEAST, "other.example": LEAST // 5}) == 0
    assert told(caplog, {BIG: LEAST}, in_flight=9) == 0


def test_not_where_it_is_meant(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(caplog, {BIG: LEAST}, delay=5.0) == 0
    monkeypatch.setattr("tests.agent.parts.SETTINGS", SETTINGS.__class__(host_concurrency=read_loads({BIG: 2})))
    assert told(caplog, {BIG: LEAST}) == 0


def test_only_looks_in_a_row_count(caplog: pytest.LogCaptureFixture) -> None:
    part = Part()
    part.hold_lease()
    for key in range(LEAST):
        part.crawl.agent.discovery.discover(BIG, Entry(key, f"http://{BIG}/{key}", 0))
    watch = BigHost(part.crawl)
    for look in range(3 * LOOKS):
        watch.check_hosts(LEAST, 9 if look % LOOKS == 0 else 1)
    assert not caplog.records
