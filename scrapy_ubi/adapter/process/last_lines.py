"""The last lines of a crawl's log: what it has lost, a sentence for each kind of loss; and what it has come to: how
much was fetched, what came out and where, what failed most, what still waits.

Rules of this module:

* Said as lost is what plain Scrapy would not have lost. Pages that the web refuses (404, robots.txt, hosts that do not
  answer) are failures like any other, and are in the report.
* The numbers of what is lost are the whole crawl's, as far as the agents have published theirs; else those of this
  agent. A kind of loss is one function in `_KINDS`: numbers in, sentence out, None where there is nothing to say.
  Agents that were lost with what they knew are apart (`of_copies`): that is an error, and shows in the exit status.
* What it has come to (`CrawlOutcome`) takes ten lines at most, each a fact and, where there is more to be seen, the
  command that shows it. The figures are those of this agent; where it has others beside it, the first line says so.
* All that is said comes from hosts and spiders as well: it is made fit for a terminal (`plain`).
"""

from __future__ import annotations

import logging
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler

from scrapy_ubi.agent.profile.profile import Profile, read_profile, still_failed
from scrapy_ubi.ground.untrusted.terminal_text import cut, cut_middle, plain

MOST_NAMES = 12  # agents that a sentence names
_LOST = "Lost, of "
CODEC = "codec/"  # how reasons of pages begin that could not travel

logger = logging.getLogger("scrapy_ubi")


@dataclass(frozen=True)
class LossTally:
    """What agents have counted. `whose`: of whom these numbers are, for people."""

    whose: str
    failed: Mapping[str, int] = field(default_factory=dict)  # pages, by reason
    counts: Mapping[str, int] = field(default_factory=dict)  # other counters, by name


def tally(me: str, own: Mapping[str, Any], profiles: Mapping[str, str]) -> LossTally:
    """The numbers of the whole crawl: `own` are the counters of agent `me`, `profiles` what all have published. What
    is unreadable counts for nothing.
    """
    read = [read_profile(name, text.encode(errors="replace")) for name, text in profiles.items() if name != me]
    others = [one for one in read if isinstance(one, Profile)]
    failed = Counter[str](still_failed(own.get("failed", {}), own.get("requeued", {})))
    counts = Counter[str]({name: number for name, number in own.items() if isinstance(number, int)})
    for one in others:
        failed.update(one.failing)
        counts.update(one.counts)
    return LossTally("the crawl, as far as its agents have said" if others else "this agent", failed, counts)


def lost(found: LossTally, crawl: str) -> list[str]:
    """A sentence for each kind of loss; none where nothing was lost. `crawl` is its name."""
    sentences = (kind(found, crawl) for kind in _KINDS)
    return [sentence for sentence in sentences if sentence is not None]


def is_loss(sentence: str) -> bool:
    """Whether this is one of the sentences of `lost`."""
    return sentence.startswith(_LOST)


def of_copies(lost: Sequence[str], copies: int) -> list[str]:
    """A sentence of agents that were lost, more than the copies make up for, and have not come back; none where there
    are no such. `copies` is UBI_REPLICATION: where there are no more of them, others had not got these copies yet."""
    if not lost:
        return []
    more = len(lost) - MOST_NAMES
    names = ", ".join(lost[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
    many = f"more than its copies make up for (UBI_REPLICATION = {copies})"
    why = many if len(lost) > copies else "before others had copies of all that was known there"
    return [
        f"This crawl has lost {counted(len(lost), 'agent')} ({names}), {why}: "
        "pages of hosts that only they kept may be missing. Where their directories "
        "still exist, start these agents again: they go on. Else forget the crawl (scrapy ubi reset), and run it again."
    ]


def say(crawler: Crawler, sentences: Sequence[str] | Callable[[], Sequence[str]], level: int = logging.WARNING) -> None:
    """Log these, or what is to be said by then, when the engine has stopped: behind Scrapy's stats, where people
    look."""

    def stopped() -> None:
        for sentence in sentences() if callable(sentences) else sentences:
            logger.log(level, "%s", sentence)

    if sentences:
        crawler.signals.connect(stopped, signals.engine_stopped, weak=False)


def _pages(found: LossTally, crawl: str) -> str | None:
    reasons = {reason: number for reason, number in found.failed.items() if reason.startswith(CODEC) and number}
    if not reasons:
        return None
    named = ", ".join(f"{reason}: {number}" for reason, number in sorted(reasons.items()))
    return (
        f"{_LOST}{found.whose}: {counted(sum(reasons.values()), 'page')} whose request could not travel whole to the "
        f"agent that was to fetch it ({named}). `scrapy ubi failed --crawl {shlex.quote(crawl)} --reason codec` shows "
        "them."
    )


def _too_large(found: LossTally, crawl: str) -> str | None:
    number = found.counts.get("untravelled", 0)
    if not number:
        return None
    return (
        f"{_LOST}{found.whose}: {counted(number, 'request')} too large for a letter to the agent that has the host. "
        "Raise UBI_MAX_LETTER_BYTES."
    )


def _set_aside(found: LossTally, crawl: str) -> str | None:
    number = found.counts.get("dead_letters", 0)
    if not number:
        return None
    return (
        f"{_LOST}{found.whose}: what {counted(number, 'letter')} or records told of, set aside as they did not hold. "
        "The agents' logs say why."
    )


_KINDS: Sequence[Callable[[LossTally, str], str | None]] = (_pages, _too_large, _set_aside)


def counted(number: int, what: str) -> str:
    """A number of things: `1 page`, `2 pages`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


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
