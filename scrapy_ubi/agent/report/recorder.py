"""The recorder of one agent: it looks at it once a second, takes a sample every ten, and has the timeline written.

Rules of this module:

* Nothing of it is on the way of a page: one call of the event loop a second, of some microseconds. That call also tells
  how late the loop is.
* The file is written in a thread, one writing at a time; what comes meanwhile waits for the next one, `MOST_LINES` of
  it: beyond that the whole is written again. A file that cannot be written stops nothing: it is said once in the log.
* Counting is the publisher's matter, which counts for its profiles: only where it has not for long, as Redis is away,
  it counts for a sample.
* Nothing tells of events (`EventWatch`): identities are compared where they can be, so a second without news costs
  nearly nothing. Each agent says what it has seen; where several are put together, the same from several is taken for
  one. A newcomer meets the others one by one, and none of them has joined then: they count as joined from the first
  view on that all had settled for.
* The timeline belongs to the crawl in the agent's store: where that begins again, so does the timeline.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.mail.exchange_loop import ExchangeLoop
from scrapy_ubi.agent.profile.figures import Traffic
from scrapy_ubi.agent.profile.remaining import Point
from scrapy_ubi.agent.report.gap_watch import GapWatch
from scrapy_ubi.agent.report.publish import Publisher
from scrapy_ubi.agent.report.timeline import Event, Sample, Timeline, curve_of, line_of
from scrapy_ubi.agent.report.timeline_file import TimelineFile
from scrapy_ubi.agent.steering.live_entries import PAUSE, field_of
from scrapy_ubi.agent.work.visits import Visit
from scrapy_ubi.frontier.host_loads import Limit, one_page_at_a_time
from scrapy_ubi.ground.clock import unix
from scrapy_ubi.ground.timer import Timer
from scrapy_ubi.protocol.view import Member, View

logger = logging.getLogger("scrapy_ubi")

PAUSE_FIELD = field_of(PAUSE)


class EventWatch:
    """Tells what happened to an agent and its group from how they stand, from its join on: who joined, left or died,
    when all had settled, a pause, the end."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawl = crawl
        self._view: View | None = None
        self._settled: View | None = None
        self._paused = self._fenced = self._blocked = self._finished = False

    def find_events(self, now: float, at: int, blocked: bool) -> Iterator[Event]:
        """What is new at this time: by the agent's clock (s), and in unix seconds."""
        agent, crawl = self._crawl.agent, self._crawl
        if (view := agent.view) is not self._view:
            yield from self._members(self._view, view, at)
            self._view = view
        if agent.view_history.complete is view is not self._settled and view.members:
            self._settled = view
            number = len(view.members)
            yield Event(at, "settled", "", f"{number} agent{'' if number == 1 else 's'}")
        others = len(view.members) > 1  # alone an agent is cut off from no other
        if (fenced := not agent.group.lease.holds(now)) != self._fenced and (others or self._fenced):
            self._fenced = fenced
            yield Event(at, "fenced" if fenced else "unfenced", agent.me)
        if blocked != self._blocked:
            self._blocked = blocked
            yield Event(at, "blocked" if blocked else "unblocked", agent.me)
        entry = crawl.live.entries.get(PAUSE_FIELD)
        if (paused := entry is not None and entry.stands) != self._paused:
            self._paused = paused
            yield Event(at, "paused" if paused else "resumed", "", f"by {entry.who}" if entry is not None else "")
        if agent.end.finished and not self._finished:
            self._finished = True
            yield Event(at, "finished")

    def _members(self, before: View | None, view: View, at: int) -> Iterator[Event]:
        """Who has come, gone, or come again, between two views; of the first one, this agent alone."""
        me, old = self._crawl.agent.me, before.members if before is not None else {}
        if before is None:
            yield Event(at, "joined", me, "again" if self._crawl.former else "")
            old = view.members
        for name in sorted(old.keys() | view.members.keys()):
            was, now = old.get(name), view.members.get(name)
            if name != me and view.incarnation(name) != (was.incarnation if was is not None else ""):
                yield from self._member(name, was, now, at)

    def _member(self, name: str, was: Member | None, now: Member | None, at: int) -> Iterator[Event]:
        """Another agent has gone, has come, or both."""
        if was is not None:
            died = now is not None or was.incarnation in self._crawl.agent.group.watch.dead
            yield Event(at, "dead" if died else "left", name)
        if now is not None and self._settled is not None:
            yield Event(at, "joined", name, "again" if was is not None else "")


LOOK_EVERY = 1.0  # s
SAMPLE_EVERY = 10.0  # s
EARLY, EARLY_EVERY = 60.0, 2.0  # s: in the first minute there are more, for a crawl that is soon over
THIN_EVERY = 100  # samples
MOST_LINES = 1000  # that wait for a disk which does not answer: hours of them
SLOW = 5.0  # s that the end of an agent waits for the file


