"""What is lost of the requests and links that come in: counted always, said once.

Rules of this module:

* What is dropped, and could never be fetched, has a reason: one stat and one sentence for each.
* A request that cannot travel whole is kept as the object it is (`kept`), so nothing is lost while it is fetched
  here. Where no request ever travels there is nothing to say. In a trial every request is kept. So is one that holds
  objects; where a page has one object in several requests, and these may travel, that is said once for each key.
* What cannot travel is said once for each callback (by its file and line), key of meta and the like, of at most
  `MOST_SAID`; the stats count all.
* A text too large for a letter is said. Where its host is another agent's it is dropped, for no other agent could fetch
  it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from scrapy import Request

from scrapy_ubi.adapter.process.log_once import Notices
from scrapy_ubi.adapter.requests.codec import Encoded
from scrapy_ubi.adapter.requests.shared_objects import SharedObjects
from scrapy_ubi.adapter.requests.untravelled import Loss, sentences
from scrapy_ubi.adapter.scheduling.kept_requests import KeptRequests
from scrapy_ubi.agent.crawl.crawl import LETTER_BYTES_A_CHARACTER

MOST_SAID = 20  # different things that cannot travel and are said


class Drops:
    """The losses of one agent. `count` adds one to the stat of a name; `most` is UBI_MAX_LETTER_BYTES, and `alone` an
    agent whose requests never travel. `all_kept`: every request is kept as the object it is.
    """

    def __init__(
        self,
        count: Callable[[str], object],
        notices: Notices,
        kept: KeptRequests,
        most: int,
        alone: bool,
        all_kept: bool = False,
    ) -> None:
        self._count = count
        self._notices = notices
        self._kept = kept
        self._longest = most // LETTER_BYTES_A_CHARACTER
        self._alone = alone
        self.all_kept = all_kept
        self._said: set[str] = set()
        self._shared = SharedObjects()

    def drop(self, kind: str, sentence: str) -> bool:
        """A request or link is dropped; False, as `enqueue_request` says it."""
        self._count(f"ubi/scheduler/dropped/{kind}")
        self._notices.once(kind, f"{sentence}: it is dropped.")
        return False

    def known_seed(self, request: Request, here: bool) -> None:
        """A seed with dont_filter is known. `here`: start() has named it before, in this process."""
        if here:
            self._notices.once(
                "seed_twice",
                f"start() yields {request} again, with dont_filter=True, but seeds that are alike in everything are "
                "fetched once: yield it from a callback to have it fetched once more.",
            )
        else:
            self._notices.once(
                "seed_known",
                f"The seed {request} is known already, from another agent or an earlier start: a seed is fetched once "
                "in the whole crawl, also with dont_filter=True.",
                logging.INFO,
            )

    def local_seed(self, request: Request) -> None:
        """A seed belongs to no host: nothing in the group can say that another agent has it."""
        if not self._alone:
            self._notices.once(
                "seed_local",
                f"start() yields {request!s:.200}, which belongs to no host: every agent fetches it, and items that "
                "its callback yields come from each of them. What it leads to is fetched once.",
            )

    def late(self, request: Request) -> bool:
        """A request of somebody who knows of no end comes after the end of the crawl: it is dropped; False."""
        self._count("ubi/scheduler/dropped/over")
        self._notices.once(
            "over",
            f"The crawl is over for all agents: {request} comes too late, and is dropped. A spider that is fed from "
            "outside has to hold itself open while more may come, by a handler of spider_idle that raises "
            "DontCloseSpider.",
            logging.ERROR,
        )
        return False

    def too_large(self, url: str) -> bool:
        """A request or link of another agent's host, which no letter can carry, is dropped; False."""
        return self.drop(
            "too_large",
            f"The request for {url[:200]} is too large for a letter (UBI_MAX_LETTER_BYTES), and its host is another "
            "agent's",
        )

    def look_at_size(self, request: object, text: str) -> None:
        """Say so of a text that cannot travel."""
        if not self._alone and len(text) > self._longest:
            self._notices.once(
                "size",
                f"{request} is too large for a letter (UBI_MAX_LETTER_BYTES): it is fetched only if its host is this "
                "agent's own.",
            )

    def keep(self, request: Request, key: int, encoded: Encoded) -> None:
        """Keep the object of a request that cannot travel whole, and say what cannot; that of one that holds objects;
        in a trial that of any."""
        for loss in encoded.losses:
            self._count(f"ubi/codec/untravelled/{loss.kind}")
            if not self._alone and loss.what not in self._said:
                self._say(request, loss)
        if (encoded.losses or self.all_kept) and not self._kept.add(key, request):
            self._count("ubi/codec/originals_dropped")
            self._notices.once(
                "originals",
                "Too many requests wait that cannot travel whole: the oldest are fetched without what cannot, or fail "
                "with a reason that begins with codec/.",
            )
        elif encoded.objects and not encoded.losses and not self._kept.add_holder(key, request):
            self._count("ubi/codec/objects_dropped")
            if self._alone:
                self._notices.once(
                    "holders",
                    "Too many requests wait that hold objects in their meta or cb_kwargs: the callbacks of the oldest "
                    "get copies of these. What one callback puts into an object that several requests hold, others may "
                    "not see.",
                )

    def look_at_objects(self, request: Request, page: object) -> None:
        """Say so where a page yields several requests with one object, of which other agents get copies."""
        if self._alone:
            return
        for name in self._shared.shared(request, page):
            self._notices.once(
                f"shared {name}",
                f"{request}: {name} is one object in several requests of a page. At another agent, and after a "
                "restart, a callback gets a copy of it, and what it puts in is not seen by the others. If callbacks "
                "only read it, nothing is lost. Else yield an item for each page, or make one request after the other.",
            )

    def _say(self, request: Request, loss: Loss) -> None:
        """Say what cannot travel, and what follows."""
        if len(self._said) < MOST_SAID:
            self._said.add(loss.what)
            self._notices.once(
                f"untravelled {loss.what}",
                f"{request}: {loss.what} cannot travel to another agent. {sentences(loss)}",
            )
        else:
            self._notices.once(
                "untravelled",
                "More different parts of requests cannot travel than are named here: ubi/codec/untravelled/... counts "
                "them.",
            )
