"""How an agent comes into its group: the steps of `join_steps`, in order.

Rules of this module:

* What asks Redis runs in the I/O thread; the disk is looked at here, in the loop.
* Where Redis is away, a step is tried again (`retry_until`): each may be repeated, whether or not it was done.
* The disk is looked at before settings are compared and the identifier is claimed: the first beat is that of the crawl
  which is gone on with.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.crawl.finished_run import is_finished, is_lossy
from scrapy_ubi.agent.group import join_steps
from scrapy_ubi.agent.group.beats import listed
from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.agent.waits import retry_until
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport import Transport
from scrapy_ubi.transport.watched import DENIED, EVICTS, NEW, UNTOLD, Watched

T = TypeVar("T")
WHY_WAIT = {
    "": "this Redis was empty, or started, a moment ago",
    NEW: "this Redis is new to the agents: it was empty, or has been started again",
    EVICTS: "this Redis throws keys away when its memory is full (maxmemory-policy)",
    UNTOLD: "this Redis does not tell this user what it is, and since when (INFO, TIME)",
    DENIED: "this user may not read and write the key ubi:watched",
}
EXPECTS = (
    "No agent is at work yet. %s took part before, and may come back with what they did last: the first page is "
    "fetched when all of them are there, or in %.0f s."
)
logger = logging.getLogger("scrapy_ubi")


class Join:
    """The joining of one agent. `publish` takes its beat. `predecessor`, `started`: as `Start` has them. `published`:
    its identifier's profile, where it comes with nothing of a crawl that was over."""

    def __init__(
        self,
        crawl: Crawl,
        settings: UbiSettings,
        io: IoThread,
        transport: Transport,
        predecessor: str | None,
        started: float | None,
        publish: Callable[[Beat], None],
        clock: Callable[[], float],
    ) -> None:
        self._crawl = crawl
        self._settings = settings
        self._io = io
        self._transport = transport
        self._predecessor = predecessor
        self._publish = publish
        self._clock = clock
        self._started = clock() if started is None else started
        self.published = ""

    async def go(self) -> Mapping[str, str]:
        """What the control hash says, once the agent is one of the group."""
        transport, settings, crawl, ask = self._transport, self._settings, self._crawl, self._ask
        await ask(transport.open)
        await ask(transport.prepare_beats)
        crawl.fixed["seeds"] = transport.takes_seeds
        control, cleared = await ask(
            lambda: join_steps.begin_run(
                transport, crawl.has_work, self._age, crawl.keeps, crawl.over, crawl.is_requeued
            )
        )
        await crawl.resume(control)
        if crawl.is_requeued(crawl.disk.facts.get("run", "")):
            crawl.agent.took_outside()  # what was queued again is no copy of what others have fetched
        if is_finished(control) or crawl.stays_over(control):
            crawl.agent.accept_end(is_lossy(control))
        me = crawl.agent.me
        seen = await ask(lambda: join_steps.check_group(transport, settings, me, crawl.fixed))
        first, before = crawl.agent.beat, list[Beat]()
        await ask(
            lambda: join_steps.claim(
                transport, settings, me, self._predecessor, first, self._clock, before.append, seen
            )
        )
        for beat in before:
            crawl.agent.follow(beat)
        if before and not crawl.agent.finished:
            crawl.agent.group.losses.take_over(await ask(lambda: join_steps.published_losses(transport, me)))
        self._publish(crawl.agent.beat)
        await ask(lambda: join_steps.discard(transport))
        if crawl.agent.finished and crawl.disk.saved is None:
            self.published = await ask(lambda: join_steps.published(transport, me))
        if cleared or settings.redis_url is None:
            crawl.agent.sure()
        return await ask(lambda: join_steps.named(transport, control))

    async def _ask(self, step: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await retry_until(lambda: self._io.call(step()), self._settings.redis_wait, self._clock)

    def _age(self) -> float:
        return self._clock() - self._started

    def introduce(self, watched: Watched) -> None:
        """Say in the log who has come, and how long it waits where it does. `watched`: what the first read said."""
        agent, settings = self._crawl.agent, self._settings
        logger.debug("Agent %s is incarnation %s.", agent.me, agent.incarnation)
        if settings.redis_url is None:
            logger.info("Agent %s crawls %s alone (UBI_REDIS_URL is not set).", agent.me, settings.crawl)
            return
        logger.info(
            "Agent %s has joined crawl %s. Other agents: %d. Copies of each host (UBI_REPLICATION): %d%s.",
            agent.me,
            settings.crawl,
            len(agent.watch.seen),
            settings.replication,
            "" if settings.replication else ", so what only a crashed agent knew is lost with it",
        )
        if agent.group.sure or agent.finished:
            return
        if agent.group.expected:
            logger.info(EXPECTS, listed(agent.group.expected), max(agent.config.wait, agent.config.safe_wait))
        else:
            logger.info(
                "No agent is at work yet. The first page is fetched in %.0f s (UBI_START_WAIT), when every agent that "
                "runs is known: %s.",
                max(1.0, agent.config.wait - watched.seconds),
                WHY_WAIT.get(watched.why, WHY_WAIT[UNTOLD]),
            )
