"""The same crawl by Crawlee: `python crawlee_walk.py URL SEEDS CONCURRENCY`; URL has %05d for a host's number.

Crawlee asks the system's DNS, so it needs the testbed's namespace (`bench.py`). It stops when it is ended.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile


async def main(url: str, seeds: int, concurrency: int) -> None:
    from crawlee import ConcurrencySettings
    from crawlee.crawlers import ParselCrawler
    from crawlee.http_clients import ImpitHttpClient
    from crawlee.storage_clients import MemoryStorageClient

    os.chdir(tempfile.mkdtemp())
    crawler = ParselCrawler(
        storage_client=MemoryStorageClient(),
        http_client=ImpitHttpClient(verify=False),
        use_session_pool=False,
        configure_logging=False,
        concurrency_settings=ConcurrencySettings(
            min_concurrency=min(16, concurrency), desired_concurrency=concurrency, max_concurrency=concurrency
        ),
    )

    @crawler.router.default_handler
    async def handler(context: object) -> None:
        context.selector.css("title::text").get()  # type: ignore[attr-defined]
        await context.enqueue_links(strategy="all")  # type: ignore[attr-defined]

    print("Spider opened", file=sys.stderr, flush=True)
    await crawler.run([url % number for number in range(seeds)])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
