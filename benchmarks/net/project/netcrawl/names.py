"""For plain Scrapy, where the machine's own DNS is not the testbed's: DNS_RESOLVER = "netcrawl.names.Names", and
NET_DNS = "address:port". Twisted's own client, with Scrapy's time-out and a cache that keeps what it has found."""

from __future__ import annotations

from typing import Any

from scrapy.crawler import Crawler
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IResolverSimple
from twisted.names.client import Resolver
from zope.interface import implementer


@implementer(IResolverSimple)
class Names:
    """Asks one server."""

    def __init__(self, reactor: Any, server: tuple[str, int], timeout: float) -> None:
        self._reactor, self._timeout = reactor, timeout
        self._client = Resolver(servers=[server], timeout=(1, 3, 5), reactor=reactor)
        self._known: dict[str, str] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler, reactor: Any) -> Names:
        address, _, port = crawler.settings["NET_DNS"].rpartition(":")
        return cls(reactor, (address, int(port)), crawler.settings.getfloat("DNS_TIMEOUT"))

    def install_on_reactor(self) -> None:
        self._reactor.installResolver(self)

    def getHostByName(self, name: str, timeout: Any = ()) -> Deferred[str]:
        from twisted.internet.defer import succeed

        if name in self._known:
            return succeed(self._known[name])
        found: Deferred[str] = self._client.getHostByName(name, timeout=[1, 3, 5])
        return found.addCallback(self._keep, name)

    def _keep(self, address: str, name: str) -> str:
        self._known[name] = address
        return address
