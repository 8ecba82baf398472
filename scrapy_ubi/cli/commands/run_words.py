"""What `scrapy ubi run` and `scrapy ubi crawl` say at their end of pages that failed or were lost, and what the agents
have warned of: else it would be in their logs only.

Rules of this module: sentences hold printable characters only, and are few, however long the crawl.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from scrapy_ubi.adapter.process.last_lines import CODEC, LossTally, is_loss, lost
from scrapy_ubi.cli.commands.redis_connection import listed
from scrapy_ubi.cli.monitor.measures import Measures, measure
from scrapy_ubi.cli.monitor.status import CrawlStatus
from scrapy_ubi.cli.monitor.text_table import count
from scrapy_ubi.ground.untrusted.terminal_text import cut, plain

MOST_REASONS = 5
MOST_WARNINGS = 5
LONGEST = 600  # characters of a warning

# Reasons that most people meet, in words.
WORDS = {
    "robots": "robots.txt forbids them",
    "robots/unreachable": "the site cannot be reached, or not its robots.txt",
    "host/dead": "the host does not answer",
    "host/failing": "the host answers with errors only",
    "host/busy": "the host asks to come back later",
    "link/private": "the address is in a private network",
    "redirects": "too many redirects",
    "exception/CannotResolveHostError": "the host is unknown",
    "exception/DownloadConnectionRefusedError": "the connection is refused",
    "exception/DownloadTimeoutError": "no answer in time",
    "exception/DownloadCancelledError": "the answer is too large",
}


def measures_of(status: CrawlStatus) -> Measures:
    """The measures of all agents that have said anything."""
    return measure(agent.profile for agent in status.agents if agent.profile is not None)


def reasons(measures: Measures) -> Iterator[str]:
    """Why pages failed, the most frequent reasons first."""
    for reason, number in list(measures.failed.items())[:MOST_REASONS]:
        yield f"  {count(number)} {pages(number)}: {words(reason)}{_hosts(measures.failed_at.get(reason, ()))}"


def failures(status: CrawlStatus) -> list[str]:
    """How many pages failed, and why; nothing where there are none."""
    measures = measures_of(status)
    failed = sum(measures.failed.values())
    return [f"{count(failed)} {pages(failed)} failed.", *reasons(measures)] if failed else []


def losses(status: CrawlStatus) -> list[str]:
    """What the crawl has lost that plain Scrapy would not have lost, a sentence for each kind."""
    counts, failed = Counter[str](), Counter[str]()
    profiles = [agent.profile for agent in status.agents if agent.profile is not None]
    for one in [*profiles, *([] if status.summed_up is None else [status.summed_up.profile])]:
        failed.update(one.failing)
        counts.update(one.counts)
    return lost(LossTally("the crawl", failed, counts), status.crawl)


def warnings(said: Iterable[Sequence[str]], logs: str) -> list[str]:
    """What agents have warned of, each sentence once; `said`: by agent, `logs`: where they are, for people."""
    once = list(dict.fromkeys(text for one in said for text in one if not is_loss(text)))
    if not once:
        return []
    more = f"  {count(len(once) - MOST_WARNINGS)} more are in {logs}." if len(once) > MOST_WARNINGS else ""
    shown = [f"  {cut(plain(text), LONGEST)}" for text in once[:MOST_WARNINGS]]
    return ["What the agents have said:", *shown, *([more] if more else [])]


def words(reason: str) -> str:
    """Why pages failed, for people."""
    if reason.startswith("http/"):
        return f"answered with status {reason.removeprefix('http/')}"
    if reason.startswith(CODEC):
        return f"what they need could not travel to the agent of their host ({reason})"
    return WORDS.get(reason, reason)


def pages(number: int) -> str:
    """The word for so many of them."""
    return "page" if number == 1 else "pages"


def _hosts(names: Sequence[str]) -> str:
    """Where it happened, in brackets."""
    return f" ({listed(names[:3], longest=60)}{', ...' if len(names) > 3 else ''})" if names else ""
