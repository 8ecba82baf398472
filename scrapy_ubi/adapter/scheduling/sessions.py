"""Sessions: the cookies of a host go with it when another agent takes it over, and survive a restart.

Scrapy keeps cookies in the memory of one process. An agent that takes over a host in the middle of a session would be
asked to log in again, and its pages would give no items. Rules of this module:

* What the jar holds for a host is noted with the host (section `cookies` of its notes) when a response or a request has
  set cookies, before the page counts as done. It is put into the jar of the agent that fetches the host next.
* A row of the section is [jar, name, value, domain, path, secure, expires, domain was named, port]: all that decides
  what is sent, and to whom. A value of None is a cookie that is only a name. The port is left out where none was given.
  `jar` is the `cookiejar` of the request's meta, as far as it is a text or a whole number, else None.
* The rows of a domain stand in the order in which its cookies are sent.
* Notes come from elsewhere: a row that does not hold, or whose domain is not that of the host, is left out and counted.
* What a callback awaits (`engine.download_async`) may set cookies of a host that another agent owns. Until a page of
  that host has ended here, requests for it that pages yield bring these cookies along (`BROUGHT` in their meta), and
  who fetches them puts into its jar what that lacks. Seeds bring none: each agent has run `start()` itself.
* A host's notes are small. Cookies that take more than `MOST` characters do not travel: counted, and said once.
* A cookie for all hosts of a domain is known to the agent that got it. Other hosts of the domain may have other owners:
  that is said once, as a warning where such a cookie looks like that of a login: its request had a body to post, or its
  page leads to another host of the domain. UBI_PARTITION = "domain" gives them one owner.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from http.cookiejar import Cookie
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

from scrapy_ubi.adapter.downloads.unscheduled import is_robots
from scrapy_ubi.adapter.process.log_once import Notices
from scrapy_ubi.adapter.requests.check import BROUGHT
from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.observers import PageObserver
from scrapy_ubi.adapter.robots.fetch import load_of
from scrapy_ubi.adapter.scrapy_private.middlewares import cookies_of_domain
from scrapy_ubi.ground.untrusted.checks import object_or_nothing
from scrapy_ubi.protocol.host import HostState
from scrapy_ubi.protocol.notes import canonical
from scrapy_ubi.settings import UbiSettings

if TYPE_CHECKING:
    from scrapy_ubi.agent import Node, Visit

SECTION = "cookies"
MOST = 2000  # characters of a host's cookies as JSON: half of its notes
MOST_BESIDE = 10_000  # hosts and jars whose cookies came beside the scheduler; beyond, the oldest is forgotten
MOST_KNOWN = 100_000  # hosts remembered as restored; beyond, they are restored once more, which changes nothing
Whose = tuple[str, str | int | None]  # a host's name, a jar
_UNSENDABLE = re.compile("[\0\r\n\ud800-\udfff]")
_MARK = f'"{SECTION}":'  # in the text of notes that have the section


class Row(NamedTuple):
    """One cookie, as it is noted."""

    jar: str | int | None
    name: str
    value: str | None
    domain: str
    path: str
    secure: bool
    expires: int | None  # unix seconds; None: with the session
    named: bool  # the server named the domain, so it is for all hosts of it
    port: str | None = None  # numbers, with commas

    @property
    def name_of_cookie(self) -> tuple[object, ...]:
        """What a jar has one cookie of."""
        return self.jar, self.name, self.domain, self.path

    def cookie(self) -> Cookie:
        """As a jar keeps it."""
        return Cookie(
            0, self.name, self.value, self.port, self.port is not None,
            self.domain, self.named, self.domain.startswith("."), self.path, True,
            self.secure, self.expires, self.expires is None, None, None, {},
        )  # fmt: skip


class Sessions(PageObserver):
    """The sessions of one agent's hosts. `count` adds one to a stat; `add` lets an observer hear of pages from now on;
    `wall` gives unix time (s)."""

    def __init__(
        self,
        crawler: Crawler,
        node: Node,
        settings: UbiSettings,
        notices: Notices,
        count: Callable[[str], object],
        add: Callable[[PageObserver], object],
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._crawler = crawler
        self._hosts = node.hosts
        self._notices = notices
        self._count = count
        self._add = add
        self._wall = wall
        self._one_owner = settings.redis_url is None or settings.partition == "domain"
        self._known: set[str] = set()  # hosts whose noted cookies are in the jar
        self._setting: dict[Flight, bool] = {}  # pages whose responses set cookies; whether it looks like a login
        # Hosts, with a jar, whose cookies came beside the scheduler and are not noted; whether it looks like a login
        self._beside: dict[Whose, bool] = {}
        self._brings = Brings(self)
        node.hosts.on_change(self._forget)

    @cached_property
    def _middleware(self) -> CookiesMiddleware | None:
        """Looked for with the first cookie; None where cookies are switched off in Scrapy."""
        return self._crawler.get_downloader_middleware(CookiesMiddleware)

    def _forget(self, state: HostState) -> None:
        self._known.discard(state.host)

    # -- as an observer

    def begun(self, flight: Flight) -> None:
        """Have the cookies of its host ready."""
        if (visit := flight.visit) is None:
            return
        if visit.state.notes.text:
            self.restore(visit)
        if (text := flight.request.meta.pop(BROUGHT, None)) is not None:
            self.unpack(flight.request, text)

    def received(self, flight: Flight, response: Response) -> None:
        """Remember whether this response, the last one of a page, sets cookies."""
        if b"Set-Cookie" in response.headers:
            is_login = flight.request.method == "POST" or _leaves_host(response)
            if flight.visit is not None:
                self._setting[flight] = is_login
            else:
                self._came_beside(flight.request, is_login)
        else:
            self._setting.pop(flight, None)

    def ended(self, flight: Flight) -> None:
        """Note the cookies of its host, where the page or its request has set some."""
        if flight.visit is not None:
            beside = self._take_beside(flight.request) if self._beside else None
            if flight in self._setting or flight.request.cookies or beside is not None:
                self.keep(flight.request, flight.visit.state, self._setting.get(flight, beside or False))
        self.withdrawn(flight)

    def withdrawn(self, flight: Flight) -> None:
        """Nothing is noted of a page that was not fetched."""
        self._setting.pop(flight, None)

    # -- from the jar to the notes

    def keep(self, request: Request, state: HostState, is_login: bool = False) -> None:
        """Note the cookies of this page's host: the page, or its request, has set some. `is_login`: it looks so."""
        middleware, hostname = self._middleware, urlparse_cached(request).hostname
        key = request.meta.get("cookiejar")
        if middleware is None or hostname is None or request.meta.get("dont_merge_cookies"):
            return
        if key is not None and type(key) not in (str, int):
            self._lost("jar", f"The cookiejar {key!r:.100} is no text and no whole number")
            return
        domains = _domains(hostname)
        rows = [row for row in self._noted(state) if row.jar != key or row.domain not in domains]
        rows += _rows(middleware, hostname, key)
        rows.sort(key=lambda row: (repr(row.jar), row.domain))
        self._say_if_shared(rows, hostname, logging.WARNING if is_login else logging.INFO)
        self._note(state, rows)

    def _note(self, state: HostState, rows: list[Row]) -> None:
        self._known.add(state.host)
        value = [list(row if row.port is not None else row[:-1]) for row in rows] or None
        if value is not None and len(canonical({SECTION: value})) > MOST:
            self._hosts.put(state, SECTION, None)
            self._lost("size", f"The cookies of {state.host} take more than {MOST} characters")
        elif rows != self._noted(state):
            self._hosts.put(state, SECTION, value)
            if value is not None and self._hosts.get(state, SECTION) is None:
                self._lost("size", f"The notes of {state.host} have no room for its cookies")

    def _lost(self, why: str, what: str) -> None:
        self._count(f"ubi/cookies/unkept/{why}")
        self._notices.once(f"cookies/{why}", f"{what}: an agent that takes the host over begins without them.")

    def _say_if_shared(self, rows: Iterable[Row], hostname: str, level: int) -> None:
        shared = next((row for row in rows if row.named and row.domain.lstrip(".") != hostname), None)
        if shared is not None and not self._one_owner:
            self._notices.once(
                f"cookies/shared/{level}",
                f"{hostname} sets cookies for all hosts of {shared.domain.lstrip('.')}, which other agents may own: "
                "where a session spans several hosts, set UBI_PARTITION = 'domain', so that one agent fetches all.",
                level,
            )

    # -- from the jar to a request, and from there to the jar of who fetches it

    def _came_beside(self, request: Request, is_login: bool) -> None:
        """What bypasses the scheduler has set cookies of its host. Those of a robots.txt are no session's."""
        if load_of(request) is not None or is_robots(request) or request.meta.get("dont_merge_cookies"):
            return
        if (whose := _whose(request)) is None:
            return
        self._add(self._brings)
        self._beside[whose] = self._beside.pop(whose, False) or is_login
        if len(self._beside) > MOST_BESIDE:
            del self._beside[next(iter(self._beside))]

    def _take_beside(self, request: Request) -> bool | None:
        return None if (whose := _whose(request)) is None else self._beside.pop(whose, None)

    def bring(self, request: Request) -> None:
        """A page yields this: give it the cookies of its host that came beside the scheduler."""
        request.meta.pop(BROUGHT, None)  # copied from another
        whose, middleware = _whose(request), self._middleware
        if whose is None or whose not in self._beside or middleware is None or request.meta.get("dont_merge_cookies"):
            return
        hostname, is_login = whose[0], self._beside[whose]
        rows = _rows(middleware, *whose)
        self._say_if_shared(rows, hostname, logging.WARNING if is_login else logging.INFO)
        text = canonical({SECTION: [list(row) for row in rows]})
        if len(text) > MOST:
            self._lost("size", f"The cookies of {hostname} take more than {MOST} characters")
        elif rows:
            request.meta[BROUGHT] = text

    def unpack(self, request: Request, text: object) -> None:
        """Put what a request has brought into the jar, as far as that has no such cookie."""
        hostname = urlparse_cached(request).hostname or ""
        brought = object_or_nothing(text).get(SECTION) if isinstance(text, str) else None
        rows = [read_row(row, hostname) for row in brought] if isinstance(brought, list) else [None]
        if None in rows:
            self._count("ubi/cookies/refused")
        whose, middleware = _whose(request), self._middleware
        if whose is None or middleware is None:
            return
        there = {row.name_of_cookie for row in _rows(middleware, *whose)}
        now = self._wall()
        for row in rows:
            if row is not None and row.name_of_cookie not in there and (row.expires is None or row.expires > now):
                self._put(row)
        self._beside.setdefault(whose, False)  # to be noted when this page ends

    def _put(self, row: Row) -> None:
        assert self._middleware is not None
        self._middleware.jars[row.jar].set_cookie(row.cookie())
        self._count("ubi/cookies/restored")

    # -- from the notes to the jar

    def restore(self, visit: Visit) -> None:
        """Before a page is fetched: put what was noted of its host elsewhere, or before a restart, into the jar."""
        text = visit.state.notes.text
        if not text or _MARK not in text or visit.host in self._known or self._middleware is None:
            return
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known.add(visit.host)
        now = self._wall()
        for row in self._noted(visit.state):
            if row.expires is None or row.expires > now:
                self._put(row)

    def _noted(self, state: HostState) -> list[Row]:
        """What is noted of this host and holds."""
        noted = self._hosts.get(state, SECTION)
        if noted is None:
            return []
        hostname = urlsplit(f"//{state.host}").hostname or ""
        rows = [read_row(row, hostname) for row in noted] if isinstance(noted, list) else [None]
        if None in rows:
            self._count("ubi/cookies/refused")
        return [row for row in rows if row is not None]


