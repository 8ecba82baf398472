"""The beats: what this agent says of itself, and hears of the others.

Rules of this module:

* The transport writes `line` on its own schedule, from another thread: it looks at a beat that was made in the loop.
  One that tells the others something new goes out at once.
* A line that is no beat counts as no agent.
* All beats are read as often as suits so many agents (`protocol.read_interval`).
* Where a read shows that nobody has anything left to do, the next beat is not waited for: the end takes two reads, and
  a beat of each agent between them. All agents see that, each by its own reads. At most `MOST_HURRIED` such beats in
  a row, and none in a group so large that not every beat reads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.waits import wait_briefly
from scrapy_ubi.ground.untrusted.checks import NAME
from scrapy_ubi.protocol import read_interval
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.protocol.view import View
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport import Transport
from scrapy_ubi.transport.contract import MEMORY
from scrapy_ubi.transport.watched import Watched

MOST_HURRIED = 40  # two heartbeat intervals of them: by then each agent has read, and beaten again
MOST_NAMES = 12  # agents listed in a sentence: with hundreds, each that comes would fill a page of the log
DEAD = (
    "Dead: %s. No heartbeat has come for %g s (UBI_FAILURE_TIMEOUT). The agents that keep copies take the hosts over. "
    "An agent that is started again in the same directory takes part again."
)
HELD_DEAD = (
    "The other agents hold this one dead, because no heartbeat of it has come for %g s (UBI_FAILURE_TIMEOUT). It goes "
    "on as a newcomer, and the pages that it was fetching may be fetched again. Was it paused, or cut off from Redis?"
)
AWAITED = (
    "Nobody is there any more who knows who takes part. %s took part before, and may come back with what they did "
    "last: no page is fetched before they are there, for %.0f s at most."
)

logger = logging.getLogger("scrapy_ubi")


class Beats:
    """The beats of one agent's group. `on_read` is called after every read, with whether it brought word of the end and
    with all lines. `apart`: seconds between two reads; `watched`: what the first read said of the data set."""

    def __init__(
        self,
        crawl: Crawl,
        transport: Transport,
        settings: UbiSettings,
        on_read: Callable[[bool, Mapping[str, str]], None],
        clock: Callable[[], float],
    ) -> None:
        self._crawl = crawl
        self._transport = transport
        self._settings = settings
        self._on_read = on_read
        self._clock = clock
        self._seen = asyncio.Event()
        self.apart = 0.0
        self.watched = Watched(0.0)
        self._hurried = 0  # beats in a row
        crawl.follow(self._begin)

    def _begin(self) -> None:
        """Beat for the agent that the crawl has now."""
        self._beat: Beat = self._crawl.agent.beat

    def start(self, stalled: Callable[[], bool]) -> None:
        """Beat, and read the others' beats, but while `stalled`."""
        agent = self._crawl.agent
        self._transport.start_beating(
            agent.me,
            self._settings.heartbeat_interval,
            self.line,
            agent.group.lease.acknowledged,
            self.read,
            self._clock,
            stalled,
            lambda: self.apart,
        )

    async def wait(self) -> None:
        """Wait until the others were seen, for a lease at most."""
        await wait_briefly(self._seen, self._settings.lease_timeout)

    @property
    def were_read(self) -> bool:
        """Whether the others' beats were read yet."""
        return self._seen.is_set()

    def line(self, counter: int) -> str:
        """The beat that goes out, with this counter."""
        return self._beat.line(counter)

    def publish(self, new: Beat) -> None:
        """Send this beat from now on; at once where it tells the others something new."""
        old = self._beat
        self._beat = new
        if (old.incarnation, old.epoch, old.digest, old.settled, old.pending, old.flags) != (
            new.incarnation,
            new.epoch,
            new.digest,
            new.settled,
            new.pending,
            new.flags,
        ):
            self._transport.beat_now()

    def read(self, sent: float, received: float, lines: dict[str, str]) -> None:
        """Everybody's beats were read."""
        beats = {
            name: beat
            for name, line in lines.items()
            if NAME.fullmatch(name) and (beat := Beat.parse(line)) is not None
        }
        agent = self._crawl.agent
        before, view, was_sure = agent.end.finished, agent.view, agent.group.sure
        watched = Watched.of(lines)
        agent.read(sent, received, beats, lines.get(MEMORY, ""), watched.seconds)
        if not self._seen.is_set():
            self.watched = watched
        self._seen.set()
        self._keep_pace(len(beats))
        if agent.view is not view:
            self._tell(view, agent.view)
        if was_sure and agent.group.awaits:
            ends = agent.group.start_wait_ends
            logger.info(AWAITED, listed(agent.group.expected), max(1.0, ends - sent) if ends is not None else 0.0)
        self._hurry_to_end(agent.quiescence.is_half_seen and not agent.end.finished)
        self._on_read(agent.end.finished and not before, lines)

    def _hurry_to_end(self, is_near: bool) -> None:
        """Beat again at once where the end may be one read away."""
        if not is_near:
            self._hurried = 0
        elif self._hurried < MOST_HURRIED and not self.apart:
            self._hurried += 1
            self._transport.beat_now()

    def _tell(self, before: View, now: View) -> None:
        """Say who is dead, and who is left. Who leaves by itself is none of the group before it goes."""
        agent, timeout = self._crawl.agent, self._settings.failure_timeout
        dead = {name for name, member in before.members.items() if agent.group.watch.is_dead(member.incarnation)}
        gone = {name for name in dead if not now.incarnation(name)}
        if agent.me in dead:
            logger.warning(HELD_DEAD, timeout)
        if gone:
            logger.warning(DEAD, listed(gone), timeout)
        if dead - gone - {agent.me}:
            logger.info("Started again after a crash or a pause: %s.", listed(dead - gone - {agent.me}))
        if before.members.keys() != now.members.keys():
            logger.info("The agents of the crawl are now: %s.", listed(now.members) or "none")

    def _keep_pace(self, agents: int) -> None:
        """Read all beats as often as suits so many agents; say so when a longer lease would let them read less."""
        interval, lease = self._settings.heartbeat_interval, self._settings.lease_timeout
        apart, wanted = read_interval.reads_apart(agents, interval, lease), read_interval.lease_wanted(agents, interval)
        if apart > self.apart and wanted > lease:
            logger.warning(
                "%d agents: each reads all heartbeats every %g s, which UBI_LEASE_TIMEOUT = %g s allows. With a lease "
                "of %g s (and a longer UBI_FAILURE_TIMEOUT) they would ask less of Redis.",
                agents,
                apart,
                lease,
                wanted,
            )
        self.apart = apart


def listed(names: Iterable[str]) -> str:
    """The first of these names, and how many more there are."""
    ordered = sorted(names)
    more = len(ordered) - MOST_NAMES
    return ", ".join(ordered[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
