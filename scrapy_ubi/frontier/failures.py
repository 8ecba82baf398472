"""The failures that a frontier on disk keeps, by host: those not in the store yet, and those there."""

from __future__ import annotations

from collections.abc import Iterator

from scrapy_ubi.frontier import rows
from scrapy_ubi.frontier.flushes import Flushes
from scrapy_ubi.frontier.store import Store, every
from scrapy_ubi.protocol.frontier_contract import MOST_FAILED
from scrapy_ubi.protocol.host import Failure


class Failures:
    """The failures kept in this store, with what `flushes` has of them."""

    def __init__(self, store: Store, flushes: Flushes) -> None:
        self._store = store
        self._flushes = flushes

    def fail(self, failure: Failure) -> None:
        """Keep a failure, while there is room."""
        row = rows.failed_key(failure.host, failure.entry.key)
        new = self._kept(row) is None
        if not new or self._flushes.failed < MOST_FAILED:
            self._flushes.failed += new
            self._flushes.changes.failed[row] = rows.failed_value(failure)

    def forgive(self, failure: Failure) -> None:
        """Forget a failure."""
        row = rows.failed_key(failure.host, failure.entry.key)
        if self._kept(row) is not None:
            self._flushes.failed -= 1
            self._flushes.changes.failed[row] = None

    def failed(self, host: str | None = None) -> Iterator[Failure]:
        """The failures kept, of one host or of all."""
        start = rows.FAILED if host is None else rows.failed_prefix(host)
        fresh, writing = self._unwritten()
        changed = {row: value for row, value in {**writing, **fresh}.items() if row.startswith(start)}
        stored = (pair for pair in every(self._store, start, start + b"\xff" * 17) if pair[0] not in changed)
        for source in ([(row, value) for row, value in changed.items() if value is not None], stored):
            for row, value in source:
                failure = rows.read_failed(row, value)
                if host is None or failure.host == host:
                    yield failure

    def _kept(self, row: bytes) -> bytes | None:
        for changes in self._unwritten():
            if row in changes:
                return changes[row]
        return self._store.get(row)

    def _unwritten(self) -> list[dict[bytes, bytes | None]]:
        """The failures not in the store yet: the latest first."""
        flush = self._flushes.unwritten
        return [self._flushes.changes.failed, flush.failed if flush is not None else {}]
