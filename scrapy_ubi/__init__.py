"""scrapy_ubi: peer agents that crawl one web together.

`ADDONS = {"scrapy_ubi.Addon": 500}` in a Scrapy project's settings is all there is to turn on. The add-on and
`LinkExtractor` are imported when they are asked for, so that the sans-IO parts (`scrapy_ubi.protocol`) can be used
without importing Scrapy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy_ubi.addon import Addon
    from scrapy_ubi.linkextractor import UbiLinkExtractor as LinkExtractor

__all__ = ["Addon", "LinkExtractor", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name == "Addon":
        from scrapy_ubi.addon import Addon

        return Addon
    if name == "LinkExtractor":
        from scrapy_ubi.linkextractor import UbiLinkExtractor

        return UbiLinkExtractor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
