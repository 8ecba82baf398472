"""What an agent publishes of itself for people: counters, and the JSON in the agents hash."""

from __future__ import annotations

import json
import os
import platform
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any, NamedTuple

from scrapy_ubi.agent.profile.heavy_hitters import HeavyHitters
from scrapy_ubi.agent.profile.host_sums import HostSums
from scrapy_ubi.agent.profile.merged_urls import MergedUrls
from scrapy_ubi.agent.profile.origin import UNKNOWN, Origin
from scrapy_ubi.agent.steering.live_entries import LiveTable
from scrapy_ubi.ground.untrusted.checks import is_count
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport.redis_keys import LAYOUT
from scrapy_ubi.urls import host_rules, normaliser
from scrapy_ubi.urls.host_shards import host_of_key

MOST_REASONS = 100  # kinds of failure, and of what is noted, counted by name; what comes beyond is counted as `other`
PUBLISH = 2.0  # s between two profiles of an agent: for people, who look about once a second
WINDOW = 10.0  # s, at least two profiles, over which pages a second are measured


def package_version() -> str:
    """The version of this package, '0' when it is not installed."""
    try:
        return version("scrapy-ubi")
    except PackageNotFoundError:
        return "0"


class Traffic(NamedTuple):
    """What this process has received so far: bytes of responses, and how many responses of each class ("2xx")."""

    received_bytes: int = 0
    responses: Mapping[str, int] = {}


class Tally:
    """What the node counts itself; the rest is the protocol's. `traffic` is asked of who makes the loads."""

    def __init__(self, now: float) -> None:
        self.begun = now
        self.ended: float | None = None
        self.pages = 0
        self.body_bytes = 0  # of bodies received, where a limit counts them
        self.dead_letters = 0
        self.writes_refused = 0
        self.lost_agents = 0
        self.strays = 0  # requests that came from no page, seeds excepted
        self.failed: Counter[str] = Counter()
        self.noted: Counter[str] = Counter()
        self.requeued: Counter[str] = Counter()  # failures that people had fetched again, by the reason they had
        self.failed_at = HeavyHitters()
        self.noted_at = HeavyHitters()
        self.joins = MergedUrls()
        self.traffic: Callable[[], Traffic] = Traffic
        self._recent: deque[tuple[float, int]] = deque([(now, 0)])

    def resumed(self) -> None:
        """Measure the rate from here on."""
        self._recent = deque([(self._recent[-1][0], self.pages)])

    def fail(self, reason: str, host: str = "") -> None:
        """A URL of this host failed after all retries."""
        _count(self.failed, reason)
        if host:
            self.failed_at.add(reason, host_of_key(host))

    def note(self, what: str, host: str = "") -> None:
        """Something happened in the crawl, at this host if it has one, that is no failure: `truncated`."""
        _count(self.noted, what)
        if host:
            self.noted_at.add(what, host_of_key(host))

    def rate(self, now: float) -> float:
        """Pages a second, over the last `WINDOW`: the one rate of now, as profiles tell it."""
        self._recent.append((now, self.pages))
        while len(self._recent) > 2 and now - self._recent[0][0] > WINDOW:
            self._recent.popleft()
        then, pages = self._recent[0]
        return round((self.pages - pages) / (now - then), 3) if now > then else 0.0


def _count(counts: Counter[str], reason: str) -> None:
    counts[reason if reason in counts or len(counts) < MOST_REASONS else "other"] += 1


def fixed(
    settings: UbiSettings, agent: str, spider: str, origin: Origin = UNKNOWN, metrics: str = "", directory: str = ""
) -> dict[str, Any]:
    """The part of the profile that does not change while the agent runs. `metrics`: where it answers Prometheus;
    `directory`: the agent's, as others on its machine find it."""
    return {
        "agent": agent,
        "capacity": settings.capacity,
        "replicas": settings.replicas,
        "partition": settings.partition,
        "normaliser": settings.normalise,
        "steps": normaliser.version_of(normaliser.parse_steps(settings.normalise)),
        "fingerprinter": settings.fingerprinter,
        "host_rules": host_rules.name_of(settings.host_rules),
        "host_shards": settings.host_shards.name,
        "named_by": settings.named_by,
        "replication": settings.replication,
        "mail_slots": settings.mail_slots,
        "max_letter_bytes": settings.max_letter_bytes,
        "max_url_length": settings.max_url_length,
        "serve": settings.serve,
        "rates": settings.rates.name,
        "seeds": False,  # until the transport is open, and says that some can come
        "layout": LAYOUT,
        "recrawl": settings.recrawl.rule,
        "recrawl_rounds": settings.recrawl.rounds or "none",
        "spider": spider,
        **origin.published(),
        "host_name": platform.node(),
        "pid": os.getpid(),
        "version": package_version(),
        **({"metrics": metrics} if metrics else {}),
        **({"directory": directory} if directory else {}),
        "started": round(time.time(), 3),
    }


