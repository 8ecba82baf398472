"""Records that nobody would write: the loggers are told so while a spider runs, and only where it is so."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from scrapy import signals

from scrapy_ubi.fast.unwritten import LOGGERS, UnwrittenRecords, least_written
from tests.fast.crawlers import crawler_with, send


@contextmanager
def log_of_level(level: int) -> Iterator[logging.Handler]:
    """The log of a crawl with this LOG_LEVEL, without the handlers of the test runner, which take all."""
    root = logging.getLogger()
    before = root.handlers[:]
    handler = logging.Handler(level)
    root.handlers[:] = [handler]
    try:
        yield handler
    finally:
        root.handlers[:] = before


def levels() -> list[int]:
    return [logging.getLogger(name).level for name in LOGGERS]


def test_the_first_changes_it_the_last_changes_it_back() -> None:
    one, other = crawler_with(UnwrittenRecords), crawler_with(UnwrittenRecords)
    with log_of_level(logging.INFO):
        send(one, signals.spider_opened)
        assert levels() == [logging.INFO] * 2
        send(other, signals.spider_opened)
        send(one, signals.spider_closed)
        assert levels() == [logging.INFO] * 2
        send(other, signals.spider_closed)
        send(other, signals.spider_closed)
    assert levels() == [logging.NOTSET] * 2


@pytest.mark.parametrize("level", [logging.NOTSET, logging.DEBUG])
def test_where_somebody_writes_them_they_are_made(level: int) -> None:
    mine = logging.Handler(level)
    one = crawler_with(UnwrittenRecords)
    logging.getLogger("scrapy").addHandler(mine)
    try:
        with log_of_level(logging.INFO):
            send(one, signals.spider_opened)
        assert levels() == [logging.NOTSET] * 2
    finally:
        logging.getLogger("scrapy").removeHandler(mine)
        send(one, signals.spider_closed)


def test_a_crawl_that_logs_them_logs_them() -> None:
    one = crawler_with(UnwrittenRecords)
    with log_of_level(logging.DEBUG):
        send(one, signals.spider_opened)
        assert levels() == [logging.NOTSET] * 2
        send(one, signals.spider_closed)


def test_a_level_that_was_given_stays() -> None:
    logger, one = logging.getLogger(LOGGERS[0]), crawler_with(UnwrittenRecords)
    logger.setLevel(logging.WARNING)
    try:
        with log_of_level(logging.INFO):
            send(one, signals.spider_opened)
        assert levels() == [logging.WARNING, logging.INFO]
        send(one, signals.spider_closed)
        assert levels() == [logging.WARNING, logging.NOTSET]
    finally:
        logger.setLevel(logging.NOTSET)


def test_the_lowest_level_of_all_handlers_on_the_way() -> None:
    logger = logging.getLogger(LOGGERS[0])
    with log_of_level(logging.INFO) as handler:
        assert least_written(logger) == logging.INFO
        handler.setLevel(logging.ERROR)
        assert least_written(logger) == logging.ERROR
        logger.propagate = False
        try:
            assert least_written(logger) is None
        finally:
            logger.propagate = True
