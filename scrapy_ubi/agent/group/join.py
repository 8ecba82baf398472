"""How an agent joins its group: a new run after a finished one, settings that agree, an identifier that is free.

Rules of this module:

* What asks Redis runs in the I/O thread; the disk is looked at here, in the loop.
* Where Redis is away, a step is tried again (`retry_until`): each may be repeated, whether or not it was done.
* The disk is looked at before settings are compared and the identifier is claimed: the first beat is that of the crawl
  which is gone on with.
* A start under the name of a finished crawl begins a new one: everything the old one left in Redis is cleared, in one
  step, by one of those who start. The last runs that finished are remembered by name, so that a disk which has missed
  the end of one is not taken for part of another.
* Unless UBI_AGAIN is 'never', or this agent has ended that crawl with status 1, as agents were lost: then it says that
  the crawl is finished, and ends. A supervisor, which starts failed agents, would else have all fetched again.
* But whose process was started before that end belongs to the crawl that has ended, and finds nothing left to do: it
  would else fetch all of it again. (It takes seconds to start Python and Scrapy; small crawls end in less.) Not where
  those who ended it knew no URL at all: they had nothing to do, as the seeds are the one's that comes late.
* Nor does an agent that was killed before that end, and has kept outputs: what it has written is a part of the result
  of that run, so it ends it as the others did. The next start begins a new one. Who has left begins it at once.
* Agents of another layout are found by their profiles, wherever they beat: who publishes on is there.
* Agents must agree on what decides where a URL belongs (partition, normal form, fingerprinter, replicas, replication),
  on whether they serve, and on how they beat (`redis_keys.LAYOUT`).
  One that differs is refused, and told in what. So is one that was started from something else (`origin`). An agent
  that has published lately is there; by a clock that is wrong none may have: then it is there if it beats on. One with
  another spider is warned only: that may have the same callbacks.
* An identifier belongs to one living process. Where its beat is that of the process that ran in this very directory,
  whose lock this process now holds, the predecessor is dead for sure; else it is watched for the failure timeout.
* Mail that waits for the identifier when a process takes it over is its predecessor's, and is thrown away: a sender
  that lives sends it again to the new incarnation; from one that died together with the predecessor it may tell of
  pages as done whose links no agent has.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.crawl.finished_run import ended_ago, is_finished, is_lossy
from scrapy_ubi.agent.crawl.pinned_settings import AGREE, BEFORE
from scrapy_ubi.agent.group.beats import listed
from scrapy_ubi.agent.group.other_layouts import check_layouts, other_layout
from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.agent.profile.origin import other_arguments, other_class
from scrapy_ubi.agent.waits import retry_until
from scrapy_ubi.errors import UbiRefused
from scrapy_ubi.ground.untrusted.checks import object_or_nothing
from scrapy_ubi.protocol.beat import LEFT, Beat, words_after
from scrapy_ubi.protocol.losses import LossBook
from scrapy_ubi.protocol.ring import Ring, RingCollision
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport import Outgoing, Transport
from scrapy_ubi.transport.signer import is_signed
from scrapy_ubi.transport.watched import DENIED, EVICTS, NEW, UNTOLD, Watched

T = TypeVar("T")
logger = logging.getLogger("scrapy_ubi")

SIGNED = (
    "The agents of this crawl sign what they write (UBI_SECRET), and this one does not: set UBI_SECRET as they have "
    "it, or, where none of them is to come back, forget the crawl with `scrapy ubi reset`."
)
CAME_LATE = "URLs from outside wait that were written after the end of the last crawl of this name: %d; this start %s."
MOST_PAST = 16  # finished runs that are remembered by name
SEVERAL = 2.5  # heartbeat intervals, within which a beat comes from each agent that lives
CLAIMS = 5  # tries: each fails only when another process has written in between
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


async def begin_run(
    transport: Transport,
    has_work: Callable[[str], bool],
    age: Callable[[], float],
    keeps: Callable[[str], bool] = lambda run: False,
    over: Callable[[str], str] = lambda run: "",
    is_requeued: Callable[[str], bool] = lambda run: False,
) -> tuple[Mapping[str, str], bool]:
    """What the control hash says of the present run, and whether this process has just cleared a finished one.

    `has_work`: whether this agent's disk holds requests of that run which are not fetched: a run that ended after
    losses is not over then. `age`: how long ago (s) this process was started. A run that has ended since is the present
    one, and is over. `keeps`: whether this agent has outputs of that run, and has not heard of its end: they are a part
    of its result. `over`: why no new run begins after that one, which is finished ('' where one does). `is_requeued`:
    whether this agent's disk alone holds requests of that run that were queued again.
    """
    cleared = False
    control, waiting = await _look(transport)
    finished = control.get("finished", "")
    if is_finished(control):
        run = finished.split(" ")[0]
        if goes_on := is_requeued(run):
            logger.info(
                "The crawl of this name has ended while this agent was away. Its directory holds requests that were "
                "queued again: it goes on with them."
            )
            control, _ = await _look(transport, forget=("finished",))  # for its next start, too
        elif is_lossy(control) and has_work(run):
            logger.info("The crawl ended after losses, and this agent's directory holds more of it: it goes on.")
        elif keeps(run):
            logger.info(
                "The crawl of this name has ended while this agent was away: what its pages have left is whole, and "
                "can be collected; there is nothing left to fetch. Start again for a new crawl."
            )
        elif ended_ago(control, transport.now()) < age() and not (is_lossy(control) and await _was_empty(transport)):
            logger.info(
                "The crawl of this name has finished while this process was starting: there is nothing left to "
                "fetch. Start again for a new crawl."
            )
        elif why := over(run):
            logger.info("%s", why)
        else:
            logger.info("The last crawl of this name is finished: a new one begins.")
            logger.debug("Finished: run and agent %s.", finished)
            past = {"past": " ".join([*control.get("past", "").split(), run][-MOST_PAST:])}
            cleared = await transport.clear(finished, past)
            control = {**(await _look(transport))[0], **past}
        if waiting:
            takes = cleared or goes_on
            logger.warning(CAME_LATE, waiting, "takes them" if takes else "fetches none: the next one takes them")
    return control, cleared


async def _was_empty(transport: Transport) -> bool:
    """Whether no agent that has ended the crawl knew a URL. Such an end counts as lossy: these agents cannot tell."""
    profiles = [object_or_nothing(text).get("counters") for text in (await transport.profiles()).values()]
    return bool(profiles) and all(
        isinstance(counters, dict) and all(counters.get(name) == 0 for name in ("pages", "known"))
        for counters in profiles
    )


async def _look(transport: Transport, forget: Sequence[str] = ()) -> tuple[Mapping[str, str], int]:
    """What the control hash says, once these fields of it are deleted, and how many seeds wait. What is in the inbox
    may be megabytes for a predecessor: it is not read."""
    out = Outgoing(forget_control=forget, read_inbox=False, look_outside=True, waits=True)
    incoming = await transport.exchange(out)
    control = incoming.control or {}
    if is_signed(control.get("run", "")):
        raise UbiRefused(SIGNED)
    return control, incoming.outside.waiting if incoming.outside is not None else 0


async def named(transport: Transport, control: Mapping[str, str]) -> Mapping[str, str]:
    """What the control hash says, where it named no run before: others may have named one while this agent came."""
    if control.get("run"):
        return control
    incoming = await transport.exchange(Outgoing(read_inbox=False, read_acks=False))
    return {**control, **(incoming.control or {})}


async def published(transport: Transport, agent: str) -> str:
    """The profile that Redis has of this agent, which has come after the end; empty where there is none that can be
    read. Who was killed in the last moments took part until the end: it says so, unless others had its hosts by then.
    """
    profile = object_or_nothing((await transport.profiles()).get(agent, ""))
    beats = [Beat.parse(line) for line in (await transport.beats()).values()]
    dead = {incarnation for beat in beats if beat is not None for incarnation in beat.dead}
    if profile and profile.get("state") not in ("leaving", "left") and str(profile.get("incarnation")) not in dead:
        profile["state"] = "finished"
    return json.dumps(profile, separators=(",", ":")) if profile else ""


async def published_losses(transport: Transport, agent: str) -> LossBook:
    """What the last process of this agent has published of those who were lost: its disk may be gone, and nobody else
    may know."""
    return LossBook.read(object_or_nothing((await transport.profiles()).get(agent, "")))


async def discard(transport: Transport) -> None:
    """Throw away the letters that wait: they were for a predecessor. Not before the identifier is claimed, for until
    then they may be a living agent's."""
    if count := await transport.empty_inbox():
        logger.info(
            "%d letters for an earlier process of this agent were thrown away: living agents send theirs again.", count
        )


