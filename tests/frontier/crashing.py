"""The life of a frontier on disk at random: its process is killed now and then, reads and flushes take their time."""

from __future__ import annotations

import copy

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from scrapy_ubi.frontier.flush import Flush
from scrapy_ubi.frontier.scan import Result, Scan
from tests.frontier.frontiers import DictKind, DictSeen, Reading, reopened
from tests.frontier.life import life
from tests.support.memory_store import MemoryStore

Books = dict[str, dict[str, object]]


def crashing(kind: type[Reading]) -> type:
    """The life of a frontier whose process is killed now and then, and whose reads and flushes take their time."""

    class Crashing(life(lambda delay: reopened(MemoryStore(), DictKind(), delay, kind))):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.scans: list[Scan] = []
            self.results: list[Result] = []
            self.flush: Flush | None = None
            self.written = False
            self.flushing = self.durable = self._books()
            self._watch()

        def _watch(self) -> None:
            """Notice flushes: of the frontier itself, too."""
            collect, written = self.frontier.collect, self.frontier.written

            def collected(*extra: object) -> Flush:
                self.flushing = self._books()
                self.flush, self.written = collect(*extra), False
                return self.flush

            def told(flush: Flush) -> None:
                written(flush)
                self.durable, self.flush = self.flushing, None

            self.frontier.collect, self.frontier.written = collected, told

        def _books(self) -> Books:
            queued = {host: dict(entries) for host, entries in self.queued.items()}
            for (host, key), one in self.out.items():
                if key not in self.done[host]:
                    queued[host][key] = one
            return {
                "queued": queued,
                "done": copy.deepcopy(self.done),
                "ready": dict(self.ready),
                "notes": dict(self.notes),
            }

        @rule(forbidden=st.sets(st.sampled_from("abc")), seconds=st.sampled_from([0.0, 1.0, 3.0]))
        def pop(self, forbidden: set[str], seconds: float) -> None:
            self._read()
            self._take()
            super().pop(forbidden, seconds)

        @rule()
        def ask(self) -> None:
            self.scans += self.frontier.needs(self.now, lambda state: True)

        @rule()
        def read(self) -> None:
            self._read()

        def _read(self) -> None:
            self.results += self.frontier.read(self.scans)
            self.scans = []

        @rule()
        def take(self) -> None:
            self._take()

        def _take(self) -> None:
            self.frontier.take(self.results)
            self.results = []

        @rule()
        def collect(self) -> None:
            if self.flush is None:
                self.frontier.collect()

        @precondition(lambda self: self.flush is not None)
        @rule()
        def write(self) -> None:
            self.flush.write(self.frontier.store)
            self.written = True

        @precondition(lambda self: self.written and self.flush is not None)
        @rule()
        def tell(self) -> None:
            self.frontier.written(self.flush)

        @rule(lost=st.booleans(), late=st.booleans())
        def crash(self, lost: bool, late: bool) -> None:
            """The process is killed; its seen table may be `lost`, or `late` by one flush more."""
            if self.flush is not None and self.written:
                self.durable = self.flushing
            seen = self.frontier.seen
            if late and self.flush is None:
                seen = DictSeen(seen.path, dict(seen.keys), seen.flush)
                self.frontier.flush()
                self.durable = self.flushing
            store = MemoryStore(self.frontier.store.rows)
            self.frontier = reopened(store, DictKind(None if lost else seen), 2.0, kind)
            self.scans, self.results, self.flush, self.written = [], [], None, False
            books = copy.deepcopy(self.durable)
            self.queued, self.done, self.ready = books["queued"], books["done"], books["ready"]
            self.notes = books["notes"]
            self.out, self.busy, self.parked = {}, set(), set()
            assert lost or self.frontier.seen.rebuilt == 0
            self._watch()

    return Crashing
