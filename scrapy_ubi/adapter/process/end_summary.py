"""What a crawl has come to, in the last lines of its log: how much was fetched, what came out and where, what failed
most, what still waits.

Rules of this module:

* Ten lines at most, each a fact and, where there is more to be seen, the command that shows it.
* The figures are those of this agent; where it has others beside it, the first line says so.
* All that is said comes from hosts and spiders as well: it is made fit for a terminal (`plain`).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler

from scrapy_ubi.agent.profile.profile import still_failed
from scrapy_ubi.ground.untrusted.terminal_text import cut, cut_middle, plain

MOST_FEEDS = 3  # of the files of items that are named
MOST_REASONS = 5
MOST_HOSTS = 3
LONGEST = 90  # characters of a name


@dataclass(frozen=True, slots=True)
class CrawlOutcome:
    """What an agent leaves. `counters` are its own, `feeds` names of files with how many items, `stores` the names of
    what it keeps in `directory`/out; `alone`: it had no others beside it, `over`: nothing is left to fetch."""

    crawl: str
    counters: Mapping[str, Any]
    directory: Path
    over: bool = True
    alone: bool = True
    received: int = 0
    feeds: Sequence[tuple[str, int]] = ()
    stores: Sequence[str] = ()
    failed_at: Mapping[str, Sequence[str]] = field(default_factory=dict)


class FeedNames:
    """The files of items that were closed, and how many items each has."""

    def __init__(self, crawler: Crawler) -> None:
        self._counts: dict[str, int] = {}
        if (closed := getattr(signals, "feed_slot_closed", None)) is not None:
            crawler.signals.connect(self._closed, closed)

    def _closed(self, slot: Any) -> None:
        if len(self._counts) <= MOST_FEEDS or slot.uri in self._counts:
            self._counts[str(slot.uri)] = self._counts.get(str(slot.uri), 0) + slot.itemcount

    @property
    def closed(self) -> list[tuple[str, int]]:
        """Names and counts, those with no item left out."""
        return [(name, count) for name, count in self._counts.items() if count]


def lines(of: CrawlOutcome) -> list[str]:
    """What is to be said."""
    return [_whole(of), *_items(of), *_failures(of), *_waiting(of), _more(of)]


def _whole(of: CrawlOutcome) -> str:
    counters = of.counters
    pages, seconds = counters.get("pages", 0), counters.get("seconds", 0.0)
    who = "Crawl" if of.alone else "This agent of crawl"
    how = "is finished" if of.over else "has stopped" if of.alone else "has left"
    rate = f", {pages / seconds:.1f} a second" if seconds else ""
    took = timedelta(seconds=round(seconds))
    kilobytes = of.received / 1e3
    size = f"{kilobytes:,.1f} kB" if kilobytes < 1e3 else f"{kilobytes / 1e3:,.1f} MB"
    received = f", {size} received" if of.received else ""
    fetched = f"{pages:,} page{'' if pages == 1 else 's'}"
    return f"{who} {plain(of.crawl, 64)} {how}: {fetched} in {took}{rate}{received}."


def _items(of: CrawlOutcome) -> list[str]:
    said = [f"Items: {number:,} in {_name(uri)}" for uri, number in of.feeds[:MOST_FEEDS]]
    if len(of.feeds) > MOST_FEEDS:
        said.append("Items: more files, named above.")
    if of.stores:
        said.append(f"Kept of its pages ({', '.join(of.stores)}): {_name(str(of.directory / 'out'))}")
    return said


def _name(text: str) -> str:
    return cut_middle(plain(text), LONGEST)


def _failures(of: CrawlOutcome) -> list[str]:
    failed = still_failed(of.counters.get("failed", {}), of.counters.get("requeued", {}))
    if not failed:
        return []
    most = sorted(failed.items(), key=lambda pair: (-pair[1], pair[0]))
    named = ", ".join(f"{number:,} {plain(reason, 40)}" for reason, number in most[:MOST_REASONS])
    total = sum(failed.values())
    said = [
        cut(f"Failed: {total:,} URL{'' if total == 1 else 's'}: {named}{', ...' * (len(most) > MOST_REASONS)}", 110)
    ]
    hosts = ", ".join(plain(host, 40) for host in islice(of.failed_at.get(most[0][0], ()), MOST_HOSTS))
    return [*said, f"  {plain(most[0][0], 40)} mostly at {hosts}"] if hosts else said


def _waiting(of: CrawlOutcome) -> list[str]:
    number = of.counters.get("queued", 0)
    if of.over or not of.alone or not number:
        return []
    return [f"Waiting: {number:,} URL{'' if number == 1 else 's'}; the same command goes on with them."]


def _more(of: CrawlOutcome) -> str:
    return f"More: scrapy ubi report --html report.html --crawl {shlex.quote(plain(of.crawl, 64))}"
