"""The state of a crawl as Redis shows it: who takes part, in which state, with how much mail.

Rules of this module:

* It only reads, with few round trips (four, however many agents), and never takes part: no beat, no acknowledgement.
* Nothing in Redis is believed: what cannot be read is `unreadable`, counted, and the rest is shown.
* Ages are measured by the clock of the Redis server against the clock of the agent that wrote: rough where clocks
  differ.
* Signatures (`UBI_SECRET`) are not checked: who only looks needs no secret, and what is shown may be anyone's.
* Whether an agent is dead is not judged here but read: agents name in their beats the incarnations they declared dead.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import redis

from scrapy_ubi.agent.crawl.finished_run import ended_ago, is_finished
from scrapy_ubi.agent.profile.profile import MOST_MAIL_SLOTS, Profile, read_profile
from scrapy_ubi.agent.profile.summed_up import SummedUp, read_sum
from scrapy_ubi.agent.steering.live_entries import PAUSE, field_of, read_entry
from scrapy_ubi.ground.untrusted.checks import Malformed
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.protocol.beat import FENCED, LEAVING, LEFT, Beat
from scrapy_ubi.settings import replicas_for
from scrapy_ubi.transport.contract import MEMORY, SUMMED_UP
from scrapy_ubi.transport.redis_keys import ALL, RedisKeys, crawl_of
from scrapy_ubi.transport.signer import bare, bare_bytes, is_signed

SILENT_AFTER = 15.0  # seconds without a new profile: the default failure timeout; said to people, nothing hangs on it
MAX_NAME = 64  # characters of a crawl's or an agent's name shown
MAX_SCAN = 1_000_000  # keys looked at when crawls are searched for

# States of an agent that people see, beside those a profile may hold.
DEAD, SILENT, UNREADABLE, JOINING = "dead", "silent", "unreadable", "joining"
FENCED_STATE = "fenced"
STARTING = "starting"  # of a crawl
_AWAY = frozenset((DEAD, "left"))
_AWAY_ERRORS = (redis.ConnectionError, redis.TimeoutError, redis.exceptions.ClusterDownError)
_SLOTS = re.compile(rb'"mail_slots": ?(\d{1,3})[,}]')
_SAYS_NOTHING = Profile("")
_NOT_WORKING = _AWAY | {SILENT, UNREADABLE, "finished"}


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """One agent. `age` is seconds since its profile was written (None: no profile); `trouble` says what is
    unreadable. `keeps`: it has left, and had no agent to hand over to.
    """

    name: str
    state: str
    profile: Profile | None = None
    beat: Beat | None = None
    inbox: int = 0
    dead_letters: int = 0
    age: float | None = None
    trouble: tuple[str, ...] = ()
    keeps: bool = False

    @property
    def mail_slots(self) -> int:
        """Over how many slots the mail of its crawl is spread, as it says; 1 where it says nothing."""
        return self._said.mail_slots

    @property
    def working(self) -> bool:
        """Whether it takes part in the crawl now."""
        return self.state not in _NOT_WORKING

    @property
    def pages_per_second(self) -> float:
        """Pages a second of the last seconds (`agent/profile/figures.py: WINDOW`), none where it does not work. Every
        rate of now that people see is this one, or a sum of it."""
        return self._said.pages_per_second if self.working else 0.0

    @property
    def gone(self) -> bool:
        """Whether it died or left before the end, and what it had, others have taken over."""
        return self.state in _AWAY and not self.keeps

    @property
    def replicas(self) -> int:
        """Its points on the ring; 0 when unknown."""
        if self.beat is not None:
            return self.beat.replicas
        return replicas_for(self.profile.replicas, self.profile.capacity) if self.profile is not None else 0

    @property
    def incarnation(self) -> str:
        """Its present incarnation, '' when unknown."""
        return (self.beat or self._said).incarnation

    @property
    def _said(self) -> Profile:
        """Its profile; one that says nothing where it has none."""
        return self.profile or _SAYS_NOTHING


@dataclass(frozen=True, slots=True)
class CrawlStatus:
    """A crawl: its agents by name, its control hash, and how many values could not be read.

    `now` is unix seconds by Redis's clock.
    """

    crawl: str
    agents: tuple[AgentStatus, ...] = ()
    control: Mapping[str, str] = field(default_factory=dict)
    now: float = 0.0
    unreadable: int = 0
    summed_up: SummedUp | None = None
    """Agents that are long gone, and are counted together."""
    sum_trouble: str = ""
    """Why their sum is unreadable."""
    starts: bool = False
    """Whether its agents begin a new run, of which nothing is there yet, while Redis still holds the end of the last
    one."""
    signed_run: str = ""
    """What `run` is in Redis, with its signature; "" where the crawl is not signed (`UBI_SECRET`)."""
    seeds_waiting: int = 0
    """URLs from outside that are not answered."""
    mail_away: tuple[str, ...] = ()
    """Agents whose mail cannot be looked at, as the server of its slot does not answer."""
    odd_keys: tuple[str, ...] = ()
    """Keys that have another type than they should, so that nothing of them is known."""

    @property
    def exists(self) -> bool:
        """Whether Redis holds anything of this crawl."""
        return bool(self.agents or self.control)

    @property
    def run(self) -> str:
        """The name of this run of the crawl, '' when unknown."""
        return self.control.get("run", "")

    @property
    def arguments(self) -> list[dict[str, str]]:
        """The sets of arguments that its agents' spiders were started with, as people may see them; without the empty
        one."""
        sets: list[dict[str, str]] = []
        for agent in self.agents:
            if agent.profile is not None and agent.profile.arguments and dict(agent.profile.arguments) not in sets:
                sets.append(dict(agent.profile.arguments))
        return sets

    @property
    def paused(self) -> bool:
        """Whether people have paused it."""
        field = field_of(PAUSE)
        try:
            return field in self.control and read_entry(field, self.control[field]).stands
        except Malformed:
            return False

    @property
    def finished(self) -> bool:
        """Whether this run is over: nothing was left to fetch anywhere."""
        return is_finished(self.control)

    @property
    def finished_ago(self) -> float | None:
        """For how long (s) the run has been over; None where it is not, or where Redis does not say when it ended."""
        ago = ended_ago(self.control, self.now)
        return max(0.0, ago) if self.state == "finished" and ago < math.inf else None

    def starting(self) -> CrawlStatus:
        """This status as agents begin a new run: without the figures of the run before, and without who took part in
        that one only."""
        come = [replace(one, profile=None, age=None) for one in self.agents if one.state == JOINING]
        return replace(self, agents=tuple(come), summed_up=None, starts=True)

    @property
    def state(self) -> str:
        """`running`, `finished`, `stopped` (no agent works, the end was not reached), `starting` or `absent`."""
        if not self.exists:
            return "absent"
        if self.starts:
            return STARTING
        if self.finished:
            return "finished"
        return "running" if any(agent.working for agent in self.agents) else "stopped"

    @property
    def serves(self) -> bool:
        """Whether it waits for URLs from outside where nothing is left to fetch."""
        return any(one.working and one.profile is not None and one.profile.serve for one in self.agents)

    def agent(self, name: str) -> AgentStatus | None:
        """The agent of that name."""
        return next((agent for agent in self.agents if agent.name == name), None)

    @property
    def members(self) -> list[AgentStatus]:
        """The agents that take part, or took part until the end: neither dead nor left."""
        return [agent for agent in self.agents if not agent.gone]

    @property
    def gone(self) -> list[AgentStatus]:
        """The agents that died or left before the end."""
        return [agent for agent in self.agents if agent.gone]

    @property
    def views(self) -> int:
        """How many different views the working agents have; 1 when they agree."""
        return len({agent.beat.digest for agent in self.agents if agent.working and agent.beat is not None})


def read_status(client: redis.Redis, crawl: str) -> CrawlStatus:
    """The state of `crawl` in this Redis. Raises redis.RedisError when Redis does not answer or does not allow it."""
    keys, now = RedisKeys(crawl), server_time(client)
    heads = (keys.beats, keys.agents, keys.control)
    with client.pipeline(transaction=False) as pipe:
        for key in heads:
            pipe.hgetall(key)
        pipe.xlen(keys.seeds)
        *hashes, waiting = pipe.execute(raise_on_error=False)
    beats, profiles, control = (_texts(answer) for answer in hashes)
    beats.pop(MEMORY, None)
    run, summed_up = _text(control.get("run", b"")), profiles.pop(SUMMED_UP, None)
    found = read_sum(bare_bytes(summed_up)) if summed_up is not None else None
    trouble = found if isinstance(found, str) else ""
    names = sorted(set(beats) | set(profiles))
    of_agents = {name: RedisKeys(crawl, _mail_slots(profiles.get(name, b""))) for name in names}
    lengths, odd_mail, away = _lengths(client, of_agents)
    odd_unread = _odd_types(client, keys, {name: of for name, of in of_agents.items() if name not in away})
    odd = [key for key, answer in zip((*heads, keys.seeds), (*hashes, waiting), strict=True) if _is_odd(answer)]
    agents = _judge(names, beats, profiles, lengths, now)
    status = CrawlStatus(
        crawl=crawl,
        agents=tuple(agents),
        control={_text(name.encode()): bare(_text(value)) for name, value in control.items()},
        now=now,
        unreadable=sum(len(agent.trouble) for agent in agents) + bool(trouble),
        summed_up=found if isinstance(found, SummedUp) else None,
        sum_trouble=trouble,
        signed_run=run if is_signed(run) else "",
        seeds_waiting=waiting if isinstance(waiting, int) else 0,
        mail_away=tuple(plain(name) for name in away),
        odd_keys=(*odd, *odd_mail, *odd_unread),
    )
    # Who has begun beats before anybody names the new run: what else is there is of the one before.
    return status.starting() if status.finished and any(one.state == JOINING for one in agents) else status


def find_crawls(client: redis.Redis) -> list[str]:
    """The names of all crawls in this Redis, sorted. Looks at up to a million keys."""
    found: set[str] = set()
    for looked, key in enumerate(_hashes(client)):
        crawl = crawl_of(cast(bytes, key).decode("utf-8", "replace"))
        if crawl is not None:
            found.add(crawl)
        if looked >= MAX_SCAN:
            break
    return sorted(found)


def _hashes(client: redis.Redis) -> Iterator[Any]:
    """Keys of hashes that may be a crawl's. A server before Redis 6 does not look for types itself."""
    try:
        yield from client.scan_iter(match=ALL, count=1000, _type="hash")
    except redis.ResponseError as trouble:
        if "syntax error" not in str(trouble):
            raise
        yield from (key for key in client.scan_iter(match=ALL, count=1000) if client.type(key) == b"hash")


