"""What an answer about a whole crawl begins and ends with: its state in a headline, and what people should see to.

Rules of this module: every line fits the terminal (`table.room`) and holds printable characters only.
"""

from __future__ import annotations

from datetime import datetime

from scrapy_ubi.agent.profile.remaining import EARLY
from scrapy_ubi.cli.monitor import crawl_warnings
from scrapy_ubi.cli.monitor.ahead import idle_shown, remaining_of, sentences
from scrapy_ubi.cli.monitor.status import CrawlStatus
from scrapy_ubi.cli.monitor.text_table import folded, room, span
from scrapy_ubi.ground.untrusted.terminal_text import cut, plain


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
    """Why agents fetch nothing, then the warnings of this crawl, an empty line before each; all that is unreadable is
    a list at the end."""
    lines = []
    idle = idle_shown(status)
    if idle:
        lines += ["", *(line for said in idle for line in folded(said))]
    for said in crawl_warnings.general(status):
        lines += ["", *folded(said)]
    if status.unreadable:
        lines += ["", f"{crawl_warnings.count_unreadable(status)}:"]
        lines += [cut(f"  {trouble}", room()) for trouble in crawl_warnings.unreadable(status)]
    return lines
