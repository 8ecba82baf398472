"""Names of hosts, asked of the servers of UBI_DNS_SERVERS, by c-ares (aiodns), without a thread for each question.

Rules of this module:

* What was found is kept as long as its server says, within `SHORTEST` and `LONGEST` seconds; that a name leads nowhere
  for `NEGATIVE`, a failure of the servers for `FAILED`. So many answers are kept as DNSCACHE_SIZE says.
* A name that is being asked for is not asked for a second time. At most `AT_ONCE` names are on their way; others wait.
* A question ends after DNS_TIMEOUT, whatever the servers do. /etc/hosts is read, as by the system.
* IPv4 first, as Scrapy's own resolver; IPv6 where a name has no other address. `MOST_ADDRESSES` of a name are kept.
* What goes wrong is Scrapy's `CannotResolveHostError`, as without these servers.
* Those of a crawler are closed when its engine stops: c-ares has a thread, and sockets.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from scrapy import signals
from scrapy.exceptions import CannotResolveHostError

from scrapy_ubi.settings import early

MOST_ADDRESSES = 8  # of one host that are tried
AT_ONCE = 200
SHORTEST, LONGEST = 10.0, 3600.0  # s
NEGATIVE, FAILED = 60.0, 5.0  # s
TRIES = 3  # questions about a name, to all servers in turn
FIRST_WAIT = 2.0  # s for the first of them; c-ares doubles it
SYSTEM = "system"  # the servers of /etc/resolv.conf

Found = tuple[list[str], float]  # addresses, and for how long (s)
Ask = Callable[[str], Awaitable[Found]]


class NoSuchName(CannotResolveHostError):
    """What `Ask` raises where the servers say that a name has no address; others see its base class."""


async def _nothing() -> None: ...


class NameServers:
    """Asks, and keeps the answers. `ask` gives addresses and for how long they hold; it raises `NoSuchName`, and
    anything for a failure. `let_go` is called once, when this is closed."""

    def __init__(
        self,
        ask: Ask,
        most: int,
        timeout: float,
        let_go: Callable[[], Awaitable[None]] = _nothing,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._most = most
        self._timeout = timeout
        self._let_go = let_go
        self._now = now
        self._known: OrderedDict[str, tuple[float, list[str] | str]] = OrderedDict()  # a text: why there is none
        self._asking: dict[str, asyncio.Task[list[str]]] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._closed = False

    def __len__(self) -> int:
        return len(self._known)

    async def addresses(self, host: str) -> list[str]:
        """The addresses of a host, at least one. Raises `CannotResolveHostError`."""
        known = self._known.get(host)
        if known is not None and known[0] > self._now():
            if isinstance(known[1], str):
                raise CannotResolveHostError(known[1])
            return known[1]
        if self._closed:
            raise _ended(host)
        task = self._asking.get(host)
        if task is None:
            task = self._asking[host] = asyncio.create_task(self._find(host))
            task.add_done_callback(partial(self._found, host))
        try:
            return await asyncio.shield(task)  # others may wait for it as well
        except asyncio.CancelledError:
            if task.cancelled():  # and not who waits here
                raise _ended(host) from None
            raise

    async def close(self) -> None:
        """Ask for nothing more. Who waits for an answer has none."""
        if self._closed:
            return
        self._closed = True
        for task in self._asking.values():
            task.cancel()
        await self._let_go()

    async def _find(self, host: str) -> list[str]:
        seconds = FAILED
        try:
            async with self._turns:
                found, holds = await asyncio.wait_for(self._ask(host), self._timeout or None)
            if found:
                found = found[:MOST_ADDRESSES]
                self._keep(host, found, min(max(holds, SHORTEST), LONGEST))
                return found
            why, seconds = f"No address of {host!r} is known", NEGATIVE
        except TimeoutError:
            why = f"No name server has answered for {host!r} within {self._timeout:g} s"
        except NoSuchName as error:
            why, seconds = str(error), NEGATIVE
        except Exception as error:  # noqa: BLE001 - whatever a library raises: the name is not found, as with Scrapy
            why = str(error) if isinstance(error, CannotResolveHostError) else f"{host!r} is not found: {error!r}"
        self._keep(host, why, seconds)
        raise CannotResolveHostError(why)

    def _found(self, host: str, task: asyncio.Task[list[str]]) -> None:
        del self._asking[host]
        if not task.cancelled():
            task.exception()  # asked for: no one may be waiting any longer, and asyncio would log it

    def _keep(self, host: str, answer: list[str] | str, seconds: float) -> None:
        if self._most <= 0:
            return
        self._known[host] = self._now() + seconds, answer
        self._known.move_to_end(host)
        if len(self._known) > self._most:
            self._known.popitem(last=False)


def _ended(host: str) -> CannotResolveHostError:
    return CannotResolveHostError(f"{host!r} is not looked up: the crawl has ended")


# The handlers of both schemes, and what judges addresses, share what is known.
_of_crawl: WeakKeyDictionary[Any, NameServers] = WeakKeyDictionary()


def name_servers(crawler: Any) -> NameServers:
    """Those of a crawler (or of a CrawlerProcess, for its reactor) which ask UBI_DNS_SERVERS. In a running loop."""
    known = _of_crawl.get(crawler)
    if known is None:
        settings = crawler.settings
        most = settings.getint("DNSCACHE_SIZE") if settings.getbool("DNSCACHE_ENABLED") else 0
        ask, let_go = by_ares(servers_of(settings))
        known = _of_crawl[crawler] = NameServers(ask, most, settings.getfloat("DNS_TIMEOUT"), let_go)
        if hasattr(crawler, "signals"):
            crawler.signals.connect(known.close, signals.engine_stopped)
    return known


async def let_go(crawler: Any) -> None:
    """Close those of a crawler, where there are any."""
    if (known := _of_crawl.get(crawler)) is not None:
        await known.close()


def servers_of(settings: Any) -> tuple[str, ...]:
    """The servers of UBI_DNS_SERVERS ("address:port", or `SYSTEM` alone); none where it is not set."""
    found: tuple[str, ...] = early(settings, "dns_servers")
    return found


def by_ares(servers: tuple[str, ...]) -> tuple[Ask, Callable[[], Awaitable[None]]]:
    """Asks by c-ares, and lets go of it. Raises ImportError where aiodns is missing."""
    import aiodns
    import pycares

    given: dict[str, Any] = {}
    if servers != (SYSTEM,):  # a name of the net is whole: the domains that a system's own names may lack are not tried
        given = {"nameservers": list(servers), "flags": pycares.ARES_FLAG_NOSEARCH | pycares.ARES_FLAG_EDNS}
    resolver = aiodns.DNSResolver(timeout=FIRST_WAIT, tries=TRIES, **given)
    no_name = {aiodns.error.ARES_ENOTFOUND, aiodns.error.ARES_ENODATA, aiodns.error.ARES_EBADNAME}

    async def of_family(host: str, family: socket.AddressFamily) -> Found:
        result = await resolver.getaddrinfo(host, family=family, type=socket.SOCK_STREAM)
        addresses = [_text(node.addr[0]) for node in result.nodes]
        return list(dict.fromkeys(addresses)), float(min((node.ttl for node in result.nodes), default=0))

    async def ask(host: str) -> Found:
        try:
            return await of_family(host, socket.AF_INET)
        except aiodns.error.DNSError as error:
            if error.args[0] != aiodns.error.ARES_ENODATA:
                raise _refusal(host, error, no_name) from error
        try:
            return await of_family(host, socket.AF_INET6)
        except aiodns.error.DNSError as error:
            raise _refusal(host, error, no_name) from error

    return ask, resolver.close


def _refusal(host: str, error: Exception, no_name: set[int]) -> CannotResolveHostError:
    kind = NoSuchName if error.args[0] in no_name else CannotResolveHostError
    return kind(f"No address of {host!r} is known: {error.args[-1]}")


def _text(address: str | bytes) -> str:
    return address.decode("ascii") if isinstance(address, bytes) else address
