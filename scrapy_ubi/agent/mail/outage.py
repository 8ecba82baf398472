"""Why nothing leaves an agent: Redis is away, full, or too slow, the disk is full, or items are not taken.

Rules of this module:

* It is one trouble at a time, the last one that was met.
* Its beginning is in the log, and then its end; not each of the tries in between. A Redis at its memory limit takes one
  letter and refuses the next, over a slow line one exchange is in time and the next one is not: of either the log
  hears once in `QUIET` seconds. Of pipelines and receivers of items it hears again so often as long as it lasts: a
  database may be away for hours.
* The pause between two tries doubles, up to a bound, whatever it is that fails.
"""

from __future__ import annotations

import logging

logger = logging.getLogger("scrapy_ubi")

AWAY, SLOW, FULL, DISK, ITEMS = "away", "slow", "full", "disk", "items"
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0  # s between tries
QUIET = 60.0  # s
BETTER = {
    AWAY: "Redis is back.",
    SLOW: "Redis takes mail again.",
    FULL: "Redis has room again.",
    DISK: "The disk has room again.",
    ITEMS: "All items are written: the crawl goes on.",
}


class Outage:
    """The trouble that an agent has, if any. `kind`: AWAY, SLOW, FULL, DISK, ITEMS, or empty; `retry_at`: when to try
    again (s); `since`: when it began (s)."""

    def __init__(self) -> None:
        self.kind = ""
        self.retry_at = 0.0
        self.since = 0.0
        self.pause = 0.0
        self._said = ""  # which of them is in the log, so that its end must be
        self._quiet_until = {FULL: 0.0, SLOW: 0.0, ITEMS: 0.0}

    def begin_outage(self, now: float, kind: str, sentence: str) -> None:
        """A try has failed, for this reason."""
        self.pause = min(max(self.pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
        self.retry_at = now + self.pause
        self.since = self.since if self.kind else now
        self.kind = kind
        if (self._said == kind != ITEMS) or now < self._quiet_until.get(kind, now):
            return
        self._said = kind
        if kind in self._quiet_until:
            self._quiet_until[kind] = now + QUIET
        logger.warning(sentence)

    def end_outage(self, told: bool = False) -> None:
        """A try has succeeded. `told`: the log says already that Redis is back, by what it has forgotten."""
        if self._said and not (told and self._said == AWAY):
            logger.info(BETTER[self._said])
        self.kind = ""
        self._said = ""
        self.pause = 0.0
