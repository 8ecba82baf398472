"""`scrapy ubi set | unset | pause | resume | finish`: what people say of a running crawl, written and waited for.

Rules of this module:

* What is said is an entry of the crawl's control hash (`agent.steering.live_entries`). It is judged here by the rules
  of the agents before it is written: what they would refuse is refused with the same sentence, and nothing is written.
* The version of what is written is higher than all that is to be seen, in Redis and in what agents publish, and no
  lower than the clock of Redis: so it is the newest after Redis has forgotten, too.
* Then it is waited for: until every agent that works publishes that it knows all that is there. A Redis that forgets
  meanwhile is told again. Agents that start later are told by Redis, or by the others.
* A host that no agent knows may be a name that was mistyped: what is said of it is kept, and holds when it is met, but
  that is said, with names that are near, and the status is not 0.
"""

from __future__ import annotations

import argparse
import difflib
import getpass
import json
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scrapy.settings import BaseSettings

from scrapy_ubi.agent.report.queries import Question
from scrapy_ubi.agent.steering.live_entries import (
    FINISH,
    MOST,
    MOST_N,
    MOST_TEXT,
    MOST_WHO,
    PAUSE,
    LiveEntry,
    field_of,
    mark_of,
    merged,
    read_entries,
)
from scrapy_ubi.agent.steering.live_values import as_said, read_live
from scrapy_ubi.agent.steering.runtime import refusal
from scrapy_ubi.cli.commands import signing
from scrapy_ubi.cli.commands.crawl_choice import choose_crawl
from scrapy_ubi.cli.commands.locate import host_of
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.commands.query_live import ask, living
from scrapy_ubi.cli.commands.redis_connection import RedisConnection, connect, listed, nearest, setting
from scrapy_ubi.cli.monitor.document import Document
from scrapy_ubi.cli.monitor.status import CrawlStatus, read_status
from scrapy_ubi.cli.monitor.url_owner import group_of
from scrapy_ubi.errors import UbiError, UbiSettingError
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.settings.live_rows import LIVE, why_not_live
from scrapy_ubi.transport.redis_keys import RedisKeys
from scrapy_ubi.urls.host_shards import host_of_key

LOOK_EVERY = 0.1  # seconds
KNOWN_WITHIN = 5.0  # s for agents to say whether they know a host
LEAST_PART, MOST_PARTS = 3, 4  # characters of a part of a name by which others are looked for; questions
NEAR = 50  # hosts that each agent may name

_ONE_HOST = (
    "--host takes one host, and '{}' is a pattern: set UBI_HOST_LIMITS without --host, as "
    """UBI_HOST_LIMITS='{{".gov.example": "pages=5000", "*": "pages=500"}}', in place of the whole table."""
)

# Settings that end hosts, and with which reasons: what these have ended stays so under other values.
_ENDS = {"UBI_HOST_LIMITS": "limit", "UBI_HOST_FAILURES": "host", "UBI_HOST_TRIES": "host"}

Wish = tuple[str, str, object]  # name, host, value


class UbiNotSet(UbiError):
    """What is said cannot be set in a running crawl; nothing was written."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """What is to be seen of a crawl: its status, and what people have said of it."""

    status: CrawlStatus
    entries: dict[str, LiveEntry]

    @property
    def mark(self) -> str:
        """The version of all entries together."""
        return mark_of(self.entries)

    @property
    def behind(self) -> list[str]:
        """Agents that work, and do not publish that they know all of it."""
        return [
            agent.name
            for agent in self.status.agents
            if agent.working and agent.profile is not None and agent.profile.live != self.mark
        ]

    def standing(self, name: str, host: str = "") -> LiveEntry | None:
        """The entry of this name, where it says something."""
        entry = self.entries.get(field_of(name, host))
        return entry if entry is not None and entry.stands else None


Wishes = Callable[[Spoken, str], list[Wish]]


def look(to: RedisConnection, status: CrawlStatus, again: bool = True) -> Spoken:
    """What is to be seen now. Raises UbiUnavailable."""
    with to.explained():
        if again:
            status = read_status(to.client, status.crawl)
        raw: dict[Any, Any] = to.client.hgetall(RedisKeys(status.crawl).control)
    control = {name.decode(errors="replace"): value.decode(errors="replace") for name, value in raw.items()}
    said = read_entries(signing.holding(to, status, control))
    return Spoken(status, merged(*(entry for entry in said if not refusal(entry))))


def run_set(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Give live settings values. Raises UbiError."""
    pairs = [_pair(text) for text in opts.values]
    return _say(settings, opts, lambda spoken, host: [(name, host, _value(name, host, text)) for name, text in pairs])


