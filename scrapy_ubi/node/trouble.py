"""Why nothing leaves an agent: Redis is away, or it is full, or the disk is.

Rules of this module:

* It is one trouble at a time, the last one that was met.
* Its beginning is in the log, and then its end; not each of the tries in between. A Redis at its memory limit takes one
  letter and refuses the next: of that the log hears once in `QUIET` seconds.
* The pause between two tries doubles, up to a bound, whatever is tried in vain.
"""

from __future__ import annotations

import logging

logger = logging.getLogger("scrapy_ubi")

AWAY, FULL, DISK = "away", "full", "disk"
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0  # s between tries
QUIET = 60.0  # s
BETTER = {FULL: "Redis has room again.", AWAY: "Redis is back.", DISK: "The disk has room again."}


class Trouble:
    """The trouble that an agent has, if any. `kind`: AWAY, FULL, DISK, or empty; `retry_at`: when to try again (s)."""

    def __init__(self) -> None:
        self.kind = ""
        self.retry_at = 0.0
        self._pause = 0.0
        self._said = ""  # which of them is in the log, so that its end must be
        self._quiet_until = 0.0

    def met(self, now: float, kind: str, sentence: str) -> None:
        """It was tried in vain, for this reason."""
        self._pause = min(max(self._pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
        self.retry_at = now + self._pause
        self.kind = kind
        if self._said == kind or (kind == FULL and now < self._quiet_until):
            return
        self._said = kind
        if kind == FULL:
            self._quiet_until = now + QUIET
        logger.warning(sentence)

    def over(self) -> None:
        """It was not in vain."""
        if self._said:
            logger.info(BETTER[self._said])
        self.kind, self._said, self._pause = "", "", 0.0
