"""Every name of Scrapy's that is private, undocumented or about to change, and why it is needed. Nowhere else.

tests/scrapy_private fails, one name at a time, when a new Scrapy changes any of them. Those that make up a scheduled
request's way through Scrapy are in `fast.path`, `fast.spider_output` and `fast.pieces`, which stand for it while it is
as it was (`fast.compared`). Those of Twisted's pool of connections are in `kept_connections`, of its timers in
`steady_timers`; where the arguments of a spider are found in `start_arguments`.

| name | used for |
| --- | --- |
| `engine._slot.remove_request` | the one moment after a request's last output, whatever became of it |
| `engine._slot.close` | the crawl is being closed: nobody may wait for a permit any more |
| `engine._slot.closing` | whether the spider is being closed: a signal that comes then waits for the end of it |
| `engine._slot.close_if_idle` | whether it is Scrapy's shell that has opened the spider |
| `engine._slot.nextcall.schedule` | to make the engine look for requests now, not at its next heartbeat in 5 s |
| `engine._spider_idle`, its use of `engine.signals` | who holds the spider open at idle; to do so last |
| `engine.scraper.enqueue_scrape` | what became of a request: a response, or the error that ended it |
| `engine.downloader.handlers.download_request_async` | where a transfer starts, so that it can be cancelled |
| `engine.download_async` of the instance | what media pipelines call: how a download beside the queue ends |
| `handlers._get_handler`, `HTTP11DownloadHandler._pool`, Twisted's `_clientProtocol` | the connection of a request |
| PyDispatcher under `crawler.signals`, `OffsiteMiddleware.request_scheduled` | who listens to a signal |
| `downloader.slots`, meta key `download_slot` | the delay of the slot that a request went through |
| `downloader._get_slot`, `Slot.lastseen`, `jitter` | a slot never used delays nothing, on a machine just booted, too |
| `CrawlSpider`: `_requests_to_follow`, `_build_request`, `_rules`, `_callback`, `_errback` | links of a rule as one |
| `RobotsTxtMiddleware._parsers` | a derived class of the user's: to forget a robots.txt that we did not let it fetch |
| `scrapy.utils._download_handlers`, `ssl._make_ssl_context`, `http11.TunnelError` | `http`: words and TLS of Scrapy's |
| `httpproxy.proxy_bypass` | to ask once what `no_proxy` says of a host |
| `TextResponse._cached_selector` | whether a page was parsed, to read links off its tree; to let go of both at once |
| `crawler.spider` when a crawl has ended, `bootstrap_failed` | the exit status of an agent that could not go on |
| the dict below `scrapy.http.Headers` | `http`: headers whose names and values need no second look |

Scrapy keeps no references to what is wrapped elsewhere (it looks each up by name at every call), so wrapping them on
the instance is enough. Every wrapper calls what it wraps with the arguments it was given.
"""

from __future__ import annotations

import asyncio
import ssl
import urllib.request
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import Any

from pydispatch import dispatcher
from scrapy import Request, signals
from scrapy.core.downloader import Slot
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler, TunnelError
from scrapy.core.engine import ExecutionEngine
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares import httpproxy
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import DontCloseSpider, StopDownload
from scrapy.http import Headers, HtmlResponse, Response, TextResponse
from scrapy.link import Link
from scrapy.settings import BaseSettings
from scrapy.signalmanager import SignalManager
from scrapy.spiders import CrawlSpider
from scrapy.spiders.crawl import _identity_process_request
from scrapy.utils._download_handlers import (
    check_stop_download,
    get_dataloss_msg,
    get_maxsize_msg,
    get_warnsize_msg,
)
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.ssl import _make_ssl_context
from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from scrapy_ubi.scrapy_private import aiohttp_handler, kept_connections, socket_gate
from scrapy_ubi.scrapy_private.engines import engine_of

_ANY_SENDER = id(dispatcher.Any)
_LEGACY_SERVER_CONNECT = 0x4  # OpenSSL's SSL_OP_LEGACY_SERVER_CONNECT: servers without secure renegotiation

Download = Callable[[Request], Awaitable[Response]]

_closes: ContextVar[bool] = ContextVar("closes", default=False)  # whether what runs is part of a spider's closing


