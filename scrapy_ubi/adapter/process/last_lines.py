"""What a crawl has lost, in its last lines: one sentence for each kind of loss, and the command that shows more.

Rules of this module:

* Said is what plain Scrapy would not have lost. Pages that the web refuses (404, robots.txt, hosts that do not answer)
  are failures like any other, and are in the report.
* The numbers are the whole crawl's, as far as the agents have published theirs; else those of this agent.
* A kind of loss is one function in `_KINDS`: numbers in, sentence out, None where there is nothing to say. Agents that
  were lost with what they knew are apart (`of_copies`): that is an error, and shows in the exit status.
"""

from __future__ import annotations

import logging
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler

from scrapy_ubi.agent.profile.profile import Profile, read_profile, still_failed

MOST_NAMES = 12  # agents that a sentence names
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


def of_copies(lost: Sequence[str], copies: int) -> list[str]:
    """A sentence of agents that were lost, more than the copies make up for, and have not come back; none where there
    are no such. `copies` is UBI_REPLICATION."""
    if not lost:
        return []
    more = len(lost) - MOST_NAMES
    names = ", ".join(lost[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
    return [
        f"This crawl has lost {_number(len(lost), 'agent')} ({names}), more than its copies make up for "
        f"(UBI_REPLICATION = {copies}): pages of hosts that only they kept may be missing. Where their directories "
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
        f"Lost, of {found.whose}: {_number(sum(reasons.values()), 'page')} whose request could not travel whole to the "
        f"agent that was to fetch it ({named}). `scrapy ubi failed --crawl {shlex.quote(crawl)} --reason codec` shows "
        "them."
    )


def _too_large(found: LossTally, crawl: str) -> str | None:
    number = found.counts.get("untravelled", 0)
    if not number:
        return None
    return (
        f"Lost, of {found.whose}: {_number(number, 'request')} too large for a letter to the agent that has the host. "
        "Raise UBI_MAX_LETTER_BYTES."
    )


def _set_aside(found: LossTally, crawl: str) -> str | None:
    number = found.counts.get("dead_letters", 0)
    if not number:
        return None
    return (
        f"Lost, of {found.whose}: what {_number(number, 'letter')} or records told of, set aside as they did not hold. "
        "The agents' logs say why."
    )


_KINDS: Sequence[Callable[[LossTally, str], str | None]] = (_pages, _too_large, _set_aside)


def _number(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
