"""Import paths that are in people's settings and code keep working, wherever the classes are written."""

from __future__ import annotations

from importlib import import_module

import pytest

PATHS = [
    ("scrapy_ubi", "Addon"),
    ("scrapy_ubi", "LinkExtractor"),
    ("scrapy_ubi", "PageObserver"),
    ("scrapy_ubi", "PlainLinks"),
    ("scrapy_ubi", "UbiCrawlSpider"),
    ("scrapy_ubi", "UbiSpider"),
    ("scrapy_ubi", "feed_params"),
    ("scrapy_ubi.addon", "Addon"),
    ("scrapy_ubi.scheduler", "UbiScheduler"),
    ("scrapy_ubi.outcome", "TooLong"),
    ("scrapy_ubi.monitor.status", "read_status"),
    ("scrapy_ubi.urls.filters", "UrlFilter"),
]


@pytest.mark.parametrize(("module", "name"), PATHS, ids=[f"{module}.{name}" for module, name in PATHS])
def test_a_documented_path_leads_to_its_class(module: str, name: str) -> None:
    assert getattr(import_module(module), name) is not None