class EngineHooks:
    """The hooks on one running engine. Made in the scheduler's `open`, when the engine has its slot."""

    def __init__(self, engine: ExecutionEngine) -> None:
        slot = engine._slot
        assert slot is not None, "the engine has no slot before it opens the spider"
        self._engine = engine
        self._slot = slot

    def on_removed(self, removed: Callable[[Request], None]) -> None:
        """Call `removed(request)` when the engine lets go of a request, exactly once for each it took."""
        original = self._slot.remove_request

        def remove_request(request: Request) -> None:
            try:
                removed(request)
            finally:
                original(request)

        self._slot.remove_request = remove_request  # type: ignore[method-assign]

    def on_closing(self, closing: Callable[[], None]) -> None:
        """Call `closing()` when the spider is being closed, before the engine waits for the requests under way."""
        original = self._slot.close

        async def close() -> None:
            closing()
            await original()

        self._slot.close = close  # type: ignore[method-assign]

    def outlast_signals(self) -> None:
        """Let Scrapy's `close_spider_async` end when the spider is closed, also where it is being closed already.

        Else the first Ctrl-C or SIGTERM ends a process that closes for another reason before it is done. What the
        closing itself calls (a handler of `spider_closed` may stop the crawler) does not wait for it.
        """
        engine, slot, original, ended = self._engine, self._slot, self._engine.close_spider_async, asyncio.Event()

        async def close_spider_async(*, reason: str = "cancelled") -> None:
            if engine.spider is None or (slot.closing is not None and _closes.get()):
                await original(reason=reason)
            elif slot.closing is not None:
                await ended.wait()
            else:
                _closes.set(True)
                try:
                    await original(reason=reason)
                finally:
                    ended.set()

        engine.close_spider_async = close_spider_async  # type: ignore[method-assign]

    def on_outcome(self, outcome: Callable[[Response | Failure, Request], bool]) -> None:
        """Call `outcome(result, request)` when a scheduled request has its final response or error, before the spider
        does. When it returns True the spider is not told: no callback, errback or log line."""
        original = self._engine.scraper.enqueue_scrape

        def enqueue_scrape(result: Response | Failure, request: Request) -> Deferred[Any]:
            return succeed(None) if outcome(result, request) else original(result, request)

        self._engine.scraper.enqueue_scrape = enqueue_scrape  # type: ignore[method-assign]

    def on_successor(self, successor: Callable[[Request, Request], None]) -> None:
        """Call `successor(new, request)` when a downloader middleware gave a new request in place of the response of a
        scheduled one (a redirect, a retry), before the new one is enqueued."""
        original = self._engine._handle_downloader_output

        def handle_downloader_output(result: Request | Response | Failure, request: Request) -> Deferred[Any]:
            if isinstance(result, Request):
                successor(result, request)
            return original(result, request)

        self._engine._handle_downloader_output = handle_downloader_output  # type: ignore[method-assign]

    def at_idle(self, asked: Callable[[bool], bool]) -> None:
        """Call `asked(held)` when all receivers of `spider_idle` have been asked, however they were connected: whether
        one of them holds the spider open. When it returns True the spider stays open in any case."""
        engine, original = self._engine, self._engine._spider_idle

        def spider_idle() -> None:
            usual = engine.signals
            engine.signals = _Idle(usual, asked)  # type: ignore[assignment]
            try:
                original()
            finally:
                engine.signals = usual

        engine._spider_idle = spider_idle  # type: ignore[method-assign]

    def around_transfers(
        self, carry: Callable[[Request, Download], Awaitable[Response]], reach: socket_gate.Reaches | None = None
    ) -> None:
        """Let `carry(request, download)` do every transfer, by awaiting `download(request)` or not. `reach` says which
        addresses Scrapy's own handler may connect to.

        A user's own DOWNLOADER that has no such handlers is left as it is: its loads cannot be cancelled.
        """
        handlers = getattr(self._engine.downloader, "handlers", None)
        original: Download | None = getattr(handlers, "download_request_async", None)
        if handlers is None or original is None:
            return
        most = kept_connections.most_kept()
        downloads: dict[object, Download] = {}  # by handler

        def prepared(handler: object) -> Download:
            if isinstance(handler, HTTP11DownloadHandler):
                socket_gate.gate(handler._pool, _transport, reach)
                kept_connections.bound(handler._pool, most)
            elif aiohttp_handler.sends_again(handler):
                aiohttp_handler.send_once(handler)
                return aiohttp_handler.telling(original)
            return socket_gate.asking(handler, original)

        async def download_request_async(request: Request) -> Response:
            handler = handlers._get_handler(urlparse_cached(request).scheme)
            download = downloads.get(handler)
            if download is None:
                download = downloads[handler] = prepared(handler)
            return await carry(request, download)

        handlers.download_request_async = download_request_async

    def around_downloads(self, make: Callable[[Request, Download], Awaitable[Response]]) -> None:
        """Let `make(request, download)` make every download beside the scheduler, by awaiting `download(request)`."""
        original = self._engine.download_async

        async def download_async(request: Request) -> Response:
            return await make(request, original)

        self._engine.download_async = download_async  # type: ignore[method-assign]

    def let_first_pass(self) -> None:
        """Let the first request of each download slot pass at once.

        Scrapy's slots were last used at 0 of a monotonic clock, which may have begun with the machine: there, until a
        delay is over, each would keep its first request, and a place of the downloader with it. A user's own
        DOWNLOADER that has no such slots is left as it is.
        """
        downloader = self._engine.downloader
        original = getattr(downloader, "_get_slot", None)
        if original is None:
            return

        def get_slot(*args: Any, **named: Any) -> tuple[str, Any]:
            key, slot = original(*args, **named)
            if isinstance(slot, Slot) and slot.delay and not slot.lastseen:
                slot.lastseen = -slot.delay * (1 + slot.jitter)
            return key, slot

        downloader._get_slot = get_slot  # type: ignore[method-assign]

    def wake(self) -> None:
        """Make the engine look for requests, and whether it is idle, at once. Harmless at any time, in the loop."""
        if self._engine.running and self._engine.scraper.slot is not None and self._slot.closing is None:
            self._slot.nextcall.schedule()


