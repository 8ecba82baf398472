"""What looks at pages: the contract of an observer, and the lists by which the hot path reaches those that are on.

A feature that looks at pages is a `PageObserver`, made and added where its setting is on. Scheduler, gate and spider
middleware know none by name: each goes through the list of its hook. Rules of this module:

* A list has the bound methods of those observers alone that override its hook. A hook that none overrides costs
  nothing, and one that some do costs a call for each.
* Observers hear in the order in which they were added. All of them hear, whatever one has answered.
* All hooks are called in the reactor thread, and must not wait.
* An error of an observer of this package is a bug, and is not hidden: it goes to who called. So a page whose outputs
  could not be handed over (`ended`) is not told to be done. An observer of a project is isolated
  (`adapter.scheduling.project_observers`).
* What an observer keeps of a page it keeps by its flight, until it hears `ended` or `withdrawn`: each flight that has
  `begun` ends by one of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, TypeVar

from scrapy.http import Response

from scrapy_ubi.adapter.requests.inflight import Flight, Flights, FoundLinks

Isolate = Callable[[str, Callable[..., Any]], Callable[..., Any]]  # hook, method -> a method that does not raise


class PageObserver:
    """Hears of the pages of one agent. Override what you need: each hook does nothing here.

    A page is a `Flight`: `request`, `host`, `visit` (None for a request that belongs to no host, such as `data:`),
    `status`, `failed`, `fetched`; `links` where the observer `wants_links`. The hooks stand in the order of their
    calls.
    """

    marks: ClassVar[tuple[str, ...]] = ()  # keys of `meta` that it sets: taken off what a page asks for
    wants_links = False  # whether `flight.links` is to say where pages lead to

    def full(self) -> str:
        """Return why no further request may be taken now: `MEMORY` or `OUTPUTS` of `agent.profile.idle_reason`; empty
        where one may. Asked often."""
        return ""

    def begun(self, flight: Flight) -> None:
        """A request is handed out to Scrapy, before any downloader middleware."""

    def received(self, flight: Flight, response: Response) -> None:
        """A response came, as it is on the line; once for each transfer, and for robots.txt and media as well
        (`visit` is None, `local` is False)."""

    def answered(self, flight: Flight, response: Response) -> None:
        """The downloader middlewares are through: this is what the callback would get."""

    def passes_over(self, flight: Flight, response: Response) -> bool | Awaitable[None]:
        """Return whether the callback of this page is not to be called; what can be awaited says so, too, and the page
        is over when that has ended. Its `status` and `failed` are known; local requests are not asked about."""
        return False

    def failed(self, flight: Flight, error: BaseException) -> None:
        """The page has no response: this is its last error, before its errback hears of it."""

    def refuses(self, flight: Flight, response: Response, found: object) -> bool:
        """Return whether this output of the callback (a request, an item, plain links) is not taken."""
        return False

    def yielded(self, flight: Flight, response: Response, item: object) -> None:
        """The callback has yielded an item, which no pipeline has seen yet."""

    def ended(self, flight: Flight) -> None:
        """The page is over: its whole output was taken, pipelines included. It is told to be done after this."""

    def completed(self, host: Mapping[str, object]) -> None:
        """A host is complete (UBI_HOST_LIMITS): `host`, why it is `complete`, its `pages`, `urls`, `bytes`."""

    def withdrawn(self, flight: Flight) -> None:
        """The page was not fetched, by no fault of its own, and waits in the queue again."""


HOOKS = (
    "full",
    "begun",
    "received",
    "answered",
    "passes_over",
    "failed",
    "refuses",
    "yielded",
    "ended",
    "withdrawn",
    "completed",
)  # fmt: skip

_Observer = TypeVar("_Observer", bound=PageObserver)


class Observers:
    """The observers of one agent: a list of methods for each hook, which fills as observers are added."""

    def __init__(self, flights: Flights) -> None:
        self.full: list[Callable[[], str]] = []
        self.begun: list[Callable[[Flight], object]] = []
        self.received: list[Callable[[Flight, Response], object]] = []
        self.answered: list[Callable[[Flight, Response], object]] = []
        self.passes_over: list[Callable[[Flight, Response], bool | Awaitable[None]]] = []
        self.failed: list[Callable[[Flight, BaseException], object]] = []
        self.refuses: list[Callable[[Flight, Response, object], bool]] = []
        self.yielded: list[Callable[[Flight, Response, object], object]] = []
        self.ended: list[Callable[[Flight], object]] = []
        self.withdrawn: list[Callable[[Flight], object]] = []
        self.completed: list[Callable[[Mapping[str, object]], object]] = []
        self.marks: list[str] = []
        self._flights = flights
        self._there: list[PageObserver] = []

    def add(self, observer: _Observer, isolate: Isolate | None = None) -> _Observer:
        """Let this one hear from now on, after those that are there. One that is there already is not added again.
        `isolate` gives, for a hook and its method, the method to call in its place."""
        if observer in self._there:
            return observer
        self._there.append(observer)
        for hook in HOOKS:
            if getattr(type(observer), hook) is not getattr(PageObserver, hook):
                method = getattr(observer, hook)
                getattr(self, hook).append(method if isolate is None else isolate(hook, method))
        self.marks += [mark for mark in observer.marks if mark not in self.marks]
        if observer.wants_links and not self._flights.keep_links:
            self._flights.keep_links = True
            self.begun.insert(0, _keep_links)
        return observer

    def refuse(self, flight: Flight, response: Response, found: object) -> bool:
        """Return whether one of them refuses this output. All are asked."""
        refused = False
        for refuses in self.refuses:
            if refuses(flight, response, found):
                refused = True
        return refused

    def find_observer(self, cls: type[_Observer]) -> _Observer | None:
        """The observer of this class; None where there is none."""
        return next((observer for observer in self._there if isinstance(observer, cls)), None)


def _keep_links(flight: Flight) -> None:
    flight.links = FoundLinks()
