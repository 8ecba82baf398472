"""scrapy_ubi: peer agents that crawl one web together.

`ADDONS = {"scrapy_ubi.Addon": 500}` in a Scrapy project's settings is all there is to turn on. The add-on and
what spiders use are imported when they are asked for, so that the sans-IO parts (`scrapy_ubi.protocol`) can be used
without importing Scrapy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy_ubi.addon import Addon
    from scrapy_ubi.linkextractor import UbiLinkExtractor as LinkExtractor
    from scrapy_ubi.outputs.feed_params import feed_params
    from scrapy_ubi.outputs.page_names import item_id
    from scrapy_ubi.plainlinks import PlainLinks
    from scrapy_ubi.requests.observers import PageObserver
    from scrapy_ubi.spiders import UbiCrawlSpider, UbiSpider

__all__ = [
    "Addon",
    "LinkExtractor",
    "PageObserver",
    "PlainLinks",
    "UbiCrawlSpider",
    "UbiSpider",
    "__version__",
    "feed_params",
    "item_id",
]

__version__ = "0.1.0"


_PLACES = {
    "Addon": ("scrapy_ubi.addon", "Addon"),
    "LinkExtractor": ("scrapy_ubi.linkextractor", "UbiLinkExtractor"),
    "PageObserver": ("scrapy_ubi.requests.observers", "PageObserver"),
    "PlainLinks": ("scrapy_ubi.plainlinks", "PlainLinks"),
    "UbiCrawlSpider": ("scrapy_ubi.spiders", "UbiCrawlSpider"),
    "UbiSpider": ("scrapy_ubi.spiders", "UbiSpider"),
    "item_id": ("scrapy_ubi.outputs.page_names", "item_id"),
    "feed_params": ("scrapy_ubi.outputs.feed_params", "feed_params"),
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, own = _PLACES[name]
    return getattr(import_module(module), own)


def __dir__() -> list[str]:
    """The public names, also before they are imported."""
    return sorted(__all__)