class _Idle:
    """The signals of an engine while it asks whether the spider may be closed: `asked` has the last word."""

    def __init__(self, usual: SignalManager, asked: Callable[[bool], bool]) -> None:
        self._usual, self._asked = usual, asked

    def send_catch_log(self, signal: object, **named: Any) -> list[tuple[Any, Any]]:
        """As `SignalManager.send_catch_log`."""
        results = self._usual.send_catch_log(signal, **named)
        if signal is signals.spider_idle:
            errors = [result.value for _, result in results if isinstance(result, Failure)]
            if self._asked(any(isinstance(error, DontCloseSpider) for error in errors)):
                not_over = DontCloseSpider("the crawl is not over everywhere")
                results.append((self._asked, Failure(not_over)))  # type: ignore[no-untyped-call]
        return results

    def __getattr__(self, name: str) -> Any:
        return getattr(self._usual, name)


def _transport(connection: Any) -> Any:
    """The transport of what Twisted's pool hands out: a protocol, or a wrapper that tries once more."""
    return getattr(connection, "_clientProtocol", connection).transport


def only_scrapy_listens(crawler: Crawler, *which: object) -> bool:
    """Whether nobody is connected to these signals but Scrapy's own offsite middleware. It is asked for every page;
    PyDispatcher's own functions take three times as long."""
    for sender in (id(crawler), _ANY_SENDER):
        of_sender = dispatcher.connections.get(sender)
        for signal in (*which, dispatcher.Any) if of_sender else ():
            for reference in of_sender.get(signal, ()):
                receiver = reference() if isinstance(reference, dispatcher.WEAKREF_TYPES) else reference
                function = getattr(receiver, "__func__", None)
                if receiver is not None and function is not OffsiteMiddleware.request_scheduled:
                    return False
    return True


def slot_delay(crawler: Crawler, request: Request) -> float:
    """The delay (s) of the download slot that a request went through; 0.0 where a user's own DOWNLOADER has none."""
    slots = getattr(crawler.engine.downloader, "slots", {})
    return float(getattr(slots.get(request.meta.get("download_slot")), "delay", 0.0))


def robots_known(crawler: Crawler, netloc: str) -> bool:
    """Whether the robots.txt of this network location has been read (an empty one counts)."""
    middleware = crawler.get_downloader_middleware(RobotsTxtMiddleware)
    if middleware is None:
        return True  # nobody asks for it
    parser = middleware._parsers.get(netloc)
    return parser is not None and not isinstance(parser, Deferred)


def forget_robots(crawler: Crawler, netloc: str) -> None:
    """Let a robots.txt that could not be fetched be asked for again: else it counts as "all allowed" for ever."""
    middleware = crawler.get_downloader_middleware(RobotsTxtMiddleware)
    if middleware is not None and middleware._parsers.get(netloc, crawler) is None:
        del middleware._parsers[netloc]


def stopped_by(signal: object, crawler: Crawler, request: Request, arguments: dict[str, Any]) -> StopDownload | None:
    """Send a signal of a download; the StopDownload that one of its receivers raised."""
    return check_stop_download(signal, crawler, request, **arguments)


def too_large(size: int, limit: int, request: Request, expected: bool) -> str:
    """Scrapy's sentence for a response that is refused as too large."""
    return get_maxsize_msg(size, limit, request, expected=expected)


def large(size: int, limit: int, request: Request, expected: bool) -> str:
    """Scrapy's sentence for a large response."""
    return get_warnsize_msg(size, limit, request, expected=expected)


def data_loss(url: str) -> str:
    """Scrapy's sentence for a response of which something is missing."""
    return get_dataloss_msg(url)