def run_unset(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Take values back. Raises UbiError."""

    def wishes(spoken: Spoken, host: str) -> list[Wish]:
        names = opts.names if not opts.all else [entry.name for entry in spoken.entries.values() if entry.host == host]
        for name in opts.names:
            _check_name(name)
        return [(name, host, None) for name in names if name in LIVE and spoken.standing(name, host)]

    return _say(settings, opts, wishes)


def run_pause(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Pause the crawl, or a host of it. Raises UbiError."""
    return _say(settings, opts, lambda spoken, host: [] if spoken.standing(PAUSE, host) else [(PAUSE, host, True)])


def run_resume(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Let a paused crawl, or a host of it, go on. Raises UbiError."""
    return _say(settings, opts, lambda spoken, host: [(PAUSE, host, None)] if spoken.standing(PAUSE, host) else [])


def run_finish(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Ask a crawl to end when it is empty. Raises UbiError."""
    return _say(settings, opts, lambda spoken, host: [] if spoken.standing(FINISH) else [(FINISH, "", True)])


# -- what is said, judged


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UbiNotSet(f"'{plain(text, 100)}' gives no value: write NAME=VALUE.")
    _check_name(name)
    return name, value


def _check_name(name: str) -> None:
    """Raises UbiNotSet for what is no live setting."""
    if name in LIVE:
        return
    if why := why_not_live(name):
        raise UbiNotSet(f"{name} cannot be changed while a crawl runs: {why}.")
    raise UbiNotSet(f"There is no live setting '{plain(name, 64)}'; {nearest(name, list(LIVE))}")


def _value(name: str, host: str, text: str) -> object:
    """The value that a text gives: that of a list as JSON, or itself. Raises UbiNotSet, UbiSettingError."""
    value: object = text
    if text.startswith("["):
        try:
            value = json.loads(text)
        except ValueError:
            raise UbiSettingError(name, f"is '{plain(text, 100)}'", "write a list as JSON") from None
    read = read_live(LIVE[name], value)
    said = as_said(read)
    entry = LiveEntry(name, host, said, 1, "", 0.0)
    if why := refusal(entry):
        raise UbiNotSet(why)
    if len(entry.text) > MOST_TEXT - 200 - MOST_WHO:
        raise UbiNotSet(f"{name} is too long: give it at most {MOST_TEXT - 400:,} characters.")
    return said


# -- written and waited for


def _say(settings: BaseSettings, opts: argparse.Namespace, wishes: Wishes) -> QueryReport:
    """Write what is wished for, and wait until the agents know it. Raises UbiError."""
    with connect(settings, opts) as to:
        spoken = look(to, choose_crawl(settings, opts, to), again=False)
        host = _host(settings, opts, spoken.status)
        entries = _entries(spoken, wishes(spoken, host))
        again = _said_again(spoken, entries)
        begun, lost = time.monotonic(), [*entries, *again]
        while True:
            _write(to, spoken, lost)
            spoken = look(to, spoken.status)
            waited = time.monotonic() - begun
            lost = [entry for entry in (*entries, *again) if _is_lost(spoken, entry)]
            done = not lost and (opts.no_wait or not spoken.behind or spoken.status.finished)
            if not entries or done or waited > opts.timeout:
                asks = not opts.no_wait and any(one.stands for one in entries)
                unknown = _unknown(to, spoken.status, host) if asks else ""
                return _report(opts, spoken, host, entries, waited, unknown)
            time.sleep(LOOK_EVERY)


def _host(settings: BaseSettings, opts: argparse.Namespace, status: CrawlStatus) -> str:
    """The host that is meant, as the agents know it; empty for the whole crawl. Raises UbiNotSet."""
    text = getattr(opts, "host", None)
    if not text:
        return ""
    if text.startswith(".") or "*" in text:
        raise UbiNotSet(_ONE_HOST.format(plain(text, 100)))
    host = host_of(text, group_of(status, setting(settings, "host_rules")))
    if host is None:
        raise UbiNotSet(f"--host '{plain(text, 200)}' is no host: give one as `scrapy ubi hosts` shows it.")
    return host


def _unknown(to: RedisConnection, status: CrawlStatus, host: str) -> str:
    """What to say of a host that none of the living agents knows; empty where one does, or not all have answered."""
    if not host or not living(status):
        return ""
    told = ask(to, status, Question("host", 0.0, host=host, limit=1), KNOWN_WITHIN)
    if told.missing or any(answer["rows"] for answer in told.by_agent.values()):
        return ""
    near = _near(to, status, host)
    hint = f"did you mean '{plain(near, 100)}'?" if near else "none has a name like that."
    return (
        f"No agent knows host '{plain(host, 100)}' yet: this is kept, and holds when it is met "
        f"(`scrapy ubi unset` or `resume` takes it back); {hint}"
    )


def _near(to: RedisConnection, status: CrawlStatus, host: str) -> str:
    """The known host whose name is nearest; empty where none is near."""
    labels = sorted(host.split(":")[0].split("."), key=len, reverse=True)
    parts = [part for one in labels for part in (one, one[: len(one) // 2], one[len(one) // 2 :])]
    for part in [*dict.fromkeys(part for part in parts if len(part) >= LEAST_PART)][:MOST_PARTS]:
        told = ask(to, status, Question("hosts", 0.0, search=part, limit=NEAR), KNOWN_WITHIN)
        names = {host_of_key(row["host"]) for answer in told.by_agent.values() for row in answer["rows"]}
        if found := difflib.get_close_matches(host, names, n=1, cutoff=0.6):
            return found[0]
    return ""


def _entries(spoken: Spoken, wishes: Iterable[Wish]) -> list[LiveEntry]:
    """What is wished for, with a version that is higher than all to be seen."""
    known = [entry.n for entry in spoken.entries.values()]
    told = [agent.profile.live.partition("-")[0] for agent in spoken.status.agents if agent.profile is not None]
    known += [int(number) for number in told if number.isascii() and number.isdigit() and len(number) < 17]
    n = min(MOST_N, max([*known, int(spoken.status.now * 1000)]) + 1)
    who, when = f"{_user()}@{platform.node()}"[:MOST_WHO], round(spoken.status.now, 3)
    return [LiveEntry(name, host, value, n, who, when) for name, host, value in wishes]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no name belongs to this number
        return "?"


def _said_again(spoken: Spoken, entries: list[LiveEntry]) -> list[LiveEntry]:
    """The values that stand and would be forgotten with these entries, as the oldest are, before others that were taken
    back: said once more, with the same version as these. Raises UbiNotSet where too many stand."""
    again: list[LiveEntry] = []
    while True:
        after = merged(*spoken.entries.values(), *entries, *again)
        gone = [entry for entry in (*spoken.entries.values(), *again) if entry.stands and entry.field not in after]
        if not gone:
            return again
        if sum(entry.stands for entry in after.values()) == MOST:
            raise UbiNotSet(
                f"A crawl keeps {MOST} values, and '{plain(gone[0].field, 100)}' would be forgotten: take back, with "
                "`scrapy ubi unset`, what is not needed."
            )
        again += [replace(entry, n=entries[0].n) for entry in gone]


def _write(to: RedisConnection, spoken: Spoken, entries: list[LiveEntry]) -> None:
    if entries:
        fields: dict[Any, Any] = signing.control_fields(to, spoken.status, {one.field: one.text for one in entries})
        with to.explained():
            to.client.hset(RedisKeys(spoken.status.crawl).control, mapping=fields)


def _is_lost(spoken: Spoken, entry: LiveEntry) -> bool:
    """Whether Redis has forgotten it, or an agent that had not read it has written an older one there."""
    there = spoken.entries.get(entry.field)
    return there is None or there.version < entry.version


# -- the answer


def _report(
    opts: argparse.Namespace,
    spoken: Spoken,
    host: str,
    entries: Sequence[LiveEntry],
    waited: float,
    unknown: str,
) -> QueryReport:
    complaints = [unknown] if unknown else []
    for entry in entries:
        there = spoken.entries.get(entry.field)
        if there is not None and there.version > entry.version:
            complaints.append(f"{plain(there.who, 100)} has set {_name(entry)} meanwhile, and that holds.")
    behind = spoken.behind if entries and not opts.no_wait and not spoken.status.finished else []
    if behind:
        complaints.append(
            f"Not heard within {opts.timeout:g} s by {listed(behind)}: it is kept, and they take it in when they can "
            "(`scrapy ubi settings` shows who has)."
        )
    lines = [_line(opts, spoken, host, entries)]
    if entries and not opts.no_wait and not behind:
        working = sum(agent.working for agent in spoken.status.agents)
        lines.append(
            f"{working} {'agent has' if working == 1 else 'agents have'} heard it ({waited:.1f} s)."
            if working
            else "No agent is at work: those that start hear it before their first request."
        )
    lines += _ended(spoken.status, host, entries)
    document: Document = {
        "crawl": spoken.status.crawl,
        "mark": spoken.mark,
        "set": [{"name": entry.name, "host": entry.host, "value": entry.value} for entry in entries],
        "behind": behind,
        "seconds": round(waited, 3),
    }
    return QueryReport(lines, document, " ".join(complaints))


def _ended(status: CrawlStatus, host: str, entries: Iterable[LiveEntry]) -> list[str]:
    """What to say of URLs that have failed by what these settings were before."""
    lines = []
    for reason in sorted({_ENDS[entry.name] for entry in entries if entry.name in _ENDS}):
        if _has_failed(status, host, reason):
            chosen = f"--reason {reason}{f' --host {plain(host, 100)}' if host else ''}"
            lines.append(f"What has failed by it before stays so, until `scrapy ubi requeue {chosen}`.")
    return lines


def _has_failed(status: CrawlStatus, host: str, reason: str) -> bool:
    """Whether URLs have failed for such a reason: of this host, as far as agents name the hosts, or of any."""
    return any(
        why.startswith(f"{reason}/") and (not host or host_of_key(host) in agent.profile.failed_at.get(why, {}))
        for agent in status.agents
        if agent.profile is not None
        for why in agent.profile.failing
    )


def _name(entry: LiveEntry) -> str:
    return f"{entry.name} of {plain(entry.host, 100)}" if entry.host else entry.name


def _line(opts: argparse.Namespace, spoken: Spoken, host: str, entries: Sequence[LiveEntry]) -> str:
    whole = f"Crawl {plain(spoken.status.crawl, 64)}"
    what = f"{whole}: host {plain(host, 100)}" if host else whole
    if opts.what == "pause":
        return f"{what} is paused{'' if entries else ' already'}; loads under way end."
    if opts.what == "resume":
        hosts = sum(entry.stands and entry.name == PAUSE for entry in spoken.entries.values() if entry.host)
        still = f"; hosts that stay paused: {hosts}" if hosts and not host else ""
        return f"{what} goes on{still}." if entries else f"{what} is not paused{still}."
    if opts.what == "finish":
        paused = ", once it is resumed: it is paused" if spoken.standing(PAUSE) else ""
        return f"{whole} ends when nothing is left to fetch{paused}."
    if not entries:
        return f"{what}: nothing was set, so nothing is taken back."
    said = [f"{entry.name} = {entry.value!r}" if entry.stands else f"{entry.name} as at the start" for entry in entries]
    return f"{what}: {plain('; '.join(said), 500)}."
