"""Whether this process is Scrapy's: started by `scrapy crawl`, or by a script's CrawlerProcess, which sets signal
handlers and the log as well. Else the crawl is embedded in a program (CrawlerRunner), and what is the process's stays
as the program has it.
"""

from __future__ import annotations

import sys

from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess

_STARTS = (CrawlerProcess.start.__code__, AsyncCrawlerProcess.start.__code__)


def is_scrapys_process() -> bool:
    """Whether this thread runs in a CrawlerProcess's `start`, as everything does that a reactor or loop of it calls."""
    frame = sys._getframe()
    while frame.f_back is not None:
        if frame.f_code in _STARTS:
            return True
        frame = frame.f_back
    return False
