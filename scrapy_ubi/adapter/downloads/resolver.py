"""From a host's name to its addresses, without stopping the loop.

With UBI_DNS_SERVERS those servers are asked (`name_servers`). Without, and with Twisted's reactor, its name resolver is
asked, the one of DNS_RESOLVER, with Scrapy's cache and DNS_TIMEOUT. Without a reactor the system's is asked in a
thread, with the same settings for cache and time-out.
"""

from __future__ import annotations

import asyncio
import socket
from collections import OrderedDict
from ipaddress import ip_address
from typing import Any

from scrapy.exceptions import CannotResolveHostError
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.interfaces import IResolutionReceiver
from zope.interface import implementer  # type: ignore[import-untyped]

from scrapy_ubi.adapter.downloads.name_servers import MOST_ADDRESSES, name_servers, servers_of


class Resolver:
    """Looks up hosts, for one crawler; or for a CrawlerProcess, whose reactor asks here (`reactor_names`)."""

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
