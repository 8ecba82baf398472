"""An extension for comparisons: whether large pages go to a second thread is told, not found by the load of the cores.

`-s EXTENSIONS={"bench.cores.SecondCoreAsTold": 0} -s BENCH_SECOND_CORE=1` (or 0).
"""

from __future__ import annotations

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from scrapy_ubi.fast import second_core
from scrapy_ubi.fast.spare_cores import CoresSeen


class SecondCoreAsTold:
    @classmethod
    def from_crawler(cls, crawler: Crawler) -> SecondCoreAsTold:
        if crawler.settings["BENCH_SECOND_CORE"] is None:
            raise NotConfigured
        is_on = crawler.settings.getbool("BENCH_SECOND_CORE")

        class Told:
            is_on = False

            def look(self, seen: CoresSeen) -> bool:
                self.is_on = is_on
                return is_on

        second_core.EVERY = 0.2
        second_core.Switch = Told
        return cls()
