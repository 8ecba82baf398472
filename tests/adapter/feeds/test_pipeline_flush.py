"""Pipelines that write in batches: they are called before a flush, one call at a time, and what fails holds it back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from scrapy_ubi.adapter.feeds.pipeline_flush import PipelineFlush, find_hooks
from scrapy_ubi.adapter.scrapy_private.scraper import HOOK
from scrapy_ubi.errors import UbiRefused
from scrapy_ubi.frontier.store import StoreHeldBack

LIMIT = 60.0  # s


class Batch:
    """What a pipeline holds, and what its database has. `trouble`: what the next call raises."""

    def __init__(self) -> None:
        self.waits: list[int] = []
        self.written: list[int] = []
        self.calls = 0
        self.trouble: BaseException | None = None

    def take(self, flush: PipelineFlush, item: int) -> None:
        self.waits.append(item)
        flush.passed()

    def flush(self) -> None:
        self.calls += 1
        if self.trouble is not None:
            raise self.trouble
        self.written += self.waits
        self.waits = []


def nothing(stat: str) -> None:
    """It is not counted."""


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(LIMIT):
            await test()

    asyncio.run(limited())


async def flush_disk(flush: PipelineFlush, mark: Any = None) -> Any:
    """As the disk does it: a mark in the loop, what follows in its thread."""
    mark = mark if mark is not None else flush.mark("run")
    await asyncio.to_thread(flush.rows, mark)
    return mark


def test_what_has_passed_before_the_mark_is_written_when_the_flush_may_go_on() -> None:
    async def test() -> None:
        batch, counts = Batch(), Counter[str]()
        flush = PipelineFlush({"p": batch.flush}, lambda stat: counts.update([stat]), LIMIT)
        for item in range(3):
            batch.take(flush, item)
        assert flush.changed
        await flush_disk(flush)
        assert batch.written == [0, 1, 2] and not flush.changed
        assert counts == {"ubi/pipelines/flushed": 1}

    run(test)


def test_nothing_is_called_where_no_item_has_passed_since() -> None:
    async def test() -> None:
        batch = Batch()
        flush = PipelineFlush({"p": batch.flush}, nothing, LIMIT)
        await flush_disk(flush)
        batch.take(flush, 1)
        for _ in range(3):
            await flush_disk(flush)
        await flush.close()
        assert batch.calls == 1

    run(test)


def test_a_call_that_raises_holds_the_flush_back_until_one_succeeds() -> None:
    async def test() -> None:
        batch, counts = Batch(), Counter[str]()
        flush = PipelineFlush({"shop.Batches.ubi_flush_items": batch.flush}, lambda stat: counts.update([stat]), LIMIT)
        batch.take(flush, 1)
        batch.trouble = OSError("the database is away")
        mark = flush.mark("run")
        for _ in range(2):
            with pytest.raises(StoreHeldBack, match=r"shop.Batches.ubi_flush_items has failed: OSError: the database"):
                await flush_disk(flush, mark)
        batch.trouble = None
        await flush_disk(flush, mark)
        assert batch.written == [1] and counts["ubi/pipelines/flush_failed"] == 2

    run(test)


@pytest.mark.parametrize("kind", ["coroutine", "deferred"])
def test_what_a_call_waits_for_is_awaited(kind: str) -> None:
    async def test() -> None:
        begun, go, written = asyncio.Event(), asyncio.Event(), []

        async def wait() -> None:
            begun.set()
            await go.wait()
            written.append(1)

        def deferred() -> Deferred[None]:
            return Deferred.fromFuture(asyncio.ensure_future(wait()))

        flush = PipelineFlush({"p": wait if kind == "coroutine" else deferred}, nothing, LIMIT)
        flush.passed()
        waiting = asyncio.ensure_future(flush_disk(flush))
        await begun.wait()
        assert not waiting.done() and not written
        go.set()
        await waiting
        assert written

    run(test)


def test_what_passes_during_a_call_is_written_by_the_next_one() -> None:
    async def test() -> None:
        batch, begun, go = Batch(), asyncio.Event(), asyncio.Event()

        async def hook() -> None:
            batch.flush()
            begun.set()
            await go.wait()

        flush = PipelineFlush({"p": hook}, nothing, LIMIT)
        batch.take(flush, 1)
        first = asyncio.ensure_future(flush_disk(flush))
        await begun.wait()
        batch.take(flush, 2)
        go.set()
        await first
        assert flush.changed
        await flush_disk(flush)
        assert batch.written == [1, 2] and batch.calls == 2

    run(test)


def test_a_call_that_does_not_end_fails_and_there_are_never_two() -> None:
    async def test() -> None:
        under_way, most, cancelled = 0, 0, 0

        async def hook() -> None:
            nonlocal under_way, most, cancelled
            under_way += 1
            most = max(most, under_way)
            try:
                while cancelled < 3:
                    try:
                        await asyncio.sleep(LIMIT)
                    except asyncio.CancelledError:
                        cancelled += 1
                        if cancelled == 1:  # it does not let itself be cancelled at once
                            await asyncio.sleep(0.05)
                            return
                        raise
            finally:
                under_way -= 1

        flush = PipelineFlush({"p": hook}, nothing, 0.01)
        flush.passed()
        mark = flush.mark("run")
        while cancelled < 3:
            with pytest.raises(StoreHeldBack, match=r"p has failed: .* has not ended after 0\.01 s"):
                await flush_disk(flush, mark)
        await flush_disk(flush, mark)
        assert most == 1

    run(test)


def test_the_last_call_is_before_pipelines_are_closed_and_a_later_flush_needs_none() -> None:
    async def test() -> None:
        batch = Batch()
        flush = PipelineFlush({"p": batch.flush}, nothing, LIMIT)
        batch.take(flush, 1)
        await flush.close()
        batch.trouble = ValueError("the connection is closed")
        await flush_disk(flush)
        assert batch.written == [1] and batch.calls == 1

    run(test)


def test_where_the_last_call_fails_no_flush_is_written_any_more(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        batch = Batch()
        flush = PipelineFlush({"p": batch.flush}, nothing, 0.01)
        batch.take(flush, 1)
        batch.trouble = OSError("away")
        await flush.close()
        calls = batch.calls
        with pytest.raises(StoreHeldBack, match="the next start fetches them again"):
            await flush_disk(flush)
        assert batch.calls == calls

    run(test)
    assert "p has failed: OSError: away" in caplog.text


def test_the_end_of_the_disk_lets_go_of_who_waits() -> None:
    async def test() -> None:
        begun = asyncio.Event()

        async def hook() -> None:
            begun.set()
            await asyncio.sleep(LIMIT)

        flush = PipelineFlush({"p": hook}, nothing, LIMIT)
        flush.passed()
        waiting = asyncio.ensure_future(flush_disk(flush))
        await begun.wait()
        rows: Any = None
        await asyncio.to_thread(flush.finish, rows)
        with pytest.raises(StoreHeldBack):
            await waiting

    run(test)


def test_a_hook_that_wants_arguments_is_refused_and_what_is_no_method_is_none() -> None:
    class Wrong:
        def ubi_flush_items(self, spider: object) -> None:
            """Cannot be called."""

    class Other:
        ubi_flush_items = True

    with pytest.raises(UbiRefused, match=r"Wrong\.ubi_flush_items wants arguments"):
        find_hooks([Wrong()])
    assert not find_hooks([Other(), object()])
    assert HOOK == "ubi_flush_items"
