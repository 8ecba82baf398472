"""Scrapy's door to the package: one `download_request` per request; and which schemes have this handler (UBI_FAST).

Rules of this module:

* The time-out (`download_timeout` of the request, set by DOWNLOAD_TIMEOUT) is that of the whole: name, connection,
  tunnel, answer.
* A kept connection may have been closed by the server the moment it is used. Then a request without a body, of a
  method that may be repeated, is written once more, on a new connection; as Scrapy's handler has it. Under a right to
  `OneTransfer` that is left to who gave it, as the host's delay has to pass before.
* A request that is cancelled closes its connection at once.
* A request that Scrapy's handler would send otherwise than ours, or not at all, goes by Scrapy's (`scrapys`), which we
  have where there is a Twisted reactor: one whose headers say the length of its body, that cannot be written as one
  request, whose URL or proxy has a user, or that has a local address of its own; one to a host whose certificate cannot
  be verified (`scrapys.Unverifiable`); and all, where the event loop is another than asyncio's.
* When the handler is closed, requests under way fail at once; one whose connection is being dialed, when it is there.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from functools import cached_property
from types import FunctionType, ModuleType
from urllib.parse import urldefrag
from weakref import WeakKeyDictionary

from scrapy import Request, signals
from scrapy.core.downloader import contextfactory
from scrapy.core.downloader.handlers import http11
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.crawler import Crawler
from scrapy.exceptions import DownloadFailedError, DownloadTimeoutError, ResponseDataLossError
from scrapy.http import Response
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.python import global_object_name
from scrapy.utils.reactor import is_reactor_installed

from scrapy_ubi.adapter.downloads.reach import reach_of
from scrapy_ubi.adapter.downloads.resolver import Resolver
from scrapy_ubi.adapter.process.own_concurrency_limit import found_by_agent
from scrapy_ubi.adapter.scrapy_private import socket_gate
from scrapy_ubi.fast.http import scrapys
from scrapy_ubi.fast.http.connection import Connection, Unanswered
from scrapy_ubi.fast.http.dialing import Dialer
from scrapy_ubi.fast.http.load import Load
from scrapy_ubi.fast.http.pool import Pool
from scrapy_ubi.fast.http.request_head import head, is_framed
from scrapy_ubi.fast.http.route import Route, Router, target

logger = logging.getLogger(__name__)

TIMEOUT = 10.0  # seconds, of a request that brings none; as Scrapy's handler
CLOSED = "The download handler was closed"
REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "DELETE", "TRACE"})

# The connections that the handlers of a crawl keep, for the bound on all of them.
_idle: WeakKeyDictionary[Crawler, dict[Connection, float]] = WeakKeyDictionary()

SCHEMES = ("http", "https")

_ADDON = SETTINGS_PRIORITIES["addon"]
# Settings of Scrapy's handler for https that mean something to Twisted only.
_OF_TWISTED = ("DOWNLOADER_CLIENTCONTEXTFACTORY", "DOWNLOADER_CLIENT_TLS_METHOD")
# Whose classes Scrapy's modules import.
_IMPORTED = sys.stdlib_module_names | {"scrapy", "twisted", "zope", "OpenSSL", "service_identity", "typing_extensions"}
# Whose functions Python itself puts into a class: of a TypedDict (its annotations, from 3.14 on), a Protocol, a named
# tuple, a dataclass, an enumeration. No other module of the standard library: a patch may be made by its decorators.
_MAKERS = frozenset({"typing", "typing_extensions", "annotationlib", "collections", "dataclasses", "reprlib", "enum"})
_SCRAPYS = (HTTP11DownloadHandler, global_object_name(HTTP11DownloadHandler))


class Unsendable(Exception):
    """It cannot be written as one request, or not by us; why is its `__cause__`."""


class UbiDownloadHandler(BaseDownloadHandler):
    """The handler of http:// or https://, in place of `HTTP11DownloadHandler`."""

    asks_for_right = True  # before it connects, and when it writes (`socket_gate.asking`)

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        settings = crawler.settings
        self._limits = (
            settings.getint("DOWNLOAD_MAXSIZE"),
            settings.getint("DOWNLOAD_WARNSIZE"),
            settings.getbool("DOWNLOAD_FAIL_ON_DATALOSS"),
        )
        per_host, at_once = settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN"), settings.getint("CONCURRENT_REQUESTS")
        if (found := found_by_agent(settings)) is not None:
            at_once = max(at_once, found.most)
        idle = _idle.setdefault(crawler, {})
        asks_for_files = bool(settings.getpriority("UBI_FAST"))  # the user has turned it on, as the process keeps them
        self.pool = Pool(max(1, per_host), max(1, per_host, at_once), idle, asks_for_files)
        self._router = Router(settings.get("DOWNLOAD_BIND_ADDRESS"))
        self._dialer = Dialer(crawler, self.pool, Resolver(crawler), lambda: reach_of(crawler))
        # By its name and attribute the gate finds it (`socket_gate`), as it does Scrapy's own.
        by_twisted = settings.getbool("TWISTED_REACTOR_ENABLED") and is_reactor_installed()
        self.scrapys = HTTP11DownloadHandler(crawler) if by_twisted else None
        self._under_way: set[Connection] = set()
        self._warned_of_loss = False
        crawler.signals.connect(self._tell, signals.spider_closed)

    async def download_request(self, request: Request) -> Response:
        """The response of `request`. Raises Scrapy's download exceptions, ValueError for what cannot be sent."""
        if self.scrapys is None:
            return await self._by_ours_alone(request)
        if not self._is_loop_asyncios or _is_for_scrapys(request):
            return await self._by_scrapys(self.scrapys, request)
        try:
            return await self._by_ours(request)
        except (Unsendable, scrapys.Unverifiable):
            return await self._by_scrapys(self.scrapys, request)

    async def _by_ours_alone(self, request: Request) -> Response:
        """The response, where Scrapy's handler is not there for what ours cannot do."""
        try:
            return await self._by_ours(request)
        except Unsendable as error:
            self.pool.counts["refused"] += 1
            assert error.__cause__ is not None
            raise error.__cause__ from None
        except scrapys.Unverifiable as error:
            raise DownloadFailedError(f"The certificate cannot be verified: {error}") from error

    async def _by_ours(self, request: Request) -> Response:
        """The response. Raises `Unsendable`, `scrapys.Unverifiable`, and Scrapy's exceptions."""
        right = socket_gate.may_write.get()
        try:
            route, host = self._router.route(request)
            data = head(request, target(request.url, route), host, to_proxy=route.tunnel is None)
        except ValueError as error:
            raise Unsendable from error
        load = Load(request, self.crawler, self._limits_of(self.crawler.spider))
        timeout = float(request.meta.get("download_timeout") or TIMEOUT)
        deadline = asyncio.get_running_loop().time() + timeout
        try:
            await self._exchange(load, route, data, deadline, right)
        except TimeoutError:
            url = urldefrag(request.url)[0]
            raise DownloadTimeoutError(f"Getting {url} took longer than {timeout} seconds.") from None
        except Unanswered as error:
            raise DownloadFailedError(str(error)) from None
        except ResponseDataLossError:
            if not self._warned_of_loss:
                logger.warning("%s", scrapys.data_loss(request.url))
                self._warned_of_loss = True
            raise
        return load.response()

    @cached_property
    def _is_loop_asyncios(self) -> bool:
        """Whether the event loop, which runs, is one of asyncio's own: another one (uvloop, set by its policy) may give
        a request to the network some time after the right to fetch was compared."""
        loop = asyncio.get_running_loop()
        fits = isinstance(loop, asyncio.BaseEventLoop)
        if not fits:
            logger.info("UBI_FAST is left out, Scrapy's handler fetches: the loop is %r, not asyncio's own", loop)
        return fits

    async def _by_scrapys(self, scrapys: HTTP11DownloadHandler, request: Request) -> Response:
        self.pool.counts["by_scrapys_handler"] += 1
        return await scrapys.download_request(request)

    def _limits_of(self, spider: object) -> tuple[int, int, bool]:
        """DOWNLOAD_MAXSIZE, DOWNLOAD_WARNSIZE, DOWNLOAD_FAIL_ON_DATALOSS; the first two may be a spider's."""
        most, large, fails = self._limits
        return getattr(spider, "download_maxsize", most), getattr(spider, "download_warnsize", large), fails

    def _tell(self) -> None:
        """The spider is closed: what happened goes to the stats, of both schemes together."""
        for what, number in self.pool.counts.items():
            self.crawler.stats.inc_value(f"ubi/http/{what}", number)
        self.pool.counts.clear()

    async def close(self) -> None:
        """Close all connections. Requests under way fail."""
        self.pool.close()
        for connection in list(self._under_way):
            connection.fail(DownloadFailedError(CLOSED))
        if self.scrapys is not None:
            await self.scrapys.close()
        await asyncio.sleep(0)  # the transports close their sockets in the loop's next turn

    async def _exchange(
        self, load: Load, route: Route, data: bytes, deadline: float, right: socket_gate.Right | None
    ) -> None:
        """Have `load` come to its end, on a kept connection or a new one. Raises TimeoutError, and what ends loads."""
        connection = self.pool.take_connection(route)
        if connection is not None:
            try:
                return await self._load(connection, load, data, deadline, right)
            except Unanswered:
                if load.request.method not in REPEATABLE or load.request.body:
                    raise
                self.pool.counts["repeated"] += 1
                if isinstance(right, socket_gate.OneTransfer):
                    right.broken = True
                    raise
            load.begin()
        async with asyncio.timeout_at(deadline):
            connection = await self._dialer.dial(route, right)
        if self.pool.closed:
            connection.abort()
            raise DownloadFailedError(CLOSED)
        self.pool.counts["opened"] += 1
        return await self._load(connection, load, data, deadline, right)

    async def _load(
        self, connection: Connection, load: Load, data: bytes, deadline: float, right: socket_gate.Right | None
    ) -> None:
        connection.start(load, data, load.request.body, right)
        timer = asyncio.get_running_loop().call_at(deadline, load.fail, TimeoutError())
        self._under_way.add(connection)
        try:
            await load.done
        except (TimeoutError, asyncio.CancelledError):
            connection.abort()
            raise
        finally:
            timer.cancel()
            self._under_way.discard(connection)