def no_tunnel(message: str) -> Exception:
    """Scrapy's error for a proxy that opens no tunnel; Scrapy tries such requests again."""
    return TunnelError(message)


def is_no_tunnel(error: Exception) -> bool:
    """Whether a proxy has opened no tunnel to the host."""
    return isinstance(error, TunnelError)


def tls_context(settings: BaseSettings) -> ssl.SSLContext:
    """TLS as Scrapy's settings have it. Raises ValueError for a version that is none, and where no cipher is known."""
    try:
        context = _make_ssl_context(settings)
    except ssl.SSLError as error:
        ciphers = settings["DOWNLOADER_CLIENT_TLS_CIPHERS"]
        raise ValueError(f"DOWNLOADER_CLIENT_TLS_CIPHERS is {ciphers!r}: OpenSSL knows none of them") from error
    context.options |= _LEGACY_SERVER_CONNECT  # as Scrapy's handler has it
    return context


def forget_tree(response: Response) -> None:
    """Let go of what a page was parsed into by `selector`, `css` or `xpath`: asked again, it is parsed again."""
    if isinstance(response, TextResponse):
        response._cached_selector = None


def parsed_page(response: TextResponse) -> Any | None:
    """The root of the tree (lxml's) that a page of HTML was parsed into by `selector`, `css` or `xpath`; None where it
    was not yet."""
    selector = response._cached_selector
    return selector.root if selector is not None and selector.type == "html" else None


def headers_of(values: dict[bytes, list[bytes]]) -> Headers:
    """Headers of names and values that are as `Headers` keeps them."""
    headers = Headers()
    dict.update(headers, values)
    return headers


def copy_of(headers: Headers) -> Headers:
    """A copy of headers, to be changed; `Headers.copy` looks at each name and value again."""
    return headers_of({name: values[:] for name, values in dict.items(headers)})


def values_of(headers: Headers) -> Iterable[tuple[bytes, list[bytes]]]:
    """Names and values as `Headers` keeps them."""
    return dict.items(headers)


def remember_no_proxy() -> Callable[[], None]:
    """Remember what `no_proxy` says, and what of hosts. What is returned ends that."""
    module: Any = httpproxy
    original = ask = module.proxy_bypass
    by_environment: Any = getattr(urllib.request, "proxy_bypass_environment", None)
    if original is by_environment:  # as everywhere but on Windows and macOS
        ask = partial(by_environment, proxies=urllib.request.getproxies())
    module.proxy_bypass = lru_cache(maxsize=10_000)(ask)

    def forget() -> None:
        module.proxy_bypass = original

    return forget


def end_badly(crawler: Crawler) -> None:
    """The process's exit status is to be 1: that is Scrapy's for a crawl that has no spider when it is over."""

    def forget_spider() -> None:  # after everybody else who hears of the end
        asyncio.get_running_loop().call_soon(setattr, crawler, "spider", None)

    crawler.signals.connect(forget_spider, signals.engine_stopped, weak=False)


def is_trial(crawler: Crawler) -> bool:
    """Whether this run is one of Scrapy's commands that look at a page or two (shell, fetch, parse, check, bench).

    They apply the project's settings, add-ons included, but must not join a crawl: the shell opens a spider that stays
    open when idle, the others put a `start` of their own in place of the spider's. Asked when the engine has its slot;
    a crawler without one, in somebody's tests, joins no crawl either.
    """
    slot, spider = getattr(engine_of(crawler), "_slot", None), crawler.spider
    if slot is None:
        return True
    start_module = getattr(type(spider).start, "__module__", "") if spider is not None else ""
    return not slot.close_if_idle or start_module.startswith("scrapy.commands.")


class RulesByPage(CrawlSpider):
    """A CrawlSpider that is asked what to yield for all links of a rule, instead of yielding a request for each."""

    def links_of_rule(
        self, rule: int, links: list[Link], callback: Callable[..., Any], errback: Callable[..., Any]
    ) -> Any:
        """What to yield for the links that the rule of this number has found on a page."""
        raise NotImplementedError

    def _requests_to_follow(self, response: Response) -> Iterable[Any]:
        if not isinstance(response, HtmlResponse):
            return
        builds = type(self)._build_request is not CrawlSpider._build_request
        seen: set[Link] = set()
        for index, rule in enumerate(self._rules):
            links = [link for link in rule.link_extractor.extract_links(response) if link not in seen]
            chosen = list(rule.process_links(links))  # type: ignore[operator]
            seen.update(chosen)
            if not builds and rule.process_request is _identity_process_request:
                yield self.links_of_rule(index, chosen, self._callback, self._errback)
                continue
            for link in chosen:
                yield rule.process_request(self._build_request(index, link), response)  # type: ignore[operator]
