"""Where links may lead: not from a public page to this machine, to a local network, or to other schemes.

A page can name any address, and a crawler stands where its writer does not: behind a firewall, beside a Redis, on a
machine of a cloud that gives its keys to every client of 169.254.169.254. Rules of this module:

* Where a link or a redirect is found, its host is judged as it is written (`urls.private`). A private one is followed
  only from a page that is private itself: its host is written so, or this agent has connected to a private address for
  it. What comes from no page (start requests, what a spider is fed from outside) is the user's own, and goes anywhere.
* Where a connection is made, the address is judged, before anything is written: so a name that leads to a private
  address is refused, whatever it led to a moment before. Allowed are hosts of start requests, and all of them in an
  *intranet's crawl*: one with a start request that leads to a private address and none that leads to a public one.
* Seeds are looked up when that is first asked, `MOST_LOOKED_UP` of them. A crawl of the public web never does.
* What goes through a proxy is judged as it is written, and by its page's name: its addresses are not known here.
* Of an http page, links of the schemes that Scrapy could load (file, ftp, s3) are followed where DOWNLOAD_HANDLERS has
  a handler for them. `data:` is always harmless; what has no handler fails as it does in Scrapy.
* UBI_PRIVATE_HOSTS = "allow" ends all of this but the schemes. Each refusal is counted; the first one is logged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary, ref

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings

from scrapy_ubi.adapter.process.log_once import Notices
from scrapy_ubi.adapter.requests.page_outcome import PrivateHost
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls.private import canonical, host_of, is_private_address, is_private_host, may_be_private

MOST_SEEDS = 100_000  # hosts of start requests that are remembered, in some 10 MB; later ones are as any other
MOST_LOOKED_UP = 1000  # of these, to see what kind of crawl this is
AT_ONCE = 20  # names that are looked up together
MOST_REACHED = 100_000  # names with private addresses that are remembered

REMEDY = "UBI_PRIVATE_HOSTS = 'allow' lets links lead there"

HARMLESS = ("http", "https", "data")

Resolve = Callable[[str], Awaitable[list[str]]]


class Reach:
    """Where the links of one agent's pages may lead. `resolve` gives the addresses of a name, and may raise anything;
    `count` adds one to the stat of a name."""

    def __init__(
        self,
        settings: UbiSettings,
        scrapy: BaseSettings,
        resolve: Resolve,
        notices: Notices,
        count: Callable[[str], Any],
    ) -> None:
        self.allowed = settings.private_hosts == "allow"
        self._resolve = resolve
        self._notices = notices
        self._count = count
        self._refused_schemes = refused_schemes(scrapy)
        self._seeds: dict[str, None] = {}
        self._reached: set[str] = set()  # names that led to private addresses
        self._kinds = {True: 0, False: 0}  # of seeds looked up: how many are private, and how many are not
        self._looked_up = 0
        self._looking = asyncio.Lock()
        # One look that tells most links apart, so that they cost nothing more.
        self.suspects: Callable[[str], object] = (lambda normal: None) if self.allowed else may_be_private

    # -- where links are found

    def seed(self, url: str) -> None:
        """The user's own request: a start request, or one that comes from no page."""
        if not self.allowed and len(self._seeds) < MOST_SEEDS and (host := host_of(url)):
            self._seeds[host] = None

    def refusal(self, url: str, page: str) -> tuple[str, str] | None:
        """Why a link or redirect to `url`, found on the page of that URL, is not followed: a word for counting, and a
        sentence. None where it is. Names are not looked up."""
        if (scheme := _scheme(url)) in self._refused_schemes and _is_http(page):
            remedy = f"DOWNLOAD_HANDLERS = {{{scheme!r}: {self._refused_schemes[scheme]!r}}} follows such"
            return "scheme", f"{url:.200}, found on {page:.200}, is no link of the web ({remedy})"
        if self.allowed or not is_private_host(_written_host(url)) or self._is_private_page(page):
            return None
        return "private", f"{url:.200}, found on {page:.200}, leads to a private address ({REMEDY})"

    def follows(self, url: str, target: str) -> bool:
        """Whether a redirect of a robots.txt may lead there; counted if not."""
        if self.refusal(target, url) is None:
            return True
        self._count("ubi/private/refused")
        return False

    def _is_private_page(self, page: str) -> bool:
        host = host_of(page)
        return not _is_http(page) or is_private_host(host) or host in self._reached

    # -- what bypasses the scheduler

    async def bypasses(self, request: Request) -> None:
        """Raise `PrivateHost` where a request that bypasses the scheduler (media, a hop of its redirects) has a host
        that is written as a private one, and may not go there. Which page it is of is not known."""
        host = host_of(request.url)
        if self.allowed or not is_private_host(host):
            return
        came_by = request.meta.get("redirect_urls")
        if isinstance(came_by, list) and came_by:
            if self.refusal(request.url, str(came_by[-1])) is None:
                return
        elif host in self._seeds or await self.is_intranet():
            return
        self.refuse(host, host)

    # -- where connections are made

    def permits(self, host: str, address: str) -> bool:
        """Whether this host, not through a proxy, may be connected to at this address, as far as is known."""
        if self.allowed or not is_private_address(address):
            return True
        name = canonical(host)
        if is_private_host(name):  # it was judged where it was found
            return True
        if name not in self._seeds and not self._is_intranet:
            return False
        if len(self._reached) >= MOST_REACHED:
            self._reached.clear()
        self._reached.add(name)
        return True

    async def reachable(self, host: str, addresses: list[str]) -> list[str]:
        """Those of the addresses of a host that it may be connected to. Raises `PrivateHost` where none is left."""
        found = [address for address in addresses if self.permits(host, address)]
        if not found and addresses and await self.is_intranet():
            found = [address for address in addresses if self.permits(host, address)]
        if addresses and not found:
            self.refuse(host, addresses[0])
        return found

    def refuse(self, host: str, address: str) -> NoReturn:
        """Count, and say once, that this host is not connected to at this address. Raises `PrivateHost`."""
        self._count("ubi/private/refused")
        self._notices.once(
            "link/private",
            f"{host} has the private address {address}: links do not lead there, and what is asked for of it fails "
            f"(link/private). {REMEDY}.",
        )
        raise PrivateHost(f"{host} has the private address {address}")

    # -- what kind of crawl it is

    @property
    def _is_intranet(self) -> bool:
        return self._kinds[True] > 0 and not self._kinds[False]

    async def is_intranet(self) -> bool:
        """Whether a start request leads to a private address, and none to a public one, as far as that can be found
        out. Seeds are looked up once."""
        async with self._looking:
            while self._looked_up < min(len(self._seeds), MOST_LOOKED_UP) and not self._kinds[False]:
                names = list(self._seeds)[self._looked_up : self._looked_up + AT_ONCE]
                self._looked_up += len(names)
                for private in await asyncio.gather(*map(self._kind, names)):
                    if private is not None:
                        self._kinds[private] += 1
        return self._is_intranet

    async def _kind(self, host: str) -> bool | None:
        """Whether a host is private; None where it has no address that is known."""
        if is_private_host(host):
            return True
        try:
            addresses = await self._resolve(host.strip("[]"))
        except Exception:  # noqa: BLE001 - whatever a resolver raises: it is not known
            return None
        return all(map(is_private_address, addresses)) if addresses else None


