"""Pages that seeds with marks lead to (`adapter.requests.seed_marks`): links keep in their scope, and carry it on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter
from scrapy import Request
from scrapy.http import Response

from scrapy_ubi.adapter.extraction.plainlinks import PlainLinks
from scrapy_ubi.adapter.requests.check import REQUISITE
from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.observers import PageObserver
from scrapy_ubi.adapter.requests.seed_marks import LABEL, LIMITS, MARKS, SCOPE, read_label
from scrapy_ubi.settings.host_limits import read_limits
from scrapy_ubi.urls.scope import Scope, read_scope, scope_at

if TYPE_CHECKING:
    from scrapy_ubi.agent import Node

_MARKS = frozenset(MARKS.values())
OUTSIDE = "ubi/seeds/links_out_of_scope"
BAD_LIMITS = "ubi/seeds/bad_limits"


class SeedPages(PageObserver):
    """Where hosts have limits. What a callback sets in `meta` itself holds."""

    def __init__(self, node: Node, count: Callable[[str], object]) -> None:
        self._node = node
        self._count = count

    def begun(self, flight: Flight) -> None:
        """A seed of start() brings its limits to who owns its host."""
        limits = flight.request.meta.get(LIMITS)
        if limits is None or flight.visit is None:
            return
        try:
            self._node.limits.bring(flight.visit.state, read_limits(limits))
        except ValueError:
            self._count(BAD_LIMITS)

    def refuses(self, flight: Flight, response: Response, found: object) -> bool:
        """Whether a link leads out of the scope; else it has the marks of its page from now on."""
        meta = flight.request.meta
        if _MARKS.isdisjoint(meta) or not isinstance(found, Request | PlainLinks):
            return False
        marks = {LABEL: meta[LABEL]} if LABEL in meta else {}
        scope = self._scope(flight, response)
        if scope is not None:
            marks[SCOPE] = scope.as_list()
        if isinstance(found, PlainLinks):
            return self._take_plain(found, scope, marks)
        if REQUISITE in found.meta:
            return False
        if scope is not None and not found.dont_filter and not scope.holds(found.url):
            self._count(OUTSIDE)
            return True
        if LIMITS in meta and found.meta.get(LIMITS) == meta[LIMITS]:  # copied with the rest: they are of one host
            del found.meta[LIMITS]
        for key, value in marks.items():
            found.meta.setdefault(key, value)
        return False

    def yielded(self, flight: Flight, response: Response, item: object) -> None:
        """An item gets the fields of the label that it lacks."""
        label = flight.request.meta.get(LABEL)
        if not isinstance(label, dict) or not ItemAdapter.is_item(item) or read_label(label) is None:
            return
        fields: Any = ItemAdapter(item)
        for name, value in label.items():
            if name not in fields:
                try:
                    fields[name] = value
                except KeyError:  # an item class without this field
                    continue

    @staticmethod
    def _scope(flight: Flight, response: Response) -> Scope | None:
        """The scope of this page; that of a seed is made here, as it knows where the seed has led."""
        scope = read_scope(flight.request.meta.get(SCOPE))
        if not isinstance(scope, str):
            return scope
        asked = flight.visit.entry.url if flight.visit is not None else response.url
        return scope_at(scope, (asked, response.url))

    def _take_plain(self, found: PlainLinks, scope: Scope | None, marks: dict[str, Any]) -> bool:
        found.meta = {**marks, **{key: value for key, value in found.meta.items() if key != LIMITS}}
        if scope is None:
            return False
        kept = [number for number, url in enumerate(found.urls) if isinstance(url, str) and scope.holds(url)]
        for _ in range(len(found.urls) - len(kept)):
            self._count(OUTSIDE)
        for name in ("urls", "link_texts", "anchors"):
            if values := getattr(found, name):
                setattr(found, name, [values[number] for number in kept])
        return not kept
