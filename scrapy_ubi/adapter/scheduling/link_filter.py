"""The filter chain between Scrapy's requests and the frontier: which requests it is asked about, and what it is told.

Rules of this module:

* The chain judges what pages link to, before a request is encoded, queued or forwarded.
* Not judged are: sitemaps of the host of the page that leads there; requisites of pages; seeds, as a person
  named them (filters are told of them); requests with `dont_filter`, retries among them, as their spider wants them
  whatever they are (Scrapy's own offsite filter lets them pass, too); and where redirects of admitted
  requests lead to, but by filters that say so (`scope(..., redirects=yes)`).
* What is no http or https URL is judged by those filters only that are about such (`schemes`).
* Every refusal is counted (`ubi/filtered/<filter>`), said once for each filter, and noted in UBI_FILTER_LOG.
* `visited` is told what the frontier knows of a request that was found on a page.
* It judges the `safe` normal form, whatever UBI_NORMALISE is: patterns may tell capital letters apart.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from scrapy import Request

from scrapy_ubi.adapter.requests.check import REQUISITE
from scrapy_ubi.adapter.requests.codec import depth_of
from scrapy_ubi.adapter.robots.sitemaps import is_own
from scrapy_ubi.adapter.scheduling.link_filter_log import FilterLog, Noted
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls import normal_form
from scrapy_ubi.urls.filters import FilterChain, Link, Refusal, UrlFilter
from scrapy_ubi.urls.filters.visited import Visited

logger = logging.getLogger("scrapy_ubi")


class LinkFilter:
    """The chain of one agent's settings. `count` adds one to the stat of a name."""

    def __init__(self, chain: FilterChain, count: Callable[[str], object], log: Path | None = None) -> None:
        """Raises UbiSettingError when the log cannot be written."""
        self._count = count
        self._first = chain
        self._put(chain)
        self._log = FilterLog(log) if log is not None else None
        self._said: set[str] = set()
        self._is_known: Callable[[Request], bool] = lambda request: False
        self._asked: Callable[[], bool] = lambda: False  # whether the link in hand is known

    def _put(self, chain: FilterChain) -> None:
        self._chain = chain
        chain.on_error = self._failed
        self.idle = not chain  # nothing to ask: one look at an attribute is all that it costs

    def follow(self, entries: Sequence[object]) -> None:
        """These are the filters from now on; what those of the start, and those before, have met of seeds they know.
        Raises UbiSettingError."""
        chain = FilterChain.read(entries)
        chain.know_seeds_of(self._first)
        chain.know_seeds_of(self._chain)
        self._put(chain)
        self.ask_frontier(self._is_known)

    @classmethod
    def from_settings(cls, settings: UbiSettings, count: Callable[[str], object]) -> LinkFilter:
        """Raises UbiSettingError for a malformed chain, and when the log cannot be written."""
        return cls(FilterChain.read(settings.filters), count, settings.filter_log)

    def ask_frontier(self, is_known: Callable[[Request], bool]) -> None:
        """Have the filter `visited` use this."""

        self._is_known = is_known

        def is_known_link(link: Link) -> bool:
            return bool(link.page) and self._asked()

        for judge in self._chain:
            if isinstance(judge, Visited):
                judge.is_known = is_known_link

    def seed(self, request: Request) -> None:
        """A seed was met."""
        link = Link(request.url, normal_form(request.url) or "")
        self._chain.seed(link)
        if self._first is not self._chain:
            self._first.seed(link)

    def refuses_request(self, request: Request, page: str, redirect: bool) -> bool:
        """Whether a filter refuses the request, found on `page` ("" where that is not known); counted if so.
        `redirect`: it is where a redirect of `page` leads to.
        """
        if request.dont_filter or REQUISITE in request.meta or is_own(request, page):
            return False
        link = Link(request.url, normal_form(request.url) or "", depth_of(request), page)
        return self.refuses_link(link, lambda: self._is_known(request), redirect)

    def refuses_link(self, link: Link, is_known: Callable[[], bool], redirect: bool = False) -> bool:
        """The same for a link without a request. `is_known`: whether the frontier knows it, for `visited`."""
        self._asked = is_known
        refusal = self._chain.refusal(link, redirect)
        if refusal is None:
            return False
        self._refused(link, refusal)
        return True

    def note(self, name: str, why: str, url: str, depth: int, page: str) -> None:
        """Note in UBI_FILTER_LOG what was refused by no filter."""
        if self._log is not None:
            self._log.note(Noted(time.time(), name, why, url, depth, page))

    def close(self) -> None:
        """Write what is noted."""
        if self._log is not None:
            self._log.close()
            if self._log.unwritten:
                logger.warning("%d refusals did not fit into UBI_FILTER_LOG.", self._log.unwritten)

    def _refused(self, link: Link, refusal: Refusal) -> None:
        name = refusal.filter.name
        self._count(f"ubi/filtered/{name}")
        if name not in self._said:
            self._said.add(name)
            logger.info(
                "%.200s, found on %.200s, is refused by the filter %.200s (%s). (Shown once; ubi/filtered/%s counts.)",
                link.url,
                link.page or "no known page",
                refusal.filter,
                refusal.why,
                name,
            )
        self.note(name, str(refusal.why), link.url, link.depth, link.page)

    def _failed(self, judge: UrlFilter, error: Exception) -> None:
        """A filter of the user's raised: the link passes it."""
        self._count(f"ubi/filter_errors/{judge.name}")
        if (kind := f"!{judge.name}") not in self._said:
            self._said.add(kind)
            logger.error("The filter %.200s raised; what it is asked passes. (Shown once.)", judge, exc_info=error)