async def check_group(
    transport: Transport, settings: UbiSettings, agent: str, own: Mapping[str, Any]
) -> Mapping[str, str]:
    """Raise UbiRefused when a living agent's settings differ, or when the ring has no room for this agent. Returns all
    beats, as they were read last."""
    lines, profiles = await transport.beats(), await transport.profiles()
    unsure: dict[str, tuple[Beat, str]] = {}
    warning = ""
    for name, line in lines.items():
        beat = Beat.parse(line)
        if name == agent or beat is None or LEFT in beat.flags:
            continue
        profile = object_or_nothing(profiles.get(name, ""))
        refusal = _difference(name, profile, settings, own)
        if abs(time.time() - _number(profile.get("updated"))) > 4 * settings.failure_timeout:
            if refusal:
                unsure[name] = beat, refusal
            continue  # long gone, or clocks differ
        if refusal:
            raise UbiRefused(refusal)
        warning = warning or _another_spider(name, profile, settings, own)
        try:
            Ring.of({name: beat.replicas, agent: settings.ring_replicas})
        except RingCollision as error:
            raise UbiRefused(f"{error}: choose another UBI_AGENT_ID.") from error
    if warning:
        logger.warning("%s", warning)
    if unsure:
        await asyncio.sleep(SEVERAL * settings.heartbeat_interval)
        lines = await transport.beats()
        for name, (beat, refusal) in unsure.items():
            if _beats_on(beat, lines.get(name)):
                raise UbiRefused(refusal)
    await check_layouts(transport, settings.crawl, agent, profiles, own.get("layout"))
    return lines


