"""The outputs of an agent, put together: its stores, the writer, and what follows its pages."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_ubi.outputs import stores
from scrapy_ubi.outputs.page_outputs import PageOutputs
from scrapy_ubi.outputs.part_files import OUT
from scrapy_ubi.outputs.stores import Store
from scrapy_ubi.outputs.writer import Writer
from scrapy_ubi.requests.inflight import Flights
from scrapy_ubi.settings import UbiSettings

if TYPE_CHECKING:
    from scrapy_ubi.node import Visit

logger = logging.getLogger(__name__)


class Outputs:
    """What UBI_STORES asks for. `writer` is the agent's."""

    def __init__(self, crawler: Crawler, settings: UbiSettings, made: list[Store]) -> None:
        assert settings.agent_id is not None, "the agent has its directory"
        self._crawler, self._settings, self._stores = crawler, settings, made
        self.writer = Writer(settings.dir, settings.crawl, settings.agent_id, settings.store_mb << 20)

    @classmethod
    def of(cls, crawler: Crawler, settings: UbiSettings) -> Outputs | None:
        """None where no store is named. Raises UbiSettingError."""
        made = stores.make(settings.stores, crawler.settings)
        return cls(crawler, settings, made) if made else None

    def of_pages(
        self,
        flights: Flights,
        normal: Callable[[str], str | None],
        named: Callable[[Visit, Request], str],
        count: Callable[[str], None],
    ) -> PageOutputs:
        """What follows the pages of this agent: arguments are those of `PageOutputs`."""
        found = PageOutputs(self._crawler, self._stores, self.writer, flights, normal, named, count)
        found.listen()
        return found

    def close(self) -> None:
        """All is written: say where it is."""
        repaired, stats = self.writer.repaired, self._crawler.stats
        if stats is not None:
            told = {"ubi/store/cut_bytes": repaired.cut, "ubi/store/unwritten": self.writer.failed}
            for name, number in told.items():
                if number:
                    stats.inc_value(name, number)
        if any(store.name == "items" for store in self._stores):
            logger.info(
                "The items of this agent's pages are in %s. One file of those of all agents: scrapy ubi collect items "
                "-o items.jsonl",
                self._settings.dir / OUT / "items",
            )
