"""`no_proxy` is read once, and asked once for a host (UBI_LEAN).

Where the environment names a proxy (`http_proxy`), Scrapy asks for every request whether `no_proxy` excepts its host,
and Python reads the whole environment for the answer, which is a twentieth of what a page costs. Here both are
remembered while the spider runs; Scrapy reads the proxies themselves only once, too.
"""

from __future__ import annotations

from scrapy_ubi import scrapy_private
from scrapy_ubi.fast.process_wide import ProcessWide, Undo


class NoProxyOnce(ProcessWide):
    """From the opening of the first spider to the end of the last."""

    @classmethod
    def change(cls) -> Undo:
        """See the base class."""
        return scrapy_private.remember_no_proxy()
