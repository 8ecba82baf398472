"""The pages that `scrapy ubi web` has for programs: /metrics and /sd for Prometheus, /live and /ready for probes.

What they say of all agents, and whether these have settled, are pure functions of a `CrawlStatus`.

Rules of this module:

* GET only, and nothing is changed: no token is needed. They name agents and crawl, never a host or a URL.
* A status is read at most once in `FRESH` seconds for them, however many ask.
* While the crawl cannot be read /metrics says that (`ubi_redis_up` 0): a scrape that fails would look like a server
  that is down.
* An agent that has not worked for `KEPT` seconds is left out: the counters of the dead would never go away.
* How an agent stands in its group is told while it works. A view is complete here when every working agent has
  published it, has settled, and holds up no host: what each of them finds when it reads the same beats.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import redis
from aiohttp import web

from scrapy_ubi.agent.metrics.endpoint import probe
from scrapy_ubi.agent.metrics.exposition import CONTENT_TYPE, Exposition, labels
from scrapy_ubi.agent.metrics.profile_samples import (
    ALL_STATES,
    GroupFacts,
    labels_of,
    put_group,
    put_profile,
    put_state,
)
from scrapy_ubi.agent.profile.remaining import ABOUT, NOTHING
from scrapy_ubi.agent.report.readiness import READY
from scrapy_ubi.cli.monitor.ahead import remaining_of
from scrapy_ubi.cli.monitor.status import AgentStatus, CrawlStatus
from scrapy_ubi.errors import UbiError

FRESH = 1.0  # s for which a status is used again
AWAY = (redis.RedisError, OSError, UbiError)

Read = Callable[[], Awaitable[CrawlStatus]]

KEPT = 600.0  # s since its last profile, of an agent that does not work


def add_routes(
    app: web.Application, read: Read, crawl: Callable[[], str], away: tuple[type[Exception], ...] = ()
) -> None:
    """Let `app` answer these four. `read` gives the crawl's status, and may raise one of `AWAY` or `away` while it
    cannot; `crawl` says its name, as far as it is known."""
    pages = _Pages(read, crawl, (*AWAY, *away))
    app.router.add_get("/metrics", pages.metrics)
    app.router.add_get("/sd", pages.sd)
    app.router.add_get("/live", pages.live)
    app.router.add_get("/ready", pages.ready)


class _Pages:
    """The four pages of one crawl."""

    def __init__(self, read: Read, crawl: Callable[[], str], away: tuple[type[Exception], ...]) -> None:
        self._read = read
        self._crawl = crawl
        self._away = away
        self._lock = asyncio.Lock()
        self._status: CrawlStatus | None = None
        self._read_at = 0.0

    async def _newest(self) -> CrawlStatus | None:
        """The crawl's status, None while it cannot be read."""
        async with self._lock:
            if self._status is None or time.monotonic() - self._read_at >= FRESH:
                self._status = None
                try:
                    self._status = await self._read()
                except self._away:
                    return None
                self._read_at = time.monotonic()
            return self._status

    async def metrics(self, request: web.Request) -> web.Response:
        status = await self._newest()
        text = metrics_text(status, self._crawl()) if status is not None else away_text(self._crawl())
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})

    async def sd(self, request: web.Request) -> web.Response:
        status = await self._newest()
        if status is None:  # Prometheus keeps what it knew
            return probe("Redis does not answer")
        return web.json_response(targets(status))

    async def live(self, request: web.Request) -> web.Response:
        return probe("")

    async def ready(self, request: web.Request) -> web.Response:
        status = await self._newest()
        name = request.query.get("agent", "")
        return probe(why_not_settled(status, name) if status is not None else "Redis does not answer")


def metrics_text(status: CrawlStatus, name: str = "") -> str:
    """What Prometheus reads of this crawl; of one that Redis does not hold it says so, under the `name` that was asked
    for."""
    page, crawl = Exposition(), labels({"crawl": status.crawl or name})
    shown = [agent for agent in status.agents if is_told(agent)]
    complete = not why_not_settled(status)
    for agent in shown:
        _put_agent(page, labels_of(status.crawl, agent.name), agent, complete)
    counts = Counter(agent.state for agent in shown)
    for state in ALL_STATES:
        page.put("ubi_agents", counts[state], f'{crawl},state="{state}"')
    page.put("ubi_crawl_finished", int(status.state == "finished"), crawl)
    page.put("ubi_crawl_views", status.views, crawl)
    told = remaining_of(status)
    if told is not None and told.kind in (ABOUT, NOTHING) and told.seconds is not None:
        page.put("ubi_remaining_seconds", round(told.seconds, 1), crawl)
    page.put("ubi_unreadable_values", status.unreadable, crawl)
    page.put("ubi_redis_up", 1, crawl)
    return page.text()


def away_text(crawl: str) -> str:
    """What Prometheus reads while the crawl cannot be read."""
    page = Exposition()
    page.put("ubi_redis_up", 0, labels({"crawl": crawl}))
    return page.text()


def is_told(agent: AgentStatus) -> bool:
    """Whether this agent is still told of."""
    return agent.working or agent.age is None or agent.age <= KEPT


def _put_agent(page: Exposition, own: str, agent: AgentStatus, complete: bool) -> None:
    put_state(page, own, agent.state)
    page.put("ubi_inbox_letters", agent.inbox, own)
    if agent.age is not None:
        page.put("ubi_profile_age_seconds", round(agent.age, 3), own)
    if agent.profile is not None:
        put_profile(page, own, agent.profile)
    if agent.working and agent.beat is not None:
        settled = agent.beat.settled == agent.beat.digest
        put_group(page, own, GroupFacts(settled, complete, len(agent.beat.pending)))


def why_not_settled(status: CrawlStatus, name: str = "") -> str:
    """Why no agent should be taken away now, as a part of a sentence; empty when one may be. `name`: of the agent that
    was restarted last, which has to be one of them."""
    working = [agent for agent in status.agents if agent.working]
    if name:
        agent = status.agent(name)
        if agent is None or not agent.working:
            return f"no agent of the name {name[:64]!r} works"
        if agent.state not in READY:
            return f"{name} is {agent.state}"
    if not working:
        return "no agent works"
    for one in working:
        if one.beat is None or one.beat.settled != one.beat.digest:
            return f"{one.name} has not handed over all it holds"
        if one.beat.pending:
            return f"{one.name} holds up {len(one.beat.pending)} hosts"
    return f"the agents have {status.views} different views of the group" if status.views > 1 else ""


def targets(status: CrawlStatus) -> list[Mapping[str, Any]]:
    """What Prometheus finds by http_sd_configs: where working agents answer it (UBI_METRICS)."""
    return [
        {
            "targets": [agent.profile.metrics],
            "labels": {"__meta_ubi_crawl": status.crawl, "__meta_ubi_agent": agent.name},
        }
        for agent in status.agents
        if agent.working and agent.profile is not None and agent.profile.metrics
    ]
