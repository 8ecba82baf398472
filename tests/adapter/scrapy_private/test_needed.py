"""One line of the log says what is left out as Scrapy lacks names, and it is a warning where a crawl does less."""

from __future__ import annotations

import logging

import pytest
from scrapy.core import scraper
from scrapy.spiders import CrawlSpider, Spider
from scrapy.utils import log

from scrapy_ubi.adapter.scrapy_private.needed import say_left_out


@pytest.fixture
def log_lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "scrapy_ubi")
    return caplog


def lines(log_lines: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    say_left_out()
    return list(log_lines.records)


def test_of_this_scrapy_nothing_is_left_out(log_lines: pytest.LogCaptureFixture) -> None:
    assert lines(log_lines) == []


def test_one_line_names_all_that_is_lacking(
    log_lines: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(CrawlSpider, "_build_request")
    monkeypatch.delattr(Spider, "_parse")
    (line,) = lines(log_lines)
    assert line.levelno == logging.INFO, "the same items, for more time"
    assert "(CrawlSpider._build_request)" in line.getMessage() and "(Spider._parse)" in line.getMessage()


def test_it_is_a_warning_where_what_people_ask_for_is_not_done(
    log_lines: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(log, "get_scrapy_root_handler")
    (line,) = lines(log_lines)
    assert line.levelno == logging.WARNING
    assert "changes of LOG_LEVEL while the crawl runs (log.get_scrapy_root_handler)" in line.getMessage()


def test_a_class_that_is_lacking_itself_lacks_all_its_names(
    log_lines: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(scraper, "Slot")
    (line,) = lines(log_lines)
    assert "room for large pages beyond Scrapy's own bound (Slot.max_active_size)" in line.getMessage()
