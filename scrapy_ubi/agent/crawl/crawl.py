"""The crawl as one agent has it: restored from its disk, or begun again, and what its disk is to hold of it.

Rules of this module:

* `agent`, `frontier` and `tally` belong together. They are others once a crawl has begun again (`resume`), which
  happens before the agent has joined its group or not at all.
* A disk whose crawl is over, by its own word or by that of Redis, is emptied, unless UBI_AGAIN is 'never'. Else it is
  gone on with, when the settings are those that its URLs were keyed by.
* Every incarnation is noted before it is used. Those that have run on this disk (`former`) are told the others: who was
  lost as one of them is back.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from scrapy_ubi.agent.crawl.disk import FACTS_EVERY
from scrapy_ubi.agent.crawl.disk_contract import Disk
from scrapy_ubi.agent.crawl.finished_run import FINISHED, LOST, REQUEUED, is_finished, is_past
from scrapy_ubi.agent.crawl.pinned_settings import check_origin, check_settings, check_spider, kept_origin
from scrapy_ubi.agent.crawl.pinned_settings import fixed as fixed_settings
from scrapy_ubi.agent.crawl.revisits import recrawl_of
from scrapy_ubi.agent.profile import figures
from scrapy_ubi.agent.profile.host_sums import HostSums, Needs
from scrapy_ubi.agent.steering.live_entries import LiveTable
from scrapy_ubi.agent.steering.runtime import refusal
from scrapy_ubi.ground.clock import unix
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.protocol import snapshot
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.config import Config
from scrapy_ubi.protocol.host import Entry, Failure
from scrapy_ubi.protocol.host_policy import FREE, HostPolicy
from scrapy_ubi.protocol.lane import Bounds
from scrapy_ubi.protocol.losses import LossBook
from scrapy_ubi.protocol.view import View
from scrapy_ubi.settings import UbiSettings

logger = logging.getLogger("scrapy_ubi")

LEAVE_PAUSE = 1.5  # heartbeat intervals, in which all that were stopped at one moment have heard of each other
LETTER_BYTES_A_CHARACTER = 6  # a control character in JSON; so a letter of that many characters is never too large
MOST_LOST = 64  # names of agents that were lost
MOST_FORMER = 64  # incarnations of one disk that are remembered


class Crawl:
    """The crawl of agent `me`, kept on `disk`. `fixed` is the part of its profile that does not change,
    `on_incarnation` notes durably which incarnation runs now; `lives` are those of this process, in their order;
    `predecessor` is the one that ran in its directory before. `policy` is asked about hosts, `recrawl` about pages that
    are visited again, where any are; `live` holds what people say of it while it runs. `handed_over`: it has left, and
    others have all that it knew.
    """

    def __init__(
        self,
        settings: UbiSettings,
        me: str,
        disk: Disk,
        fixed: dict[str, Any],
        on_incarnation: Callable[[str], None],
        clock: Callable[[], float],
        predecessor: str | None = None,
        policy: HostPolicy = FREE,
    ) -> None:
        self.live = LiveTable(partial(refusal, started=settings))
        self.settings = settings
        self._me = me
        self.fixed = fixed
        self.recrawl = recrawl_of(settings, unix)
        self._predecessor = predecessor
        self._policy = replace(policy, redone_row=self.recrawl.redone, visit_told=self.recrawl.believed_row)
        self._on_incarnation = on_incarnation
        self._clock = clock
        self.disk = disk
        self.last_view: View | None = None  # in which it was, once it leaves
        self.handed_over = False
        self.lost: tuple[str, ...] = ()  # agents without whom something may be missing, as was seen at the end
        self.was_over = False  # the crawl, when this agent came
        self.needs: Needs | None = None  # what hosts need yet, once somebody can tell
        self._last_sums: tuple[tuple[Any, ...], HostSums] | None = None  # and of which moment they are
        self.lives: list[str] = []
        self._followers: list[Callable[[], object]] = []
        self._begin()

    def follow(self, follower: Callable[[], object]) -> None:
        """Call this now, and whenever the crawl has begun again: agent, frontier and tally are others then."""
        self._followers.append(follower)
        follower()

    def _begin(self) -> None:
        """As the disk has it."""
        now, disk, config = self._clock(), self.disk, protocol_config(self.settings)
        self.live.load(disk.facts.get("live"))
        self.frontier = disk.frontier
        store = secrets.token_hex(4)
        if (saved := disk.saved) is not None:
            if disk.facts.get("agent", self._me) != self._me:  # a copy, or under a new name: it has lanes of its own
                saved = replace(saved, group=saved.group._replace(store=store), numbers={})
            self.agent = snapshot.restore(
                self._me, saved, config, self.frontier, self._new_incarnation, now, self._policy
            )
        else:
            self.agent = Agent(self._me, store, config, self.frontier, self._new_incarnation, now, self._policy)
        self.agent.work.visits_ended = not self.recrawl.visits_again
        self.tally = figures.Tally(now)
        figures.restore(self.agent, self.tally, disk.facts)
        self.counts_anew = disk.saved is None  # nothing of what it counts was ever said
        self._former = self._former_lives()
        losses = self.agent.group.losses
        losses.book, losses.former = LossBook.read(disk.facts), [*self._former]
        losses.book.await_publishing()
        self._facts_at = 0.0
        self._kept: tuple[Any, ...] = ()  # the run, whether it is over, losses, what people said: as written

    def _former_lives(self) -> list[str]:
        """The incarnations whose disk this one is."""
        if self.disk.saved is None or self.disk.saved.torn:  # what a torn one has lost is not back
            return []
        known = self.disk.facts.get("former")
        lives = [life for life in known if isinstance(life, str)] if isinstance(known, list) else []
        return [*lives, self._predecessor] if self._predecessor else lives

    @property
    def former(self) -> list[str]:
        """The incarnations that have run on this disk before the present one, oldest first."""
        own = (*self._former, *self.lives)
        return [life for life in dict.fromkeys(own) if life != self.agent.incarnation][-MOST_FORMER:]

    def _new_incarnation(self) -> str:
        incarnation = secrets.token_hex(4)
        self.lives.append(incarnation)
        self._on_incarnation(incarnation)
        return incarnation

    # -- at the start

    def has_work(self, run: str) -> bool:
        """Whether the disk holds requests of that run which are not fetched. Where this agent has taken part in its
        end, what waits there are copies of what others have fetched.
        """
        facts = self.disk.facts
        here = facts.get("run") == run and not facts.get("finished")
        return here and any(s.waiting or s.visits.awaited for s in self.frontier.states())

    def is_requeued(self, run: str) -> bool:
        """Whether requests of that run were queued again in this directory while the agent was stopped: nobody else
        knows of these."""
        return self.disk.facts.get(REQUEUED) is True and self.has_work(run)

    def keeps(self, run: str) -> bool:
        """Whether the disk holds outputs of that run, of whose end this agent has not heard (P9): it was killed. Who
        has left was told to go, and a start is a new one."""
        facts = self.disk.facts
        ended = facts.get("finished") or facts.get("left")
        return self.disk.holds_outputs and facts.get("run") == run and not ended

    def stays_over(self, control: Mapping[str, str]) -> bool:
        """Whether the disk holds the crawl that is meant, which is finished, and no new one is to begin."""
        facts = self.disk.facts
        another = control.get("run", "") not in ("", facts.get("run"))
        return bool(facts.get("finished")) and not another and bool(self.over(str(facts.get("run"))))

    def over(self, run: str) -> str:
        """Why no new crawl begins after that one, which is over, as a sentence; '' where one does. Where agents were
        lost, this one has ended with status 1: a supervisor starts it again, maybe, and would have all fetched again.
        """
        facts = self.disk.facts
        if facts.get("run") == run and facts.get("finished") and (lost := self._lost()):
            return LOST.format(names=plain(", ".join(lost), 400))
        return FINISHED if self.settings.again == "never" else ""

    def _lost(self) -> tuple[str, ...]:
        lost = self.disk.facts.get("lost")
        return tuple(name for name in lost[:MOST_LOST] if isinstance(name, str)) if isinstance(lost, list) else ()

    async def resume(self, control: Mapping[str, str]) -> bool:
        """Go on with the crawl on the disk; or begin again where that one is over, as disk or control hash say: then
        True. Raises UbiRefused when settings or arguments are others, UbiDirectoryError when the disk cannot be
        used.
        """
        disk = self.disk
        past = is_past(control, str(disk.facts.get("run", "")))
        if self.stays_over(control):
            self.was_over, self.lost = True, self._lost()
            self.tally.lost_agents = len(self.lost)
            if not is_finished(control):  # else it was said
                logger.info(self.over(str(disk.facts.get("run"))))
            return False
        if disk.facts.get("finished") or (past and not self.keeps(control.get("run", ""))):
            logger.info("The crawl in %s is finished: the directory is emptied.", self.settings.dir)
            await disk.erase()
            self._begin()
            for follower in self._followers:
                follower()
            return True
        if disk.saved is not None:
            check_settings(self.settings.dir, disk.facts, self.fixed)
            if not self.settings.mixed_agents:
                check_origin(self.settings.dir, disk.facts, self.fixed)
            check_spider(self.settings.dir, disk.facts, self.fixed["spider"])
            states = self.frontier.states()
            logger.info(
                "Going on with the crawl in %s: %d hosts, %d URLs done, %d waiting.",
                self.settings.dir,
                len(states),
                sum(state.done_count for state in states),
                sum(state.waiting for state in states),
            )
        return False

    # -- while it runs

    def fail(self, host: str, entry: Entry, reason: str) -> None:
        """A request of this host failed after all retries."""
        self.tally.fail(reason, host)
        self.frontier.fail(Failure(host, entry, reason, time.time()))

    def counters(self, sums: HostSums | None = None) -> dict[str, Any]:
        """All counters, as published for people. `sums`: of all hosts; None: they are summed up here, once after the
        agent has ended."""
        if sums is None:
            changes = self.agent.quiescence.activity, self.agent.view.digest, len(self.frontier)
            if self._last_sums is not None and self.tally.ended is not None and self._last_sums[0] == changes:
                sums = self._last_sums[1]
            else:
                sums = self.new_sums()
                sums.add(self.frontier.states())
            self._last_sums = (changes, sums) if self.tally.ended is not None else None
        return figures.counters(self.agent, self.tally, self._clock(), sums)

    def new_sums(self) -> HostSums:
        """Sums without any host yet."""
        return HostSums(self.agent, self._clock(), self.last_view, self.needs)

    def facts(self, run: str) -> dict[str, Any] | None:
        """What the disk is to hold of the crawl beside the protocol's matter, when that is due."""
        now, over, lost = self._clock(), self.agent.end.finished, self.agent.group.losses.book.told()
        kept = (run, over, lost, self.live.mark)
        if now < self._facts_at and kept == self._kept:
            return None
        self._facts_at, self._kept = now + FACTS_EVERY, kept
        return {
            **({"live": self.live.kept} if self.live.entries else {}),
            "at": round(unix(), 3),
            "agent": self._me,
            "run": run,
            "finished": over,
            "left": self.handed_over,
            "settings": fixed_settings(self.fixed),
            "spider": self.fixed["spider"],
            "former": [*self.former, self.agent.incarnation],
            **lost,
            "lost": list(self.lost[:MOST_LOST]),
            "origin": kept_origin(self.fixed),
            "counters": figures.kept(self.agent, self.tally, now),
        }

    def published(self, taken: bool) -> None:
        """A profile was taken, or left out since what it counts may be in the sum of those who are gone."""
        if not taken and not self.counts_anew:
            logger.info("This agent was gone for long, and what it has counted was summed up: it counts from 0 again.")
            figures.count_anew(self.agent, self.tally)
            self.write_facts()
        self.counts_anew = not taken

    def write_facts(self) -> None:
        """Let them be due."""
        self._facts_at = 0.0


def protocol_config(settings: UbiSettings) -> Config:
    """The configuration of an agent with these settings."""
    bounds = Bounds(
        window=settings.window,
        records=settings.letter_records,
        size=settings.max_letter_bytes // LETTER_BYTES_A_CHARACTER,
        resend=settings.resend_timeout,
    )
    return Config(
        replication=settings.replication,
        replicas=settings.ring_replicas,
        lease_timeout=settings.lease_timeout,
        failure_timeout=settings.failure_timeout,
        handoff_timeout=settings.handoff_timeout,
        bounds=bounds,
        outbox_records=settings.outbox_records,
        suppressed_keys=settings.suppressed_keys,
        leave_pause=min(LEAVE_PAUSE * settings.heartbeat_interval, settings.leave_timeout / 10),
        start_wait=settings.start_wait,
    )
