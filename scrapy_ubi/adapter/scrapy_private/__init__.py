"""Every name of Scrapy's and Twisted's that is private, undocumented or about to change, and why it is needed.

Each module has a table of such names. They stand here, and in `scrapy_ubi.fast` as far as only what is faster needs
them, and nowhere else (tests/adapter/scrapy_private/test_strays.py). When a new Scrapy changes one of them, a test of
tests/adapter/scrapy_private fails by its name (a canary), and the module below is what is to be mended:

* `engine`: hooks on the running engine; `engines`: where the engine of a crawler is; `runs`: what kind of run it is,
  whose process, and how it began;
* `middlewares`, `scraper`, `spider_callbacks`: of Scrapy's middlewares, its scraper and spiders;
* `downloader`, `download_handlers`, `socket_gate`, `steady_timers`: on the way to the network;
* `feed_slots`, `parsed_page`, `changed_settings`: what Scrapy keeps and does not tell;
* `needed`: the names that no crawl goes without, and one line of the log for all others that are lacking;
* `versions`: which versions of Scrapy these were tried with, and what stands for names that one of them lacks.

Rules of this package: a name is used by one module; it says what for; with another version of Scrapy that lacks it the
crawl goes on as well as it can, with one line of the log.
"""

from __future__ import annotations
