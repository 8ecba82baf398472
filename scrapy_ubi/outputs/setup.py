"""The outputs of an agent, put together: its stores, the writer, and what follows its pages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_ubi.adapter.requests.inflight import Flight, Flights
from scrapy_ubi.adapter.requests.judged import Judged
from scrapy_ubi.adapter.requests.observers import PageObserver
from scrapy_ubi.adapter.scheduling.stat_buffer import StatBuffer
from scrapy_ubi.outputs import stores
from scrapy_ubi.outputs.delivery.delivering import DeliveringStore
from scrapy_ubi.outputs.documents.text_child import DocumentReader
from scrapy_ubi.outputs.duplicates.duplicate_record import Compared
from scrapy_ubi.outputs.duplicates.duplicates_store import DuplicatesStore, known
from scrapy_ubi.outputs.duplicates.judge import DuplicateLinks, Judge
from scrapy_ubi.outputs.page_outputs import PageOutputs
from scrapy_ubi.outputs.part_files import OUT
from scrapy_ubi.outputs.ship_targets import AT_ONCE, target_of
from scrapy_ubi.outputs.shipping import Shipper
from scrapy_ubi.outputs.stores import Store
from scrapy_ubi.outputs.writer import Writer
from scrapy_ubi.settings import UbiSettings

if TYPE_CHECKING:
    from scrapy_ubi.agent import Visit

logger = logging.getLogger(__name__)

SHIP_SECONDS = 300.0  # for which a part is written at most, where it is sent
Write = Callable[[Any, Any], None]  # what a page has left, the part of its file


class Outputs:
    """What UBI_STORES asks for. `writer` is the agent's."""

    def __init__(self, crawler: Crawler, settings: UbiSettings, made: list[Store]) -> None:
        assert settings.agent_id is not None, "the agent has its directory"
        self._crawler = crawler
        self._settings = settings
        self._stores = made
        self.writer = Writer(settings.dir, settings.crawl, settings.agent_id, settings.store_mb << 20)
        for store in made:
            if isinstance(store, DeliveringStore):
                store.connect(settings)
                self.writer.delivering.append(store)
        self._documents = DocumentReader()
        self._known: list[Compared] = []  # pages of the process before
        if settings.duplicates is not None:
            self.writer.recovered = self._read_known
        self._shipper: Shipper | None = None
        if settings.ship is not None:
            self._shipper = Shipper(settings.dir, settings.agent_id, target_of(settings.ship))
            for store in made:  # so that what a lost disk takes along is bounded, and what a sender holds in memory
                store.seconds, store.size = min(store.seconds, SHIP_SECONDS), min(store.size, AT_ONCE)

    def measure(self, around: Callable[[str, Write], Write]) -> None:
        """Let each store write by what `around` makes of its name and of how it writes."""
        for store in self._stores:
            store.write = around(store.name, store.write)  # type: ignore[method-assign,assignment]

    @classmethod
    def from_settings(cls, crawler: Crawler, settings: UbiSettings) -> Outputs | None:
        """None where no store is named. Raises UbiSettingError."""
        made = stores.make(settings.stores, crawler.settings)
        if settings.duplicates is not None and not any(store.name == DuplicatesStore.name for store in made):
            near = "yes" if settings.duplicates.near else "no"
            made += stores.make([f"{DuplicatesStore.name}(near={near})"], crawler.settings)
        return cls(crawler, settings, made) if made else None

    def observers(
        self,
        flights: Flights,
        normal: Callable[[str], str | None],
        named: Callable[[Visit, Request], str],
        stats: StatBuffer,
        note: Callable[[str, str], None],
    ) -> Sequence[PageObserver]:
        """Make what looks at pages (`adapter.components.outputs_contract`): outputs are handed over before what they
        were made of is forgotten (`Judge`)."""
        judge = self._make_judge(stats.count, note)
        judged = judge.judged if judge is not None else {}
        found: list[PageObserver] = [self._make_page_outputs(flights, normal, named, stats.count, judged)]
        if judge is not None:
            found.append(judge)
            if judge.action == "unfollow":
                found.append(DuplicateLinks(judge.unfollowed, stats))
        return found

    def _make_page_outputs(
        self,
        flights: Flights,
        normal: Callable[[str], str | None],
        named: Callable[[Visit, Request], str],
        count: Callable[[str], None],
        judged: Mapping[Flight, Judged],
    ) -> PageOutputs:
        """What follows the pages of this agent: arguments are those of `PageOutputs`."""
        # One of its own: that of the keys counts what lossy steps have changed, for the report.
        reader = self._settings.normaliser().function
        for store in self._stores:
            store.normal_form = reader
            if store.wants_documents:
                store.documents = self._documents
        found = PageOutputs(self._crawler, self._stores, self.writer, flights, normal, named, count, judged)
        found.listen()
        if self._shipper is not None:
            self._shipper.start()
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """What is kept of pages: the names of the stores."""
        return tuple(store.name for store in self._stores)

    @property
    def keeps_pages(self) -> bool:
        """Whether a store keeps something of pages themselves, beside their items."""
        return any(store.wants_pages for store in self._stores)

    @property
    def keeps_requisites_of(self) -> Callable[[Request], bool] | None:
        """Whether what a page needs to be shown is kept with it; None where it is of no page."""
        return next((store.keeps_requisites_of for store in self._stores if store.wants_requisites), None)

    def _make_judge(self, count: Callable[[str], None], note: Callable[[str, str], None]) -> Judge | None:
        """What tells duplicates, where UBI_DUPLICATES asks for that."""
        asked = self._settings.duplicates
        if asked is None:
            return None
        judge = Judge(asked.near, asked.action, count, note)
        judge.restore((page.host, page.url, page.judged) for page in self._known)
        self._known = []
        return judge

    def _read_known(self, out: Path) -> None:
        self._known = known(out)

    async def close(self) -> None:
        """All is sealed: wait until it is sent, and say where it is."""
        self._documents.close()
        if self._shipper is not None:
            await self._sent(self._shipper)
        self._say()

    async def _sent(self, shipper: Shipper) -> None:
        """Wait until all is sent, in another thread, and count."""
        timeout = self._settings.ship_timeout
        left = await asyncio.to_thread(shipper.finish, timeout)
        if left:
            sentence = "%d files are not sent after %g s (ten times UBI_LEAVE_TIMEOUT): they are in %s. Copy them."
            logger.error(sentence, left, timeout, self._settings.dir / OUT)
        stats = self._crawler.stats
        told = {"sent": shipper.sent, "failed": shipper.failed, "refused": shipper.refused, "left": left}
        for name, number in told.items():
            if number and stats is not None:
                stats.set_value(f"ubi/ship/{name}", number)

    def _say(self) -> None:
        repaired, stats = self.writer.repaired, self._crawler.stats
        if stats is not None:
            told = {"ubi/store/cut_bytes": repaired.cut, "ubi/store/unwritten": self.writer.failed}
            told |= {f"ubi/store/{store.name}/unread": store.unread for store in self._stores}
            for store in self._stores:
                told |= {f"ubi/store/{store.name}/refused/{reason}": n for reason, n in store.refused.items()}
            for name, number in told.items():
                if number:
                    stats.inc_value(name, number)
        if any(store.name == "items" for store in self._stores):
            logger.info(
                "The items of this agent's pages are in %s. One file of those of all agents: scrapy ubi collect items "
                "-o items.jsonl",
                self._settings.dir / OUT / "items",
            )
