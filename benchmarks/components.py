"""The components of a crawling process: which files, and which functions in them, are part of which."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

# (component, part of the file's name, function or None): the first that fits a frame. Innermost frames are asked first.
OWNERS: tuple[tuple[str, str, str | None], ...] = (
    ("sampling itself", "bench/sampling.py", None),
    ("link extraction", "scrapy/linkextractors/", None),
    ("link extraction", "scrapy_ubi/linkextractor.py", None),
    ("link extraction", "scrapy_ubi/links/", None),
    ("link extraction", "scrapy/utils/response.py", "get_base_url"),
    ("spider callback", "bench/spiders.py", None),
    ("spider callback", "bench/short.py", None),
    ("download handler", "scrapy_ubi/http/", None),
    ("selectors (the spider's title)", "parsel/", None),
    ("selectors (the spider's title)", "scrapy/selector/", None),
    ("URL pipeline (normal form, key)", "scrapy_ubi/urls/", None),
    ("URL pipeline (normal form, key)", "scrapy_ubi/requestkeys.py", None),
    ("URL pipeline (normal form, key)", "scrapy/utils/request.py", None),
    ("URL pipeline (normal form, key)", "w3lib/url.py", "canonicalize_url"),
    ("filters", "scrapy_ubi/filter", None),
    ("Request objects", "scrapy/http/request/", None),
    ("Response objects", "scrapy/http/response/", None),
    ("Response objects", "scrapy/responsetypes.py", None),
    ("Response objects", "scrapy/http/headers.py", None),
    ("Request as text and back", "scrapy_ubi/codec.py", None),
    ("Request as text and back", "scrapy_ubi/jsonvalues.py", None),
    ("Request as text and back", "scrapy_ubi/requestcheck.py", None),
    ("our scheduler", "scrapy_ubi/scheduler.py", None),
    ("our scheduler", "scrapy_ubi/flights.py", None),
    ("our scheduler", "scrapy_ubi/handout.py", None),
    ("our scheduler", "scrapy_ubi/intake.py", None),
    ("our scheduler", "scrapy_ubi/losses.py", None),
    ("our scheduler", "scrapy_ubi/originals.py", None),
    ("our scheduler", "scrapy_ubi/statsheet.py", None),
    ("engine", "scrapy_ubi/scrapy_private/leanpath.py", None),
    ("scraper, items", "scrapy_ubi/scrapy_private/leanoutput.py", None),
    ("scraper, items", "scrapy_ubi/scrapy_private/leanpieces.py", None),
    ("our scheduler", "scrapy_ubi/scrapy_private/", None),
    ("the short path", "scrapy_ubi/batch.py", None),
    ("the short path", "scrapy_ubi/passing.py", None),
    ("the short path", "scrapy_ubi/plain", None),
    ("the short path", "scrapy_ubi/spiders.py", None),
    ("the short path", "scrapy_ubi/taking.py", None),
    ("our middlewares", "scrapy_ubi/spidermiddleware.py", None),
    ("our middlewares", "scrapy_ubi/downloadermiddleware.py", None),
    ("our middlewares", "scrapy_ubi/guard.py", None),
    ("our middlewares", "scrapy_ubi/bypassing.py", None),
    ("our middlewares", "scrapy_ubi/robots/", None),
    ("our middlewares", "scrapy_ubi/body.py", None),
    ("our middlewares", "scrapy_ubi/writegate.py", None),
    ("our middlewares", "scrapy_ubi/error", None),
    ("politeness", "scrapy_ubi/politeness/", None),
    ("frontier: disk", "scrapy_ubi/frontier/rocks.py", None),
    ("frontier: disk", "scrapy_ubi/frontier/rows.py", None),
    ("frontier: disk", "scrapy_ubi/frontier/flush.py", None),
    ("frontier: disk", "scrapy_ubi/frontier/ledger.py", None),
    ("frontier: disk", "scrapy_ubi/node/keeper.py", None),
    ("frontier: disk", "rocksdict/", None),
    ("frontier: seen", "scrapy_ubi/frontier/seen.py", None),
    ("frontier: seen", "scrapy_ubi/frontier/shards.py", None),
    ("frontier: seen", "scrapy_ubi/frontier/slots.py", None),
    ("frontier: seen", "scrapy_ubi/frontier/mapped.py", None),
    ("frontier: seen", "scrapy_ubi/frontier/bloom.py", None),
    ("frontier: queues, workbench", "scrapy_ubi/frontier/", None),
    ("mail", "scrapy_ubi/transport/", None),
    ("mail", "scrapy_ubi/node/post.py", None),
    ("mail", "scrapy_ubi/node/pacing.py", None),
    ("mail", "scrapy_ubi/node/runs.py", None),
    ("mail", "scrapy_ubi/node/courier.py", None),
    ("mail", "scrapy_ubi/protocol/mail.py", None),
    ("mail", "scrapy_ubi/protocol/outbox.py", None),
    ("mail", "scrapy_ubi/protocol/wire.py", None),
    ("mail", "scrapy_ubi/protocol/reception.py", None),
    ("mail", "scrapy_ubi/protocol/sending.py", None),
    ("mail", "scrapy_ubi/protocol/custody.py", None),
    ("mail", "redis/", None),
    ("protocol (the rest)", "scrapy_ubi/protocol/", None),
    ("signals", "scrapy_ubi/lean/signals.py", None),
    ("stats, extensions", "scrapy_ubi/lean/stats.py", None),
    ("node", "scrapy_ubi/", None),
    ("Scrapy's scheduler", "scrapy/core/scheduler.py", None),
    ("Scrapy's scheduler", "scrapy/pqueues.py", None),
    ("Scrapy's scheduler", "scrapy/squeues.py", None),
    ("Scrapy's scheduler", "scrapy/dupefilters.py", None),
    ("Scrapy's scheduler", "queuelib/", None),
    ("Scrapy's scheduler", "scrapy_redis/", None),
    ("spider middlewares: Scrapy's", "scrapy/spidermiddlewares/", None),
    ("spider middlewares: the chain", "scrapy/core/spidermw.py", None),
    ("spider middlewares: the chain", "scrapy/utils/asyncgen.py", None),
    ("spider middlewares: the chain", "scrapy/utils/python.py", None),
    ("spider middlewares: the chain", "scrapy/middleware.py", None),
    ("downloader middlewares: Scrapy's", "scrapy/downloadermiddlewares/", None),
    ("downloader middlewares: Scrapy's", "scrapy/core/downloader/middleware.py", None),
    ("download handler", "scrapy/core/downloader/handlers/", None),
    ("download handler", "scrapy/core/downloader/contextfactory.py", None),
    ("download handler", "scrapy/utils/_download_handlers.py", None),
    ("download handler", "twisted/web/", None),
    ("download handler", "twisted/protocols/", None),
    ("download handler", "twisted/internet/", None),
    ("downloader (slots)", "scrapy/core/downloader/__init__.py", None),
    ("scraper, items", "scrapy/core/scraper.py", None),
    ("scraper, items", "itemadapter/", None),
    ("feed export", "scrapy/exporters.py", None),
    ("feed export", "scrapy/extensions/feedexport.py", None),
    ("engine", "scrapy/core/engine.py", None),
    ("signals", "scrapy/signalmanager.py", None),
    ("signals", "scrapy/utils/signal.py", None),
    ("signals", "pydispatch/", None),
    ("stats, extensions", "scrapy/statscollectors.py", None),
    ("stats, extensions", "scrapy/extensions/", None),
    ("logging", "scrapy/logformatter.py", None),
    ("logging", "scrapy/utils/log.py", None),
    ("logging", "/logging/", None),
    ("async glue (deferreds, tasks)", "scrapy/utils/", None),
    ("event loop", "asyncio/", None),
    ("event loop", "selectors.py", None),
    ("Scrapy, the rest", "scrapy/", None),
)

# What is in the place of something of Scrapy's (some of it has Scrapy's own part of it as well), and what a crawl by
# agents has beyond one by Scrapy.
INSTEAD = {"link extraction", "download handler", "signals", "engine", "scraper, items", "stats, extensions"}
DISTRIBUTION = {name for name, part, _ in OWNERS if part.startswith("scrapy_ubi/")} - INSTEAD


@cache
def component(place: str) -> str | None:
    """The component of `file:function`; None where the caller's counts."""
    file, _, function = place.rpartition(":")
    fits = (owner for owner, part, name in OWNERS if part in file and (name is None or function.endswith(name)))
    return next(fits, None)


def owner_of(stack: Iterable[str]) -> str:
    return next((found for place in stack if (found := component(place))), "other")
