"""Names of hosts, asked of the servers of UBI_DNS_SERVERS, by c-ares (aiodns), without a thread for each question.

Rules of this module:

* What was found is kept as long as its server says, within `SHORTEST` and `LONGEST` seconds; that a name leads nowhere
  for `NEGATIVE`, a failure of the servers for `FAILED`. So many answers are kept as DNSCACHE_SIZE says.
* A name that is being asked for is not asked for a second time. At most `AT_ONCE` names are on their way; others wait.
* A question ends after DNS_TIMEOUT, whatever the servers do. /etc/hosts is read, as by the system.
* IPv4 first, as Scrapy's own resolver; IPv6 where a name has no other address.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any
from weakref import WeakKeyDictionary

from scrapy.exceptions import CannotResolveHostError
from scrapy.settings import BaseSettings

AT_ONCE = 200
SHORTEST, LONGEST = 10.0, 3600.0  # s
NEGATIVE, FAILED = 60.0, 5.0  # s
TRIES = 3  # questions about a name, to all servers in turn
FIRST_WAIT = 2.0  # s for the first of them; c-ares doubles it
SYSTEM = "system"  # the servers of /etc/resolv.conf

Found = tuple[list[str], float]  # addresses, and for how long (s)
Ask = Callable[[str], Awaitable[Found]]


class NoSuchName(CannotResolveHostError):
    """The servers say that a name has no address."""


class NameServers:
    """Asks, and keeps the answers. `ask` gives addresses and for how long they hold; it raises `NoSuchName` or
    `CannotResolveHostError`."""

    def __init__(self, ask: Ask, most: int, timeout: float, now: Callable[[], float] = time.monotonic) -> None:
        self._ask, self._most, self._timeout, self._now = ask, most, timeout, now
        self._known: OrderedDict[str, tuple[float, list[str] | CannotResolveHostError]] = OrderedDict()
        self._asking: dict[str, asyncio.Task[list[str]]] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)

    def __len__(self) -> int:
        return len(self._known)

    async def addresses(self, host: str) -> list[str]:
        """The addresses of a host, at least one. Raises `CannotResolveHostError`."""
        known = self._known.get(host)
        if known is not None and known[0] > self._now():
            if isinstance(known[1], CannotResolveHostError):
                raise type(known[1])(str(known[1]))
            return known[1]
        task = self._asking.get(host)
        if task is None:
            task = self._asking[host] = asyncio.create_task(self._find(host))
            task.add_done_callback(_looked_at)
        return await asyncio.shield(task)  # others may wait for it as well

    async def _find(self, host: str) -> list[str]:
        try:
            async with self._turns:
                found, seconds = await asyncio.wait_for(self._ask(host), self._timeout or None)
            self._keep(host, found, min(max(seconds, SHORTEST), LONGEST))
            return found
        except TimeoutError:
            error = CannotResolveHostError(f"No name server has answered for {host!r} within {self._timeout:g} s")
            self._keep(host, error, FAILED)
            raise error from None
        except CannotResolveHostError as error:
            self._keep(host, error, NEGATIVE if isinstance(error, NoSuchName) else FAILED)
            raise
        finally:
            del self._asking[host]

    def _keep(self, host: str, answer: list[str] | CannotResolveHostError, seconds: float) -> None:
        if self._most <= 0:
            return
        self._known[host] = self._now() + seconds, answer
        self._known.move_to_end(host)
        if len(self._known) > self._most:
            self._known.popitem(last=False)


def _looked_at(task: asyncio.Task[list[str]]) -> None:
    """Asks for the error, which is no one's where all that waited were cancelled: asyncio would log it."""
    if not task.cancelled():
        task.exception()


# One for the loop: the handlers of both schemes, and what judges addresses, share what is known.
_of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[object, NameServers]] = WeakKeyDictionary()


def name_servers(settings: BaseSettings, servers: tuple[str, ...]) -> NameServers:
    """Those of the running loop that ask these servers ("address:port", or `SYSTEM` alone)."""
    timeout = settings.getfloat("DNS_TIMEOUT")
    most = settings.getint("DNSCACHE_SIZE") if settings.getbool("DNSCACHE_ENABLED") else 0
    known = _of_loop.setdefault(asyncio.get_running_loop(), {})
    key = servers, most, timeout
    if key not in known:
        known[key] = NameServers(by_ares(servers), most, timeout)
    return known[key]


def by_ares(servers: tuple[str, ...]) -> Ask:
    """Asks by c-ares. Raises ImportError where aiodns is missing."""
    import aiodns

    given: dict[str, Any] = {} if servers == (SYSTEM,) else {"nameservers": list(servers)}
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

    return ask


def _refusal(host: str, error: Exception, no_name: set[int]) -> CannotResolveHostError:
    kind = NoSuchName if error.args[0] in no_name else CannotResolveHostError
    return kind(f"No address of {host!r} is known: {error.args[-1]}")


def _text(address: str | bytes) -> str:
    return address.decode("ascii") if isinstance(address, bytes) else address