def server_time(client: redis.Redis) -> float:
    """Unix seconds by the server's clock; by this machine's where TIME is not allowed."""
    try:
        seconds, micros = client.time()
    except redis.ResponseError:
        return time.time()
    return seconds + micros / 1e6


def _texts(answer: Any) -> dict[str, bytes]:
    """A hash with text names. Of a key with another type (an error in its place) nothing is known; other errors go
    on.
    """
    if _is_odd(answer):
        return {}
    if isinstance(answer, Exception):
        raise answer
    return {name.decode("utf-8", "backslashreplace"): value for name, value in answer.items()}


def _is_odd(answer: object) -> bool:
    """Whether that is the error of a key with another type."""
    return isinstance(answer, redis.ResponseError) and "WRONGTYPE" in str(answer)


def _text(value: bytes) -> str:
    return plain(value, MAX_NAME * 4)


def _mail_slots(profile: bytes) -> int:
    """What a profile says of them, at one look: all are read later, where they hold."""
    found = _SLOTS.search(profile)
    return min(max(int(found[1]), 1), MOST_MAIL_SLOTS) if found is not None else 1


def _lengths(
    client: redis.Redis, of_agents: Mapping[str, RedisKeys]
) -> tuple[dict[str, tuple[int, int]], list[str], list[str]]:
    """Entries of each agent's inbox and dead letters, 0 for a key of another type; those keys; and the agents of whom
    it is not known, as the server of their mail slot does not answer."""
    asked = [key for name, keys in of_agents.items() for key in (keys.inbox(name), keys.dead(name))]
    if not asked:
        return {}, [], []
    try:
        with client.pipeline(transaction=False) as pipe:
            for key in asked:
                pipe.xlen(key)
            said = pipe.execute(raise_on_error=False)
    except _AWAY_ERRORS:
        if not any(keys.mail_slots > 1 for keys in of_agents.values()):
            raise
        said = _one_by_one(client, asked)
    answers = [answer if isinstance(answer, int) else 0 for answer in said]
    lengths = {name: (answers[2 * i], answers[2 * i + 1]) for i, name in enumerate(of_agents)}
    away = [name for i, name in enumerate(of_agents) if isinstance(said[2 * i], _AWAY_ERRORS)]
    return lengths, [key for key, answer in zip(asked, said, strict=True) if _is_odd(answer)], away


