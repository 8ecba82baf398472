"""The door of requests: each that comes in is queued, sent to its owner, or dropped.

Rules of this module:

* What no filter refuses goes three ways: what belongs to no host stays here (`hostless`); what has the key of a request
  that is out is its retry, with `dont_filter`, or a duplicate, without; on the rest `link_decision` decides, as on a
  batch of one.
* Most links of a page are known: `is_known` says so of them with the same questions, before the engine hears of them.
  What it has found out of any other serves `take_request`.
* Where a request comes from is kept by the request object until it is taken: the page whose callback or errback yields
  it (`mark_child`), or in place of whose response a downloader middleware gave it (`mark_successor`: a redirect, a
  retry). What has neither was given to `engine.crawl` by a pipeline, an extension, a handler of a signal. It may be a
  copy of any request, so its meta says nothing, and it is no retry: one to be fetched anyway is fetched, each time.
* Memory only, and as few calls of functions as can be: all this is done for each link, some 40 times a page.

Plain links, as long as they are as usual, are taken by a door of their own (`bulk_enqueue`), with the same decision.
"""

from __future__ import annotations

from scrapy import Request

from scrapy_ubi.adapter.requests.check import HOST, NONCE, REQUISITE
from scrapy_ubi.adapter.requests.codec import Codec, Encoded, depth_of
from scrapy_ubi.adapter.requests.identity import Place
from scrapy_ubi.adapter.requests.inflight import Flight, FoundLinks
from scrapy_ubi.adapter.scheduling.hostless import Hostless
from scrapy_ubi.adapter.scheduling.link_decision import Candidate, CandidateBatch, LinkDecision, Spelling
from scrapy_ubi.adapter.scheduling.stat_buffer import StatBuffer
from scrapy_ubi.agent import Visit
from scrapy_ubi.agent.keys import AGAIN, before_loss, name_of
from scrapy_ubi.agent.work.link_verdict import Verdict
from scrapy_ubi.protocol.host import Entry, retried
from scrapy_ubi.urls.key import SEED, led_on

_new = tuple.__new__  # half the time of calling the class

Asked = tuple[Place, int, int]  # what has been found out of a request: its place, key and depth

MOST_OFFERED = 100  # requests told of and not taken: a handler of signals has dropped them. The oldest is forgotten


class RequestBatch(CandidateBatch):
    """A request that was found: a batch of one. `encoded`: None until its entry was made."""

    def __init__(self, request: Request, page: Visit | None, depth: int, seed: bool, codec: Codec) -> None:
        self.page = page
        self.depth = depth
        self.seed = seed
        self.came_by = "" if page is not None else _came_by(request)
        self.encoded: Encoded | None = None
        self._request = request
        self._codec = codec

    def request(self, candidate: Candidate) -> Request:
        """Return the request."""
        return self._request

    def entry(self, candidate: Candidate) -> Entry:
        """Make its entry."""
        encoded = self.encoded = self._codec.encode(self._request)
        _, url, _, _, key, _ = candidate
        return _new(Entry, (key, url, encoded.depth, encoded.priority, encoded.text))


