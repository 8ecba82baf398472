"""WebSub: hubs send what is new in a feed as soon as it is there (W3C, 2018), and the crawl fetches its links.

Rules of this module:

* Nothing is kept on disk. Topics are named at the start, and subscribed again with a new secret at each, which replaces
  what the hub has; a callback's path follows from its topic.
* A hub's question whether we meant it is answered with yes only for a subscription that was asked for here.
* What is delivered counts only with the signature that the secret makes; the rest is taken and thrown away, as section
  7.1.2 has it. Of it links of hosts count that are heard (`--notices`), so many an hour.
* A lease is renewed when four fifths of it are over; what fails is tried again after growing pauses.
* Who ends takes its subscriptions back, as far as hubs answer in time; the others end with their leases.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

import aiohttp
from lxml import etree

from scrapy_ubi.urls.links.handlers import feed
from scrapy_ubi.urls.links.handlers.bounds import FetchedBody, LinksCut
from scrapy_ubi.urls.links.handlers.header import link_values
from scrapy_ubi.urls.private import host_of, is_private_host
from scrapy_ubi.web.index_now import HOURLY, MOST_URLS, HostRate, is_heard
from scrapy_ubi.web.problem import Problem

logger = logging.getLogger("scrapy_ubi.web")

LEASE = 10 * 86_400  # s, asked for
LEAST_LEASE, MOST_LEASE = 60, 365 * 86_400  # s, believed
RENEW = 0.8  # of a lease
FIRST_PAUSE, MOST_PAUSE = 60.0, 3600.0  # s after a failure, doubled with each further one
UNANSWERED = 600.0  # s for the hub to ask whether we meant it
PATIENCE = 20.0  # s for topic and hub
MOST_TOPIC = 1_000_000  # bytes of it looked at for its hub
MOST_CHALLENGE = 2_000  # characters
MOST_HUBS = 4  # that one request may go through, each sending it to the next
REFUSALS = (OSError, aiohttp.ClientError, TimeoutError, ValueError)
METHODS = ("sha1", "sha256", "sha384", "sha512")


class Reply(NamedTuple):
    """What was answered: status, `Link` header, the begin of the body, and where a redirection leads."""

    status: int
    link: str
    body: bytes
    location: str = ""


Send = Callable[[str, str, Mapping[str, str] | None], Awaitable[Reply]]


@dataclass
class Subscription:
    """One topic. `topic`: its URL as it calls itself; `hub`: where it was asked for; `due`: when it is to be asked for
    (s); `held`: the hub has asked whether we meant it; `leaving`: it is to end, and `left`: the hub has heard that."""

    url: str
    topic: str
    hub: str = ""
    secret: str = field(default_factory=lambda: secrets.token_hex(32))
    due: float = 0.0
    pause: float = FIRST_PAUSE
    asked: bool = False
    held: bool = False
    leaving: bool = False
    left: asyncio.Event = field(default_factory=asyncio.Event)


def path_of(url: str) -> str:
    """The name of a topic in the path of its callback."""
    return hashlib.sha256(url.encode()).hexdigest()[:32]


def hub_of(url: str, reply: Reply) -> tuple[str, str]:
    """The hub that a topic names, and what it calls itself; empty where it names none. Of its header, else of its
    `link` elements."""
    found: dict[str, str] = {}
    for target, relations in [*link_values(reply.link), *_elements(reply.body)]:
        for relation in relations:
            if relation in ("hub", "self"):
                found.setdefault(relation, urljoin(url, target))
    hub = found.get("hub", "")
    return (hub, found.get("self", url)) if _is_usable(hub, url) else ("", url)


def _is_usable(hub: str, topic: str) -> bool:
    """Whether a hub may be asked for this topic: none of a private network for one of the public one."""
    return urlsplit(hub).scheme in ("http", "https") and (not is_private_host(host_of(hub)) or _is_near(topic))


def _is_near(url: str) -> bool:
    return is_private_host(host_of(url))


def _elements(body: bytes) -> Iterable[tuple[str, set[str]]]:
    """`link` elements of a feed or a page, with their relations."""
    try:
        root = etree.fromstring(body, etree.HTMLParser(recover=True, no_network=True, huge_tree=False))
    except (etree.LxmlError, ValueError):
        return
    for one in root.iter(etree.Element) if root is not None else ():
        if one.tag.rpartition("}")[2].rpartition(":")[2] == "link" and one.get("href"):  # RSS has atom:link
            yield one.get("href"), set((one.get("rel") or "").lower().split())


class WebSub:
    """Subscriptions to these topics, whose callbacks lie below `public`. Only links of `hosts` count."""

    def __init__(
        self,
        topics: Iterable[str],
        public: str,
        hosts: frozenset[str],
        send: Send | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._public = public.rstrip("/")
        self._hosts = hosts
        self._send = send if send is not None else send_request
        self._clock = clock
        self.subscriptions = {path_of(url): Subscription(url, url) for url in topics}
        self._rate = HostRate(HOURLY, 3600.0, clock)

    async def keep(self) -> None:
        """Subscribe, and renew, until cancelled."""
        while True:
            for path, one in self.subscriptions.items():
                if self._clock() >= one.due:
                    await self.subscribe(path, one)
            next_due = min((one.due for one in self.subscriptions.values()), default=self._clock() + MOST_PAUSE)
            await asyncio.sleep(max(1.0, next_due - self._clock()))

    async def subscribe(self, path: str, one: Subscription) -> None:
        """Ask the topic for its hub, and the hub for a subscription."""
        why = await self._ask(path, one)
        if not why:
            one.due, one.pause = self._clock() + UNANSWERED, FIRST_PAUSE
            return
        logger.warning("WebSub: %s was not subscribed (%s); tried again in %.0f s.", one.url, why, one.pause)
        one.due, one.pause = self._clock() + one.pause, min(2 * one.pause, MOST_PAUSE)

    async def _ask(self, path: str, one: Subscription) -> str:
        """Why it could not be asked for; empty where it could."""
        try:
            hub, one.topic = hub_of(one.url, await self._send("GET", one.url, None))
            if not hub:
                return "it names no hub"
            one.hub, one.asked = hub, True
            reply = await self._request(path, one, "subscribe")
        except REFUSALS as error:
            return str(error) or type(error).__name__
        return "" if reply.status in (202, 204) else f"the hub answers {reply.status}"

    async def _request(self, path: str, one: Subscription, mode: str) -> Reply:
        """Ask the hub, and where it sends us. Raises what `Send` does."""
        asked = {"hub.mode": mode, "hub.topic": one.topic, "hub.callback": f"{self._public}/websub/{path}"}
        if mode == "subscribe":
            asked |= {"hub.secret": one.secret, "hub.lease_seconds": str(LEASE)}
        for _ in range(MOST_HUBS):
            reply = await self._send("POST", one.hub, asked)
            elsewhere = urljoin(one.hub, reply.location)
            if reply.status not in (307, 308) or not reply.location or not _is_usable(elsewhere, one.url):
                break
            one.hub = elsewhere
        return reply

    async def leave(self, limit: float) -> None:
        """Take all subscriptions back, and wait at most so long (s) for the hubs to ask whether we meant that."""
        held = [(path, one) for path, one in self.subscriptions.items() if one.asked]
        try:
            async with asyncio.timeout(limit):
                await asyncio.gather(*(self._leave(path, one) for path, one in held))
        except TimeoutError:
            pass
        for _, one in held:
            if not one.left.is_set():
                logger.warning("WebSub: the hub of %s did not take the end; the lease ends it.", one.url)

    async def _leave(self, path: str, one: Subscription) -> None:
        one.leaving = True
        with suppress(*REFUSALS):
            if (await self._request(path, one, "unsubscribe")).status in (202, 204):
                await one.left.wait()

    # -- what hubs say

    def verified(self, path: str, said: Mapping[str, str]) -> str:
        """What the hub is answered that asks whether we meant it. Raises Problem where we did not."""
        one, mode = self.subscriptions.get(path), said.get("hub.mode", "")
        if one is None or not one.asked or said.get("hub.topic") != one.topic:
            raise Problem(404, "not_found", "Nothing of that kind was asked for.")
        if mode == "denied":
            logger.warning("WebSub: the hub of %s denies it: %s", one.url, said.get("hub.reason", "")[:200])
            one.held, one.due = False, self._clock() + MOST_PAUSE
            return ""
        challenge = said.get("hub.challenge", "")
        meant = "unsubscribe" if one.leaving else "subscribe"
        if mode != meant or not 0 < len(challenge) <= MOST_CHALLENGE:
            raise Problem(404, "not_found", "Nothing of that kind was asked for.")
        if one.leaving:
            one.asked = one.held = False
            one.left.set()
            return challenge
        given = said.get("hub.lease_seconds", "")
        lease = int(given) if given.isascii() and given.isdigit() and len(given) < 12 else LEASE
        one.held, one.due = True, self._clock() + RENEW * min(max(lease, LEAST_LEASE), MOST_LEASE)
        return challenge

    def delivered(self, path: str, signature: str, body: bytes) -> list[str]:
        """The URLs that are to be fetched, of what a hub sends. Raises Problem."""
        one = self.subscriptions.get(path)
        if one is None or one.left.is_set():
            raise Problem(410, "not_found", "There is no such subscription.")
        if not is_signed(signature, one.secret, body):
            logger.warning("WebSub: what came for %s has not the right signature.", one.url)
            return []
        urls = [url for url in _links(one.url, body) if is_heard(urlsplit(url).netloc.lower(), self._hosts)][:MOST_URLS]
        if urls:
            self._rate.charge(path, len(urls))
        return urls


def is_signed(signature: str, secret: str, body: bytes) -> bool:
    """Whether `X-Hub-Signature` is that of this body."""
    method, _, given = signature.strip().partition("=")
    if method not in METHODS:
        return False
    right = hmac.new(secret.encode(), body, method).hexdigest()
    return hmac.compare_digest(given.lower().encode("utf-8", "surrogateescape"), right.encode())


def _links(url: str, body: bytes) -> list[str]:
    """The links of a feed, each once; the topic itself of what is no feed."""
    found: dict[str, None] = {}
    try:
        for link in feed.links(FetchedBody(url, "", {}, body)):
            if link is not None:
                found[_joined(url, link)] = None
    except LinksCut:
        pass
    found.pop("", None)
    return [*found] or [url]


def _joined(url: str, link: str) -> str:
    try:
        joined = urljoin(url, link)
        return joined if urlsplit(joined).scheme in ("http", "https") else ""
    except ValueError:
        return ""


async def send_request(method: str, url: str, form: Mapping[str, str] | None) -> Reply:
    """Ask a topic or a hub. Raises aiohttp.ClientError, TimeoutError, OSError."""
    limit = aiohttp.ClientTimeout(PATIENCE)
    follow = method == "GET"  # where a hub sends a subscription is looked at first
    async with (
        aiohttp.ClientSession(timeout=limit) as session,
        session.request(method, url, data=form, allow_redirects=follow) as answer,
    ):
        try:
            body = await answer.content.readexactly(MOST_TOPIC)  # `read` gives what has come so far
        except asyncio.IncompleteReadError as whole:
            body = whole.partial
        link, location = ", ".join(answer.headers.getall("Link", [])), answer.headers.get("Location", "")
        return Reply(answer.status, link, body, location)
