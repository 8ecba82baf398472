"""Takes plain links: finds out what those of one object have in common, and hands them to the loop (`bulk_enqueue`).

Rules of this module:

* What cannot be said once for all links of an object (meta that does not travel), or is to be seen by somebody for each
  of them, makes ordinary requests of them, and so do those of `start()`, which are seeds. Nothing is lost by that but
  time; one line in the log says why.
* After `SLICE` links, or `SLICE_LENGTH` characters of them, others have their turn.
* A callback that cannot travel is the spider's mistake, and raised to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_ubi.adapter.extraction.plainlinks import PlainLinks, count_expanded, spider_of
from scrapy_ubi.adapter.requests.check import HOST, NONCE
from scrapy_ubi.adapter.scheduling.bulk_enqueue import BulkEnqueue, Ordinary, Shared
from scrapy_ubi.adapter.scheduling.link_decision import LinkDecision
from scrapy_ubi.adapter.scheduling.scrapy_rules import ScrapyRules
from scrapy_ubi.agent import Visit
from scrapy_ubi.agent.work.link_verdict import Verdict

SLICE = 500  # links between two turns of the loop: 10 to 20 ms where all are news
SLICE_LENGTH = 100_000  # characters of links: of those that are not written as usual, 2,000 take a millisecond


def slices(links: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """From which link to which others do not have their turn. What is no text counts for no characters."""
    try:
        short = sum(map(len, links)) <= SLICE_LENGTH
    except TypeError:
        short = False
    if short:
        yield from ((start, start + SLICE) for start in range(0, len(links), SLICE))
        return
    start = length = 0
    for number, link in enumerate(links):
        if number - start >= SLICE or length >= SLICE_LENGTH:
            yield start, number
            start = number
            length = 0
        length += len(link) if isinstance(link, str) else 0
    yield start, len(links)


class PageLinks:
    """Takes plain links for one scheduler. `why`: why ordinary requests are made of them all; "" where they are not."""

    def __init__(self, crawler: Crawler, decision: LinkDecision, why: str = "") -> None:
        self._crawler = crawler
        self._decision = decision
        self.passing = ScrapyRules(crawler)
        self._why = why or self.passing.sites.watcher
        self._texts: dict[tuple[Any, Any], str] = {}  # of links that say nothing but who parses them
        self.taken = 0  # links, in all

    def take_links(
        self, plain: PlainLinks, response: Response, page: Visit | None, ordinary: Ordinary, unheard: bool
    ) -> Iterator[None]:
        """Take the links of a page; yields whenever others should have their turn. `unheard`: nothing listens to the
        signals of requests. Raises ValueError or TypeError for what the spider has said wrongly, such as a callback
        that is none of its methods."""
        why = self._why or ("" if unheard else "somebody listens to request_scheduled or request_dropped")
        self.passing.depth.begin(response)
        shared = None if why else self._shared(plain, response)
        if shared is None:
            self._note(plain, response)
            yield from self._expand(plain, response, ordinary, why or "not all that they carry can travel")
            return
        if self.passing.depth.too_deep(shared.depth, len(plain)):
            self._note(plain, response)
            return
        batch = BulkEnqueue(self._crawler, self._decision, self.passing, plain, response, page, shared, ordinary)
        for start, stop in slices(plain.urls):
            if start:
                yield
            self.taken += batch.run(start, stop)

    def seeds(self, plain: PlainLinks) -> Iterator[Request]:
        """The ordinary requests for plain links that come from no page, as Scrapy's middlewares leave them."""
        count_expanded(self._crawler, plain, "start() yields them")
        for request in plain.requests(spider_of(self._crawler)):
            if request is None:
                self._say_malformed()
            elif (passed := self.passing.one(request, None)) is not None:
                yield passed

    def _note(self, plain: PlainLinks, response: Response) -> None:
        """Links that may not get to where each is noted, for the stores that keep links."""
        flight = self._decision.flights.get(response.request)
        if flight is not None and flight.links is not None:
            flight.links.urls.extend(url for url in plain.urls if isinstance(url, str))

    def _say_malformed(self) -> None:
        self._decision.refuse(Verdict.MALFORMED, "A link that is no URL was found")

    def _shared(self, plain: PlainLinks, response: Response) -> Shared | None:
        """What all links have in common; None where it cannot be said once."""
        if not (plain.meta or plain.cb_kwargs or plain.headers or plain.link_texts or plain.referer):
            text = self._texts.get((plain.callback, plain.errback))
            if text is not None:
                return Shared(text, *self.passing.depth.place(plain.priority, response), False, None)
        return self._encoded(plain, response)

    def _encoded(self, plain: PlainLinks, response: Response) -> Shared | None:
        template = plain.template(spider_of(self._crawler))
        template.meta.pop(NONCE, None)
        self.passing.prepare(template, response)
        encoded = self._decision.codec.encode(template)
        for loss in encoded.losses:
            if loss.kind in ("callback", "errback"):
                raise ValueError(f"PlainLinks: {loss.what} cannot travel: give a method of the spider, or its name")
        texts_travel = all(text is None or isinstance(text, str) for text in plain.link_texts)
        if encoded.losses or template.meta.get("verbatim_url") or HOST in template.meta or not texts_travel:
            return None
        self._decision.drops.look_at_size(plain, encoded.text)
        if encoded.depth and not (template.headers or template.cb_kwargs or template.meta.keys() - {"depth"}):
            self._texts[plain.callback, plain.errback] = encoded.text
        each = template if plain.link_texts or plain.referer else None
        anywhere = bool(template.meta.get("allow_offsite"))
        return Shared(encoded.text, encoded.depth, encoded.priority, anywhere, each)

    def _expand(self, plain: PlainLinks, response: Response, ordinary: Ordinary, why: str) -> Iterator[None]:
        """Make ordinary requests of the links, and let Scrapy's middlewares do their work one by one."""
        count_expanded(self._crawler, plain, why)
        for number, request in enumerate(plain.requests(spider_of(self._crawler)), 1):
            if request is None:
                self._say_malformed()
            elif (passed := self.passing.one(request, response)) is not None:
                ordinary(passed)
            if number % SLICE == 0:
                yield