def _difference(name: str, profile: Mapping[str, Any], settings: UbiSettings, own: Mapping[str, Any]) -> str:
    """In what the agent with this profile does not agree, as a sentence; '' where it does."""
    if refusal := other_layout(name, profile, settings.crawl, own.get("layout")):
        return refusal
    for field, setting in AGREE.items():
        theirs = profile.get(field, BEFORE.get(field) if profile else None)
        if theirs is not None and theirs != own[field]:
            return (
                f"Agent {name} of crawl {settings.crawl} has {setting} = {theirs!r}, this one {own[field]!r}: "
                "all agents of a crawl must agree; set it alike, or choose another UBI_CRAWL."
            )
    return "" if settings.mixed_agents else _another_origin(name, profile, settings, own)


def _another_origin(name: str, profile: Mapping[str, Any], settings: UbiSettings, own: Mapping[str, Any]) -> str:
    """That the agent with this profile was started from something else, as a sentence; '' where it was not."""
    if (classes := other_class(profile, own)) is not None:
        return (
            f"Agent {name} of crawl {settings.crawl} runs a spider {own['spider']!r} of class {classes[0]}, this one "
            f"of class {classes[1]}: these are two projects of one name, so give one of them a UBI_CRAWL of its own, "
            "or set UBI_MIXED_AGENTS = True where both are the same code."
        )
    if (arguments := other_arguments(profile, own)) is not None:
        return (
            f"Agent {name} of crawl {settings.crawl} was started with {arguments[0]}, this one with {arguments[1]}: "
            "give each set of arguments a UBI_CRAWL of its own (leave it out, and it is made of them), or set "
            "UBI_MIXED_AGENTS = True to let both share this crawl."
        )
    return ""