def _one_by_one(client: redis.Redis, asked: list[str]) -> list[Any]:
    """The lengths of these streams, or why there is none. Of a slot whose server does not answer it is asked once."""
    away: dict[str, Exception] = {}
    said: list[Any] = []
    for key in asked:
        tag = key[: key.index("}")]
        try:
            said.append(away.get(tag) or client.xlen(key))
        except (redis.ResponseError, *_AWAY_ERRORS) as error:
            if isinstance(error, _AWAY_ERRORS):
                away[tag] = error
            said.append(error)
    return said


def _odd_types(client: redis.Redis, keys: RedisKeys, of_agents: Mapping[str, RedisKeys]) -> list[str]:
    """Keys of another type among those that are not read here. A user who may not ask for types is told of none."""
    types = {keys.slots: b"hash", keys.pulses: b"string", keys.start: b"hash", keys.seeded: b"stream"}
    types |= {of.acks(name): b"hash" for name, of in of_agents.items()}
    with client.pipeline(transaction=False) as pipe:
        for key in types:
            pipe.type(key)
        said = pipe.execute(raise_on_error=False)
    return [
        key
        for (key, kind), answer in zip(types.items(), said, strict=True)
        if isinstance(answer, bytes) and answer not in (kind, b"none")
    ]


def _judge(
    names: Iterable[str],
    beats: Mapping[str, bytes],
    profiles: Mapping[str, bytes],
    lengths: Mapping[str, tuple[int, int]],
    now: float,
) -> list[AgentStatus]:
    parsed = {name: Beat.parse(bare(raw.decode("utf-8", "replace"))) for name, raw in beats.items()}
    buried = {incarnation for beat in parsed.values() if beat is not None for incarnation in beat.dead}
    agents = []
    for name in names:
        beat, profile, trouble = parsed.get(name), None, []
        if name in beats and beat is None:
            trouble.append("beat: not a beat line")
        if name in profiles:
            answer = read_profile(name, bare_bytes(profiles[name]))
            if isinstance(answer, Profile):
                profile = answer
            else:
                trouble.append(f"profile: {answer}")
        age = max(0.0, now - profile.updated) if profile is not None else None
        agents.append(
            AgentStatus(
                name=plain(name),
                state=shown_state(profile, beat, buried, age, unreadable=bool(trouble)),
                profile=profile,
                beat=beat,
                inbox=lengths[name][0],
                dead_letters=lengths[name][1],
                age=age,
                trouble=tuple(trouble),
            )
        )
    working = [agent for agent in agents if agent.working]
    if len(working) == 1 and working[0].state == FENCED_STATE:  # alone there is no agent to be fenced from
        agents = [replace(agent, state="waiting") if agent is working[0] else agent for agent in agents]
    if working:
        return agents
    latest = max((agent.profile.started for agent in agents if agent.profile is not None), default=0.0)
    return [replace(agent, keeps=_keeps(agent, latest)) for agent in agents]


