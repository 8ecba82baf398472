"""IndexNow: sites say which of their URLs are new or have changed, and the crawl fetches these (indexnow.org).

Rules of this module:

* Only hosts that the operator has named are heard (`--notices`), and only URLs of the host that speaks.
* Who speaks has to have put the key that it gives into a file of that host: the file is fetched, small and without
  redirects, before anything is believed. A key that held is believed for a day, one that did not is asked for again
  after a minute.
* A host may say so many URLs an hour, and so many keys are tried a minute. All that is remembered is bounded.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp

from scrapy_ubi.web.parameters import Field, Fields, text, texts
from scrapy_ubi.web.problem import Problem, bad

MOST_URLS = 1_000  # in one notice
HOURLY = 10_000  # URLs of a host in an hour
CHECKS = 10  # key files of a host fetched in a minute: anybody can have that done
BELIEVED, DOUBTED = 86_400.0, 60.0  # s
KEPT = 1_000  # keys and hosts remembered
PATIENCE = 5.0  # s for the key file
MOST_KEY_FILE = 1_000  # bytes
AT_ONCE = 4  # key files fetched

_KEY = re.compile(r"[A-Za-z0-9-]{8,128}")
_SHORT = text(300)

ONE: Fields = {"url": Field(text(), needed=True), "key": Field(_SHORT, needed=True), "keyLocation": Field(text())}
MANY: Fields = {
    "host": Field(_SHORT, needed=True),
    "key": Field(_SHORT, needed=True),
    "keyLocation": Field(text()),
    "urlList": Field(texts(MOST_URLS), needed=True),
}

Fetch = Callable[[str], Awaitable[bytes]]


class Notice(NamedTuple):
    """What a host says: these URLs, and where the key that proves it lies."""

    host: str
    key: str
    key_url: str
    urls: Sequence[str]


def notice_of(said: Mapping[str, Any], hosts: frozenset[str]) -> Notice:
    """The notice in a query or a body, of one of these hosts. Raises Problem."""
    urls = said["urlList"] if "urlList" in said else [said["url"]]
    host = str(said.get("host") or _host(urls[0])).lower()
    if not is_heard(host, hosts):
        raise Problem(422, "host", "This host is none of the crawl's.")
    if _KEY.fullmatch(said["key"]) is None:
        raise bad("A key has 8 to 128 letters, digits and hyphens.")
    key_url = said["keyLocation"] or f"https://{host}/{said['key']}.txt"
    if any(_host(url) != host for url in (key_url, *urls)):
        raise Problem(422, "host", "All URLs, and the key's, have to be http or https URLs of that host.")
    return Notice(host, said["key"], key_url, urls)


def is_heard(host: str, hosts: frozenset[str]) -> bool:
    """Whether this host is named, or lies below one that is named as `*.site.example`."""
    return host in hosts or any(name.startswith("*.") and host.endswith(name[1:]) for name in hosts)


def _host(url: str) -> str:
    """The host and port of a URL, in small letters; empty where it has none, or a user."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return parts.netloc.lower() if parts.scheme in ("http", "https") and "@" not in parts.netloc else ""


class HostRate:
    """How much of each host within some time: `most` in `seconds`."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float]) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._counted: dict[str, tuple[float, int]] = {}  # host -> begin of its time, how much since

    def charge(self, host: str, number: int) -> None:
        """Count it. Raises Problem where it is too much."""
        now = self._clock()
        begin, before = self._counted.pop(host, (now, 0))
        if now - begin > self._seconds:
            begin, before = now, 0
        fits = before + number <= self._most
        self._counted[host] = begin, before + number if fits else before
        while len(self._counted) > KEPT:
            del self._counted[next(iter(self._counted))]
        if not fits:
            wait = {"Retry-After": str(int(self._seconds - (now - begin)) + 1)}
            raise Problem(429, "busy", "This host says too much at once: try again later.", wait)


class IndexNow:
    """Believes notices of these `hosts`. `fetch` gives the begin of a key file, and may raise OSError."""

    def __init__(
        self, hosts: frozenset[str], fetch: Fetch | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.hosts = hosts
        self._fetch = fetch if fetch is not None else fetch_key
        self._clock = clock
        self._judged: dict[tuple[str, str], tuple[bool, float]] = {}  # (key URL, key) -> it held; until when that holds
        self._urls = HostRate(HOURLY, 3600.0, clock)
        self._checks = HostRate(CHECKS, 60.0, clock)
        self._fetching = asyncio.Semaphore(AT_ONCE)

    async def believe(self, notice: Notice) -> None:
        """Raises Problem where the key is not there, or the host says too much."""
        place = notice.key_url, notice.key
        known = self._judged.get(place)
        if known is None or self._clock() > known[1]:
            self._checks.charge(notice.host, 1)
            holds = await self._holds(notice)
            known = holds, self._clock() + (BELIEVED if holds else DOUBTED)
            self._judged.pop(place, None)
            self._judged[place] = known
            while len(self._judged) > KEPT:
                del self._judged[next(iter(self._judged))]
        if not known[0]:
            raise Problem(403, "key", "The key was not found in its file on that host.")
        self._urls.charge(notice.host, len(notice.urls))

    async def _holds(self, notice: Notice) -> bool:
        try:
            async with self._fetching:
                found = await self._fetch(notice.key_url)
        except (OSError, aiohttp.ClientError, TimeoutError, ValueError):
            return False
        return found.strip().decode("utf-8", "replace").removeprefix("\ufeff") == notice.key


async def fetch_key(url: str) -> bytes:
    """The begin of a key file. Raises aiohttp.ClientError, TimeoutError, OSError."""
    limit = aiohttp.ClientTimeout(PATIENCE)
    async with aiohttp.ClientSession(timeout=limit) as session, session.get(url, allow_redirects=False) as answer:
        return await answer.content.read(MOST_KEY_FILE) if answer.status == 200 else b""
