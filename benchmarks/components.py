"""The components of a crawling process: which files, and which functions in them, are part of which."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

# (component, part of the file's name, function or None): the first that fits a frame. Innermost frames are asked first.
OWNERS: tuple[tuple[str, str, str | None], ...] = (
    ("sampling itself", "bench/sampling.py", None),
    ("link extraction", "scrapy/linkextractors/", None),
    ("link extraction", "scrapy_ubi/adapter/extraction/linkextractor.py", None),
    ("link extraction", "scrapy_ubi/urls/links/", None),
    ("link extraction", "scrapy/utils/response.py", "get_base_url"),
    ("spider callback", "bench/spiders.py", None),
    ("spider callback", "bench/short.py", None),
    ("selectors (the spider's title)", "parsel/", None),
    ("selectors (the spider's title)", "scrapy/selector/", None),
    ("URL pipeline (normal form, key)", "scrapy_ubi/urls/", None),
    ("URL pipeline (normal form, key)", "scrapy/utils/request.py", None),
    ("URL pipeline (normal form, key)", "w3lib/url.py", "canonicalize_url"),
    ("Request objects", "scrapy/http/request/", None),
    ("Response objects", "scrapy/http/response/", None),
    ("Response objects", "scrapy/responsetypes.py", None),
    ("Response objects", "scrapy/http/headers.py", None),
    ("frontier: disk", "rocksdict/", None),
    ("mail", "redis/", None),
    ("filters", "scrapy_ubi/adapter/scheduling/link_filter", None),
    ("URL pipeline (normal form, key)", "scrapy_ubi/adapter/requests/identity.py", None),
    ("Request as text and back", "scrapy_ubi/adapter/requests/", None),
    ("the short path", "scrapy_ubi/adapter/extraction/plainlinks.py", None),
    ("the short path", "scrapy_ubi/spiders.py", None),
    ("the short path", "scrapy_ubi/adapter/components/expand_middleware.py", None),
    ("our scheduler", "scrapy_ubi/adapter/components/scheduler.py", None),
    ("our scheduler", "scrapy_ubi/adapter/components/scheduler_builder.py", None),
    ("our scheduler", "scrapy_ubi/adapter/scheduling/", None),
    ("our middlewares", "scrapy_ubi/adapter/components/", None),
    ("our middlewares", "scrapy_ubi/adapter/downloads/", None),
    ("our middlewares", "scrapy_ubi/adapter/scrapy_private/socket_gate.py", None),
    ("our scheduler", "scrapy_ubi/adapter/scrapy_private/", None),
    ("politeness", "scrapy_ubi/adapter/feedback/", None),
    ("politeness", "scrapy_ubi/adapter/robots/", None),
    ("politeness", "scrapy_ubi/policy/politeness/", None),
    ("politeness", "scrapy_ubi/policy/robots/", None),
    ("outputs", "scrapy_ubi/adapter/feeds/", None),
    ("download handler", "scrapy_ubi/fast/http/", None),
    ("signals", "scrapy_ubi/fast/signals.py", None),
    ("stats, extensions", "scrapy_ubi/fast/tweaks.py", None),
    ("scraper, items", "scrapy_ubi/fast/spider_output.py", None),
    ("scraper, items", "scrapy_ubi/fast/pieces.py", None),
    ("engine", "scrapy_ubi/fast/", None),
    ("outputs", "scrapy_ubi/outputs/", None),
    ("frontier: disk", "scrapy_ubi/frontier/rocks.py", None),
    ("frontier: disk", "scrapy_ubi/frontier/rows.py", None),
    ("frontier: disk", "scrapy_ubi/frontier/queue_rows.py", None),
    ("frontier: disk", "scrapy_ubi/frontier/flush.py", None),
    ("frontier: disk", "scrapy_ubi/frontier/ledger.py", None),
    ("frontier: disk", "scrapy_ubi/agent/crawl/disk.py", None),
    ("frontier: seen", "scrapy_ubi/frontier/seen.py", None),
    ("frontier: seen", "scrapy_ubi/frontier/shard", None),
    ("frontier: seen", "scrapy_ubi/frontier/hash_slots.py", None),
    ("frontier: seen", "scrapy_ubi/frontier/mapped.py", None),
    ("frontier: seen", "scrapy_ubi/frontier/bloom.py", None),
    ("frontier: queues, workbench", "scrapy_ubi/frontier/", None),
    ("mail", "scrapy_ubi/transport/", None),
    ("mail", "scrapy_ubi/agent/mail/", None),
    ("mail", "scrapy_ubi/protocol/lane.py", None),
    ("mail", "scrapy_ubi/protocol/records.py", None),
    ("mail", "scrapy_ubi/protocol/answer.py", None),
    ("mail", "scrapy_ubi/protocol/outbox.py", None),
    ("mail", "scrapy_ubi/protocol/wire.py", None),
    ("mail", "scrapy_ubi/protocol/received.py", None),
    ("mail", "scrapy_ubi/protocol/inbound.py", None),
    ("mail", "scrapy_ubi/protocol/outbound.py", None),
    ("mail", "scrapy_ubi/protocol/custody.py", None),
    ("protocol (the rest)", "scrapy_ubi/protocol/", None),
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
