"""How a start that is refused ends: with one sentence and exit status 1, before anything is fetched.

Rules of this module:

* The sentence stands on standard error exactly once, as the text of SystemExit. Handlers of the log that write there
  are left out for that reason; all others (LOG_FILE, and handlers of the user's) get it as a CRITICAL line.
* It is imported where Scrapy lacks a name, too: no name of Scrapy's is taken that may be gone.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import scrapy
from scrapy.utils.reactor import is_reactor_installed

from scrapy_ubi.errors import UbiError
from scrapy_ubi.transport import TransportError

logger = logging.getLogger("scrapy_ubi")


def process_ended(sentence: object) -> SystemExit:
    """What ends the process with this sentence. The threads that crawls before this one have left in the reactor would
    keep it from its end: they are not stopped when the reactor is left like that."""
    if is_reactor_installed():
        from twisted.internet import reactor

        reactor.getThreadPool().stop()
    _log(str(sentence))
    return SystemExit(f"scrapy_ubi: {sentence}")


@contextmanager
def ends_in_one_sentence() -> Iterator[None]:
    """What refuses the start within this block ends the process: an error of ours, or a name that Scrapy lacks."""
    try:
        yield
    except (UbiError, TransportError) as error:
        raise process_ended(error) from error
    except AttributeError as error:
        if _is_of_scrapy(error):
            raise process_ended(lacking(str(error))) from error
        raise


def lacking(what: str) -> str:
    """Why a crawl may not start with a Scrapy in which a name is gone."""
    return (
        f"Scrapy {scrapy.__version__} lacks a name that scrapy_ubi needs ({what}): install another version of it, or "
        "crawl without agents (UBI_ENABLED = False)."
    )


def _is_of_scrapy(error: AttributeError) -> bool:
    """Whether this was raised because an object of Scrapy's, or of Twisted's, lacks a name."""
    of = error.obj if isinstance(error.obj, type) else type(error.obj)
    return of.__module__.partition(".")[0] in ("scrapy", "twisted")


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
