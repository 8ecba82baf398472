"""`scrapy ubi inbox AGENT`: what waits for an agent, or what it has set aside (dead letters).

Rules of this module: every line fits the terminal (`table.room`) and holds printable characters only.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands.crawl_choice import choose_crawl
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.commands.redis_connection import connect, need_agent
from scrapy_ubi.cli.monitor import document
from scrapy_ubi.cli.monitor.inbox_text import Box, InboxLetter, read_dead, read_inbox
from scrapy_ubi.cli.monitor.status import UNREADABLE
from scrapy_ubi.cli.monitor.text_table import counted, folded, room, size, span
from scrapy_ubi.ground.untrusted.terminal_text import cut, cut_middle, plain, width
from scrapy_ubi.transport.redis_keys import RedisKeys

FIRST_URLS = 3  # URLs shown of a letter, unless all are asked for


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Look and show. Raises UbiError."""
    with connect(settings, opts) as to:
        status = choose_crawl(settings, opts, to)
        agent = need_agent(status, opts.agent)
        crawl, name = status.crawl, opts.agent
        keys = RedisKeys(crawl, agent.mail_slots)
        with to.explained():
            box = (read_dead if opts.dead else read_inbox)(to.client, keys, name, opts.limit)
    if opts.dead:
        return QueryReport(dead_lines(name, box, status.now), document.dead(crawl, name, box))
    return QueryReport(inbox_lines(name, box, status.now, opts.full), document.inbox(crawl, name, box))


def inbox_lines(agent: str, box: Box, now: float, full: bool) -> list[str]:
    """The letters that wait for an agent, oldest first; all their URLs when `full`."""
    lines = folded(f"inbox of {plain(agent, 64)}: {_shown(box.total, len(box.letters), 'letter', 'oldest')}")
    for letter in box.letters:
        lines += ["", *_letter(letter, now, full)]
    return lines


def _letter(letter: InboxLetter, now: float, full: bool) -> list[str]:
    about = f"{letter.id}  {span(max(0.0, now - letter.time))} old  {size(letter.size)}"
    if letter.trouble:
        return [
            cut(f"{about}  {UNREADABLE}: {letter.trouble}", room()),
            cut(f"  begins {letter.head}", room()),
        ]
    hosts = [f"{plain(host, 60)} ({number})" for host, number in letter.hosts.items()]
    lines = [
        cut(f"{about}  from {letter.sender}  {letter.lane} {letter.seq}  {letter.records} records", room()),
        f"  hosts: {', '.join(hosts)}" if full else _first_hosts(hosts),
    ]
    urls = [f"{entry.depth:>4}  {plain(entry.url)}" for delta in letter.deltas for entry in delta.discovered]
    if full:
        return lines + [f"  {url}" for url in urls] + _done(letter)
    lines += [f"  {cut_middle(url, room() - 2)}" for url in urls[:FIRST_URLS]]
    return lines + ([f"        and {len(urls) - FIRST_URLS} more URLs"] if len(urls) > FIRST_URLS else [])


def _first_hosts(hosts: Sequence[str]) -> str:
    """The first hosts of a letter, as many as fit into a line, and how many there are besides."""
    shown = min(len(hosts), room() // 4)  # no host takes less than four columns
    while True:
        more = f", and {len(hosts) - shown} more" if shown < len(hosts) else ""
        line = f"  hosts: {', '.join(hosts[:shown])}{more}"
        if width(line) <= room() or shown <= 1:
            return cut(line, room())
        shown -= 1


def _done(letter: InboxLetter) -> list[str]:
    lines = []
    for delta in letter.deltas:
        if delta.done:
            lines.append(f"  done at {plain(delta.host)}: {' '.join(f'{key:016x}' for key in delta.done)}")
        for redo in delta.redo:
            lines.append(
                f"  redo of {redo.key:016x} at {plain(delta.host)}: {len(redo.outlinks) + len(redo.own)} outlinks"
            )
            lines += [f"    {key:016x}" for key in redo.own]
            lines += [f"    {plain(entry.url)}" for _, entry in redo.outlinks]
        if delta.notes is not None:
            lines.append(f"  notes of {plain(delta.host)}, version {delta.notes.version}: {delta.notes.text}")
        if delta.offer is not None:
            lines.append(f"  offer of {plain(delta.host)}: {delta.offer.known} known, {delta.offer.done} done")
    return lines


def dead_lines(agent: str, box: Box, now: float) -> list[str]:
    """The dead letters of an agent, newest first."""
    lines = folded(f"dead letters of {plain(agent, 64)}: {_shown(box.total, len(box.dead), 'letter', 'newest')}")
    for one in box.dead:
        about = f"{one.id}  {span(max(0.0, now - one.time))} old  from {one.sender or '?'}  {one.size or '?'} bytes"
        lines += ["", cut(about, room()), cut(f"  {one.reason}", room()), cut(f"  begins {one.head}", room())]
    return lines


def _shown(total: int, shown: int, what: str, which: str) -> str:
    text = counted(total, what)
    return text if shown >= total else f"{text}, the {which} {shown} of them:"
