"""What becomes of a request that comes in: it is queued, sent to its owner, or dropped.

Rules of this module:

* What no filter refuses goes three ways: what belongs to no host stays here (`localrequests`); what has the key of a
  request that is out is its retry, with `dont_filter`, or a duplicate, without; the rest is told the node, which knows
  it, or takes it.
* Most links of a page are known: `is_known` says so of them with the same decision as `take`, before the engine hears
  of them. What it has found out of any other serves `take`, which comes next.
* A request comes from the page that was told last: whose callback yields it (`mark_child`), or in place of whose
  response a downloader middleware gave it (`mark_successor`: a redirect, a retry).
* Where a page's links may lead is asked of those that are news (`reach`); who comes from no page is the user's own.
* Memory only, and as few calls of functions as can be: all this is done for each link, some 40 times a page.

Plain links, as long as they are as usual, are taken by a loop of their own (`batch`), with the same decisions.
"""

from __future__ import annotations

from typing import NamedTuple

from scrapy import Request

from scrapy_ubi.downloads.reach import Reach
from scrapy_ubi.node import Node, Visit
from scrapy_ubi.protocol.host import Entry, retried
from scrapy_ubi.requests.check import NONCE
from scrapy_ubi.requests.codec import Codec, Encoded, depth_of
from scrapy_ubi.requests.identity import Place, RequestKeys
from scrapy_ubi.requests.inflight import Flight, Flights, FoundLinks
from scrapy_ubi.scheduling.drops import Losses
from scrapy_ubi.scheduling.hostless import LocalRequests
from scrapy_ubi.scheduling.link_filter import Filtering
from scrapy_ubi.scheduling.stats import StatSheet
from scrapy_ubi.settings import UbiSettings

MOST_SEEDS = 10_000  # remembered, to tell those that start() names twice from those that others have named


class Tools(NamedTuple):
    """What requests are taken with, and plain links."""

    settings: UbiSettings
    codec: Codec
    keys: RequestKeys
    node: Node
    flights: Flights
    filtering: Filtering
    losses: Losses
    reach: Reach

    def is_out_of_reach(self, url: str, page: str, depth: int) -> bool:
        """Whether a link to `url`, found on the page of that URL, may not be followed; counted and noted if so."""
        refusal = self.reach.refusal(url, page)
        if refusal is None:
            return False
        kind, sentence = refusal
        self.losses.drop(kind, sentence)
        self.filtering.note(kind, sentence, url, depth, page)
        return True


