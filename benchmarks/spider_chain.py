"""What Scrapy's own spider middlewares cost a page: as Scrapy nests them, and in one loop (UBI_LEAN).

    python benchmarks/spider_chain.py [--links 87] [--rounds 300]

A page's requests pass the middlewares of a new project (copied meta, depth, length of URLs, Referer), by
scrapy_ubi/fast/spider_chain.py and by the generators that it stands for, in turns. No crawl: nothing else is in it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterable
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.settings import default_settings
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.misc import build_from_crawler, load_object

from scrapy_ubi.fast.spider_chain import chain_of

PAGE = "https://a.example/x/y"


def middlewares() -> list[Any]:
    """Scrapy's, from the spider outwards."""
    crawler = Crawler(Spider)
    crawler.spider, crawler.stats = Spider("it"), MemoryStatsCollector(crawler)
    order = default_settings.SPIDER_MIDDLEWARES_BASE
    return [build_from_crawler(load_object(path), crawler) for path in sorted(order, key=lambda path: -order[path])]


def took(layers: Iterable[Any], links: int) -> float:
    """Milliseconds for one page."""
    response = Response(PAGE, request=Request(PAGE, meta={"depth": 2}))
    passed: Iterable[Any] = iter([Request(f"https://a.example/p{number}") for number in range(links)])
    begun = time.thread_time()
    for layer in layers:
        passed = layer(response=response, result=passed)
    for _ in passed:
        """Taken."""
    return 1000 * (time.thread_time() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--links", type=int, default=87, help="requests of a page (%(default)s, the testbed's mean)")
    parser.add_argument("--rounds", type=int, default=300, help="(%(default)s)")
    args = parser.parse_args()
    chain = middlewares()
    nested = [getattr(one, "process_spider_output", None) for one in chain]
    ways = {
        "one around the other": [layer for layer in nested if layer is not None],
        "in one loop": [layer for _, layer in chain_of(chain, nested)],
    }
    found: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(args.rounds):
        for way, layers in ways.items():
            found[way].append(took(layers, args.links))
    print(f"| {args.links} requests | ms a page |\n| --- | ---: |")
    for way, each in found.items():
        print(f"| {way} | {statistics.median(each):.2f} |")


if __name__ == "__main__":
    main()
