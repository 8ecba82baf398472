"""Fewer collections: changed by the first crawl of a process, changed back by the last, and what users chose stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from scrapy import signals

from scrapy_ubi.fast.garbage import THRESHOLD, FewerCollections
from tests.fast.crawlers import crawler_with, send


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.enable()
    gc.set_threshold(*before)


def test_the_first_changes_it_the_last_changes_it_back() -> None:
    one, other = crawler_with(FewerCollections), crawler_with(FewerCollections)
    send(one, signals.spider_opened)
    assert gc.get_threshold() == (THRESHOLD, 10, 10)
    send(other, signals.spider_opened)
    send(one, signals.spider_closed)
    assert gc.get_threshold() == (THRESHOLD, 10, 10)
    send(other, signals.spider_closed)
    assert gc.get_threshold() == (700, 10, 10)
    send(other, signals.spider_closed)
    send(one, signals.spider_opened)
    assert gc.get_threshold()[0] == THRESHOLD
    send(one, signals.spider_closed)
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("threshold", [0, THRESHOLD, 100_000])
def test_what_was_chosen_stays(threshold: int) -> None:
    gc.set_threshold(threshold)
    one = crawler_with(FewerCollections)
    send(one, signals.spider_opened)
    assert gc.get_threshold()[0] == threshold
    send(one, signals.spider_closed)
    assert gc.get_threshold()[0] == threshold


def test_switched_off_it_stays_off() -> None:
    gc.disable()
    one = crawler_with(FewerCollections)
    send(one, signals.spider_opened)
    assert not gc.isenabled() and gc.get_threshold()[0] == 700
    send(one, signals.spider_closed)
    assert not gc.isenabled()


def test_what_others_have_frozen_stays_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        one = crawler_with(FewerCollections)
        send(one, signals.spider_opened)
        send(one, signals.spider_closed)
        assert gc.get_freeze_count() == frozen
    finally:
        gc.unfreeze()


def test_a_crawl_that_never_opened_changes_nothing() -> None:
    one = crawler_with(FewerCollections)
    send(one, signals.spider_closed)
    assert gc.get_threshold()[0] == 700