def counters(agent: Agent, tally: Tally, now: float, sums: HostSums | None = None) -> dict[str, Any]:
    """All counters. `sums`: what was summed up over all hosts; None: that is done here, and takes long where they are
    many."""
    if sums is None:
        sums = HostSums(agent, now)
        sums.add(agent.frontier.states())
    c, traffic = agent.counters, tally.traffic()
    return {
        **sums.as_counters(),
        "pages": tally.pages,
        "body_bytes": tally.body_bytes,
        "done": c.done,
        "known": sums.unique + sums.queued + agent.work.out,
        "in_flight": agent.work.out,
        "outbox": len(agent.outbox),
        "links": c.links,
        "forwarded": c.forwarded,
        "suppressed": c.suppressed,
        "received": c.received,
        "refused": c.refused,
        "resent": c.resent,
        "dead_letters": tally.dead_letters,
        "replicated": c.replicated,
        "letters_sent": c.letters_sent,
        "bytes_sent": c.bytes_sent,
        "untravelled": c.untravelled,
        "mail_put_off": c.mail_put_off,
        "writes_refused": tally.writes_refused,
        "fences": c.fences,
        "rejoins": c.rejoins,
        "redone": c.redone,
        "visited": c.visited,
        "heavy_rows": c.heavy_rows,
        "handoff_timeouts": c.handoff_timeouts,
        "lost_agents": tally.lost_agents,
        "received_bytes": traffic.received_bytes,
        "responses": dict(traffic.responses),
        **_happened(tally),
        "examples": tally.joins.examples,
        "seconds": round((tally.ended or now) - tally.begun, 3),
        "pages_per_second": 0.0 if tally.ended is not None else tally.rate(now),
    }


def _happened(tally: Tally) -> dict[str, Any]:
    """What has failed and what was noted, by reason, and where."""
    return {
        "failed": dict(tally.failed),
        "requeued": dict(tally.requeued),
        "noted": dict(tally.noted),
        "joined": dict(tally.joins.counts),
        "failed_at": tally.failed_at.published(),
        "noted_at": tally.noted_at.published(),
    }


def kept(agent: Agent, tally: Tally, now: float) -> dict[str, Any]:
    """The counters that go on after a restart."""
    return {
        "agent": asdict(agent.counters),
        "pages": tally.pages,
        "body_bytes": tally.body_bytes,
        "dead_letters": tally.dead_letters,
        "writes_refused": tally.writes_refused,
        **_happened(tally),
        "seconds": round((tally.ended or now) - tally.begun, 3),
    }


def restore(agent: Agent, tally: Tally, facts: Mapping[str, Any]) -> None:
    """Go on counting from what was `kept`; what does not hold counts for nothing."""
    before = facts.get("counters")
    if not isinstance(before, Mapping):
        return
    own = before.get("agent")
    for name in asdict(agent.counters):
        if isinstance(own, Mapping) and is_count(own.get(name)):
            setattr(agent.counters, name, own[name])
    for name in ("pages", "body_bytes", "dead_letters", "writes_refused"):
        if is_count(before.get(name)):
            setattr(tally, name, before[name])
    for name, counts in (
        ("failed", tally.failed),
        ("requeued", tally.requeued),
        ("noted", tally.noted),
        ("joined", tally.joins.counts),
    ):
        kept_counts = before.get(name)
        if isinstance(kept_counts, Mapping):
            counts.update({str(reason): count for reason, count in kept_counts.items() if is_count(count)})
    tally.failed_at.restore(before.get("failed_at"))
    tally.noted_at.restore(before.get("noted_at"))
    seconds = before.get("seconds")
    if isinstance(seconds, int | float) and seconds >= 0:
        tally.begun -= seconds
    tally.resumed()


def counted_requeued(before: object, more: Mapping[str, int]) -> object:
    """What was `kept`, where so many failures, by reason, are fetched again: as many as had failed at most."""
    if not isinstance(before, Mapping) or not isinstance(failed := before.get("failed"), Mapping):
        return before
    known = before.get("requeued")
    total = Counter(more)
    if isinstance(known, Mapping):
        total.update({str(reason): count for reason, count in known.items() if is_count(count)})
    return {**before, "requeued": {reason: min(count, failed.get(reason, 0)) for reason, count in total.items()}}


def count_anew(agent: Agent, tally: Tally) -> None:
    """Count from nothing: what was counted until now is in the sum of those who are gone (`summed_up`)."""
    for name in asdict(agent.counters):
        setattr(agent.counters, name, 0)
    tally.pages = tally.dead_letters = tally.writes_refused = 0
    for counts in (tally.failed, tally.requeued, tally.noted, tally.joins.counts):
        counts.clear()
    tally.failed_at, tally.noted_at = HeavyHitters(), HeavyHitters()
    tally.resumed()


def profile_text(
    fixed_part: dict[str, Any],
    agent: Agent,
    state: str,
    numbers: dict[str, Any],
    former: Sequence[str] = (),
    handed_over: bool = False,
    live: LiveTable | None = None,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """The profile as JSON. `former`: the incarnations that have run on this agent's disk before; `handed_over`: it has
    left, and others have all that it knew. `live`: what it knows that people have said of the running crawl. `more`:
    what else is told of the moment."""
    moving = {"incarnation": agent.incarnation, "state": state, "updated": round(time.time(), 3), "counters": numbers}
    told: dict[str, Any] = {"former": list(former)} if former else {}
    told.update(more)
    if handed_over:
        told["handed_over"] = True
    if live is not None and live.mark:
        told["live"] = live.mark
    if live is not None and live.refused:
        told["live_refused"] = live.told_refused
    told |= agent.group.losses.book.told()
    return json.dumps({**fixed_part, **moving, **told}, separators=(",", ":"), ensure_ascii=False)