def _another_spider(name: str, profile: Mapping[str, Any], settings: UbiSettings, own: Mapping[str, Any]) -> str:
    """What is to be known where the agent with this profile runs another spider, as sentences; '' where it does not."""
    theirs = profile.get("spider", own["spider"])
    if theirs == own["spider"]:
        return ""
    return (
        f"Agent {name} of crawl {settings.crawl} runs the spider {theirs!r}, this one {own['spider']!r}: each parses "
        "what both find on its hosts. Give each spider a UBI_CRAWL of its own, unless their callbacks are the same."
    )


def _beats_on(beat: Beat, line: str | None) -> bool:
    """Whether that line is another beat than this one."""
    now = Beat.parse(line) if line is not None else None
    return now is not None and (now.incarnation, now.counter) != (beat.incarnation, beat.counter)


async def claim(
    transport: Transport,
    settings: UbiSettings,
    agent: str,
    predecessor: str | None,
    first: Beat,
    clock: Callable[[], float],
    on_last: Callable[[Beat], None],
    seen: Mapping[str, str] | None = None,
) -> None:
    """Make the identifier this process's own, whose `first` beat is that. `on_last` is told of the last one of the
    incarnation before. `seen`: all beats, where they were read a moment ago. Raises UbiRefused when another process
    lives under it.
    """
    for _ in range(CLAIMS):
        present, seen = (await transport.beats() if seen is None else seen).get(agent), None
        beat = Beat.parse(present) if present is not None else None
        if beat is not None and beat.incarnation == first.incarnation:
            return  # claimed before; Redis went away before it could say so
        if beat is not None and LEFT not in beat.flags and beat.incarnation != predecessor:
            await _outlast(transport, settings, agent, beat, clock)
            present = (await transport.beats()).get(agent)
        if beat is not None:
            on_last(beat)
        mine = replace(first, before=words_after(beat)) if beat is not None else first
        if await transport.claim(agent, present, mine.line(0)):
            return
    raise _in_use(settings, agent)


async def _outlast(
    transport: Transport, settings: UbiSettings, agent: str, beat: Beat, clock: Callable[[], float]
) -> None:
    """Return when this beat has not changed for the failure timeout; raise when it has."""
    logger.info(
        "Agent %s has run before, and has not said that it left: waiting up to %.0f s to see whether it still runs.",
        agent,
        settings.failure_timeout,
    )
    end = clock() + settings.failure_timeout
    while clock() < end:
        await asyncio.sleep(min(settings.heartbeat_interval, max(0.0, end - clock())))
        line = (await transport.beats()).get(agent)
        if _beats_on(beat, line):
            raise _in_use(settings, agent)


def _in_use(settings: UbiSettings, agent: str) -> UbiRefused:
    return UbiRefused(
        f"Another process lives as agent {agent} in crawl {settings.crawl}: give each process its own UBI_AGENT_ID "
        "(or none, then each gets its own)."
    )


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


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
            lambda: begin_run(transport, crawl.has_work, self._age, crawl.keeps, crawl.over, crawl.is_requeued)
        )
        await crawl.resume(control)
        if crawl.is_requeued(crawl.disk.facts.get("run", "")):
            crawl.agent.end.took_outside()  # what was queued again is no copy of what others have fetched
        if is_finished(control) or crawl.stays_over(control):
            crawl.agent.accept_end(is_lossy(control))
        me = crawl.agent.me
        seen = await ask(lambda: check_group(transport, settings, me, crawl.fixed))
        first, before = crawl.agent.beat, list[Beat]()
        await ask(lambda: claim(transport, settings, me, self._predecessor, first, self._clock, before.append, seen))
        for beat in before:
            crawl.agent.follow(beat)
        if before and not crawl.agent.end.finished:
            crawl.agent.group.losses.take_over(await ask(lambda: published_losses(transport, me)))
        self._publish(crawl.agent.beat)
        await ask(lambda: discard(transport))
        if crawl.agent.end.finished and crawl.disk.saved is None:
            self.published = await ask(lambda: published(transport, me))
        if cleared or settings.redis_url is None:
            crawl.agent.sure()
        return await ask(lambda: named(transport, control))

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
            len(agent.group.watch.seen),
            settings.replication,
            "" if settings.replication else ", so what only a crashed agent knew is lost with it",
        )
        if agent.group.sure or agent.end.finished:
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