def _is_for_scrapys(request: Request) -> bool:
    """Whether Scrapy's handler treats this request in a way of its own."""
    meta = request.meta
    proxy = meta.get("proxy")
    return (
        "bindaddress" in meta
        or "@" in urlparse_cached(request).netloc
        or (proxy is not None and "@" in proxy)
        or not isinstance(meta.get("download_timeout", 0), int | float)
        or is_framed(request)
    )


def place_handler(settings: BaseSettings) -> None:
    """Put the handler in place for the schemes that the user has none for; nothing with a loop that it does not fit.

    It is on by default, and then whatever the project sets that is of Scrapy's handler alone keeps that one: one line
    of the log (INFO) says what. Where the user has turned it on, these lines are warnings.
    """
    if UbiDownloadHandler in (settings["DOWNLOAD_HANDLERS"] or {}).values():
        return  # this add-on's second call
    asked = bool(settings.getpriority("UBI_FAST"))
    kept = _kept(settings, asked)
    for scheme in SCHEMES:
        if scheme in kept:
            level = logging.WARNING if asked else logging.INFO
            logger.log(level, "UBI_FAST does not change how %s:// is fetched: %s.", scheme, kept[scheme])
    if ours := [scheme for scheme in SCHEMES if scheme not in kept]:
        # Each scheme has a priority of its own, and without a reactor Scrapy gives its handlers that of a project.
        handlers = {**settings.getdict("DOWNLOAD_HANDLERS"), **dict.fromkeys(ours, UbiDownloadHandler)}
        priority = max(_ADDON, settings.getpriority("DOWNLOAD_HANDLERS") or 0)
        settings.set("DOWNLOAD_HANDLERS", BaseSettings(handlers, "project"), priority)
        logger.info("UBI_FAST: scrapy_ubi's own handler fetches %s", " and ".join(ours))


