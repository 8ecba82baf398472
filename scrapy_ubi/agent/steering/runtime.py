"""The settings of one agent as they are now: those of its start, and over them what people have said since.

Rules of this module:

* What people have said is in the table of entries (`live_entries`); here it becomes settings. A value is judged when
  its entry is taken in, by the same rows as those of settings.py, so what stands in the table can be applied.
* Parts that use a live setting are told of a change (`follow`) and read it from what they are told: nothing asks here
  for a page. They are told once at the start as well, where people have said something.
* What is said of a host comes before what is said of the crawl, and both before settings.py. What is taken back is as
  settings.py has it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from scrapy_ubi.agent.steering.live_entries import FINISH, PAUSE, LiveEntry, LiveTable
from scrapy_ubi.agent.steering.live_values import read_live
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.settings.host_limits import HostLimitsTable
from scrapy_ubi.settings.live_rows import LIVE

logger = logging.getLogger("scrapy_ubi")


def refusal(entry: LiveEntry, started: UbiSettings | None = None) -> str:
    """Why an entry does not hold, as a sentence; empty when it does. `started`: the settings that an agent has started
    with, where it is one that judges."""
    if entry.name in (PAUSE, FINISH):
        return ""
    row = LIVE[entry.name]
    if entry.host and row.live != "host":
        return f"{entry.name} is one for the whole crawl: set it without a host."
    try:
        read = read_live(row, entry.value) if entry.stands else None
        if entry.host and isinstance(read, HostLimitsTable) and read.named:
            return f"{entry.name} of a host is a text of limits: it names no hosts."
    except UbiSettingError as error:
        return str(error)
    if started is not None and row.name == "browser" and started.browser == "off" and entry.value not in (None, "off"):
        return f"{entry.name} was off when this agent started: set it in settings.py, and start the agent again."
    return ""


class RuntimeSettings:
    """The settings of one agent. `now` are those of the crawl, `of_host` those of hosts of which something else was
    said, `scrapys` values of Scrapy's settings that were said; `paused`, `paused_hosts`, `finish_asked` what people
    want besides. Hosts are partition keys here. `begun`: the agent has joined. `note` tells the report what happened.
    """

    def __init__(self, settings: UbiSettings, note: Callable[[str], object] = lambda what: None) -> None:
        self._given = self.now = settings
        self._note = note
        self.of_host: Mapping[str, UbiSettings] = {}
        self.scrapys: Mapping[str, Any] = {}
        self.paused = self.finish_asked = self.begun = False
        self.paused_hosts: frozenset[str] = frozenset()
        self.table = LiveTable(partial(refusal, started=settings))
        self._said = ""  # the mark of what the log has told
        self._complained: dict[str, tuple[str, str]] = {}
        self._followers: list[Callable[[RuntimeSettings], object]] = []

    def follow(self, follower: Callable[[RuntimeSettings], object]) -> None:
        """Tell this part of every change, and at the start."""
        self._followers.append(follower)

    def begin_with(self, control: Mapping[str, str], table: LiveTable) -> None:
        """The agent has joined: what its disk, which `table` comes from, and the control hash say holds from now on."""
        self.table = table
        table.merge(control)
        self._complain()
        if self.table.mark:
            self._apply()
        self.begun = True

    def read_control(self, control: Mapping[str, str]) -> None:
        """Take in what the control hash says now."""
        if self.table.merge(control):
            self._apply()
        if self.table.refused != self._complained:
            self._complain()

    def lacking(self, control: Mapping[str, str]) -> dict[str, tuple[str | None, str]]:
        """What is to be written into the control hash: by field, what it said when it was read, and what it is to
        say."""
        return self.table.lacking(control) if self.table.entries else {}

    def _complain(self) -> None:
        for field, (text, why) in self.table.refused.items():
            if self._complained.get(field) != (text, why):
                self._note("live/refused")
                logger.warning("What Redis says of %.100s is refused, and changes nothing: %.300s", field, why)
        self._complained = dict(self.table.refused)

    def _apply(self) -> None:
        entries = [entry for entry in self.table.entries.values() if entry.stands]
        self.paused = any(entry.name == PAUSE and not entry.host for entry in entries)
        paused = (entry.host for entry in entries if entry.name == PAUSE and entry.host)
        self.paused_hosts = frozenset(key for host in paused for key in self._keys(host))
        self.finish_asked = any(entry.name == FINISH for entry in entries)
        values = {(entry.name, entry.host): entry.value for entry in entries if entry.name in LIVE}
        read = {(name, host): read_live(LIVE[name], value) for (name, host), value in values.items()}
        self.scrapys = {name: value for (name, _), value in read.items() if not LIVE[name].prefix}
        of_crawl = {LIVE[name].name: value for (name, host), value in read.items() if not host and LIVE[name].prefix}
        self.now = _with(self._given, of_crawl)
        by_host: dict[str, dict[str, object]] = {}
        for (name, host), value in read.items():
            if host:
                by_host.setdefault(host, {})[LIVE[name].name] = value
        changed = {host: _with(self.now, said) for host, said in by_host.items()}
        self.of_host = {key: settings for host, settings in changed.items() for key in self._keys(host)}
        self._tell(entries)
        for follower in self._followers:
            follower(self)

    def _keys(self, host: str) -> list[str]:
        """The partition keys that what is said of a host is said of: those of its shards, where it is cut."""
        return self._given.host_shards.keys_of(host)

    def _tell(self, entries: list[LiveEntry]) -> None:
        """Say in the log what has changed the settings."""
        newest = max(self.table.entries.values(), key=lambda entry: entry.version)
        if self.table.mark == self._said:
            return
        self._said = self.table.mark
        what = f"{newest.name}{f' of {newest.host}' if newest.host else ''}"
        logger.info(
            "The running crawl is changed, %d values stand; the newest is %.100s = %.200s, by %.100s.",
            len(entries),
            what,
            newest.value,
            newest.who,
        )


def _with(settings: UbiSettings, values: Mapping[str, object]) -> UbiSettings:
    changes: dict[str, Any] = dict(values)
    return replace(settings, **changes)
