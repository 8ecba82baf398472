"""What people should see to in a crawl, in sentences: the same in the terminal, in JSON documents and on the page.

Rules of this module: sentences hold printable characters only, and are few, whatever the number of agents.
"""

from __future__ import annotations

from collections.abc import Iterator

from scrapy_ubi.cli.monitor import ahead
from scrapy_ubi.cli.monitor.status import UNREADABLE, CrawlStatus
from scrapy_ubi.ground.untrusted.terminal_text import cut, plain

MOST_NAMED = 5  # agents, keys and values in Redis
MOST_LETTERS = 200  # of what is said of one value


def sentences(status: CrawlStatus) -> list[str]:
    """Every warning of this crawl."""
    said = general(status)
    troubles = list(unreadable(status))
    if status.unreadable:
        shown = "; ".join(cut(trouble, MOST_LETTERS) for trouble in troubles[:MOST_NAMED])
        more = "; ..." if len(troubles) > MOST_NAMED else ""
        said.append(f"{count_unreadable(status)}: {shown}{more}" if shown else f"{count_unreadable(status)}.")
    return said


def general(status: CrawlStatus) -> list[str]:
    """The warnings but for the one of values in Redis that are unreadable, of which the terminal makes a list."""
    said = []
    if any(agent.state == "blocked" and not ahead.idle(agent, status.now) for agent in status.agents):
        said.append(
            "Blocked agents wait, and lose nothing: Redis is full (raise its maxmemory), or the agent's disk is, "
            "or its items are not taken (see its log)."
        )
    if status.seeds_waiting and status.state != "running":
        after = "came after the end" if status.finished else "wait"
        said.append(
            f"URLs from outside that {after}: {status.seeds_waiting}; the next agent that is started takes them."
        )
    if status.mail_away:
        names = ", ".join(map(plain, status.mail_away[:MOST_NAMED]))
        more = ", ..." if len(status.mail_away) > MOST_NAMED else ""
        said.append(f"The Redis of these agents' mail slots does not answer, so their mail waits: {names}{more}.")
    said += [
        f"{plain(key)} has another type than it should, so nothing of it is known: agents put it aside."
        for key in status.odd_keys[:MOST_NAMED]
    ]
    if status.summed_up is not None and status.summed_up.unreadable:
        said.append(f"Agents long gone without figures that could be read: {status.summed_up.unreadable}.")
    return said


def count_unreadable(status: CrawlStatus) -> str:
    """How many values in Redis cannot be read; the beginning of a sentence."""
    return f"{status.unreadable} values in Redis are {UNREADABLE}"


def unreadable(status: CrawlStatus) -> Iterator[str]:
    """What is unreadable, and why: `<agent>: <reason>`, or of the sum of agents that are long gone."""
    for agent in status.agents:
        yield from (f"{plain(agent.name, 40)}: {plain(trouble)}" for trouble in agent.trouble)
    if status.sum_trouble:
        yield f"the sum of those long gone: {plain(status.sum_trouble)}"