class Enqueue:
    """Takes requests for one scheduler."""

    def __init__(self, decision: LinkDecision, local: Hostless, stat_buffer: StatBuffer) -> None:
        self._decision = decision
        self._local = local
        self._count = stat_buffer.count
        self._sums = stat_buffer.sums
        self._out = decision.flights.keys
        self._children: dict[Request, Visit | None] = {}  # what pages yield -> the page
        self._successors: dict[Request, Visit] = {}  # what stands in place of a response -> its page
        self._asked: dict[Request, Asked] = {}  # what `is_known` did not know

    def mark_child(self, request: Request, parent: Request | None) -> None:
        """The page of `parent` yields `request`: its score is added to its priority. What is to be fetched anyway gets
        a nonce: the same one if the page is fetched again after a crash and yields the same."""
        flight = self._decision.flights.get(parent)
        page = self._children[request] = flight.visit if flight is not None else None
        if len(self._children) > MOST_OFFERED:
            self._forget_child()
        if self._decision.scores is not None and not request.dont_filter:
            self._decision.scores.raise_request(request, page.entry.url if page is not None else "")
        if not self._decision.keys.wants_nonce(request) or REQUISITE in request.meta:
            return
        if flight is not None and flight.visit is not None:
            flight.nonces += 1
            request.meta[NONCE] = f"{name_of(flight.visit.entry):016x}.{flight.nonces}"

    def _forget_child(self) -> None:
        """Forget the oldest of those that are not taken."""
        oldest = next(iter(self._children))
        del self._children[oldest]
        self._asked.pop(oldest, None)

    def mark_successor(self, request: Request, parent: Request) -> None:
        """A downloader middleware gave `request` in place of the response of `parent`."""
        flight = self._decision.flights.get(parent)
        if NONCE in request.meta and _leads_on(request, parent):
            self._rename(request, flight.visit if flight is not None else None)
        if flight is not None and flight.links is not None:
            came_by = request.meta.get("redirect_urls")
            if came_by and came_by != parent.meta.get("redirect_urls"):  # else it is a retry
                flight.links.moved.append(request.url)
        if flight is not None and flight.visit is not None:
            self._successors[request] = flight.visit
            if len(self._successors) > MOST_OFFERED:
                del self._successors[next(iter(self._successors))]

    def _rename(self, request: Request, page: Visit | None) -> None:
        """Give the nonce of its own to where a page leads that has one: what two seeds redirect to is fetched for each,
        as by plain Scrapy; and what is no longer to be fetched anyway is a page as others are. Where a page leads whose
        outputs were lost is known, or not, as it was before.
        """
        nonce = before_loss(str(request.meta[NONCE]))
        if not nonce.startswith(AGAIN) and nonce != REQUISITE:
            if not self._decision.keys.wants_nonce(request):
                nonce = ""
            elif nonce.startswith(SEED) and page is not None:
                nonce = led_on(name_of(page.entry))
        if nonce:
            request.meta[NONCE] = nonce
        else:
            del request.meta[NONCE]

    def is_known(self, request: Request) -> bool:
        """Whether a request that a page yields (`mark_child`) is a duplicate; counted then, and it need not be taken.
        The same questions as those of `take_request`, for the most frequent case.
        """
        decision = self._decision
        if request not in self._children or self._children[request] is None:
            return False
        url = request.url
        meta = request.meta
        if not decision.link_filter.idle or HOST in meta or decision.keys.wants_nonce(request):
            return False
        place = decision.keys.place_of(url)
        if place is None or len(url) > decision.settings.max_url_length:
            return False
        if decision.flights.keep_links:
            self._links_of(self._children[request]).forms.append(place.normal)
        key = decision.keys.key(request, place)
        depth = meta.get("depth", 0)  # as `depth_of`, without its call
        if type(depth) is not int or depth < 0:
            depth = 0
        if key in self._out or not decision.is_known(place.host, key, depth, request.priority, _itself, request):
            self._asked[request] = (place, key, depth)
            return False
        del self._children[request]
        self._sums["ubi/scheduler/duplicates"] += 1
        if decision.keys.lossy:
            decision.count_joined(Verdict.KNOWN, url, key, self._spelling(request, place))
        return True

    def is_visited(self, request: Request) -> bool:
        """Whether a request found on a page is known. With lossy steps none is: the report counts what they join."""
        keys = self._decision.keys
        place = None if keys.lossy else keys.place(request)
        if place is None:
            return False
        key = keys.key(request, place)
        return self._decision.is_known(place.host, key, depth_of(request), request.priority, _itself, request)

    def take_request(self, request: Request, seed: bool) -> Verdict:
        """Take a request: queue it, send it to its owner, or drop it, for the reason that the verdict is."""
        page, child, asked = self._origin(request)
        decision = self._decision
        if page is None and not child and not seed and decision.flights.get(request) is None:
            decision.keys.rename(request)
        if child and asked is None and decision.flights.keep_links and REQUISITE not in request.meta:
            self._links_of(page).urls.append(request.url)
        if not decision.link_filter.idle and self._is_filtered(request, seed, page, child):
            return Verdict.FILTERED
        if not child and page is not None:
            self._look_at_redirect(request, page)
        if seed:
            decision.reach.seed(request.url)
            if decision.scores is not None:
                decision.scores.raise_request(request, "")
        if asked is not None:
            return self._take_placed(request, asked, page, seed, is_asked=True)
        place = decision.keys.place(request)
        if place is None:
            return self._take_local(request, page, seed)
        if len(request.url) > decision.settings.max_url_length:
            return decision.refuse_too_long(request.url)
        if seed and request.dont_filter:
            decision.seeds.mark(request, place)
        placed = place, decision.keys.key(request, place), depth_of(request)
        return self._take_placed(request, placed, page, seed, is_asked=False)

    def _links_of(self, page: Visit | None) -> FoundLinks:
        """Where the links of a page are noted."""
        flight = self._decision.flights.of_key(page.entry.key) if page is not None else None
        return flight.links if flight is not None and flight.links is not None else FoundLinks()

    def _origin(self, request: Request) -> tuple[Visit | None, bool, Asked | None]:
        """The page that a request comes from, whether that has yielded it, and what `is_known` has found out; all this
        is forgotten."""
        page = None
        asked = None
        if child := request in self._children:
            page = self._children[request]
            del self._children[request]
        elif request in self._successors:
            page = self._successors[request]
            del self._successors[request]
        if request in self._asked:
            asked = self._asked[request]
            del self._asked[request]
        return page, child, asked

    def _is_filtered(self, request: Request, seed: bool, page: Visit | None, child: bool) -> bool:
        """Whether a filter refuses the request. Seeds are not judged."""
        link_filter = self._decision.link_filter
        if seed:
            link_filter.seed(request)
            return False
        if child:
            return link_filter.refuses_request(request, page.entry.url if page is not None else "", redirect=False)
        # Whatever else has such marks is a redirect: what pages yield, with marks copied from their own, is told above.
        came_by = _came_by(request)
        return link_filter.refuses_request(request, came_by, redirect=bool(came_by))

    def _take_local(self, request: Request, page: Visit | None, seed: bool) -> Verdict:
        """Take a request that belongs to no host."""
        decision = self._decision
        if why := decision.keys.why_no_place(request):
            return decision.refuse(Verdict.BAD_HOST, f"{request!s:.200} names its host wrongly ({why})")
        found_on = page.entry.url if page is not None else _came_by(request)
        if decision.is_unreachable(request.url, found_on, depth_of(request)):
            return Verdict.UNREACHABLE
        if self._local.full:
            what = f"{request!s:.200} belongs to no host, and {len(self._local)} such requests wait already"
            return decision.refuse(Verdict.NO_ROOM, what)
        if not self._local.add(request):
            self._sums["ubi/scheduler/duplicates"] += 1
            return Verdict.KNOWN
        self._count("ubi/scheduler/local")
        if seed:
            decision.drops.local_seed(request)
        return Verdict.LOCAL

    def _take_placed(self, request: Request, placed: Asked, page: Visit | None, seed: bool, is_asked: bool) -> Verdict:
        """Take a request that belongs to a host. `is_asked`: `is_known` has looked already: it is out, or news."""
        decision = self._decision
        place, key, depth = placed
        flight = decision.flights.of_key(key) if key in self._out else None
        if flight is None:
            if decision.keys.mark(request, seed):
                key = decision.keys.key(request, place)
        elif not seed and self._is_another(request, flight, page):
            decision.keys.rename(request)
            key, flight = decision.keys.key(request, place), None
        spelling = self._spelling(request, place) if decision.keys.lossy else None
        if flight is not None and flight.visit is not None:
            if page is None or page is flight.visit:
                verdict = self._take_again(flight, flight.visit, request, key, seed)
            else:  # what another page leads to is no retry of this one
                verdict = Verdict.KNOWN
            if verdict is Verdict.KNOWN and spelling is not None:
                decision.count_joined(verdict, request.url, key, spelling)
        else:
            candidate = (0, request.url, place.safe, place.host, key, request.priority)
            batch = RequestBatch(request, page, depth, seed, decision.codec)
            verdict = decision.decide_one(batch, candidate, spelling, is_asked)
            if verdict is Verdict.FOUND and batch.encoded is not None:
                self._taken(request, key, batch, batch.encoded)
        if verdict is Verdict.KNOWN:
            self._sums["ubi/scheduler/duplicates"] += 1
            if seed and request.dont_filter:
                decision.drops.known_seed(request, here=decision.seeds.is_named(key))
        return verdict

    def _is_another(self, request: Request, flight: Flight, page: Visit | None) -> bool:
        """Whether a request that is to be fetched anyway, and has the key of one that is out, is not the retry of that:
        it stands in place of another response, or of none.

        A redirect without a nonce is none either, but a duplicate, as where that page is queued or done: it is to be
        fetched anyway only as its own page was retried before.
        """
        if page is flight.visit or request is flight.request or NONCE in request.meta:
            return False
        if page is not None and "redirect_times" in request.meta:
            return False
        return self._decision.keys.wants_nonce(request)

    def _spelling(self, request: Request, place: Place) -> Spelling:
        """How a request is written."""
        key = self._decision.keys.spelling(request, place)
        return Spelling(key, place.normal, place.steps, again=NONCE in request.meta)

    def _taken(self, request: Request, key: int, batch: RequestBatch, encoded: Encoded) -> None:
        """A request was news."""
        decision = self._decision
        drops = decision.drops
        if batch.seed and request.dont_filter:
            decision.seeds.named(key)
        drops.look_at_size(request, encoded.text)
        if encoded.losses or encoded.objects or drops.all_kept:
            drops.keep(request, key, encoded)
            if encoded.objects:
                drops.look_at_objects(request, batch.page)
        self._sums["ubi/scheduler/enqueued"] += 1

    def _look_at_redirect(self, request: Request, page: Visit) -> None:
        """Where a page redirects to may be another spelling of it."""
        learner = self._decision.node.learner
        if learner is not None and request.meta.get("redirect_urls"):
            learner.moved(page.state, page.entry, request.url)

    def _take_again(self, flight: Flight, visit: Visit, request: Request, key: int, seed: bool) -> Verdict:
        """A request with the key of one that is out: its retry, or a duplicate.

        A retry is a copy, so it came by the same redirects; a redirect of another page to this one did not.
        """
        same_way = request.meta.get("redirect_urls") == flight.request.meta.get("redirect_urls")
        if seed or not request.dont_filter or not same_way:
            return Verdict.KNOWN
        if not flight.withdrawn:  # else it goes back to the queue as it was
            decision = self._decision
            encoded = decision.codec.encode(request)
            entry = Entry(key, request.url, encoded.depth, encoded.priority, encoded.text)
            decision.node.retry(visit, retried(entry, visit.entry))
            decision.drops.keep(request, key, encoded)
            self._count("ubi/scheduler/retries")
        return Verdict.RETRIED


def _itself(request: Request) -> Request:
    """Stands for what makes a request where it is there already."""
    return request


def _leads_on(request: Request, parent: Request) -> bool:
    """Whether what stands in place of a response asks for something else: it is no retry."""
    return (
        request.meta.get("redirect_urls") != parent.meta.get("redirect_urls")
        or request.url != parent.url
        or request.method != parent.method
        or request.body != parent.body
    )


def _came_by(request: Request) -> str:
    """The URL that led to a request by a redirect, as it says; "" where it says none."""
    urls = request.meta.get("redirect_urls")
    return str(urls[-1]) if isinstance(urls, list) and urls else ""
