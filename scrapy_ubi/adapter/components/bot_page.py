"""Who crawls, and whom a webmaster can ask: the User-Agent that UBI_BOT_PAGE makes, and a warning where none tells.

Rules of this module:

* UBI_BOT_PAGE makes `<BOT_NAME>/<version> (+<page>)` of the default User-Agent, the version being this package's. A
  USER_AGENT that somebody has set stays as it is.
* The first request that leaves loopback with a User-Agent that names neither a page nor an e-mail address is warned
  of, once. It is sent: a crawl of one's own network needs no page. The default User-Agent of Scrapy names
  Scrapy's own page, where no one can be asked about this crawl. Commands that look at a page or two do not warn.
* A request to a proxy on this machine does not leave it, as far as can be seen here: no warning. Where that proxy is
  a door to the Internet, the User-Agent is the user's own care.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from functools import lru_cache
from urllib.parse import urlsplit

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.settings import BaseSettings
from scrapy.utils.httpobj import urlparse_cached

from scrapy_ubi.adapter.scrapy_private.runs import is_trial
from scrapy_ubi.agent.profile.figures import package_version

logger = logging.getLogger("scrapy_ubi")

# A page or an address somewhere in the text; `mailto:` holds one. Scrapy's page is no contact of a crawl.
_CONTACT = re.compile(r"(?:https?://|\bwww\.)(?!scrapy\.org)[\w\[]|[\w.+-]+@[\w-]+\.\w", re.ASCII)
_NOT_IN_PRODUCT = re.compile(r"[^!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2: what a token may not hold


def user_agent(bot: str, page: str) -> str:
    """The User-Agent of a bot with this name and this page."""
    return f"{_NOT_IN_PRODUCT.sub('-', bot).strip('-') or 'scrapybot'}/{package_version()} (+{page})"


@lru_cache(64)  # asked for each page
def has_contact(text: str) -> bool:
    """Whether a User-Agent says whom a webmaster can ask."""
    return _CONTACT.search(text) is not None


@lru_cache(1024)
def is_loopback(host: str) -> bool:
    """Whether requests to this host stay on this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def introduce(settings: BaseSettings, page: str, priority: int) -> None:
    """Put the User-Agent in place, at the priority of add-ons: what the user has set wins."""
    settings.set("USER_AGENT", user_agent(str(settings.get("BOT_NAME") or ""), page), priority)


class BotPage:
    """The extension that warns. It is not there where the User-Agent of the settings says whom to ask."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        crawler.signals.connect(self._leaves, signals.request_reached_downloader)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> BotPage:
        if has_contact(str(crawler.settings.get("USER_AGENT") or "")):
            raise NotConfigured
        return cls(crawler)

    def _leaves(self, request: Request) -> None:
        """A request is about to be sent."""
        name = (request.headers.get("User-Agent") or b"").decode("latin-1")
        host = urlparse_cached(request).hostname
        if not host or has_contact(name) or is_loopback(host) or is_by_loopback(request):
            return
        self._crawler.signals.disconnect(self._leaves, signals.request_reached_downloader)
        if is_trial(self._crawler):
            return
        logger.warning(
            "The crawl leaves this machine (first for %.100s), and its User-Agent, '%.200s', does not say whom a "
            "webmaster can ask about it. Set UBI_BOT_PAGE to the address of a page that explains your bot.",
            host,
            name,
        )


def is_by_loopback(request: Request) -> bool:
    """Whether it is sent to a proxy on this machine."""
    proxy = request.meta.get("proxy")
    if not isinstance(proxy, str) or not proxy:
        return False
    try:
        return is_loopback(urlsplit(proxy if "//" in proxy else f"//{proxy}").hostname or "")
    except ValueError:
        return False
