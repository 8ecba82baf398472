"""Start requests that are to be fetched anyway (`dont_filter=True`, the default of `start_urls`), and links to their
pages.

Plain Scrapy's filter does not see such a seed: a link to its page is followed once more, with the link's callback.
Rules of this module:

* Such a seed is a request of its own, beside the link to its page: each is taken once in the whole cluster. Its nonce
  is made of what is the same at every agent: the names of its callback and errback, its `cookiejar`, and which of
  several seeds of that page it is, where these differ in more (cb_kwargs, meta, headers), or hold what cannot travel.
* A seed is *bare* when it carries nothing but a callback and an errback. A bare link with the same ones gives what the
  bare seed gives: it is the same request, fetched once. A redirect carries what middlewares have put on its page, which
  they put on the seed as well: it is bare, whether or not that travels.
* A link that is met as the same one is a duplicate where it is found, or is done without a load when its turn comes:
  another agent has found it, which did not know of the seed.
* What a page leaves behind is called by the page and by what was asked of it (`name`): a bare seed and a bare link that
  are the same request have one name, whichever of them was fetched; after a crash it may be both.
* A link that was fetched before its seed was met: the seed is done when its turn comes. Some `MOST_FETCHED` of such
  pages are remembered, as long as start() runs, and in a group always: one agent may name the seeds of all.

A bare link and a bare seed of one URL have different keys, and ask for the same: one load for both (`SeedTwins`).

* A link whose seed is known is done without a load, and so is a seed whose page was fetched by such a link.
* A seed that is handed out while such a link is under way waits for it: when the link's page was fetched, the seed is
  done; else it returns to the queue.
* Listeners hear of what is done without a load as of any duplicate.
* A page that is visited again is passed over by none of this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler

from scrapy_ubi.adapter.requests.check import NONCE
from scrapy_ubi.adapter.requests.codec import Codec
from scrapy_ubi.adapter.requests.identity import Place, RequestKeys
from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.untravelled import mark
from scrapy_ubi.adapter.scheduling.stat_buffer import StatBuffer
from scrapy_ubi.agent import Node, Visit
from scrapy_ubi.agent.keys import before_loss, name_of
from scrapy_ubi.protocol.key_memory import KeyMemory
from scrapy_ubi.urls import url_key
from scrapy_ubi.urls.key import SEED, asked_name, seed_key

if TYPE_CHECKING:
    from scrapy_ubi.agent import Visit


MOST_SEEDS = 10_000  # remembered, to tell those that start() names twice from those that others have named
MOST_PAGES = 100_000  # of bare seeds, remembered: some 10 MB. A link to another's page is told when it has its turn
MOST_FETCHED = 500_000  # places for pages that links led to, 9 bytes each: few of the last 100,000 are forgotten
# Remembered of seeds that carry more, some 20 MB: pages, and what was asked of them. Nothing is lost beyond. What more
# is asked of a page that is remembered is another seed each time; that of others is told apart by all that it carries.
MOST_CARRIED = 100_000
LEAST = -(1 << 62)  # a priority below all others

# Meta that Scrapy sets by itself; a callback does with or without it.
_MARKS = frozenset({"depth", "is_start_request", "redirect_times", "redirect_ttl", "redirect_urls", "redirect_reasons"})
_MARKED_HEADERS = frozenset({b"Referer"})
_MARKS_TRIED = _MARKS | {"retry_times"}  # a request that is made again after a failure asks for the same

Methods = tuple[Any, Any]


class Seeds:
    """The seeds of one agent that are to be fetched anyway. `alone`: no other agent names any."""

    def __init__(self, keys: RequestKeys, codec: Codec, alone: bool = True) -> None:
        self._keys = keys
        self._codec = codec
        self.alone = alone
        self._pages: set[int] = set()  # keys that links to the pages of bare seeds have
        self._carried: dict[int, int] = {}  # key of the first such seed that is not bare -> how many there are
        self._alike: dict[int, int] = {}  # of that key and the text of such a seed -> its number among them
        self._beyond = 0  # seeds that hold what cannot travel, of pages that are not remembered
        self._named: set[int] = set()
        self._nonces: dict[Methods, str] = {}  # of bare requests with such a callback and errback
        self.pages = self._pages
        self.running = True  # start() of this agent may yield more
        self._fetched = KeyMemory(MOST_FETCHED)  # seeds whose pages were fetched, by links

    # -- seeds

    def mark(self, request: Request, place: Place) -> None:
        """Give its nonce to a seed that is to be fetched anyway and has none."""
        if NONCE in request.meta:
            return
        page = self._keys.key(request, place)
        nonce = self.nonce(request) if _carries_nothing(request, _MARKS) else ""  # the spider has set what it carries
        if not nonce:
            nonce = self._of_carried(request, page)
        elif len(self._pages) < MOST_PAGES:
            self._pages.add(page)
        request.meta[NONCE] = nonce

    def named(self, key: int) -> None:
        """start() has named the seed of this key, the first time in this process."""
        if len(self._named) < MOST_SEEDS:
            self._named.add(key)

    def is_named(self, key: int) -> bool:
        """Whether start() has named it before, as far as is remembered."""
        return key in self._named

    def _of_carried(self, request: Request, page: int) -> str:
        """The nonce of a seed that carries more than a callback and an errback."""
        jar = request.meta.get("cookiejar")
        methods = self._codec.methods(request)
        nonce = f"{SEED}+{url_key('', repr((methods, jar if isinstance(jar, str | int) else None))):016x}"
        encoded = self._codec.encode(request)
        # What cannot travel is not in the text, so nobody can tell whether it is the same: each is another seed.
        lacks = mark(encoded.losses) is not None
        number = self._carried.get(key := seed_key(page, nonce), 0)
        if not number and len(self._carried) >= MOST_CARRIED:
            self._beyond += lacks
            return f"{nonce}.{seed_key(self._beyond if lacks else 0, encoded.text):016x}"
        if not lacks:
            alike = seed_key(key, encoded.text)
            if alike in self._alike:
                number = self._alike[alike]
                return f"{nonce}.{number}" if number else nonce
            if len(self._alike) < MOST_CARRIED:
                self._alike[alike] = number
        self._carried[key] = number + 1
        return f"{nonce}.{number}" if number else nonce

    # -- links

    @property
    def may_come(self) -> bool:
        """Whether there may be seeds that were not met yet."""
        return self.running or not self.alone

    def fetched(self, key: int) -> None:
        """The page of the bare seed of this key was fetched, by a link."""
        self._fetched.add(key, 0)

    def is_fetched(self, key: int) -> bool:
        """Whether that is remembered of this one, which is handed out."""
        if key not in self._fetched:
            return False
        self._fetched.discard(key)
        return True

    def nonce(self, request: Request, marks: frozenset[str] = _MARKS) -> str:
        """The nonce of a bare seed with the callback and errback of this request; "" for a request that is not bare,
        as it carries other meta than these `marks`, or other things than middlewares put on any request."""
        if request.cb_kwargs or request.cookies or type(request) is not Request or request.encoding != "utf-8":
            return ""
        is_usual = self._codec.made_again.is_usual
        if not (_carries_nothing(request, marks) or is_usual(request, marks, _MARKED_HEADERS)):
            return ""
        methods = (request.callback, request.errback)
        try:
            found = self._nonces.get(methods)
        except TypeError:  # a callable that has no hash
            return ""
        return found if found is not None else self._make_nonce(request, methods)

    def _make_nonce(self, request: Request, methods: Methods) -> str:
        names = self._codec.methods(request)
        if names is None:
            return ""
        nonce = SEED if names == (None, None) else f"{SEED}.{url_key('', repr(names)):016x}"
        self._nonces[methods] = nonce  # no more than the spider has methods
        return nonce

    def key_beside(self, visit: Visit, request: Request) -> int | None:
        """The key of the bare seed that would be the same request as this one, which was handed out; None where there
        can be none, as for a seed."""
        if not visit.entry.request:
            return seed_key(visit.entry.key)
        nonce = "" if request.dont_filter else self.nonce(request, _MARKS_TRIED)
        return seed_key(visit.entry.key, nonce) if nonce else None

    def name(self, visit: Visit, request: Request) -> str:
        """The name of the outputs of a page that is handed out: the same for a bare seed and a bare link that ask for
        the same. Others have keys of their own, by which they are called."""
        key = name_of(visit.entry)
        nonce = before_loss(str(request.meta.get(NONCE, "")))
        if not nonce and not request.dont_filter:
            return asked_name(key, self.nonce(request, _MARKS_TRIED))
        if nonce == SEED or nonce.startswith(f"{SEED}."):
            place = self._keys.place(request)
            page = self._keys.page_key(request, place) if place is not None else 0
            if seed_key(page, nonce) == key:
                return asked_name(page, nonce)
        return f"{key:016x}"

    def spelled(self, request: Request) -> Place | None:
        """The place of a link that lossy steps have changed; None where they have not."""
        place = self._keys.place(request) if self._keys.lossy else None
        return place if place is not None and place.steps else None


def _carries_nothing(request: Request, marks: frozenset[str]) -> bool:
    """Whether a request has no meta but such marks, and no headers but the one that Scrapy sets by where it was
    found."""
    return request.meta.keys() <= marks and request.headers.keys() <= _MARKED_HEADERS


class SeedTwins:
    """The links under way that may be the same request as a seed. `put_back` returns a visit to its queue."""

    def __init__(
        self,
        crawler: Crawler,
        spider: Spider,
        node: Node,
        seeds: Seeds,
        stats: StatBuffer,
        put_back: Callable[[Visit, Request], None],
    ) -> None:
        self._crawler = crawler
        self._spider = spider
        self._node = node
        self._seeds = seeds
        self._stats = stats
        self._put_back = put_back
        self._links: dict[int, Visit] = {}  # under way, by the key of the seed
        self._keys: dict[Visit, int] = {}  # the same, the other way round
        self._waiting: dict[Visit, tuple[Visit, Request]] = {}  # the seed that waits for a link

    def settles(self, visit: Visit, request: Request) -> bool:
        """Return whether this one, which was just handed out, needs no load of its own: it is done, or waits."""
        as_seed = self._seeds.key_beside(visit, request) if visit.before is None else None
        key = visit.entry.key
        if key in self._links:
            self._waiting[self._links[key]] = visit, request
            return True
        if (as_seed is not None and visit.state.is_known(as_seed)) or self._seeds.is_fetched(key):
            self._pass(visit, request)
            return True
        if as_seed is not None:
            self._links[as_seed] = visit
            self._keys[visit] = as_seed
        return False

    def ended(self, flight: Flight, visit: Visit) -> None:
        """A page is over, and the node knows. A seed that is the same request may wait, or may still come."""
        if visit not in self._keys:
            return
        as_seed = self._keys[visit]
        del self._keys[visit]
        self._links.pop(as_seed, None)
        fetched = flight.fetched and flight.failed is None and not flight.withdrawn and visit.again is None
        if visit in self._waiting:
            seed, request = self._waiting.pop(visit)
            (self._pass if fetched else self._put_back)(seed, request)
        elif fetched and (self._seeds.may_come or visit.state.is_known(as_seed)):
            self._seeds.fetched(as_seed)

    def _pass(self, visit: Visit, request: Request) -> None:
        """A request that was handed out is done without a load: a duplicate, of which listeners hear."""
        self._stats.sums["ubi/scheduler/duplicates"] += 1
        self._crawler.signals.send_catch_log(signals.request_dropped, request=request, spider=self._spider)
        if (place := self._seeds.spelled(request)) is not None:
            self._node.joins.join(request.url, place.normal, place.steps)
        self._node.limits.passed(visit.state)
        self._node.end_visit(visit, fetched=False)
