"""Log records that nobody would write are not made (UBI_LEAN).

Scrapy takes all records of all levels, and leaves it to the handlers of the log to pass over those below LOG_LEVEL:
for each page it makes a record or two of level DEBUG ("Crawled", "Scraped from") that end nowhere. Here the loggers of
these are told LOG_LEVEL themselves, while the spider runs: only where no handler that such a record would reach takes
that level, and where nobody has given the logger a level.
"""

from __future__ import annotations

import logging

from scrapy_ubi.fast.process_wide import ProcessWide, Undo

LOGGERS = ("scrapy.core.engine", "scrapy.core.scraper")


class UnwrittenRecords(ProcessWide):
    """From the opening of the first spider to the end of the last."""

    @classmethod
    def change(cls) -> Undo:
        """See the base class."""
        changed = []
        for logger in map(logging.getLogger, LOGGERS):
            least = least_written(logger)
            if logger.level == logging.NOTSET and least is not None and least > logging.DEBUG:
                logger.setLevel(least)
                changed.append(logger)

        def undo() -> None:
            for logger in changed:
                logger.setLevel(logging.NOTSET)

        return undo


def least_written(logger: logging.Logger) -> int | None:
    """The lowest level that any handler of this logger's records takes, None where there is no handler."""
    levels: list[int] = []
    at: logging.Logger | None = logger
    while at is not None:
        levels += [handler.level for handler in at.handlers]
        at = at.parent if at.propagate else None
    return min(levels, default=None)
