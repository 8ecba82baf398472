"""The callback of a spider that names none.

| name | used for |
| --- | --- |
| `Spider._parse` | Scrapy's default callback: it calls `parse`, or in a CrawlSpider the rules |
"""

from __future__ import annotations

from scrapy import Spider


def parse_is_default(spider: type[Spider]) -> bool:
    """Whether a request without a callback goes to the spider's `parse`. A class that has its own default callback
    (CrawlSpider) is none of those."""
    usual = getattr(Spider, "_parse", None)  # without it nothing is known
    return usual is not None and spider._parse is usual
