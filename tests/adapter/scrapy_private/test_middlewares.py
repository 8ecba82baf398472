"""Canaries: Scrapy's own middlewares, and the scraper that hands items over."""

from __future__ import annotations

import inspect

from scrapy.core.scraper import Scraper


def test_the_scraper_hands_over_items_by_name() -> None:
    assert "self.start_itemproc_async(output, response=response)" in inspect.getsource(
        Scraper._process_spidermw_output_async
    )