class Brings(PageObserver):
    """Added with the first cookie that came beside the scheduler: hears of all that pages yield."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def refuses(self, flight: Flight, response: Response, found: object) -> bool:
        """Refuses nothing: a request gets the cookies that its host's owner may lack."""
        if isinstance(found, Request):
            self._sessions.bring(found)
        return False


def _whose(request: Request) -> Whose | None:
    """The host and the jar of a request; None where it has no host, or a jar that cannot be named elsewhere."""
    hostname, key = urlparse_cached(request).hostname, request.meta.get("cookiejar")
    return (hostname, key) if hostname is not None and (key is None or type(key) in (str, int)) else None


def _leaves_host(response: Response) -> bool:
    """Whether this redirects to another host."""
    location = response.headers.get(b"Location")
    if location is None or not 300 <= response.status < 400:
        return False
    try:
        host = urlsplit(location.decode("latin-1").strip()).hostname
    except ValueError:
        return False
    return host is not None and host != urlparse_cached(response).hostname


def _is_sendable(value: object) -> bool:
    """Whether a header can have this text within."""
    return isinstance(value, str) and not _UNSENDABLE.search(value)


def _is_absent_or_sendable(value: object) -> bool:
    return value is None or _is_sendable(value)


def _is_kind(*kinds: type) -> Callable[[object], bool]:
    return lambda value: type(value) in kinds


