"""How many requests an agent has under way at once, where it finds that by itself (UBI_CONCURRENCY = "auto(500)").

Scrapy's 16 are for a few hosts. Of a thousand, each loaded from once at a time and answering after 100 ms, 16 places
give 160 pages a second at most, and a host that does not answer takes one of them for DOWNLOAD_TIMEOUT. Rules of this
module:

* More only while all places are taken, and the agent has room: its loop comes on time, its thread is not busy all the
  time, and transfers do not fail more often than before. Otherwise nothing is changed, or there are fewer.
* A load that has been under way for `SILENT` seconds holds no place: as many are given beside the others, up to as many
  again. So hosts that hang take no rate from the others.
* At most `most_bytes` of bodies are expected at once, by the size that pages had lately (larger ones count at once,
  smaller ones slowly), and at most `most_files`
  connections; one load is always allowed.
* The rules are a function of what was seen (`LoadsSeen`): no clock, no timer.
"""

from __future__ import annotations

from dataclasses import dataclass

SILENT = 5.0  # s
LATE, FAR_TOO_LATE = 0.1, 0.5  # s that the loop is late: it stays as it is; there are fewer
BUSY = 0.85  # share of the time in which the thread computes; with more loads they would only wait
FAILING = 0.3  # share of transfers that fail, from which it may be too many; and more than twice as many as usual
ENOUGH = 20  # transfers in which a share of failures means something
GROWS, SHRINKS = 1.25, 0.75
LEAST_STEP = 8
FORGETS = 0.1  # weight of the last look in what is usual


@dataclass(frozen=True, slots=True)
class LoadsSeen:
    """What was seen since the last look."""

    active: int  # requests under way
    silent: int = 0  # those of them that have been for SILENT seconds
    late: float = 0.0  # s that the loop came too late, at most
    busy: float = 0.0  # share of the time in which this thread computed
    answered: int = 0
    failed: int = 0
    page_bytes: float = 0.0  # of a body, on average; 0: none came


class AtOnce:
    """Decides for one agent. `limit`: how many there may be now."""

    def __init__(self, first: int, most: int, most_bytes: float = float("inf"), most_files: int = 1 << 30) -> None:
        self._first, self._most = min(first, most), most
        self._most_bytes = most_bytes
        self._most_files = most_files
        self._target = float(self._first)
        self._usual_failures = 0.0
        self._page_bytes = 0.0
        self.limit = self._first

    def look(self, seen: LoadsSeen) -> int:
        """The limit from now on."""
        if seen.page_bytes:
            weight = FORGETS if seen.page_bytes < self._page_bytes else 1.0  # large ones count at once
            self._page_bytes += weight * (seen.page_bytes - self._page_bytes)
        failing = self._is_failing(seen)
        if seen.late > FAR_TOO_LATE or failing:
            self._target = max(float(self._first), self._target * SHRINKS)
        elif seen.active >= self.limit and seen.late < LATE and seen.busy < BUSY:
            self._target = min(float(self._most), max(self._target * GROWS, self._target + LEAST_STEP))
        target = int(self._target)
        self.limit = max(1, min(target + min(seen.silent, target), self._most_files, self._fits()))
        return self.limit

    def _is_failing(self, seen: LoadsSeen) -> bool:
        ended = seen.answered + seen.failed
        if ended < ENOUGH:
            return False
        share = seen.failed / ended
        usual = self._usual_failures
        self._usual_failures += FORGETS * (share - usual)
        return share > FAILING and share > 2 * usual

    def _fits(self) -> int:
        """How many bodies of the present size may be under way."""
        if not self._page_bytes:
            return self._most_files
        return max(1, int(min(self._most_bytes / self._page_bytes, float(self._most_files))))
