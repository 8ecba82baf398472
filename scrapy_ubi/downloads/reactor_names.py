"""UBI_DNS_SERVERS for Scrapy's own handlers: what the add-on puts into DNS_RESOLVER, where the project has Scrapy's.

Scrapy installs it as the reactor's resolver of names. It answers with what `name_servers` knows or asks for, so that
all parts of an agent share it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from scrapy.crawler import Crawler
from scrapy.exceptions import CannotResolveHostError
from scrapy.resolver import HostResolution
from scrapy.settings import BaseSettings
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IHostnameResolver
from zope.interface import implementer  # type: ignore[import-untyped]

from scrapy_ubi.downloads.name_servers import name_servers


@implementer(IHostnameResolver)
class ReactorNames:
    """Resolves for one reactor."""

    def __init__(self, reactor: Any, settings: BaseSettings, servers: tuple[str, ...]) -> None:
        self._reactor, self._settings, self._servers = reactor, settings, servers
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler, reactor: Any) -> ReactorNames:
        """Scrapy's hook."""
        return cls(reactor, crawler.settings, tuple(crawler.settings.getlist("UBI_DNS_SERVERS")))

    def install_on_reactor(self) -> None:
        """Scrapy's hook."""
        self._reactor.installNameResolver(self)

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
            found = await name_servers(self._settings, self._servers).addresses(host)
        except CannotResolveHostError:
            found = []
        for address in found:
            kind: Any = IPv6Address if ":" in address else IPv4Address
            receiver.addressResolved(kind(transport, address, port))
        receiver.resolutionComplete()
