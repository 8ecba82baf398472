"""What an answer about a whole crawl begins and ends with: its state in a headline, and what people should see to.

Rules of this module: every line fits the terminal (`table.room`) and holds printable characters only.
"""

from __future__ import annotations

from datetime import datetime

from scrapy_ubi.agent.profile.remaining import EARLY
from scrapy_ubi.cli.monitor import ahead
from scrapy_ubi.cli.monitor.ahead import idle_sentences, remaining_of, sentences
from scrapy_ubi.cli.monitor.status import UNREADABLE, CrawlStatus
from scrapy_ubi.cli.monitor.text_table import folded, room, span
from scrapy_ubi.ground.untrusted.terminal_text import cut, plain

MOST_KEYS = 5  # that are named
MOST_IDLE = 5  # sentences of agents that fetch nothing


def headline(status: CrawlStatus) -> list[str]:
    """The crawl, its state, how many agents work, and the arguments of their spiders."""
    working = sum(agent.working for agent in status.agents)
    state = f"{status.state}, paused" if status.paused and status.state == "running" else status.state
    if (ago := status.finished_ago) is not None:  # started again, it shows these old figures until an agent beats
        state += f" at {moment(status.now - ago)} ({span(ago)} ago)"
    text = f"crawl {plain(status.crawl, 64)}: {state}, {working} of {len(status.agents)} agents at work"
    lines = folded(text + f", {status.views} different views" if status.views > 1 else text)
    if status.arguments:
        lines.append(cut(f"arguments: {arguments_of(status)}", room()))
    told = remaining_of(status)
    if told is not None and told.kind != EARLY:
        lines += [line for sentence in sentences(status, told) for line in folded(sentence)]
    return lines


def moment(when: float) -> str:
    """A time of the past, by the clock of this machine."""
    return datetime.fromtimestamp(when).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def arguments_of(status: CrawlStatus) -> str:
    """What the spiders of a crawl were started with; several sets where agents of several were let in."""
    sets = (", ".join(f"{plain(name)}={plain(value)}" for name, value in one.items()) for one in status.arguments)
    return "; ".join(sets)


def remarks(status: CrawlStatus) -> list[str]:
    """What agents wait for that are blocked, URLs that wait for agents, and what could not be read, one line each."""
    lines = []
    idle = idle_sentences(status)
    if idle:
        shown = [line for said in idle[:MOST_IDLE] for line in folded(said)]
        lines += ["", *shown, *([f"... and {len(idle) - MOST_IDLE} more"] if len(idle) > MOST_IDLE else [])]
    if any(agent.state == "blocked" and not ahead.idle(agent, status.now) for agent in status.agents):
        said = (
            "Blocked agents wait, and lose nothing: Redis is full (raise its maxmemory), or the agent's disk is, "
            "or its items are not taken (see its log)."
        )
        lines += ["", *folded(said)]
    if status.seeds_waiting and status.state != "running":
        after = "came after the end" if status.finished else "wait"
        said = f"URLs from outside that {after}: {status.seeds_waiting}; the next agent that is started takes them."
        lines += ["", *folded(said)]
    if status.mail_away:
        names = ", ".join(status.mail_away[:MOST_KEYS]) + (", ..." if len(status.mail_away) > MOST_KEYS else "")
        said = f"The Redis of these agents' mail slots does not answer, so their mail waits: {names}."
        lines += ["", *folded(said)]
    for key in status.odd_keys[:MOST_KEYS]:
        said = f"{plain(key)} has another type than it should, so nothing of it is known: agents put it aside."
        lines += ["", *folded(said)]
    if status.summed_up is not None and status.summed_up.unreadable:
        lines += ["", *folded(f"Agents long gone without figures that could be read: {status.summed_up.unreadable}.")]
    if not status.unreadable:
        return lines
    lines += ["", f"{status.unreadable} values in Redis are {UNREADABLE}:"]
    for agent in status.agents:
        lines += [cut(f"  {plain(agent.name, 40)}: {plain(trouble)}", room()) for trouble in agent.trouble]
    if status.sum_trouble:
        lines.append(cut(f"  the sum of those long gone: {plain(status.sum_trouble)}", room()))
    return lines