def _keeps(agent: AgentStatus, latest: float) -> bool:
    """Whether an agent of a group that has stopped has left with what it had, and none has begun since (the last one
    did at `latest`) which may have taken that over."""
    profile = agent.profile
    return agent.state == "left" and profile is not None and profile.count("hosts") > 0 and profile.updated >= latest


def shown_state(
    profile: Profile | None, beat: Beat | None, buried: set[str], age: float | None, unreadable: bool
) -> str:
    """The state people see. What others and the beat say is fresher than the profile, which is published less often."""
    incarnation = beat.incarnation if beat is not None else profile.incarnation if profile is not None else ""
    if beat is not None and LEFT in beat.flags:
        return "finished" if profile is not None and profile.state == "finished" else "left"
    if incarnation and incarnation in buried:
        return DEAD
    if profile is None:
        return UNREADABLE if unreadable else "joining"
    if profile.state in ("finished", "left"):
        # A process that has just begun under the name of one that has gone beats before it publishes.
        return profile.state if incarnation == profile.incarnation else "joining"
    return _living_state(profile, beat, age)


def _living_state(profile: Profile, beat: Beat | None, age: float | None) -> str:
    """The state of an agent that takes part by its own word."""
    if age is not None and age > SILENT_AFTER:
        return SILENT if beat is not None else DEAD  # the others have removed its beat
    flags = beat.flags if beat is not None else ""
    return "leaving" if LEAVING in flags else FENCED_STATE if FENCED in flags else profile.state
