"""Whether an agent finds by itself how many requests it has under way at once (UBI_CONCURRENCY), and how many at most.

Rules of this module:

* What a project says holds: a number in UBI_CONCURRENCY or CONCURRENT_REQUESTS, wherever that is set.
* Where nothing is said, the agent finds it only if Scrapy or this package fetches the pages. A handler of somebody
  else's (a browser, a service that is paid for) has bounds of its own, which cannot be seen from here.
"""

from __future__ import annotations

from scrapy.settings import BaseSettings
from scrapy.utils.python import global_object_name

from scrapy_ubi.settings import early
from scrapy_ubi.settings.loads_at_once import Loads

USUAL = Loads(500, auto=True)  # where nothing is set
_KNOWN = ("scrapy.", "scrapy_ubi.")


def found_by_agent(settings: BaseSettings) -> Loads | None:
    """Up to how many the agent has by itself; None where a number holds."""
    loads: Loads | None = early(settings, "concurrency")
    if loads is not None:
        return loads if loads.auto else None
    if settings.getpriority("CONCURRENT_REQUESTS") or _is_fetched_by_others(settings):
        return None
    return USUAL


def _is_fetched_by_others(settings: BaseSettings) -> bool:
    handlers = settings.getdict("DOWNLOAD_HANDLERS")
    named = [handlers[scheme] for scheme in ("http", "https") if handlers.get(scheme)]
    paths = (each if isinstance(each, str) else global_object_name(each) for each in named)
    return not all(path.startswith(_KNOWN) for path in paths)
