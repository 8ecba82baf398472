"""UBI_DNS_SERVERS for Scrapy's own handlers: what the add-on puts in Scrapy's place, where the project has no own.

A CrawlerProcess, and that alone, installs it as its reactor's resolver of names, before any crawl: so it is there for
all crawls of the process, as Scrapy's is, and the servers are those of the project or of the command line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from scrapy.exceptions import CannotResolveHostError
from scrapy.resolver import HostResolution
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IHostnameResolver
from zope.interface import implementer  # type: ignore[import-untyped]

from scrapy_ubi.adapter.downloads.name_servers import let_go, servers_of
from scrapy_ubi.adapter.downloads.resolver import Resolver


@implementer(IHostnameResolver)
class ReactorNames:
    """Resolves for one reactor."""

    def __init__(self, reactor: Any, crawler: Any) -> None:
        self._reactor, self._crawler, self._names = reactor, crawler, Resolver(crawler)
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
