"""The filter chain: which of the URLs that pages link to are taken, by UBI_FILTERS.

LARM's message-handler chain (Marschner, 2003) and BUbiNG's filters had the ideas: an ordered list of small filters,
each with a text form that parses back. Nothing here imports Scrapy.
"""

from __future__ import annotations

from scrapy_ubi.urls.filters.base import Link, UrlFilter
from scrapy_ubi.urls.filters.chain import FilterChain, Refusal, parse
from scrapy_ubi.urls.filters.filter_text import Arguments, FilterError

__all__ = ["Arguments", "FilterChain", "FilterError", "Link", "Refusal", "UrlFilter", "parse"]
