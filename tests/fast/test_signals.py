"""Lean signals beside Scrapy's own: the same receivers are told the same, and the sender gets the same back."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable
from typing import Any

import pytest
from pydispatch import dispatcher
from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import StopDownload
from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from scrapy_ubi.fast.signals import LeanSignals
from tests.support.builders import Panic
from tests.support.turns import turns_of_others

SIGNAL = object()


class Receivers:
    """Receivers of every shape; what they were told is in `told`."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def all(self, **named: Any) -> str:
        self.told.append(sorted(named))
        return "all"

    def one(self, item: Any) -> Any:
        self.told.append(item)
        return item

    def none(self) -> None:
        self.told.append("none")

    def default(self, item: Any, other: int = 5) -> int:
        self.told.append((item, other))
        return other

    def special(self, signal: object, sender: object) -> bool:
        self.told.append((signal is SIGNAL, isinstance(sender, Crawler)))
        return True

    def missing(self, item: Any, nothing: Any) -> None:
        self.told.append("never")

    def error(self, item: Any) -> None:
        raise ValueError("a receiver's bug")

    def stop(self, item: Any) -> None:
        raise StopDownload(fail=False)

    async def later(self, item: Any) -> Any:
        await asyncio.sleep(0)
        self.told.append(("later", item))
        return item

    async def fails(self, item: Any) -> None:
        raise ValueError("later")

    async def cancelled(self, item: Any) -> None:
        raise asyncio.CancelledError

    def cancels(self, item: Any) -> None:
        raise asyncio.CancelledError

    def panics(self, item: Any) -> None:
        raise Panic

    def deferred(self, item: Any) -> Deferred[Any]:
        return succeed(item)

    @staticmethod
    def static(item: Any) -> Any:
        return ("static", item)

    def __call__(self, item: Any) -> Any:
        self.told.append("called")
        return item


PLAIN = ["all", "one", "none", "default", "special", "missing", "error", "stop", "static", "__call__"]
AWAITED = ["later", "fails", "deferred"]


def plain(value: Any) -> Any:
    """A result that can be compared."""
    if isinstance(value, Failure):
        return "failure", type(value.value)
    return ("error", type(value)) if isinstance(value, Exception) else value


def sent(lean: bool, names: list[str], send: Callable[[Crawler], Any]) -> tuple[Any, Any, Any]:
    """What came back, what the receivers were told, what they are called."""
    crawler, receivers = Crawler(Spider, {}), Receivers()
    if lean:
        LeanSignals.from_crawler(crawler)
    for name in names:
        receiver = receivers if name == "__call__" else getattr(receivers, name)
        crawler.signals.connect(receiver, SIGNAL)
    results = send(crawler)
    called = [getattr(receiver, "__qualname__", "object") for receiver, _ in results]
    return [plain(value) for _, value in results], receivers.told, called


def now(crawler: Crawler) -> Any:
    return crawler.signals.send_catch_log(SIGNAL, item=1, spider=None)


def awaited(crawler: Crawler) -> Any:
    async def send() -> Any:
        return await crawler.signals.send_catch_log_async(SIGNAL, item=1, spider=None)

    return asyncio.run(send())


@pytest.mark.parametrize("send", [now, awaited])
@pytest.mark.parametrize("names", [[], *([name] for name in PLAIN), PLAIN, PLAIN[:-1]], ids="+".join)
def test_the_same_as_scrapys(send: Any, names: list[str], caplog: pytest.LogCaptureFixture) -> None:
    theirs = sent(False, names, send)
    said = [(record.name, record.levelno, record.msg) for record in caplog.records]
    caplog.clear()
    assert sent(True, names, send) == theirs
    assert [(record.name, record.levelno, record.msg) for record in caplog.records] == said


@pytest.mark.parametrize("names", [*([name] for name in AWAITED), ["one", *AWAITED, "all", "error"]], ids="+".join)
def test_who_has_something_to_wait_for_is_waited_for(names: list[str]) -> None:
    theirs, ours = sent(False, names, awaited), sent(True, names, awaited)
    assert ours[0] == theirs[0] and ours[2] == theirs[2]
    assert sorted(ours[1], key=repr) == sorted(theirs[1], key=repr)


