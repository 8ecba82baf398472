"""Outputs of pages: what their callbacks yield, kept together until the page is done.

Rules of this module:

* Items wait with their page until its callback and pipelines are through (`ended`); then they are handed to the writer,
  in the order in which they were yielded, before the page is told to be done. Of a page that is not done, as its load
  was taken back, nothing is kept: it is fetched again.
* A page's name says which page it is and what was asked of it (`adapter.scheduling.seeds`). It is the same wherever the
  page is fetched, as a seed or by a link, before a crash or after it. `collect` keeps one set of items for each name.
* A page that its callback asks to be fetched once more under the same key (`get_retry_request`) may have items of each
  attempt: they are kept as "again", with the number of the attempt.
* Items of `start()` belong to no page, and each agent's start() yields them: their name is made of their content, so
  that they count once. Alike ones are numbered.
* Requests without a host (`data:`, `file:`) have a name made of their fingerprint and nonce.
* An item's identity is `<name>-<ordinal>`, by the order in which its page has yielded its items.
* Each visit of a page that is visited again has a name of its own (`visit_names`). One that found the page as it was
  leaves nothing but in stores that want it (`wants_unchanged`).
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_ubi.adapter.requests.check import NONCE, REQUISITE
from scrapy_ubi.adapter.requests.inflight import Flight, Flights
from scrapy_ubi.adapter.requests.judged import DUPLICATE_OF, Judged
from scrapy_ubi.adapter.requests.observers import Observers, PageObserver
from scrapy_ubi.adapter.requests.reason_phrase import as_it_came
from scrapy_ubi.adapter.robots.fetch import load_of
from scrapy_ubi.adapter.scrapy_private.engines import scheduler_in
from scrapy_ubi.agent.profile.idle_reason import OUTPUTS
from scrapy_ubi.outputs.delivery.delivering import DeliveringStore
from scrapy_ubi.outputs.page_text import kind_of
from scrapy_ubi.outputs.part_writer import Bundle
from scrapy_ubi.outputs.stores import ROBOTS, Page, Store
from scrapy_ubi.outputs.visit_names import VisitName
from scrapy_ubi.outputs.writer import Writer
from scrapy_ubi.protocol.host import retries_of

if TYPE_CHECKING:
    from scrapy_ubi.agent import Visit

logger = logging.getLogger(__name__)

KEY = "ubi_key"  # meta key: the name of the page
START, LOCAL, HOST_NAME = "start", "local", "host"
MOST_COUNTED = 1_000_000  # contents of start items, and requests without a host, that are told apart by number

WAITS = (
    "%d MB of outputs wait to be written (a quarter of UBI_MEMORY_MB): no further request is taken until the disk has "
    "caught up."
)


class _Waiting:
    """What has come of one page so far."""

    __slots__ = ("began", "came", "items", "name", "next", "numbers", "received", "response", "size")

    def __init__(self, name: str) -> None:
        self.name = name
        self.next = 0
        self.numbers: dict[int, tuple[Any, int]] = {}  # id of an item that is in the pipelines -> it, its ordinal
        self.items: dict[int, dict[str, bytes]] = {}  # ordinal -> store -> what is kept of it
        self.size = 0
        self.response: Response | None = None
        self.received: Response | None = None
        self.began = self.came = 0.0

    def number(self, item: Any) -> int:
        """An item that was yielded just now."""
        number, self.next = self.next, self.next + 1
        self.numbers[id(item)] = item, number
        return number

    def taken(self, item: Any) -> int:
        """The ordinal of an item that has passed the pipelines. Where they have made another object of it, the least
        that is not taken."""
        found = self.numbers.pop(id(item), None)
        if found is not None and found[1] not in self.items:
            return found[1]
        for key, (_, number) in self.numbers.items():
            if number not in self.items:
                del self.numbers[key]
                return number
        number, self.next = self.next, self.next + 1
        return number


class PageOutputs(PageObserver):
    """The outputs of one agent's pages. `normal` gives the normal form of a URL, `named` the name of a page that is
    handed out; `count` counts in the stats; `judged` has how pages under way were compared with others."""

    marks = (KEY, DUPLICATE_OF)

    def __init__(
        self,
        crawler: Crawler,
        stores: Iterable[Store],
        writer: Writer,
        flights: Flights,
        normal: Callable[[str], str | None],
        named: Callable[[Visit, Request], str],
        count: Callable[[str], None],
        judged: Mapping[Flight, Judged] = MappingProxyType({}),
    ) -> None:
        self._crawler = crawler
        self._writer = writer
        self._flights = flights
        self._judged = judged
        self._normal = normal
        self._name_of = named
        self._count = count
        self._told_left_out: set[str] = set()  # stores of which the log has said that they leave out pages
        self._stores = list(stores)
        self._of_items = [store for store in self._stores if store.wants_items]
        self._stats = {store.name: f"ubi/store/{store.name}/items" for store in self._of_items}
        self.wants_pages = any(store.wants_pages for store in self._stores)
        self.wants_links = any(store.wants_links for store in self._stores)
        self._of_robots = [store for store in self._stores if store.wants_robots]
        self._waiting: dict[Flight, _Waiting] = {}
        self._buffered = 0  # bytes of pages that are not done
        self._counted: dict[bytes, int] = {}
        self._said = False

    def listen(self) -> None:
        """Hear of items."""
        connect = self._crawler.signals.connect
        connect(self._scraped, signals.item_scraped)
        connect(self._lost, signals.item_dropped)
        connect(self._lost, signals.item_error)

    # -- a page's way

    def begun(self, flight: Flight) -> None:
        """A request is handed out: give it its name."""
        flight.request.meta[KEY] = self._name(flight)

    def received(self, flight: Flight, response: Response) -> None:
        """A response came, as it is on the line."""
        if not self.wants_pages:
            return
        request = flight.request
        came = time.time()
        began = came - (time.monotonic() - flight.began if flight.began else 0.0)
        if flight.visit is not None or flight.local:
            waiting = self._of(flight)
            waiting.received, waiting.began, waiting.came = as_it_came(response), began, came
        elif self._of_robots and load_of(request) is not None:
            self._hand_over_robots(request, response, began, came)

    def answered(self, flight: Flight, response: Response) -> None:
        """The response that the callback gets."""
        if self.wants_pages:
            self._of(flight).response = response

    def yielded(self, flight: Flight, response: Response, item: object) -> None:
        """A callback has yielded an item."""
        self._of(flight).number(item)

    def identity(self, item: Any) -> str:
        """The identity of an item that is in the pipelines; '' where it is not known."""
        for waiting in self._waiting.values():
            if (found := waiting.numbers.get(id(item))) is not None:
                return f"{waiting.name}-{found[1]}"
        return ""

    def ended(self, flight: Flight) -> None:
        """All that follows from a request was taken; what comes next is that its page is done, or waits again."""
        waiting, visit = self._taken(flight), flight.visit
        if visit is not None and visit.closed:
            return
        again = visit is not None and visit.again is not None
        if (waiting is None or not waiting.items) if again else waiting is None and not self._wants_empty(flight):
            return
        if waiting is None:
            waiting = _Waiting(self._named(flight))
        kind = "again" if again else "ok" if flight.failed is None else "failed"
        self._hand_over(self._page(flight, waiting, kind), waiting.size)

    def withdrawn(self, flight: Flight) -> None:
        """Nothing is kept of what was taken back."""
        self._taken(flight)

    def _taken(self, flight: Flight) -> _Waiting | None:
        """What has come of a page, which waits no longer."""
        waiting = self._waiting.pop(flight, None)
        if waiting is not None:
            self._buffered -= waiting.size
        return waiting

    def _wants_empty(self, flight: Flight) -> bool:
        """Whether a page that has left nothing is kept: by its visit, or as it has nothing any more."""
        visit = flight.visit
        return self.wants_pages or (visit is not None and visit.before is not None and not flight.unchanged)

    def _page(self, flight: Flight, waiting: _Waiting, kind: str) -> Page:
        visit = flight.visit
        entry = visit.entry if visit is not None else None
        page = Page(
            waiting.name,
            retries_of(entry.request) if entry is not None else 0,
            kind,
            flight.request,
            depth=entry.depth if entry is not None else 0,
            failed=flight.failed,
            response=waiting.response,
            received=waiting.received,
            began=waiting.began,
            came=waiting.came,
            ended=time.time(),
            items=_joined(waiting, self._of_items),
            numbered=waiting.items,
            judged=self._judged.get(flight) if self._judged else None,
        )
        if visit is not None and visit.before is not None:
            page.visit, page.last = visit.before.generation + 1, visit.before.last
            page.unchanged = visit.seen is not None and visit.seen.unchanged
            page.passed_over = flight.unchanged
        if self.wants_pages:
            page.normal = self._normal(page.url) or page.url
        if flight.links is not None:
            page.links = flight.links.forms + self._forms(flight.links.urls)
            page.moved_to = self._forms(flight.links.moved)
        return page

    def _forms(self, urls: list[str]) -> list[str]:
        """The normal forms of those that have one."""
        return [form for url in urls if (form := self._normal(url)) is not None]

    def _hand_over(self, page: Page, size: int) -> None:
        bundles = []
        is_requisite = REQUISITE in page.request.meta
        for store in self._stores:
            if is_requisite and not store.wants_requisites:
                continue
            if page.passed_over and not store.wants_unchanged:
                continue
            if not store.wants_pages and not page.items.get(store.name) and page.visit == 1:
                continue
            try:
                payload = store.page(page)
            except Exception:  # of a store, which may be the user's: the page is lost to it, and the others go on
                logger.exception("The store %s cannot keep %s.", store.name, page.url)
                self._count(f"ubi/store/{store.name}/failed")
                continue
            if payload is not None:
                weight = size + (len(page.body) if store.wants_pages else 0)
                bundles.append(Bundle(store, page.name, page.attempt, page.kind, payload, weight))
                self._count(f"ubi/store/{store.name}/pages")
            elif store.counts_left_out:
                self._count(f"ubi/store/{store.name}/left_out")
                self._say_left_out(store, page)
        self._writer.put(bundles)

    def _say_left_out(self, store: Store, page: Page) -> None:
        """Say once of each store that there are pages of which it keeps nothing."""
        response = page.response
        if response is None or store.name in self._told_left_out:
            return
        self._told_left_out.add(store.name)
        logger.info(
            "The store %s keeps nothing of %.200s (status %d, %.100s), nor of others that it cannot read or should not "
            "keep: ubi/store/%s/left_out counts them. (Shown once.)",
            store.name,
            page.url,
            response.status,
            kind_of(response).decode("latin-1") or "no type",
            store.name,
        )

    # -- items

    def _scraped(self, item: Any, response: Any) -> None:
        flight = self._flights.get(getattr(response, "request", None))
        kept = self._kept(item)
        if not kept:
            return
        if flight is None:
            self._hand_over_pageless(kept)
            return
        waiting = self._of(flight)
        waiting.items[waiting.taken(item)] = kept
        size = sum(map(len, kept.values()))
        waiting.size += size
        self._buffered += size

    def _lost(self, item: Any, response: Any) -> None:
        """An item was dropped, or has failed."""
        flight = self._flights.get(getattr(response, "request", None))
        if flight is not None and (waiting := self._waiting.get(flight)) is not None:
            waiting.numbers.pop(id(item), None)

    def _kept(self, item: Any) -> dict[str, bytes]:
        kept = {}
        for store in self._of_items:
            try:
                text = store.item(item)
            except Exception:  # an item that is no JSON, say: as with a feed, it is an error, and the others go on
                logger.exception("The store %s cannot keep the item %.200r.", store.name, item)
                self._count(f"ubi/store/{store.name}/failed")
                continue
            if text is not None:
                kept[store.name] = text
                self._count(self._stats[store.name])
        return kept

    def _hand_over_pageless(self, kept: dict[str, bytes]) -> None:
        """An item of start(), or of a response whose request is not known."""
        digest = blake2b(b"\0".join(kept.values()), digest_size=16).digest()
        page = Page(self._numbered(START, digest), 0, "ok", Request("about:blank"), items=kept, numbered={0: kept})
        self._hand_over_items(page)

    def completed(self, host: Mapping[str, object]) -> None:
        """A host is complete: stores that tell of hosts give it as they give items."""
        digest = blake2b("{host} {urls}".format_map(host).encode(), digest_size=16)
        name = f"{HOST_NAME}.{digest.hexdigest()}"
        text = json.dumps(host).encode()
        for store in self._of_items:
            if isinstance(store, DeliveringStore) and store.tells_hosts:
                kept = {store.name: text}
                page = Page(name, 0, "ok", Request("about:blank"), items=kept, numbered={0: kept})
                if (payload := store.page(page)) is not None:
                    self._writer.put([Bundle(store, name, 0, page.kind, payload, len(text))])

    def _hand_over_items(self, page: Page) -> None:
        bundles = [
            Bundle(store, page.name, 0, page.kind, payload, len(page.items[store.name]))
            for store in self._of_items
            if page.items.get(store.name) and (payload := store.page(page)) is not None
        ]
        self._writer.put(bundles)

    def _hand_over_robots(self, request: Request, response: Response, began: float, came: float) -> None:
        """A robots.txt: each load is a page of its own, which is done."""
        digest = blake2b(f"{request.url} {began}".encode(), digest_size=16).hexdigest()
        page = Page(f"{ROBOTS}.{digest}", 0, "ok", request, received=response, began=began, came=came, ended=came)
        for store in self._of_robots:
            if (payload := store.page(page)) is not None:
                self._writer.put([Bundle(store, page.name, 0, page.kind, payload, len(response.body))])

    # -- names

    def _of(self, flight: Flight) -> _Waiting:
        waiting = self._waiting.get(flight)
        if waiting is None:
            waiting = self._waiting[flight] = _Waiting(self._named(flight))
        return waiting

    def _named(self, flight: Flight) -> str:
        return str(flight.request.meta.get(KEY) or self._name(flight))

    def _name(self, flight: Flight) -> str:
        if flight.visit is not None:
            name, before = self._name_of(flight.visit, flight.request), flight.visit.before
            return name if before is None else str(VisitName(name, before.generation + 1))
        request, fingerprinter = flight.request, self._crawler.request_fingerprinter
        assert fingerprinter is not None, "a crawl has one"
        print_ = fingerprinter.fingerprint(request) + str(request.meta.get(NONCE, "")).encode()
        digest = blake2b(print_, digest_size=16).digest()
        if request.dont_filter and NONCE not in request.meta:
            return self._numbered(LOCAL, digest)
        return f"{LOCAL}.{digest.hex()}"

    def _numbered(self, kind: str, digest: bytes) -> str:
        number = self._counted.get(digest, 0)
        if number or len(self._counted) < MOST_COUNTED:
            self._counted[digest] = number + 1
        return f"{kind}.{digest.hex()}.{number}"

    # -- the bound

    def full(self) -> str:
        """Return `OUTPUTS` where so much waits to be written that no further request should be taken."""
        waits, most = self._buffered + self._writer.waiting, self._writer.most
        if waits < most:
            self._said = self._said and waits > most // 2
            return ""
        self._writer.tell_of_room()
        if not self._said:
            self._said = True
            self._count("ubi/store/waited")
            logger.warning(WAITS, most >> 20)
        return OUTPUTS


def _joined(waiting: _Waiting, stores: Iterable[Store]) -> dict[str, bytes]:
    ordered = [waiting.items[number] for number in sorted(waiting.items)]
    return {store.name: b"".join(kept.get(store.name, b"") for kept in ordered) for store in stores}


def item_id(crawler: Crawler, item: Any) -> str:
    """`<page>-<ordinal>` for an item that a callback has yielded, while it is in the pipelines: the page's name (its
    key), and the number of the item among those of its page, from 0.

    It is known for the object that the callback has yielded: ask in the first pipeline that makes another of it. ''
    for items of start() and of errbacks, for others than that object, and where UBI_STORES names no store.
    """
    observers = getattr(scheduler_in(crawler), "observers", None)
    outputs = observers.find_observer(PageOutputs) if isinstance(observers, Observers) else None
    return outputs.identity(item) if outputs is not None else ""
