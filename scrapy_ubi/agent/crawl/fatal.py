"""Why an agent cannot go on: its disk is broken, another process lives under its name, or we have made a mistake.

Rules of this module:

* No agent ends without a word: `on_fatal` is told the reason in one sentence.
* A file that is damaged is set aside when the disk is closed, so that the next start goes on without it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from scrapy_ubi.agent.crawl.disk_contract import Disk
from scrapy_ubi.errors import UbiError
from scrapy_ubi.frontier.store import StoreDamaged

logger = logging.getLogger("scrapy_ubi")


class Fatal:
    """The end of one agent by force. `dead`: it has come. `on_fatal` is told why. It hears of the disk's trouble."""

    def __init__(self, disk: Disk, on_fatal: Callable[[str], None]) -> None:
        self._disk = disk
        self._fatal = on_fatal
        self.dead = False
        disk.trouble = self.broken

    def stop(self, sentence: str) -> None:
        """The agent stops, for this reason."""
        self.dead = True
        self._fatal(sentence)

    def broken(self, error: Exception) -> None:
        """The disk cannot be used any more: without it nothing may go on."""
        if self.dead:
            return
        if isinstance(error, StoreDamaged):
            self._disk.mark_corrupt(error)
            self.stop(f"{error.file} is damaged ({error.reason}). The agent stops.")
        else:
            self.stop(f"{error} The agent stops.")

    def failed(self, error: BaseException) -> None:
        """What must not end has ended with this error."""
        if isinstance(error, UbiError):
            self.broken(error)
        else:
            logger.error("A mistake in scrapy_ubi, please report it:", exc_info=error)
            self.stop("The agent stops, for its protocol cannot go on.")
