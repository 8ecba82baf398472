"""From a host's name to its addresses, without stopping the loop.

With UBI_DNS_SERVERS those servers are asked (`name_servers`). Without, and with Twisted's reactor, its name resolver is
asked, the one of DNS_RESOLVER, with Scrapy's cache and DNS_TIMEOUT. Without a reactor the system's is asked in a
thread, with the same settings for cache and time-out.

For Scrapy's own handlers UBI_DNS_SERVERS means `ReactorNames`, which the add-on puts in Scrapy's place where the
project has no own. A CrawlerProcess, and that alone, installs it as its reactor's resolver of names, before any crawl:
so it is there for all crawls of the process, and the servers are those of the project or of the command line.
"""

from __future__ import annotations

import asyncio
import socket
from collections import OrderedDict
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any

from scrapy.exceptions import CannotResolveHostError
from scrapy.resolver import HostResolution
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IHostnameResolver, IResolutionReceiver
from zope.interface import implementer  # type: ignore[import-untyped]

from scrapy_ubi.adapter.downloads.name_servers import MOST_ADDRESSES, let_go, name_servers, servers_of


class Resolver:
    """Looks up hosts, for one crawler; or for a CrawlerProcess, whose reactor asks here (`ReactorNames`)."""

    def __init__(self, crawler: Any) -> None:
        settings = crawler.settings
        self._by_reactor = settings.getbool("TWISTED_REACTOR_ENABLED") and is_reactor_installed()
        self._most = settings.getint("DNSCACHE_SIZE") if settings.getbool("DNSCACHE_ENABLED") else 0
        self._timeout = settings.getfloat("DNS_TIMEOUT")
        self._known: OrderedDict[str, list[str]] = OrderedDict()
        self._crawler = crawler
        self._asks_servers = bool(servers_of(settings))

    async def addresses(self, host: str) -> list[str]:
        """The addresses of a host, numeric, at least one. Raises `CannotResolveHostError`."""
        try:
            ip_address(host)
        except ValueError:
            pass
        else:
            return [host]
        try:
            name = host.encode("idna").decode("ascii")  # Twisted's does so in a thread, and does not report an error
        except UnicodeError as error:
            raise CannotResolveHostError(f"{host!r} is no name of a host: {error}") from error
        if self._asks_servers:
            return (await name_servers(self._crawler).addresses(name))[:]
        found = await (_by_reactor(host) if self._by_reactor else self._by_thread(host))
        if not found:
            raise CannotResolveHostError(f"No address of {host!r} is known")
        return found[:MOST_ADDRESSES]

    async def _by_thread(self, host: str) -> list[str]:
        known = self._known.get(host)
        if known is not None:
            self._known.move_to_end(host)
            return known
        look_up = asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        try:
            infos = await asyncio.wait_for(look_up, self._timeout or None)
        except (OSError, UnicodeError, TimeoutError) as error:
            raise CannotResolveHostError(f"No address of {host!r} is known: {error}") from error
        found = list(dict.fromkeys(str(info[4][0]) for info in infos))
        if found and self._most:
            self._known[host] = found
            if len(self._known) > self._most:
                self._known.popitem(last=False)
        return found


async def _by_reactor(host: str) -> list[str]:
    from twisted.internet import reactor

    receiver = _Receiver()
    try:
        reactor.nameResolver.resolveHostName(receiver, host)
    except (UnicodeError, ValueError) as error:  # a name that is none
        raise CannotResolveHostError(f"{host!r} is no name of a host: {error}") from error
    return await receiver.found


@implementer(IResolutionReceiver)
class _Receiver:
    """Collects what Twisted's resolver tells."""

    def __init__(self) -> None:
        self.found: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
        self._addresses: list[str] = []

    def resolutionBegan(self, resolutionInProgress: Any) -> None:
        pass

    def addressResolved(self, address: Any) -> None:
        self._addresses.append(address.host)

    def resolutionComplete(self) -> None:
        if not self.found.done():
            self.found.set_result(list(dict.fromkeys(self._addresses)))


@implementer(IHostnameResolver)
class ReactorNames:
    """Resolves for one reactor."""

    def __init__(self, reactor: Any, crawler: Any) -> None:
        self._reactor = reactor
        self._crawler = crawler
        self._names = Resolver(crawler)
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    def from_crawler(cls, crawler: Any, reactor: Any) -> ReactorNames:
        """Scrapy's hook; the crawler is a CrawlerProcess. Raises ValueError without servers."""
        if not servers_of(crawler.settings):  # the names would be asked of the reactor, and that asks here
            raise ValueError("ReactorNames needs UBI_DNS_SERVERS")
        return cls(reactor, crawler)

    def install_on_reactor(self) -> None:
        """Scrapy's hook."""
        self._reactor.installNameResolver(self)
        # While the loop still runs; Scrapy stops its reactor when the crawls have ended.
        self._reactor.addSystemEventTrigger("before", "shutdown", lambda: deferred_from_coro(self.close()))

    async def close(self) -> None:
        """Ask for nothing more."""
        await let_go(self._crawler)

    def resolveHostName(
        self,
        resolutionReceiver: Any,
        hostName: str,
        portNumber: int = 0,
        addressTypes: Sequence[type[Any]] | None = None,
        transportSemantics: str = "TCP",
    ) -> Any:
        """As Twisted asks for it."""
        resolution = HostResolution(hostName)
        resolutionReceiver.resolutionBegan(resolution)
        task = asyncio.ensure_future(self._answer(resolutionReceiver, hostName, portNumber, transportSemantics))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return resolution

    async def _answer(self, receiver: Any, host: str, port: int, transport: str) -> None:
        try:
            for address in await self._names.addresses(host):
                kind: Any = IPv6Address if ":" in address else IPv4Address
                receiver.addressResolved(kind(transport, address, port))
        except CannotResolveHostError:
            pass  # without an address Twisted says that the host is not known
        finally:
            receiver.resolutionComplete()
