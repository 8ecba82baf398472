"""The pool of proxies of one agent (UBI_PROXY_POOL): which one a request goes through, and what its end says of it.

Rules of this module:

* The list is read by a thread: at the start, and every `AGAIN` seconds while requests come, a file only where it is
  another one. One that cannot be read, or is empty, changes nothing, and is said once.
* What a host has banned, and which proxy it is at, is noted with the host (section `proxies`): it goes where the host
  goes, and survives, as its cookies do. Which proxies rest is told to all agents (`Rumours`).
* A request that is in no queue (robots.txt, media) goes through the proxy of its host as well.
* Where no proxy may be used for a host, pages of it wait until one may be, and so does the robots.txt that they wait
  for; what is in no queue takes one all the same. Nothing goes without a proxy, unless the request says so
  (`meta["proxy"]`, None among others).
* No address of a proxy is logged or noted: it may hold a password.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.policy.politeness.proxies import (
    MOST_PROXIES,
    MOST_REST,
    Bans,
    ProxyHealth,
    choose,
    name_of,
    read_bans,
)
from scrapy_ubi.protocol.talk import Rumours
from scrapy_ubi.settings.proxy_pool import ProxyPool
from scrapy_ubi.urls.host_shards import host_of_key

if TYPE_CHECKING:
    from scrapy_ubi.agent import Node
    from scrapy_ubi.protocol.host import HostState

logger = logging.getLogger("scrapy_ubi")

SETTING, SECTION = "UBI_PROXY_POOL", "proxies"
AGAIN = 30.0  # s
SAME_HOST = 60.0  # s for which a host goes around a proxy by which it was not reached, if there is another
MOST_AROUND = 10_000  # hosts and proxies of which that is known
MOST_FIRSTS = 10_000  # hosts and sessions of which it is remembered where their hash leads
LOOKED = 65_536  # bytes of a body in which the pattern is looked for
TOLD = 1000  # proxies in one text to another agent


def source_of(pool: ProxyPool) -> Callable[[], list[str] | None]:
    """What gives the list; None where nothing has changed. Raises UbiSettingError."""
    path = Path(pool.proxies)
    if path.is_file() or not pool.may_be_function:
        return _FileSource(path)
    module, _, name = pool.proxies.rpartition(".")
    try:
        function = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        remedy = "name a file of proxies, or a function of the project"
        raise UbiSettingError(
            SETTING, f"is {pool.proxies!r}, which is no file and cannot be imported", remedy
        ) from error
    return partial(_listed, function)


def _listed(function: Callable[[], Iterable[object]]) -> list[str]:
    """What a function of the project gives. Raises TypeError where that is no list."""
    given = function()
    if isinstance(given, str | bytes):
        raise TypeError
    return [str(proxy) for proxy in given]


class _FileSource:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None

    def __call__(self) -> list[str] | None:
        found = os.stat(self._path)
        seen = found.st_mtime_ns, found.st_size
        if seen == self._seen:
            return None
        lines = [line.strip() for line in self._path.read_text("utf-8").splitlines()]
        self._seen = seen
        return [line for line in lines if line and not line.startswith("#")]


class PooledProxies:
    """The pool of one agent. `clock` is its own (s), `wall` gives unix time."""

    def __init__(
        self,
        pool: ProxyPool,
        node: Node,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._pool = pool
        self._node = node
        self._clock = clock
        self._wall = wall
        self._pattern = re.compile(pool.pattern.encode())
        self._source = source_of(pool)
        self._known: dict[str, str] = {}  # name -> address
        self._ever: frozenset[str] = frozenset()
        self._firsts: dict[str, str] = {}  # host and session -> the first of all by their hash
        self._health = ProxyHealth()
        self._around: dict[tuple[str, str], float] = {}  # host and proxy -> until when it goes around
        self._said: set[str] = set()
        self._reading: asyncio.Task[None] | None = None
        self._read_at = clock()
        try:
            self._take(self._source() or [])
        except UbiSettingError:
            raise
        except Exception as error:
            raise UbiSettingError(SETTING, f"gives no list: {type(error).__name__}", "see what it names") from error
        if not self._known:
            raise UbiSettingError(SETTING, "gives no proxies", "write some, as http://user:password@host:port")
        node.crawl.follow(self._talk)

    def _talk(self) -> None:
        agent = self._node.crawl.agent
        self._rumours = Rumours(
            "proxies", agent.me, lambda: agent.incarnation, lambda: agent.view.members, self._heard, MOST_REST, TOLD
        )
        agent.talks.append(self._rumours)

    def _heard(self, name: str, seconds: float) -> None:
        if name in self._known:
            self._health.heard(name, seconds, self._clock())

    # -- the list

    def _take(self, proxies: Iterable[str]) -> None:
        known: dict[str, str] = {}
        wrong = 0
        for proxy in proxies:
            try:
                name = name_of(proxy)
            except ValueError:
                wrong += 1
                continue
            if len(known) < MOST_PROXIES:
                known[name] = proxy
        if wrong:
            self._say(f"{wrong} lines of {SETTING} are no proxies (http://user:password@host:port), and left out.")
        if known:
            self._known, self._ever = known, frozenset({*known, *self._known})
            self._firsts.clear()
            self._health.keep(known)

    def _say(self, sentence: str) -> None:
        if sentence not in self._said and len(self._said) < 20:
            self._said.add(sentence)
            logger.warning(sentence)

    def _read_again(self) -> None:
        now = self._clock()
        if now - self._read_at >= AGAIN and (self._reading is None or self._reading.done()):
            self._read_at = now
            self._reading = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        try:
            found = await asyncio.to_thread(self._source)
        except Exception as error:  # noqa: BLE001 - a function of the project's may raise anything
            self._say(f"{SETTING} gives no list now ({type(error).__name__}): the proxies are those of before.")
            return
        if found is not None:
            self._take(found)

    @property
    def names(self) -> frozenset[str]:
        """Those that are in the pool, or were when a request was given one."""
        return self._ever

    # -- requests

    def choose(self, host: str, session: str, state: HostState | None) -> tuple[str, str, float]:
        """Name and address of the proxy for a request of this host; and for how long (s) its host should wait first, as
        none may be used."""
        self._read_again()
        now, wall = self._clock(), self._wall()
        bans = self._bans(state)
        who, at = f"{host_of_key(host)} {session}", "" if session else bans.at
        usual = at if at in self._known else self._first(who)
        if self._left(usual, bans, now, wall) <= 0 and self._around.get((host, usual), 0.0) <= now:
            return usual, self._known[usual], 0.0  # nearly always: the others are not looked at
        left = {name: self._left(name, bans, now, wall) for name in self._known}
        free = [name for name, seconds in left.items() if seconds <= 0]
        if not free:
            first = min(left, key=lambda name: left[name])
            return first, self._known[first], left[first]
        others = [name for name in free if self._around.get((host, name), 0.0) <= now]
        name = choose(others or free, who, at)
        return name, self._known[name], 0.0

    def _first(self, who: str) -> str:
        """The proxy of all that the hash names for a host, or a session of it."""
        found = self._firsts.get(who)
        if found is None:
            if len(self._firsts) >= MOST_FIRSTS:
                self._firsts.clear()
            found = self._firsts[who] = choose(self._known, who, "")
        return found

    def _left(self, name: str, bans: Bans, now: float, wall: float) -> float:
        """For how long (s) more this proxy must not be used."""
        ban = bans.bans[name].until - wall if bans.is_banned(name, wall) else 0.0
        return max(ban, self._health.rests(name, now))

    def _bans(self, state: HostState | None) -> Bans:
        if state is None or not state.notes.text:
            return Bans()
        return read_bans(self._node.hosts.get(state, SECTION))

    def postpone(self, state: HostState, seconds: float) -> None:
        """No proxy may be used for this host now. It is looked at again when the list may have others."""
        self._node.hosts.postpone(state, min(seconds, AGAIN), SECTION)

    # -- their ends

    def is_ban(self, status: int, body: Callable[[], bytes]) -> bool:
        """Whether a response says that its host has banned the proxy."""
        if status in self._pool.statuses:
            return True
        return bool(self._pool.pattern and self._pattern.search(body()[:LOOKED]))

    def answered(self, name: str, state: HostState | None, session: str) -> None:
        """A response has come through this proxy: the host keeps to it."""
        self._health.answered(name)
        if state is not None and not session and len(self._known) > 1:
            bans = self._bans(state)
            if bans.bans and bans.at != name:  # else it is where its hash leads
                self._node.hosts.put(state, SECTION, bans._replace(at=name).value())

    def banned(self, name: str, state: HostState | None) -> None:
        """The host has banned this proxy."""
        self._health.answered(name)
        if state is not None:
            bans = self._bans(state).banned(name, self._wall(), self._pool.seconds)
            self._node.hosts.put(state, SECTION, bans.value())

    def failed(self, name: str, host: str, at_once: bool = False) -> None:
        """A load through this proxy had no answer, or was refused by the proxy itself (`at_once`)."""
        now = self._clock()
        if len(self._around) >= MOST_AROUND:
            self._around = {each: until for each, until in self._around.items() if until > now}
        if len(self._around) < MOST_AROUND:
            self._around[host, name] = now + SAME_HOST
        if self._health.failed(name, now, at_once):
            self._rumours.found(name, now + self._health.rests(name, now))
            logger.info("The proxy %s gives no answers, and rests for %.0f s.", name, self._health.rests(name, now))
