"""What becomes of a request or link of a host that was found: the one decision, for requests and for plain links.

Rules of this module:

* A request and a plain link are one value before anything is decided: `Found`. What only some of them need (the request
  itself, the entry with its text) is asked for when its turn comes, as most links are known.
* In this order: what is known; where a page may not lead; what comes too late; then the node is told, which knows it,
  or takes it, or says that a limit refuses it. Each answer is a `Verdict`; what is said of it is said here.
* What comes from no page is told the node in any case, as that keeps account of such; seeds are asked for before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from scrapy import Request

from scrapy_ubi.downloads.reach import Reach
from scrapy_ubi.node import Node, Visit
from scrapy_ubi.node.work.link_verdict import Verdict
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.requests.codec import Codec
from scrapy_ubi.requests.identity import Place, RequestKeys
from scrapy_ubi.requests.inflight import Flights
from scrapy_ubi.scheduling.drops import Drops
from scrapy_ubi.scheduling.link_filter import LinkFilter
from scrapy_ubi.scheduling.link_scores import LinkScores
from scrapy_ubi.scheduling.seeds import LEAST, Seeds
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls.key import seed_key


class Found(NamedTuple):
    """A request or plain link that was found, and belongs to a host. `page`: on which page it was found, None where
    that is not known; `came_by`: the URL of a page that led there nevertheless, as a redirect says; `spelling`: the key
    that it would have without lossy steps, None where there are none; `again`: it is to be fetched for its own sake, so
    nothing is counted as joined by it."""

    url: str
    place: Place
    key: int
    depth: int
    priority: int
    page: Visit | None
    seed: bool
    came_by: str
    spelling: int | None
    again: bool


class Tools(NamedTuple):
    """What requests are taken with, and plain links. `scores`: None where neither UBI_SCORE nor UBI_SCORES is set."""

    settings: UbiSettings
    codec: Codec
    keys: RequestKeys
    node: Node
    flights: Flights
    link_filter: LinkFilter
    drops: Drops
    reach: Reach
    seeds: Seeds
    scores: LinkScores | None = None

    def is_known(self, found: Found, request: Callable[[], Request]) -> bool:
        """Whether it is a duplicate of what the node knows, or of a seed of its page; counted by the node if so."""
        host, key, depth = found.place.host, found.key, found.depth
        if self.node.met(host, key, depth, found.priority):
            return True
        return key in self.seeds.pages and not found.seed and self.is_seed(host, key, depth, request())

    def is_seed(self, host: str, key: int, depth: int, request: Request) -> bool:
        """Whether a link with this key, one of `seeds.pages`, is the same request as a seed that is known."""
        nonce = self.seeds.nonce(request)
        return bool(nonce) and self.node.met(host, seed_key(key, nonce), depth, LEAST)

    def decide(self, found: Found, asked: bool, request: Callable[[], Request], entry: Callable[[], Entry]) -> Verdict:
        """What becomes of it. `asked`: it is no duplicate, as far as that can be asked."""
        node = self.node
        page = found.page
        if not asked and (page is not None or found.seed) and self.is_known(found, request):
            return self.known(found)
        if (page is None or self.reach.suspects(found.place.safe)) and self.is_unreachable(
            found.url, page.entry.url if page is not None else found.came_by, found.depth
        ):
            return Verdict.UNREACHABLE
        if page is None and not found.seed and node.over:
            self.drops.late(request())
            return Verdict.LATE
        told = entry()
        verdict = node.discover(found.place.host, told, seed=found.seed, page=page)
        if verdict is Verdict.KNOWN:
            return self.known(found)
        if verdict is Verdict.TOO_LARGE:
            self.drops.too_large(found.url)
        elif verdict is Verdict.FOUND and found.spelling is not None:
            node.joins.first(found.spelling, found.key, found.url, found.place.steps)
        return verdict

    def known(self, found: Found) -> Verdict:
        """It is a duplicate; what lossy steps have joined is counted."""
        if found.spelling is not None and not found.again:
            place = found.place
            self.node.joins.known(found.spelling, found.key, found.url, place.normal, place.steps)
        return Verdict.KNOWN

    def is_unreachable(self, url: str, page: str, depth: int) -> bool:
        """Whether a link to `url`, found on the page of that URL, may not be followed; counted and noted if so. What
        comes from no page ("") is the user's own."""
        if not page:
            self.reach.seed(url)
            return False
        refusal = self.reach.refusal(url, page)
        if refusal is None:
            return False
        kind, sentence = refusal
        self.drops.drop(kind, sentence)
        self.link_filter.note(kind, sentence, url, depth, page)
        return True

    def too_long(self, url: str) -> Verdict:
        """A URL is longer than any request's may be."""
        self.drops.drop("url_too_long", f"{url[:200]}... is longer than UBI_MAX_URL_LENGTH")
        return Verdict.TOO_LONG