# Of a row's fields, in their order.
_HOLDS: tuple[Callable[[object], bool], ...] = (
    _is_kind(str, int, type(None)),
    _is_sendable,
    _is_absent_or_sendable,
    *[_is_sendable] * 2,
    _is_kind(bool),
    _is_kind(int, type(None)),
    _is_kind(bool),
    _is_absent_or_sendable,
)


def read_row(value: object, hostname: str) -> Row | None:
    """A row that came from elsewhere; None where it does not hold, or is none of this host's, or of hosts below it."""
    if not isinstance(value, list) or len(value) not in (len(Row._fields) - 1, len(Row._fields)):
        return None
    row = Row(*value)
    if not all(holds(field) for holds, field in zip(_HOLDS, row, strict=True)):
        return None
    domain = row.domain.removeprefix(".")
    return row if domain and (row.domain in _domains(hostname) or domain.endswith(f".{hostname}")) else None


def _row(key: str | int | None, cookie: Cookie) -> Row:
    return Row(
        key, cookie.name, cookie.value, cookie.domain, cookie.path, bool(cookie.secure), cookie.expires,
        bool(cookie.domain_specified), cookie.port,
    )  # fmt: skip


def _rows(middleware: CookiesMiddleware, hostname: str, key: str | int | None) -> list[Row]:
    """What a jar holds for a host."""
    jar = middleware.jars[key]
    return [_row(key, cookie) for domain in _domains(hostname) for cookie in cookies_of_domain(jar, domain)]


def _domains(hostname: str) -> list[str]:
    """The domains, as a jar spells them, whose cookies a host gets: its own name, and those above it."""
    name = hostname if "." in hostname or ":" in hostname else f"{hostname}.local"  # as `http.cookiejar` has it
    found = [hostname, name, f".{name}"]
    while "." in (name := name.partition(".")[2]):
        found += [name, f".{name}"]
    return list(dict.fromkeys(found))
