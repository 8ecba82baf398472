"""Which middlewares an agent has, and where in the lists of its project: next to the engine, and before the downloader.

Rules of this module:

* What a user has put into a list stays where they have put it (`place_component`).
"""

from __future__ import annotations

from scrapy.settings import BaseSettings

from scrapy_ubi.adapter.components.downloader_middleware import UbiDownloaderMiddleware
from scrapy_ubi.adapter.components.place_component import place_component
from scrapy_ubi.adapter.components.robots_middleware import place_robots
from scrapy_ubi.adapter.components.spider_middleware import UbiSpiderMiddleware
from scrapy_ubi.adapter.components.truncate import PRIORITY as BODY
from scrapy_ubi.adapter.components.truncate import UbiBodyMiddleware
from scrapy_ubi.adapter.components.usage_middleware import PRIORITY as USAGE
from scrapy_ubi.adapter.components.usage_middleware import UbiUsageMiddleware

# Scrapy numbers its own middlewares from 25 to 1000; users put theirs among them.
OUTERMOST = -1_000_000  # of the spider middlewares: next to the engine
INNERMOST = 1_000_000  # of the downloader middlewares: next to the downloader


def place_middlewares(settings: BaseSettings, *, signs: bool, usage: bool, browser: bool, proxies: bool) -> None:
    """Put them in place. `signs`: requests are signed where they leave (UBI_BOT_KEY); `usage`: what pages say of their
    use is read (UBI_USAGE); `browser`: pages that scripts make are shown by a browser (UBI_BROWSER); `proxies`: there
    is a pool of them (UBI_PROXY_POOL)."""
    place_component(settings, "SPIDER_MIDDLEWARES", UbiSpiderMiddleware, OUTERMOST)
    place_component(settings, "DOWNLOADER_MIDDLEWARES", _gate(signs), INNERMOST)
    place_component(settings, "DOWNLOADER_MIDDLEWARES", UbiBodyMiddleware, BODY)
    place_robots(settings)
    if usage:
        place_component(settings, "DOWNLOADER_MIDDLEWARES", UbiUsageMiddleware, USAGE)
    if browser:
        from scrapy_ubi.adapter.components import browser_middleware as shown  # it needs scrapy-playwright

        place_component(settings, "DOWNLOADER_MIDDLEWARES", shown.UbiBrowserMiddleware, shown.PRIORITY)
    if proxies:
        place_pool(settings)


def place_pool(settings: BaseSettings) -> None:
    """Have requests go through the pool."""
    from scrapy_ubi.adapter.components.proxy_middleware import PRIORITY, UbiProxyMiddleware  # loaded where it is used

    place_component(settings, "DOWNLOADER_MIDDLEWARES", UbiProxyMiddleware, PRIORITY)


def _gate(signs: bool) -> type[UbiDownloaderMiddleware]:
    """The innermost downloader middleware: the gate, which may sign requests."""
    if not signs:
        return UbiDownloaderMiddleware
    from scrapy_ubi.adapter.components.bot_auth import SigningMiddleware  # it needs `cryptography`

    return SigningMiddleware
