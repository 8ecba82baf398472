"""How an agent comes into its group: the steps of `joining`, in order.

Rules of this module:

* What asks Redis runs at the courier's; the disk is looked at here, in the loop.
* The disk is looked at before settings are compared and the identifier is claimed: the first beat is that of the crawl
  which is gone on with.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport import Transport

from . import joining
from .courier import Courier
from .crawl import Crawl
from .finish import is_finished, is_lossy

logger = logging.getLogger("scrapy_ubi")


class Arriving:
    """One agent's arrival. `predecessor` is the incarnation that ran in its directory before; `line` gives its beat;
    `on_new` is called when the crawl was begun anew, and is another one. `started`: when, by `clock`, the process was
    started; None: now."""

    def __init__(
        self,
        crawl: Crawl,
        settings: UbiSettings,
        courier: Courier,
        transport: Transport,
        predecessor: str | None,
        line: Callable[[int], str],
        on_new: Callable[[], None],
        clock: Callable[[], float],
        started: float | None = None,
    ) -> None:
        self._crawl, self._settings, self._courier, self._transport = crawl, settings, courier, transport
        self._predecessor, self._line, self._on_new, self._clock = predecessor, line, on_new, clock
        self._started = clock() if started is None else started

    async def go(self) -> Mapping[str, str]:
        """What the control hash says, once the agent is one of the group."""
        transport, settings, crawl, call = self._transport, self._settings, self._crawl, self._courier.call
        await call(transport.open())
        mail: list[str] = []
        control, cleared = await call(joining.begin_run(transport, crawl.has_work, mail, self._age))
        if await crawl.resume(control):
            self._on_new()
        if is_finished(control):
            crawl.agent.accept_end(is_lossy(control))
        me = crawl.agent.me
        await call(joining.check_group(transport, settings, me, crawl.fixed))
        await call(joining.claim(transport, settings, me, self._predecessor, self._line(0), self._clock))
        await call(joining.discard(transport, mail))
        if cleared or settings.redis_url is None:
            crawl.agent.sure()
        return control

    def _age(self) -> float:
        return self._clock() - self._started

    def introduce(self) -> None:
        """Say in the log who has come."""
        agent, settings = self._crawl.agent, self._settings
        logger.info(
            "Agent %s (incarnation %s) of crawl %s, with %d others; replication %d%s.",
            agent.me,
            agent.incarnation,
            settings.crawl,
            len(agent.watch.seen),
            settings.replication,
            "" if settings.replication else ": what only a crashed agent knew is lost with it",
        )
        if not (agent.group.sure or agent.finished):
            logger.info(
                "Nobody else is here who has seen the crawl run: the first page is fetched in %.0f s "
                "(UBI_LEASE_TIMEOUT and a little), when whoever lives must have been seen.",
                settings.lease_timeout + agent.config.grace,
            )
