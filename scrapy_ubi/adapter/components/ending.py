"""How the spider of an agent is closed before its crawl is over, and what the last lines of its log say.

Rules of this module:

* Each close has a sentence in the log and a reason in Scrapy's stats. Where the agent cannot go on, the exit status of
  the process says so, too.
* A process that ends without handing over says what the other agents do then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from scrapy.crawler import Crawler

from scrapy_ubi.adapter.process import last_lines
from scrapy_ubi.adapter.process.last_lines import FeedNames, counted
from scrapy_ubi.adapter.requests.inflight import Flights
from scrapy_ubi.adapter.requests.transfer_states import Transfer
from scrapy_ubi.adapter.scheduling.held_up import callback_of, hosts_of
from scrapy_ubi.adapter.scrapy_private.runs import end_badly
from scrapy_ubi.agent import Node
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.settings import UbiSettings

if TYPE_CHECKING:
    from scrapy_ubi.adapter.components.scheduler import UbiScheduler

logger = logging.getLogger("scrapy_ubi.scheduler")

MOST_NAMES = 3  # in a sentence
NOT_THE_PROJECTS = ("finished", "shutdown")  # Scrapy's reasons when nothing is left, and after a signal


class Ending:
    """Closes the spider of this crawler."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._feeds = FeedNames(crawler)
        self._endings: list[asyncio.Future[None]] = []

    def fail(self, sentence: str) -> None:
        """The agent cannot go on; the exit status tells who runs it."""
        end_badly(self._crawler)
        self.stop(sentence, "ubi_stopped")

    def stop(self, sentence: str, reason: str, level: int = logging.ERROR) -> None:
        """Close the spider, and say why."""
        logger.log(level, "%s", sentence)
        self.end(reason)

    def end(self, reason: str) -> None:
        """Close the spider. The loop keeps no task alive that nothing else refers to."""
        task = asyncio.ensure_future(self._crawler.engine.close_spider_async(reason=reason))
        self._endings.append(task)
        task.add_done_callback(_tell_of_error)

    def begin(self, scheduler: UbiScheduler) -> None:
        """The spider is being closed: nothing waits for a permit any more, and Scrapy waits for what is under way."""
        scheduler.gate.close()
        if not scheduler.node.over:
            logger.info("%s", self.waits_for(scheduler.flights, scheduler.node, scheduler.settings))

    def say_closed(self, reason: str, node: Node, settings: UbiSettings) -> None:
        """The spider is closed for this reason: where the project has done that, the other agents go on."""
        alone = settings.redis_url is None
        if not (alone or node.over or self._endings or reason in NOT_THE_PROJECTS):
            logger.warning(
                "The project closes its spider (reason: %s), which is this agent only: the other agents take over its "
                "hosts and go on. UBI_CRAWL_LIMITS and `scrapy ubi finish` end the crawl on all agents.",
                plain(reason, 100),
            )

    def drain(self) -> None:
        """A person wants this agent to leave: as by SIGTERM, but for the reason."""
        logger.info("Asked to leave (scrapy ubi drain).")
        self.end("drained")

    def say(self, node: Node, settings: UbiSettings, stores: Sequence[str]) -> None:
        """Say in the last lines what the crawl has come to, and what it has lost. `stores`: what is kept of pages."""
        last_lines.say(self._crawler, self._outcome(node, settings, stores), logging.INFO)
        say_lost(self._crawler, node, settings)

    def _outcome(self, node: Node, settings: UbiSettings, stores: Sequence[str]) -> Callable[[], list[str]]:
        counters, stats = node.counters(), self._crawler.stats
        outcome = last_lines.CrawlOutcome(
            settings.crawl,
            counters,
            settings.dir,
            over=node.over,
            alone=settings.redis_url is None,
            received=int(stats.get_value("downloader/response_bytes", 0)) if stats is not None else 0,
            stores=tuple(stores),
            failed_at={reason: list(hosts) for reason, hosts in counters.get("failed_at", {}).items()},
        )
        feeds = self._feeds  # closed later; what is said then must not lead to the crawler, else that would stay alive
        return lambda: last_lines.lines(replace(outcome, feeds=feeds.closed))

    def waits_for(self, flights: Flights, node: Node, settings: UbiSettings) -> str:
        """What an agent waits for that is asked to leave, and for how long at most."""
        loads = [one for one in flights if one.transfer in (Transfer.TRANSFERRING, Transfer.ABORTING)]
        pages = [one for one in flights if one.transfer is Transfer.ENDED and one.visit is not None]
        parts = []
        if loads:
            limit = self._crawler.settings.getfloat("DOWNLOAD_TIMEOUT")
            parts.append(f"{counted(len(loads), 'load')} ({_first(hosts_of(loads))}; DOWNLOAD_TIMEOUT, {limit:g} s)")
        if pages:
            callbacks = _first(list(dict.fromkeys(map(callback_of, pages))))
            parts.append(f"callbacks and pipelines of {counted(len(pages), 'page')} ({callbacks})")
        first = f"this agent waits for {' and '.join(parts)}" if parts else "nothing is under way"
        others = node.status.others
        then = (
            f"what this agent knows is handed over to {_first(others)}, for at most {settings.leave_timeout:g} s "
            "(UBI_LEAVE_TIMEOUT)"
            if others
            else "what it knows is written to its disk"
        )
        return f"No new request is sent; {first}. Then {then}."

    def burst(self, sentence: str) -> None:
        """Too many errors in close succession; the exit status tells who runs it."""
        end_badly(self._crawler)
        self.stop(sentence, "error_burst")


def _first(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(plain(name, 100) for name in names[:MOST_NAMES])
    return f"{shown} and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else shown


def _tell_of_error(task: asyncio.Future[None]) -> None:
    """Log what has kept a spider from being closed."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("The spider could not be closed: %r", error, exc_info=error)


def say_lost(crawler: Crawler, node: Node, settings: UbiSettings) -> None:
    """Say what the crawl has lost, in its last lines."""
    tally = last_lines.tally(settings.agent_id or "", node.counters(), node.lifecycle.published)
    last_lines.say(crawler, last_lines.lost(tally, settings.crawl))
    if copies := last_lines.of_copies(node.lifecycle.lost_agents, settings.replication):
        end_badly(crawler)
        last_lines.say(crawler, copies, logging.ERROR)


def say_cut_short(agent_id: str, settings: UbiSettings) -> None:
    """The process ends, and this agent has not left: a second Ctrl-C, most likely."""
    logger.warning(
        "Agent %s ends immediately, without handing over. The other agents take it for crashed: they take its "
        "hosts over when no heartbeat has come for %g s (UBI_FAILURE_TIMEOUT).",
        agent_id,
        settings.failure_timeout,
    )