def _kept(settings: BaseSettings, asked: bool) -> dict[str, str]:
    """The schemes that stay with the user's handler, or with Scrapy's, each with the reason. `asked`: the user has
    turned UBI_FAST on."""
    if loop := settings.get("ASYNCIO_EVENT_LOOP"):
        return dict.fromkeys(
            SCHEMES,
            f"ASYNCIO_EVENT_LOOP is {loop!r}, and only asyncio's own loop gives a request to the network at the moment "
            "at which the right to fetch was compared",
        )
    if not asked:
        if not settings.getbool("TWISTED_REACTOR_ENABLED"):
            return dict.fromkeys(SCHEMES, "TWISTED_REACTOR_ENABLED is off")
        if settings.get("DOWNLOAD_BIND_ADDRESS"):
            return dict.fromkeys(SCHEMES, "DOWNLOAD_BIND_ADDRESS is set")
        if name := _patched():
            return dict.fromkeys(SCHEMES, f"{name} is not Scrapy's own")
    theirs = settings.getdict("DOWNLOAD_HANDLERS")
    kept = {scheme: "DOWNLOAD_HANDLERS names a handler for it" for scheme in SCHEMES if scheme in theirs}
    if settings.getbool("TWISTED_REACTOR_ENABLED"):  # without, Scrapy itself changes them
        base = settings.getdict("DOWNLOAD_HANDLERS_BASE")
        for scheme in SCHEMES:
            if base.get(scheme) not in _SCRAPYS:
                kept.setdefault(scheme, "DOWNLOAD_HANDLERS_BASE names another handler for it than Scrapy's")
    for name in _OF_TWISTED:
        if (settings.getpriority(name) or 0) > SETTINGS_PRIORITIES["default"]:
            kept.setdefault("https", f"{name} is set, which only Scrapy's handler knows")
    return kept


def _patched() -> str:
    """The first class or method of Scrapy's handler that somebody has put another in the place of; "" for none."""
    for module in (http11, contextfactory):
        for name, found in list(vars(module).items()):
            if not isinstance(found, type):
                continue
            if found.__module__ != module.__name__:
                if found.__module__.partition(".")[0] not in _IMPORTED:
                    return f"{module.__name__}.{name}"
                continue
            for method, value in vars(found).items():
                function = getattr(value, "__func__", value)
                if isinstance(function, FunctionType) and not _is_made_for(module, function):
                    return f"{name}.{method}"
    return ""


def _is_made_for(module: ModuleType, function: FunctionType) -> bool:
    """Whether a function of a class of this module is written there, or is one of those that Python adds."""
    if function.__globals__ is vars(module):
        return True
    name = str(function.__globals__.get("__name__"))
    return name in _MAKERS or name.startswith("namedtuple_")
