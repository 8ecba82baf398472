"""How a crawl without a project went: how many pages were fetched, and why others were not, in a few sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from scrapy_ubi.cli.commands.redis_connection import listed
from scrapy_ubi.cli.monitor.measures import measure
from scrapy_ubi.cli.monitor.status import CrawlStatus
from scrapy_ubi.cli.monitor.text_table import count
from scrapy_ubi.cli.patterns.page_rules import PageRules
from scrapy_ubi.cli.supervisor.restarts import FAILED, OK, Conclusion
from scrapy_ubi.outputs.stores import Store
from scrapy_ubi.policy.politeness.page_robots import DIRECTIVES, NOFOLLOW

MOST_REASONS = 5

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


def judge(
    rules: PageRules, stores: Sequence[Store], status: CrawlStatus, result: Conclusion
) -> tuple[list[str], Conclusion]:
    """What is to be said, and how it ended; `stores`: those of the crawl."""
    measures = measure(agent.profile for agent in status.agents if agent.profile is not None)
    failed = sum(measures.failed.values())
    # Not all that is done was fetched: a start page that is linked, in a crawl that goes on, is done without.
    fetched = max(0, min(measures.totals["done"] - failed, measures.totals["pages"]))
    rest = f", {count(failed)} failed" if failed else ""
    said = [f"{count(fetched)} {_pages(fetched)} fetched{rest}."] if fetched or failed else []
    for reason, number in list(measures.failed.items())[:MOST_REASONS]:
        said.append(f"  {count(number)} {_pages(number)}: {words(reason)}{_hosts(measures.failed_at.get(reason, ()))}")
    said += _left_out(measures.noted, stores)
    if result.status == OK and failed and not fetched:
        start = listed(rules.crawl.start[:3], longest=100)
        return said, Conclusion(FAILED, f"Nothing was fetched of {start}: see above why; the logs tell more.")
    return said, result


def _left_out(noted: Mapping[str, int], stores: Sequence[Store]) -> Iterator[str]:
    """What was left out as pages ask for it."""
    for directive in DIRECTIVES:
        number = noted.get(f"page_robots/{directive}", 0)
        obeying = [store.name for store in stores if store.obeyed == directive]
        says = f"{count(number)} {'page says' if number == 1 else 'pages say'} {directive}"
        if number and directive == NOFOLLOW:
            yield f"{says}: {'its' if number == 1 else 'their'} links were not followed."
        elif number and obeying:
            yield f"{says}: left out of the {'store' if len(obeying) == 1 else 'stores'} {' and '.join(obeying)}."


def words(reason: str) -> str:
    """Why pages failed, for people."""
    if reason.startswith("http/"):
        return f"answered with status {reason.removeprefix('http/')}"
    return WORDS.get(reason, reason)


def _pages(number: int) -> str:
    return "page" if number == 1 else "pages"


def _hosts(names: Sequence[str]) -> str:
    """Where it happened, in brackets."""
    return f" ({listed(names[:3], longest=60)}{', ...' if len(names) > 3 else ''})" if names else ""