@pytest.mark.parametrize("returned", [False, True])
def test_a_receiver_that_waits_begins_before_those_that_were_connected_later(returned: bool) -> None:
    """Also where a plain function returns what is to be awaited."""

    def receivers(told: list[str]) -> list[Callable[..., Any]]:
        async def waits() -> None:
            told.append("begins")
            await asyncio.sleep(0)
            told.append("ends")

        def returns() -> Any:
            return waits()

        waiting = returns if returned else waits
        return [lambda: told.append("first"), waiting, lambda: told.append("second"), lambda: told.append("third")]

    async def send(lean: bool) -> list[str]:
        crawler, told = Crawler(Spider, {}), list[str]()
        if lean:
            LeanSignals.from_crawler(crawler)
        for receiver in receivers(told):
            crawler.signals.connect(receiver, SIGNAL, weak=False)
        await crawler.signals.send_catch_log_async(SIGNAL)
        return told

    theirs, ours = asyncio.run(send(lean=False)), asyncio.run(send(lean=True))
    assert ours == theirs == ["first", "begins", "second", "third", "ends"]


@pytest.mark.parametrize(
    ("cancelled", "by"),
    [("cancelled", asyncio.CancelledError), ("cancels", asyncio.CancelledError), ("panics", Panic)],
)
def test_a_receiver_that_is_cancelled_leaves_the_others_alone(cancelled: str, by: type[BaseException]) -> None:
    def send(crawler: Crawler) -> Any:
        results.append(awaited(crawler))  # a cancellation in place of a receiver and its result
        return [(None, each) for each in results[-1]]

    results: list[Any] = []
    names = ["one", cancelled, "later", "error", "all"]
    theirs, ours = sent(False, names, send), sent(True, names, send)
    assert [type(each) for each in results[1]] == [type(each) for each in results[0]]
    assert type(results[1][1]) is by and ours[1] == theirs[1]


def test_a_deferred_where_none_can_be_awaited_is_said(caplog: pytest.LogCaptureFixture) -> None:
    theirs, ours = (sent(lean, ["deferred"], now) for lean in (False, True))
    assert [type(value) for value in ours[0]] == [type(value) for value in theirs[0]] == [Deferred]
    assert caplog.text.count("Cannot return deferreds") == 2


def test_connected_in_two_places_a_receiver_is_told_once() -> None:
    def twice(crawler: Crawler) -> Any:
        crawler.signals.connect(one, signals.item_scraped)
        dispatcher.connect(one, signals.item_scraped, sender=dispatcher.Any)
        dispatcher.connect(one, dispatcher.Any, sender=crawler)
        return crawler.signals.send_catch_log(signals.item_scraped, item=1)

    def one(item: Any) -> Any:
        return item

    try:
        assert sent(True, [], twice)[0] == sent(False, [], twice)[0] == [1]
    finally:
        dispatcher.disconnect(one, signals.item_scraped, sender=dispatcher.Any)


def test_connected_and_gone_at_any_time() -> None:
    crawler, receivers = Crawler(Spider, {}), Receivers()
    LeanSignals.from_crawler(crawler)
    assert now(crawler) == []
    crawler.signals.connect(receivers.one, SIGNAL)
    assert len(now(crawler)) == 1
    crawler.signals.disconnect(receivers.one, SIGNAL)
    assert now(crawler) == []
    crawler.signals.connect(receivers.one, SIGNAL)
    del receivers
    gc.collect()
    assert now(crawler) == []


def test_a_function_that_nobody_else_keeps_is_gone_though_it_was_told() -> None:
    def connect(crawler: Crawler, told: list[Any]) -> None:
        def inner(item: Any) -> None:
            told.append(item)

        crawler.signals.connect(inner, SIGNAL)
        now(crawler)

    crawler, told = Crawler(Spider, {}), list[Any]()
    LeanSignals.from_crawler(crawler)
    connect(crawler, told)
    gc.collect()
    assert now(crawler) == [] and told == [1]


def test_awaiting_lets_the_loop_turn(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        crawler, receivers = Crawler(Spider, {}), Receivers()
        LeanSignals.from_crawler(crawler)
        crawler.signals.connect(receivers.one, SIGNAL)
        for _ in range(50):
            await crawler.signals.send_catch_log_async(SIGNAL, item=1)

    with caplog.at_level(logging.ERROR):
        assert asyncio.run(turns_of_others(main())) >= 50
