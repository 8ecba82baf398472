"""The server: which path is answered by what, each judged by `security` before; and how it listens.

Rules of this module:

* Every answer has the headers of `security.EVERYWHERE`; an error has the body of a `Problem`.
* Nothing here waits: what reads Redis or asks agents runs in the reader's threads.
* A fault of this program is logged, and said in one sentence, without a traceback.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import secrets
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from aiohttp import web

import scrapy_ubi
from scrapy_ubi.agent.metrics.server_log import MALFORMED, ServerLog
from scrapy_ubi.agent.report.queries import SORTS
from scrapy_ubi.cli.commands.items import NOW
from scrapy_ubi.cli.commands.stopped_status import read_figures
from scrapy_ubi.cli.monitor.status import CrawlStatus
from scrapy_ubi.errors import UbiError
from scrapy_ubi.web import index_now, page_history, parameters
from scrapy_ubi.web.index_now import IndexNow
from scrapy_ubi.web.item_events import ItemEvents, place_of
from scrapy_ubi.web.live_stream import FAULT, PATIENCE, LiveStream
from scrapy_ubi.web.metrics_routes import add_routes
from scrapy_ubi.web.page import write_page
from scrapy_ubi.web.parameters import Field, number
from scrapy_ubi.web.problem import Problem
from scrapy_ubi.web.reader import CrawlReader
from scrapy_ubi.web.readings import READINGS
from scrapy_ubi.web.security import (
    EVERYWHERE,
    NONCE_BYTES,
    NOTHING,
    Access,
    check_change,
    check_host,
    check_json,
    check_token,
    page_policy,
)
from scrapy_ubi.web.verbs import VERBS
from scrapy_ubi.web.web_sub import WebSub

LAST = 3.0  # s for what is under way at the end
HALF_OPEN = 30.0  # s after which a peer that acknowledges nothing counts as gone
_USER_TIMEOUT = getattr(socket, "TCP_USER_TIMEOUT", None)  # Linux

logger = logging.getLogger("scrapy_ubi.web")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_READS = ("GET", "HEAD")
_FOLLOW = {"from": Field(place_of, NOW)}
_MINUTES = {"minutes": Field(number(1, 1440), 60), "agent": Field(parameters.text(300))}


class UbiNotServed(UbiError):
    """The server cannot listen there."""


def has_left(request: web.Request) -> bool:
    """Whether its connection has ended: closed by the peer, reset, or given up."""
    return request.transport is None or request.transport.is_closing()


def end_half_open(request: web.Request) -> None:
    """Let the system end this connection when what is written to it is not acknowledged for `HALF_OPEN`: its machine
    was switched off, or its network is gone. Without, that takes the system a quarter of an hour."""
    connected = request.get_extra_info("socket")
    if connected is not None and connected.family in (socket.AF_INET, socket.AF_INET6) and _USER_TIMEOUT is not None:
        connected.setsockopt(socket.IPPROTO_TCP, _USER_TIMEOUT, int(1000 * HALF_OPEN))


class WebApp:
    """The server of one crawl. `application` is what aiohttp runs."""

    def __init__(
        self, reader: CrawlReader, access: Access, notices: IndexNow | None = None, hubs: WebSub | None = None
    ) -> None:
        self._reader = reader
        self._access = access
        self.live = LiveStream(reader)
        self.items = ItemEvents(reader)
        self.log = ServerLog(logger)  # for the server that runs it
        self._verbs = sorted(name for name in VERBS if name != "seeds" or reader.source != "agent")
        self._own: dict[str, Handler] = {
            "about": self._about,
            "crawl": self._crawl,
            "events": self._events,
            "follow": self._follow,
            "history": self._history,
        }
        self.application = web.Application(middlewares=[self._guard], client_max_size=parameters.MOST_BODY)
        self.application.router.add_route("*", "/", self._page)
        self.application.router.add_route("*", "/api/{name}", self._api)
        self.application.router.add_route("*", "/seeds", self._seeds)
        if notices is not None:
            self.application.router.add_route("*", "/indexnow", partial(self._index_now, notices))
        if hubs is not None:
            self.application.router.add_route("*", "/websub/{path}", partial(self._web_sub, hubs))
        add_routes(self.application, self._status, lambda: reader.crawl or "", (Problem,))
        self.application.on_shutdown.append(self._close)

    async def _status(self) -> CrawlStatus:
        return await self._reader.run(lambda settings, opts: read_figures(settings, opts)[0])

    async def _close(self, application: web.Application) -> None:
        self.items.close()
        await self.live.close()

    # -- each request

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            check_host(self._access, request.headers)
            if self._access.token_to_read and request.path.startswith("/api/"):
                check_token(self._access, request.headers)
            response = await handler(request)
        except Problem as problem:
            response = _json(problem.document(), problem.status, dict(problem.headers))
        except web.HTTPException as error:
            response = _json(*_of_aiohttp(error))
        except (ConnectionError, asyncio.CancelledError):
            raise
        except MALFORMED as error:  # its body, as it was read
            self.log.malformed(error)
            response = _json(Problem(400, "bad_request", "The body is not sent as HTTP has it.").document(), 400)
        except Exception:
            logger.exception("A request for %s could not be answered.", request.path[:200])
            response = _json(Problem(500, "fault", FAULT).document(), 500)
        if not response.prepared:
            response.headers.update(EVERYWHERE)
            response.headers.setdefault("Content-Security-Policy", NOTHING)
        return response

    async def _page(self, request: web.Request) -> web.StreamResponse:
        _allow(request, *_READS)
        nonce = secrets.token_urlsafe(NONCE_BYTES)
        headers = {"Content-Security-Policy": page_policy(nonce)}
        text = await asyncio.to_thread(write_page, nonce)  # it is read of files, the first time
        return web.Response(text=text, content_type="text/html", charset="utf-8", headers=headers)

    async def _api(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        reads, changes = name in self._own or name in READINGS, name in VERBS
        if not reads and not changes:
            raise Problem(404, "not_found", "There is no such path here.")
        _allow(request, *(_READS if reads else ()), *(("POST",) if changes else ()))
        if request.method == "POST":
            return await self._change(request, name)
        if name in self._own:
            return await self._own[name](request)
        reading = READINGS[name]
        return _json(await self._reader.run(reading.answer, **_query(request, reading.fields)))

    async def _seeds(self, request: web.Request) -> web.StreamResponse:
        _allow(request, "POST")
        return await self._change(request, "seeds")

    async def _change(self, request: web.Request, name: str) -> web.StreamResponse:
        check_change(self._access, request.headers, request.scheme)
        if name not in self._verbs:
            raise Problem(409, "refused", "An agent without Redis takes no seeds: give it a UBI_REDIS_URL.")
        verb = VERBS[name]
        said = parameters.of_body(verb.fields, await request.read())
        logger.info("%s asks for %s.", request.remote, name)
        return _json(await self._reader.run(verb.answer, **said))

    async def _index_now(self, notices: IndexNow, request: web.Request) -> web.StreamResponse:
        """A site says what has changed. It has no token: the key in a file of its host stands for it."""
        _allow(request, "GET", "POST")
        if request.method == "POST":
            check_json(request.headers)
            said = parameters.of_body(index_now.MANY, await request.read())
        else:
            said = _query(request, index_now.ONE)
        notice = index_now.notice_of(said, notices.hosts)
        await notices.believe(notice)
        return _json(await self._seed(notice.urls, force=True))

    async def _web_sub(self, hubs: WebSub, request: web.Request) -> web.StreamResponse:
        """A hub asks whether a subscription was meant, or delivers."""
        _allow(request, "GET", "POST")
        path = request.match_info["path"]
        if request.method == "GET":
            return web.Response(text=hubs.verified(path, request.query), content_type="text/plain")
        urls = hubs.delivered(path, request.headers.get("X-Hub-Signature", ""), await request.read())
        if urls:
            await self._seed(urls, force=False)
        return web.Response(status=202)

    async def _seed(self, urls: Sequence[str], force: bool) -> object:
        return await self._reader.run(VERBS["seeds"].answer, urls=urls, priority=None, force=force, wait=False)

    # -- what no command answers

    async def _about(self, request: web.Request) -> web.StreamResponse:
        _query(request, {})
        changes = bool(self._access.token)
        return _json(
            {
                "version": scrapy_ubi.__version__,
                "crawl": self._reader.crawl,
                "source": self._reader.source,
                "shown": self._reader.shown,
                "agent": self._reader.agent,
                "changes": changes,
                "token_to_read": self._access.token_to_read,
                "verbs": self._verbs if changes else [],
                "sorts": list(SORTS),
            }
        )

    async def _crawl(self, request: web.Request) -> web.StreamResponse:
        _query(request, {})
        return _json(await self.live.document())

    async def _history(self, request: web.Request) -> web.StreamResponse:
        """Of the agents' timelines; of agents without, what was seen here."""
        asked = _query(request, _MINUTES)
        await self.live.document()
        told = await self._reader.run(page_history.run, agents=self.live.agents, **asked)
        if not told["points"] and asked["agent"] is None:
            step, points = self.live.history.since(time.time() - 60 * asked["minutes"])
            told |= {"source": "server", "step": step, "points": points}
        return _json(told)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        _query(request, {})
        if request.method == "HEAD":
            return web.Response(content_type="text/event-stream")
        async with self.live.viewer(lambda: has_left(request)) as messages:
            return await _stream(request, _until_none(messages))

    async def _follow(self, request: web.Request) -> web.StreamResponse:
        """The items, as they come."""
        place = _query(request, _FOLLOW)["from"]
        if request.method == "HEAD":
            return web.Response(content_type="text/event-stream")
        if last := request.headers.get("Last-Event-ID", ""):
            place = parameters.of_query(_FOLLOW, [("from", last)])["from"]
        async with self.items.viewer(place) as events:
            return await _stream(request, events)


