"""What agents record of themselves while they crawl: samples, events, and the file that outlives them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from scrapy_ubi.agent.report import recorder, timeline_answer
from scrapy_ubi.agent.report.queries import Question
from scrapy_ubi.agent.report.timeline_file import TIMELINE, read_timeline
from scrapy_ubi.cli.monitor.merged_history import merged
from scrapy_ubi.transport.in_process import MemoryHub
from tests.agent.crawler import LIMIT, Crawler, Log, crawl

SEEDS = ["http://h0.example/0"]


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("LOOK_EVERY", 0.01), ("SAMPLE_EVERY", 0.05), ("EARLY_EVERY", 0.05)):
        monkeypatch.setattr(recorder, name, seconds)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT):
        while not true():
            await asyncio.sleep(0.01)


def whats(crawler: Crawler, who: str = "") -> list[str]:
    return [event.what for event in crawler.node.recorder.timeline.events if who in ("", event.who)]


def test_a_crawl_is_recorded_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    log = Log()

    async def run() -> None:
        crawler = Crawler(MemoryHub(), "a", log)
        crawler.disk.history = tmp_path
        await crawler.start(SEEDS)

    crawl(run)
    line, bad = read_timeline(tmp_path, float("inf"))
    assert bad == 0
    first, last = line.samples[0], line.samples[-1]
    assert (first.pages, last.pages, last.done) == (0, sum(log.fetched.values()), len(log.fetched))
    assert (last.state, last.queued, last.known) == ("finished", 0, len(log.fetched))
    assert [event.what for event in line.events if event.what != "settled"] == ["joined", "finished"]


def test_who_goes_on_adds_to_what_was_there_and_a_new_crawl_does_not(tmp_path: Path) -> None:
    async def run() -> None:
        crawler = Crawler(MemoryHub(), "a", Log())
        crawler.disk.history = tmp_path
        await crawler.start(SEEDS)

    crawl(run)
    crawl(run)  # there is nothing on its disk to go on with
    line, _ = read_timeline(tmp_path, float("inf"))
    assert [event.what for event in line.events].count("joined") == 1


def test_others_record_who_joins_and_who_dies() -> None:
    log = Log(hold_after=5)

    async def run() -> None:
        hub = MemoryHub()
        one, two = Crawler(hub, "a", log), Crawler(hub, "b", log)
        tasks = [one.start(SEEDS), two.start([])]
        await log.held.wait()
        await until(lambda: "settled" in whats(one) and "settled" in whats(two))
        assert "joined" not in whats(one, "b")  # it was there when all had settled for the first time
        three = Crawler(hub, "c", log)
        tasks.append(three.start([]))
        await until(lambda: "joined" in whats(one, "c") and "joined" in whats(two, "c"))
        await three.crash()
        await until(lambda: "dead" in whats(one, "c") and "dead" in whats(two, "c"))
        log.hold_after = None
        log.go.set()
        await asyncio.gather(*tasks[:2])
        answers = {
            crawler.name: timeline_answer.answer(
                Question("history", 0.0, limit=100), crawler.name, crawler.node.recorder.timeline, 0.0
            )
            for crawler in (one, two, three)
        }
        events = merged(answers).events
        assert [(one.what, one.by) for one in events if one.who == "c" and one.what == "dead"] == [("dead", ("a", "b"))]
        assert [one.by for one in events if one.who == "c" and one.what == "joined"] == [("c",)]
        assert [sorted(one.by) for one in events if one.what == "finished"] == [["a", "b"]]

    crawl(run)


def test_who_leaves_has_left() -> None:
    log = Log(hold_after=5)

    async def run() -> None:
        hub = MemoryHub()
        one, two = Crawler(hub, "a", log), Crawler(hub, "b", log)
        tasks = [one.start(SEEDS), two.start([])]
        await log.held.wait()
        await until(lambda: "settled" in whats(one) and "settled" in whats(two))
        two.stop()
        log.hold_after = None
        log.go.set()
        await asyncio.gather(*tasks)
        assert whats(two)[-1] == "left"
        assert "dead" not in whats(one, "b")

    crawl(run)


def test_a_directory_that_takes_no_file_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = Log()

    async def run() -> None:
        crawler = Crawler(MemoryHub(), "a", log)
        crawler.disk.history = tmp_path / "nowhere"
        await crawler.start(SEEDS)
        assert crawler.node.recorder.timeline.samples[-1].pages == sum(log.fetched.values())

    with caplog.at_level(logging.WARNING, "scrapy_ubi"):
        crawl(run)
    log.judge(SEEDS)
    said = [record.getMessage() for record in caplog.records if "timeline" in record.getMessage()]
    assert len(said) == 1
    assert not (tmp_path / TIMELINE).exists()
