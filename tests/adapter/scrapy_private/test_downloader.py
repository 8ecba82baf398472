"""Canaries: the slots of the downloader."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

from scrapy import Request
from scrapy.core.downloader import Downloader, Slot

from scrapy_ubi.adapter.scrapy_private.downloader import slot_delay
from scrapy_ubi.adapter.scrapy_private.middlewares import downloader_middlewares


def test_the_middlewares_of_a_downloader() -> None:
    assert "self.middleware: DownloaderMiddlewareManager" in inspect.getsource(Downloader.__init__)
    ours = object()
    crawler: Any = SimpleNamespace(engine=SimpleNamespace())
    crawler.engine.downloader = SimpleNamespace(middleware=SimpleNamespace(middlewares=(ours,)))
    assert list(downloader_middlewares(crawler)) == [ours]
    crawler.engine.downloader = object()  # a user's own
    assert list(downloader_middlewares(crawler)) == []


def test_the_delay_of_the_slot_that_a_request_went_through() -> None:
    assert Downloader.DOWNLOAD_SLOT == "download_slot"
    source = inspect.getsource(Downloader.__init__)
    assert "self.slots: dict[str, Slot]" in source
    slots = {"a.example": Slot(1, 2.5, 0)}
    crawler: Any = SimpleNamespace(engine=SimpleNamespace(downloader=SimpleNamespace(slots=slots)))
    assert slot_delay(crawler, Request("http://a.example", meta={"download_slot": "a.example"})) == 2.5
    assert slot_delay(crawler, Request("http://a.example", meta={"download_slot": "b.example"})) == 0.0
    assert slot_delay(crawler, Request("http://a.example")) == 0.0
    crawler.engine.downloader = object()  # a user's own
    assert slot_delay(crawler, Request("http://a.example")) == 0.0
