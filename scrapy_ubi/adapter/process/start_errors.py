"""How a start that is refused ends: with one sentence and exit status 1, before anything is fetched.

Rules of this module:

* The sentence stands on standard error exactly once, as the text of SystemExit. Handlers of the log that write there
  are left out for that reason; all others (LOG_FILE, and handlers of the user's) get it as a CRITICAL line.
"""

from __future__ import annotations

import logging
import sys

import scrapy
from scrapy.utils.reactor import is_reactor_installed

logger = logging.getLogger("scrapy_ubi")


def process_ended(sentence: object) -> SystemExit:
    """What ends the process with this sentence. The threads that crawls before this one have left in the reactor would
    keep it from its end: they are not stopped when the reactor is left like that."""
    if is_reactor_installed():
        from twisted.internet import reactor

        reactor.getThreadPool().stop()
    _log(str(sentence))
    return SystemExit(f"scrapy_ubi: {sentence}")


def lacking(what: str) -> str:
    """Why a crawl may not start with a Scrapy in which a name is gone."""
    return (
        f"Scrapy {scrapy.__version__} lacks a name that scrapy_ubi needs ({what}): install another version of it, or "
        "crawl without agents (UBI_ENABLED = False)."
    )


def _log(sentence: str) -> None:
    record = logger.makeRecord(
        logger.name, logging.CRITICAL, __file__, 0, "The start is refused: %s", (sentence,), None
    )
    for handler in logging.getLogger().handlers:
        if not _is_on_stderr(handler) and record.levelno >= handler.level:
            handler.handle(record)


def _is_on_stderr(handler: logging.Handler) -> bool:
    stream = getattr(handler, "stream", None)
    return stream is not None and stream in (sys.stderr, sys.__stderr__)
