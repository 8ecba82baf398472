"""A small web with a script: what each URL answers, and a record of who asked for what.

It is a forward proxy on loopback, so any host name works. A page is a body and a status, or a function of the visit;
`hold(url)` makes a page wait until the test lets it go, so that tests wait for what happens and never for time.
"""

from __future__ import annotations

import select
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from time import monotonic
from types import TracebackType
from urllib.parse import urlsplit

POLL = 0.02  # seconds after which the server notices that it is to end
LIMIT = 120.0  # seconds after which a page that is held answers anyway, so that a broken test ends


HANG_UP = 0


@dataclass(frozen=True)
class Visit:
    """One request as the server saw it. `number` counts the visits of this URL from 1."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes
    number: int
    connection: socket.socket | None = field(default=None, compare=False, repr=False)

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def is_hung_up(self) -> bool:
        """Whether who asked has closed the connection."""
        assert self.connection is not None
        try:
            return bool(select.select([self.connection], [], [], 0)[0]) and not self.connection.recv(1, socket.MSG_PEEK)
        except (OSError, ValueError):  # reset; closed here already
            return True


@dataclass
class Page:
    """One answer. `chunks` are sent after the body, as long as somebody takes them; they end with the connection.
    With status `HANG_UP` the connection ends without an answer.
    """

    body: str | bytes = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    chunks: Iterable[bytes] | None = None


class Held:
    """A page that waits. `arrived` is set when somebody asked for it, `release()` lets it answer."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self._go = threading.Event()

    def release(self) -> None:
        self._go.set()

    def wait(self) -> None:
        self.arrived.set()
        self._go.wait(LIMIT)


Answer = Callable[[Visit], Page]


def links(*urls: str) -> str:
    """The body of a page with these links."""
    return "<html><body>" + "".join(f'<a href="{url}">{url}</a>' for url in urls) + "</body></html>"


class Site:
    """The web, at this address of this machine. Pages that were never told of answer 404."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self.visits: list[Visit] = []
        self.most_at_once: Counter[str] = Counter()
        self.most_of_agent: Counter[tuple[str, str]] = Counter()  # the same by host and User-Agent
        self.spans: dict[str, list[tuple[float, float]]] = {}  # host -> begin and end of its visits (s)
        self.pages: dict[str, Answer] = {}  # by URL
        self._hosts: dict[str, Answer] = {}
        self._held: dict[str, Held] = {}
        self._numbers: Counter[str] = Counter()  # visits by URL
        self._now: Counter[str | tuple[str, str]] = Counter()
        self._lock = threading.Lock()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 65536  # head and body leave together: apart, the second waits 40 ms for the first's ACK

            def log_message(self, format: str, *args: object) -> None:
                """Nothing: the record is `visits`."""

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except (ConnectionResetError, BrokenPipeError):  # the crawler cancelled the load
                    self.close_connection = True

            def finish(self) -> None:
                try:
                    super().finish()
                except (ConnectionResetError, BrokenPipeError):  # likewise
                    self.rfile.close()

            def answer(self) -> None:
                site._answer(self)

            do_GET = do_POST = do_PUT = do_HEAD = answer

        self._server = ThreadingHTTPServer((address, 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(POLL,), name="site", daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def proxy(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def page(self, url: str, answer: str | Page | Answer = "", **headers: str) -> None:
        """Say what `url` answers; header names with _ for -."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if isinstance(answer, str):
            answer = Page(answer, headers=named)
        if isinstance(answer, Page):
            page = answer
            self.pages[url] = lambda visit: page
        else:
            self.pages[url] = answer

    def host(self, host: str, answer: Answer) -> None:
        """Say what the pages of a host answer of which nothing else was said."""
        self._hosts[host] = answer

    def redirect(self, url: str, to: str, status: int = 302) -> None:
        self.page(url, Page("", status, {"Location": to}))

    @contextmanager
    def hold(self, url: str) -> Iterator[Held]:
        """Within this block `url` answers only when released, at the latest at the end of the block."""
        held = self._held[url] = Held()
        try:
            yield held
        finally:
            del self._held[url]
            held.release()

    def urls(self) -> Counter[str]:
        """How often each URL was asked for."""
        return Counter(visit.url for visit in self.visits)

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        url = handler.path if "://" in handler.path else f"http://{handler.headers['Host']}{handler.path}"
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        host = urlsplit(url).netloc
        began = monotonic()
        with self._lock:
            if not self.visits:  # a test that has cleared them begins anew
                self._numbers.clear()
            self._numbers[url] += 1
            headers = {k.lower(): v for k, v in handler.headers.items()}
            visit = Visit(handler.command, url, headers, body, self._numbers[url], handler.connection)
            self.visits.append(visit)
            of_agent = host, headers.get("user-agent", "")
            self._now.update((host, of_agent))
            self.most_at_once[host] = max(self.most_at_once[host], self._now[host])
            self.most_of_agent[of_agent] = max(self.most_of_agent[of_agent], self._now[of_agent])
        try:
            if (held := self._held.get(url)) is not None:
                held.wait()
            rest = self._hosts.get(host, lambda visit: Page("not found", 404))
            page = self.pages.get(url, rest)(visit)
        finally:
            with self._lock:
                self._now.subtract((host, of_agent))
        ended = monotonic()  # before the client can know: noted later, gaps would seem too short on a busy machine
        if page.status == HANG_UP:
            handler.close_connection = True
        else:
            self._send(handler, page)
        self.spans.setdefault(host, []).append((began, ended))

    def gaps(self, host: str) -> list[float]:
        """Seconds between the end of each visit of this host (`host[:port]`) and the begin of the next."""
        spans = sorted(self.spans.get(host, []))
        return [later[0] - earlier[1] for earlier, later in pairwise(spans)]

    @staticmethod
    def _send(handler: BaseHTTPRequestHandler, page: Page) -> None:
        content = page.body.encode() if isinstance(page.body, str) else page.body
        headers = {"Content-Type": "text/html; charset=utf-8", **page.headers}
        if page.chunks is None:
            headers["Content-Length"] = str(len(content))
        else:
            handler.close_connection = True
            headers["Connection"] = "close"
        handler.send_response(page.status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(content)
            for chunk in page.chunks or ():
                handler.wfile.write(chunk)
                handler.wfile.flush()

    def __enter__(self) -> Site:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for held in list(self._held.values()):
            held.release()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(LIMIT)