_of_crawl: WeakKeyDictionary[Crawler, ref[Reach]] = WeakKeyDictionary()  # a scheduler holds it, and knows the crawler


def let_reach(crawler: Crawler, reach: Reach) -> None:
    """The connections of this crawler's handlers are those that this allows."""
    _of_crawl[crawler] = ref(reach)


def reach_of(crawler: Crawler) -> Reach | None:
    """What says where this crawler's handlers may connect to; None where nothing does."""
    known = _of_crawl.get(crawler)
    return None if known is None else known()


def refused_schemes(settings: BaseSettings) -> dict[str, object]:
    """Return the schemes of Scrapy's own download handlers that links may not lead to, with their handlers. Those that
    the user has set handlers for are meant to be used."""
    own = {scheme for scheme, handler in settings.getdict("DOWNLOAD_HANDLERS").items() if handler is not None}
    base: dict[str, object] = settings.getdict("DOWNLOAD_HANDLERS_BASE")
    return {scheme: handler for scheme, handler in base.items() if scheme not in {*own, *HARMLESS}}


def _scheme(url: str) -> str:
    """The scheme of a URL, in small letters; "" for what is none."""
    return url.partition(":")[0].lower()


def _is_http(url: str) -> bool:
    return url[:8].lower().startswith(("http://", "https://"))


def _written_host(url: str) -> str:
    """The host of an http URL as it is written, also of one so malformed that it has no normal form."""
    if host := host_of(url):
        return host
    try:
        return canonical(urlsplit(url).hostname or "") if _is_http(url) else ""
    except ValueError:
        return ""