class Intake:
    """Takes requests for one scheduler."""

    def __init__(self, tools: Tools, local: LocalRequests, sheet: StatSheet) -> None:
        self._tools, self._local, self._count = tools, local, sheet.count
        self._sums = sheet.sums
        self._out = tools.flights.keys
        self._child: tuple[Request | None, Visit | None] = (None, None)  # what a page yields, and the page
        self._links: FoundLinks | None = None  # of the page that yields it, where they are kept
        self._successor: tuple[Request, Visit] | None = None  # what stands in place of a response, and its page
        self._asked: tuple[Request, Place, int] | None = None  # the last that `is_known` did not know, with its key
        self._seeds: set[int] = set()  # keys of the first seeds to be fetched anyway that start() has named

    def mark_child(self, request: Request, parent: Request | None) -> None:
        """The page of `parent` yields `request`, which is taken next. What is to be fetched anyway gets a nonce: the
        same one if the page is fetched again after a crash and yields the same."""
        flight = self._tools.flights.get(parent)
        self._child = (request, flight.visit if flight is not None else None)
        self._links = flight.links if flight is not None else None
        if self._tools.keys.wants_nonce(request) and flight is not None and flight.visit is not None:
            flight.nonces += 1
            request.meta[NONCE] = f"{flight.visit.entry.key:016x}.{flight.nonces}"

    def mark_successor(self, request: Request, parent: Request) -> None:
        """A downloader middleware gave `request` in place of the response of `parent`; it is taken next."""
        flight = self._tools.flights.get(parent)
        self._successor = (request, flight.visit) if flight is not None and flight.visit is not None else None
        if flight is not None and flight.links is not None:
            came_by = request.meta.get("redirect_urls")
            if came_by and came_by != parent.meta.get("redirect_urls"):  # else it is a retry
                flight.links.moved.append(request.url)

    def is_known(self, request: Request) -> bool:
        """Whether a request that a page yields (`mark_child`) is a duplicate; counted then, and it need not be taken.
        The same decision as that of `take`, for the most frequent case.
        """
        tools = self._tools
        if self._child[1] is None or not tools.filtering.idle or tools.keys.wants_nonce(request):
            return False
        url = request.url
        place = tools.keys.place_of(url)
        if place is None or len(url) > tools.settings.max_url_length:
            return False
        if self._links is not None:
            self._links.forms.append(place.normal)
            self._links = None
        key = tools.keys.key(request, place)
        if key in self._out or not tools.node.met(place.host, key, depth_of(request), request.priority):
            self._asked = (request, place, key)
            return False
        self._child = (None, None)
        self._duplicate(request, place, key)
        return True

    def take(self, request: Request, seed: bool) -> bool:
        """Take a request: queue it, send it to its owner, or drop it: known, or refused by a filter. False when it was
        dropped.
        """
        tools = self._tools
        if self._links is not None:
            if self._child[0] is request:
                self._links.urls.append(request.url)
            self._links = None
        if not tools.filtering.idle and self._is_filtered(request, seed):
            return False
        if seed:
            tools.reach.seed(request.url)
        asked, self._asked = self._asked, None
        if asked is not None and asked[0] is request:
            return self._take_placed(*asked, seed, asked=True)
        url = request.url
        place = tools.keys.place_of(url)
        if place is None:
            return self._take_local(request)
        if len(url) > tools.settings.max_url_length:
            return tools.losses.drop("url_too_long", f"{url[:200]}... is longer than UBI_MAX_URL_LENGTH")
        return self._take_placed(request, place, tools.keys.key(request, place), seed, asked=False)

    def is_visited(self, request: Request) -> bool:
        """Whether a request found on a page is known. With lossy steps none is: the report counts what they join."""
        tools = self._tools
        place = None if tools.keys.lossy else tools.keys.place(request)
        if place is None:
            return False
        return tools.node.met(place.host, tools.keys.key(request, place), depth_of(request), request.priority)

    def _is_filtered(self, request: Request, seed: bool) -> bool:
        """Whether a filter refuses the request. Seeds are not judged."""
        filtering = self._tools.filtering
        if seed:
            filtering.seed(request)
            return False
        child, visit = self._child
        if child is request:
            return filtering.refuses(request, visit.entry.url if visit is not None else "", redirect=False)
        # Whatever else has such marks is a redirect: what pages yield, with marks copied from their own, is told above.
        came_by = request.meta.get("redirect_urls")
        page = str(came_by[-1]) if isinstance(came_by, list) and came_by else ""
        return filtering.refuses(request, page, redirect=bool(page))

    def _is_out_of_reach(self, request: Request, page: Visit | None) -> bool:
        """Whether a request of `page`, or where a redirect leads to, may not be followed; counted and noted if so. What
        comes from no page is the user's own."""
        reach = self._tools.reach
        came_by = request.meta.get("redirect_urls")
        if page is not None:
            found_on = page.entry.url
        elif isinstance(came_by, list) and came_by:
            found_on = str(came_by[-1])
        else:
            reach.seed(request.url)
            return False
        return self._tools.is_out_of_reach(request.url, found_on, depth_of(request))

    def _take_local(self, request: Request) -> bool:
        if self._is_out_of_reach(request, self._page_of(request)):
            return False
        if self._local.full:
            what = f"{request!s:.200} belongs to no host, and {len(self._local)} such requests wait already"
            return self._tools.losses.drop("local", what)
        if not self._local.add(request):
            self._sums["ubi/scheduler/duplicates"] += 1
            return False
        self._count("ubi/scheduler/local")
        return True

    def _take_placed(self, request: Request, place: Place, key: int, seed: bool, asked: bool) -> bool:
        """Take a request that belongs to a host. `asked`: `is_known` has looked already: it is out, or news."""
        tools = self._tools
        keys, node = tools.keys, tools.node
        flight = tools.flights.of_key(key)
        if flight is None and keys.mark(request, seed):
            key = keys.key(request, place)
        page = self._page_of(request)
        # What comes from no page is told the node in any case: it keeps account of such.
        on_page = not asked and flight is None and (seed or page is not None)
        if on_page and node.met(place.host, key, depth_of(request), request.priority):
            return self._duplicate(request, place, key, seed)
        suspect = flight is None and (page is None or tools.reach.suspects(place.safe))
        if suspect and self._is_out_of_reach(request, page):
            return False
        if page is None and flight is None and not seed and node.over:
            return tools.losses.late(request)
        encoded = tools.codec.encode(request)
        entry = Entry(key, request.url, encoded.depth, encoded.priority, encoded.text)
        if flight is not None and flight.visit is not None:
            again = self._take_again(flight, flight.visit, request, entry, encoded, seed)
            return again or self._duplicate(request, place, key, seed)
        refused = node.limits.refused
        if not node.discover(place.host, entry, seed=seed, page=page):
            if node.limits.refused > refused:
                return False
            too_large = node.too_large(place.host, entry)
            return tools.losses.too_large(entry.url) if too_large else self._duplicate(request, place, key, seed)
        if seed and request.dont_filter and len(self._seeds) < MOST_SEEDS:
            self._seeds.add(key)
        tools.losses.look_at_size(request, encoded.text)
        if keys.lossy:
            node.joins.first(keys.spelling(request, place), key, request.url, place.steps)
        if encoded.losses or encoded.objects or tools.losses.all_kept:
            tools.losses.keep(request, key, encoded)
            if encoded.objects:
                tools.losses.look_at_objects(request, page)
        self._sums["ubi/scheduler/enqueued"] += 1
        return True

    def _page_of(self, request: Request) -> Visit | None:
        """The page that this request comes from, None when that is not known: a callback's output, or a redirect."""
        child, visit = self._child
        successor, self._child, self._successor = self._successor, (None, None), None
        if child is request:
            return visit
        if successor is None or successor[0] is not request:
            return None
        visit = successor[1]
        if self._tools.node.learner is not None and request.meta.get("redirect_urls"):
            self._tools.node.learner.moved(visit.state, visit.entry, request.url)
        return visit

    def _take_again(
        self, flight: Flight, visit: Visit, request: Request, entry: Entry, encoded: Encoded, seed: bool
    ) -> bool:
        """A request with the key of one that is out: its retry, or a duplicate.

        A retry is a copy, so it came by the same redirects; a redirect of another page to this one did not.
        """
        same_way = request.meta.get("redirect_urls") == flight.request.meta.get("redirect_urls")
        if seed or not request.dont_filter or not same_way:
            return False
        if not flight.withdrawn:  # else it goes back to the queue as it was
            self._tools.node.retry(visit, retried(entry, visit.entry))
            self._tools.losses.keep(request, entry.key, encoded)
            self._count("ubi/scheduler/retries")
        return True

    def _duplicate(self, request: Request, place: Place, key: int, seed: bool = False) -> bool:
        """A request that is known already: it is dropped."""
        self._sums["ubi/scheduler/duplicates"] += 1
        if seed and request.dont_filter:
            self._tools.losses.known_seed(request, here=key in self._seeds)
        keys = self._tools.keys
        if keys.lossy and NONCE not in request.meta:
            spelling = keys.spelling(request, place)
            self._tools.node.joins.known(spelling, key, request.url, place.normal, place.steps)
        return False
