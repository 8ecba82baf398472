"""Sitemaps that say when their pages were changed, told to the node (UBI_RECRAWL = "sitemap")."""

from __future__ import annotations

from collections.abc import Callable

from scrapy import Request

from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.agent import Node
from scrapy_ubi.agent.hosts.listed_pages import ListedPages
from scrapy_ubi.ground.clock import unix


def sitemap_news(node: Node, keys: RequestKeys) -> Callable[[Request, float], bool] | None:
    """What is to be told of each page that a sitemap lists with a time, and says whether that page is due earlier for
    it; None where the rule does without."""
    recrawl = node.crawl.recrawl
    if recrawl is None or not recrawl.heeds_sitemaps:
        return None
    pages = recrawl.listed = ListedPages(recrawl.rule, node.hosts, unix)

    def listed(request: Request, lastmod: float) -> bool:
        place = keys.place(request)
        state = node.hosts.find(place.host) if place is not None else None
        if place is None or state is None:
            return False
        return pages.listed(node.frontier, state, keys.key(request, place), lastmod)

    return listed