@asynccontextmanager
async def listening(app: WebApp, host: str, port: int) -> AsyncIterator[str]:
    """Serve in the running loop; the URL. Raises UbiNotServed where it cannot listen."""
    runner = web.AppRunner(
        app.application, access_log=None, logger=app.log, handle_signals=False, shutdown_timeout=LAST
    )
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            why = "another process listens there" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
            raise UbiNotServed(f"The page cannot be served at {host}:{port} ({why}): give another port.") from None
        bound = runner.addresses[0]
        yield f"http://{f'[{host}]' if ':' in host else host}:{bound[1]}/"
    finally:
        await runner.cleanup()


async def _until_none(messages: asyncio.Queue[str | None]) -> AsyncIterator[str]:
    while (text := await messages.get()) is not None:
        yield text


async def _stream(request: web.Request, events: AsyncIterator[str]) -> web.StreamResponse:
    """Send these events, each within the patience that a viewer has."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8", **EVERYWHERE})
    try:
        await response.prepare(request)
        end_half_open(request)
        await response.write(b"retry: 2000\n\n")
        async for text in events:
            async with asyncio.timeout(PATIENCE):
                await response.write(text.encode())
    except (TimeoutError, ConnectionError):
        if request.transport is not None:
            request.transport.abort()
    return response


def _query(request: web.Request, fields: parameters.Fields) -> dict[str, Any]:
    return parameters.of_query(fields, request.query.items())


def _allow(request: web.Request, *methods: str) -> None:
    if request.method not in methods:
        allowed = ", ".join(methods)
        raise Problem(405, "method", f"Only {allowed} here.", {"Allow": allowed})


def _json(document: object, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """An answer of JSON; of a text that is JSON already."""
    text = document if isinstance(document, str) else json.dumps(document)
    return web.Response(text=text, status=status, headers=headers, content_type="application/json", charset="utf-8")


_KINDS = {404: "not_found", 405: "method", 413: "too_large"}


def _of_aiohttp(error: web.HTTPException) -> tuple[dict[str, Any], int, dict[str, str]]:
    """What aiohttp itself refuses, in our form."""
    kind = _KINDS.get(error.status, "bad_request")
    sentence = f"The body is longer than {parameters.MOST_BODY:,} bytes." if error.status == 413 else f"{error.reason}."
    headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
    return Problem(error.status, kind, sentence).document(), error.status, headers
