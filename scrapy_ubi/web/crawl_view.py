"""The crawl at one look, as a page shows it, and what has happened between one look and the next: who joined, left,
died, when it settled.

Rules of this module:

* No I/O and no clock: a look is a status, and the time is the one that it has.
* Bounded: the document, whatever the number of agents and hosts; the newest `KEPT` events, and what the last look has
  shown.
* While Redis is away no agent can be looked at, and when it is back agents are found cut off, silent or without a beat,
  though they only wait for it. That is one event, of Redis; who does not work `CALM` seconds later is told of then.
* At the first look the past is told as far as it can be seen: since when agents run, when the dead were last heard.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any, NamedTuple

from scrapy_ubi.cli.monitor import ahead, crawl_warnings
from scrapy_ubi.cli.monitor.document import Document, standing
from scrapy_ubi.cli.monitor.render_report import measures_of
from scrapy_ubi.cli.monitor.status import DEAD, SILENT, AgentStatus, CrawlStatus
from scrapy_ubi.web.crawl_ring import fair_shares, replicas_of, shares

MOST_AGENTS = 1_000
MOST_REASONS = 100

_LEFT_OUT = ("speeds", "failed_at", "noted_at", "examples")
_COUNTERS = ("pages", "done", "unique", "known", "queued", "in_flight", "hosts", "forwarded", "outbox")

KEPT = 100
CALM = 20.0  # s after Redis is back in which agents find each other again: a failure timeout and some beats
MOST_FIRST = 50  # events of the past that the first look gives, the newest

Event = dict[str, Any]

WORDS = {
    "joined": "Agent {} has joined.",
    "left": "Agent {} has left.",
    "dead": "The others have declared agent {} dead.",
    "silent": "Agent {} has published nothing for 15 s.",
    "back": "Agent {} works again.",
    "blocked": "Agent {} is blocked: Redis or its disk is full, or its items are not taken.",
    "fenced": "Agent {} is cut off from Redis, and fetches nothing.",
    "settled": "The agents agree on one view.",
    "unsettled": "The agents have different views.",
    "unfenced": "Agent {} is no longer cut off.",
    "unblocked": "Agent {} goes on.",
    "paused": "The crawl is paused.",
    "resumed": "The crawl goes on.",
    "finished": "The crawl is finished.",
    "begun": "A new run of the crawl has begun.",
    "redis": "Redis was away{}, and is back.",
}
_TOLD = {DEAD: "dead", "left": "left", SILENT: "silent", "blocked": "blocked", "fenced": "fenced"}


# -- the look


def view(status: CrawlStatus, lives: bool, events: Sequence[Event]) -> Document:
    """The document of `/api/crawl`."""
    replicas = replicas_of(status)
    owned, fair = shares(replicas), fair_shares(status, replicas)
    shown = sorted(status.agents, key=lambda one: (urgent(one), one.name))[:MOST_AGENTS]
    return {
        "time": status.now,
        "crawl": status.crawl,
        "lives": lives,
        "state": status.state,
        "run": status.run,
        "finished": status.state == "finished",
        "paused": status.paused,
        "waits_for_seeds": status.serves,
        "arguments": status.arguments,
        "views": status.views,
        "settled": is_settled(status),
        "remaining": ahead.document(status),
        "idle": ahead.idle_shown(status),
        "warnings": crawl_warnings.sentences(status),
        "unreadable": status.unreadable,
        "measures": _measures(status),
        "agents_total": len(status.agents),
        "summed_up": status.summed_up.agents if status.summed_up is not None else 0,
        "agents": [_row(one, owned.get(one.name), fair.get(one.name)) for one in shown],
        "events": [*events],
    }


def _measures(status: CrawlStatus) -> Document:
    measures = asdict(measures_of(status))
    for name in _LEFT_OUT:
        del measures[name]
    return {name: _first(value) if name in ("failed", "noted", "joined") else value for name, value in measures.items()}


def _first(counts: Mapping[str, Any]) -> dict[str, Any]:
    return dict(islice(counts.items(), MOST_REASONS))


def _row(of: AgentStatus, share: float | None, fair: float | None) -> Document:
    profile = of.profile
    return {
        **standing(of),
        "view": of.beat.digest if of.beat is not None else None,
        "capacity": profile.capacity if profile is not None else None,
        "share": share,
        "fair": fair,
        **{name: profile.count(name) if profile is not None else 0 for name in _COUNTERS},
        "failed": sum(profile.failing.values()) if profile is not None else 0,
        "pages_per_second": of.pages_per_second,
        "seconds": profile.seconds if profile is not None else 0.0,
        "spider": profile.spider if profile is not None else "",
        "machine": profile.host_name if profile is not None else "",
        "pid": profile.pid if profile is not None else None,
        "version": profile.version if profile is not None else "",
        "started": profile.started if profile is not None else None,
        "live": profile.live if profile is not None else "",
    }


def is_settled(status: CrawlStatus) -> bool:
    """Whether all that work have one view, and none is coming or going."""
    return status.views <= 1 and all(one.state not in ("joining", "leaving") for one in status.agents)


def urgent(agent: AgentStatus) -> int:
    """How early an agent is shown: those that need attention first."""
    order = (DEAD, SILENT, "unreadable", "blocked", "fenced")
    return order.index(agent.state) if agent.state in order else len(order)


# -- what happens between looks


class _Look(NamedTuple):
    """What the next look is compared with."""

    run: str
    finished: bool
    paused: bool
    views: int
    states: dict[str, str]
    incarnations: dict[str, str]


class CrawlEvents:
    """The events of one crawl, the oldest first."""

    def __init__(self) -> None:
        self._kept: deque[Event] = deque(maxlen=KEPT)
        self._last: _Look | None = None
        self._number = 0
        self._away_since: float | None = None  # unix s
        self._calm_until = 0.0  # unix s

    @property
    def kept(self) -> list[Event]:
        """The newest."""
        return [*self._kept]

    def away(self, time: float) -> None:
        """Redis does not answer at this time (unix s)."""
        if self._last is not None and self._away_since is None:
            self._away_since = time

    def look(self, status: CrawlStatus) -> None:
        """Note what has changed since the last look."""
        if self._away_since is not None:
            self._note(status.now, "redis", "", f" for {max(1.0, status.now - self._away_since):.0f} s")
            self._away_since = None
            self._calm_until = status.now + CALM
        states = {one.name: one.state for one in status.agents}
        incarnations = {one.name: one.incarnation for one in status.agents}
        now = _Look(status.run, status.state == "finished", status.paused, status.views, states, incarnations)
        last = self._last
        if last is not None and status.now < self._calm_until and not _all_is_as_before(last, now):
            return
        self._last = now
        self._calm_until = 0.0
        if last is None:
            for time, what, agent in sorted(_past(status))[-MOST_FIRST:]:
                self._note(time, what, agent)
            return
        for what, agent in _changes(last, now):
            self._note(status.now, what, agent)

    def _note(self, time: float, what: str, agent: str, more: str = "") -> None:
        self._number += 1
        text = WORDS[what].format(agent or more)
        self._kept.append(
            {"id": self._number, "time": round(time, 3), "what": what, "agent": agent or None, "text": text}
        )


def _all_is_as_before(last: _Look, now: _Look) -> bool:
    """Whether no agent is worse off than at the last look, and the crawl goes on as it did."""
    troubled = [name for name, state in now.states.items() if state in _TOLD and last.states.get(name) != state]
    return not troubled and last.states.keys() <= now.states.keys() and last.views == now.views


def _past(status: CrawlStatus) -> Iterator[tuple[float, str, str]]:
    for one in status.agents:
        if one.profile is None:
            continue
        if one.profile.started:
            yield one.profile.started, "joined", one.name
        if told := _TOLD.get(one.state):
            yield one.profile.updated, told, one.name
    ended = [one.profile.updated for one in status.agents if one.profile is not None]
    if status.state == "finished" and ended:
        yield max(ended), "finished", ""


def _changes(last: _Look, now: _Look) -> Iterator[tuple[str, str]]:
    """What has changed, and of which agent; "" for the crawl."""
    if now.run != last.run:
        yield "begun", ""
    for name, state in now.states.items():
        if what := _change(last, now, name, state):
            yield what, name
    if (now.views > 1) != (last.views > 1):
        yield ("unsettled" if now.views > 1 else "settled"), ""
    if now.paused != last.paused:
        yield ("paused" if now.paused else "resumed"), ""
    if now.finished and not last.finished:
        yield "finished", ""


def _change(last: _Look, now: _Look, name: str, state: str) -> str:
    before = last.states.get(name)
    if before == state and last.incarnations[name] == now.incarnations[name]:
        return ""
    if told := _TOLD.get(state):
        return told if before != state else ""
    if before is None or before in (DEAD, "left"):
        return "joined" if state != "finished" else ""
    return "back" if before in _TOLD else ""