class Recorder:
    """Records the agent of this crawl, from `start` to `close`. `under_way` gives its visits, `traffic` what
    this process has received of the web, `limit` is that of `GapWatch`. `timeline` is what is known so far.
    """

    def __init__(
        self,
        crawl: Crawl,
        publisher: Publisher,
        exchanges: ExchangeLoop,
        under_way: Callable[[], Iterable[Visit]],
        traffic: Callable[[], Traffic],
        clock: Callable[[], float],
        limit: Limit = one_page_at_a_time,
    ) -> None:
        self._crawl = crawl
        self._publisher = publisher
        self._exchanges = exchanges
        self._clock = clock
        self._under_way = under_way
        self._traffic = traffic
        self.timeline = Timeline()
        self.curve: list[Point] = []  # of what is known and done, as of the last sample
        self._events = EventWatch(crawl)
        self._gaps = GapWatch(limit)
        self.also: Callable[[float], None] = lambda now: None  # looks, too, once a second
        self._file: TimelineFile | None = None
        self._lines: list[str] = []  # not written yet
        self._writing: asyncio.Task[None] | None = None
        self._timer = Timer()
        self._before = Sample(0)  # what counted before this process
        self._lag = self._due = self._begun = self._sampled = 0.0
        self._samples = 0
        self._complained = False

    async def start(self) -> None:
        """The agent has joined: begin where the timeline on its disk ends."""
        path, found = self._crawl.disk.history, self._crawl.disk.saved is not None
        if path is not None:
            self._file = TimelineFile(path)
            try:
                self.timeline = await asyncio.to_thread(self._file.open_timeline, unix(), not found)
            except OSError as error:
                self._complain(error)
        self._before = self.timeline.samples[-1] if self.timeline.samples else self._before
        self._begun = self._clock()
        self._due = self._begun
        self._sample()
        self._look()

    def _look(self) -> None:
        now = self._clock()
        self._lag = max(self._lag, now - self._due)
        self._due = now + LOOK_EVERY
        self._timer.set(LOOK_EVERY, self._look)
        self._gaps.measure_gaps(now, self._crawl.frontier.delay, (visit.state for visit in self._under_way()))
        self.also(now)
        for event in self._events.find_events(now, int(unix()), self._exchanges.blocked):
            self._add(event)
        every = EARLY_EVERY if now - self._begun < EARLY else SAMPLE_EVERY
        if now - self._sampled >= every - LOOK_EVERY / 2:
            self._sample()
        if self._lines and self._writing is None and self._file is not None:
            self._writing = asyncio.create_task(self._write(self._file))

    def _add(self, moment: Sample | Event) -> None:
        self.timeline.add(moment)
        if self._file is not None and len(self._lines) < MOST_LINES:
            self._lines.append(line_of(moment))

    def _sample(self) -> None:
        now = self._sampled = self._clock()
        crawl, before, counted = self._crawl, self._before, self._publisher.counted(now, SAMPLE_EVERY)
        exchange, gaps, self._lag, lag = self._exchanges.slowest(), self._gaps.taken(), 0.0, self._lag
        last = self.timeline.samples[-1] if self.timeline.samples else before
        self._add(
            Sample(
                time=max(int(unix()), last.time),
                pages=crawl.tally.pages,
                done=crawl.agent.counters.done,
                bytes=before.bytes + self._traffic().received_bytes,
                links=crawl.agent.counters.links,
                forwarded=crawl.agent.counters.forwarded,
                failed=crawl.tally.failed.total(),
                queued=counted["queued"],
                known=counted["known"],
                in_flight=crawl.agent.work.out,
                hosts=counted["hosts"],
                outbox=len(crawl.agent.outbox),
                gaps=last.gaps + gaps.measured,
                short=last.short + gaps.short,
                exchange=round(exchange, 4),
                lag=round(lag, 4),
                least=round(gaps.least, 3),
                state=self._publisher.state(),
            )
        )
        self.curve = curve_of(self.timeline.samples)
        self._samples += 1
        if self._samples % THIN_EVERY == 0:
            self.timeline.thin(unix())

    # -- writing

    async def _write(self, file: TimelineFile) -> None:
        lines, self._lines = self._lines, []
        try:
            if len(lines) >= MOST_LINES or file.is_long(len(self.timeline)):
                await asyncio.to_thread(file.rewrite, [*self.timeline.lines()])
            else:
                await asyncio.to_thread(file.append, lines)
            self._complained = False
        except OSError as error:
            self._complain(error)
        finally:
            self._writing = None

    def _complain(self, error: OSError) -> None:
        if not self._complained:
            self._complained = True
            logger.warning(
                "The timeline of this agent cannot be written (%s): the crawl goes on, its history has a hole.", error
            )

    async def close(self, how: str) -> None:
        """The agent has gone: `left` or `finished`. The last that is known is written."""
        if not self._timer.is_set:
            return
        self._timer.clear()
        at = int(unix())
        for event in self._events.find_events(self._clock(), at, self._exchanges.blocked):
            self._add(event)
        self._publisher.renew()
        if how == "left":
            self._add(Event(at, "left", self._crawl.agent.me))
        self._sample()
        if self._file is None:
            return
        try:
            async with asyncio.timeout(SLOW):
                if self._writing is not None:
                    await asyncio.wait([self._writing])
                await self._write(self._file)
        except TimeoutError:
            logger.warning("The end of this agent's timeline is not written: its disk does not answer.")
