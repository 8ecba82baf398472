"""scrapy_ubi: peer agents that crawl one web together.

`ADDONS = {"scrapy_ubi.Addon": 500}` in a Scrapy project's settings is all there is to turn on. The add-on and
what spiders use are imported when they are asked for, so that the sans-IO parts (`scrapy_ubi.protocol`) can be used
without importing Scrapy.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy_ubi.adapter.extraction.linkextractor import UbiLinkExtractor as LinkExtractor
    from scrapy_ubi.adapter.extraction.plainlinks import PlainLinks
    from scrapy_ubi.adapter.feeds.feed_params import feed_params
    from scrapy_ubi.adapter.requests.observers import PageObserver
    from scrapy_ubi.adapter.requests.page_outcome import TooLong
    from scrapy_ubi.addon import Addon
    from scrapy_ubi.outputs.page_outputs import item_id
    from scrapy_ubi.spiders import UbiCrawlSpider, UbiSpider

__all__ = [
    "Addon",
    "LinkExtractor",
    "PageObserver",
    "PlainLinks",
    "UbiCrawlSpider",
    "UbiSpider",
    "TooLong",
    "__version__",
    "feed_params",
    "item_id",
]

__version__ = "0.1.0"


_PLACES = {
    "TooLong": ("scrapy_ubi.adapter.requests.page_outcome", "TooLong"),
    "Addon": ("scrapy_ubi.addon", "Addon"),
    "LinkExtractor": ("scrapy_ubi.adapter.extraction.linkextractor", "UbiLinkExtractor"),
    "PageObserver": ("scrapy_ubi.adapter.requests.observers", "PageObserver"),
    "PlainLinks": ("scrapy_ubi.adapter.extraction.plainlinks", "PlainLinks"),
    "UbiCrawlSpider": ("scrapy_ubi.spiders", "UbiCrawlSpider"),
    "UbiSpider": ("scrapy_ubi.spiders", "UbiSpider"),
    "item_id": ("scrapy_ubi.outputs.page_outputs", "item_id"),
    "feed_params": ("scrapy_ubi.adapter.feeds.feed_params", "feed_params"),
}


def __getattr__(name: str) -> object:
    if name in MOVED:
        return sys.modules[f"{__name__}.{name}"]
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, own = _PLACES[name]
    return getattr(import_module(module), own)


def __dir__() -> list[str]:
    """The public names, also before they are imported."""
    return sorted(__all__)


# Documented import paths whose modules have moved: path -> module. Each is loaded when one of its names is asked for.
MOVED = {
    "monitor": "cli.monitor",
    "monitor.status": "cli.monitor.status",
    "outcome": "adapter.requests.page_outcome",
    "ranking": "policy.ranking",
    "ranking.ranker_contract": "policy.ranking.ranker_contract",
    "requests": "adapter.requests",
    "requests.plugin_codecs": "adapter.requests.plugin_codecs",
    "scheduler": "adapter.components.scheduler",
}


def _keep(path: str, place: str) -> ModuleType:
    """Return a module under a path of before, which has the names of the one at its place."""
    module = ModuleType(path, f"The documented path of `{place}`.")

    def find(name: str) -> object:
        if name.startswith("__"):  # who looks through all modules loads none
            raise AttributeError(f"module {path!r} has no attribute {name!r}")
        return getattr(import_module(place), name)

    vars(module).update(__spec__=ModuleSpec(path, None), __path__=[], __getattr__=find)
    return module


for _path, _place in MOVED.items():
    sys.modules[f"{__name__}.{_path}"] = _keep(f"{__name__}.{_path}", f"{__name__}.{_place}")
