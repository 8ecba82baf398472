"""What makes Scrapy faster: the same calls, in the same order, for less processor time (UBI_LEAN, UBI_FAST).

`install(settings)` is the switch, and the only door: the add-on opens it, and nothing else imports this package (a
contract in setup.cfg). Without the package the crawl is the same, and slower.

* `PARTS`: the table of all parts, with what each gives and what of Scrapy's it stands for.
* `one_task`, `path`, `spider_output`, `spider_chain`, `pieces`, `calls`: a scheduled request is one task of the event
  loop; `compared`: the functions of Scrapy that this stands for, as they were when it was compared with them.
* `signals`: what a receiver takes is looked up once, and a task is started only for one that waits.
* `tweaks`: stats, log records. `stopped_timers`: Twisted's timers that were stopped are let go.
* `safe_urls`: the safe form of URLs that need no change.
* `second_core`: large pages are unpacked and parsed in a second thread, while there is a core to spare (`spare_cores`).
* `http`: a download handler in place of Scrapy's.

Rules: only what has been measured to pay is here; spiders, middlewares, extensions and pipelines notice nothing of it;
what the user has chosen stays; a part that does not fit this version of Scrapy is left out with one line of the log.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import scrapy
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.python import global_object_name

from scrapy_ubi.adapter.components.place_component import place_component
from scrapy_ubi.settings import early

logger = logging.getLogger(__name__)

_ADDON = SETTINGS_PRIORITIES["addon"]


@dataclass(frozen=True, slots=True)
class FastPart:
    """One part. `module` and `name`: its class, which is imported when it is put in place and no earlier; `setting`:
    which setting turns it on; `kind`: where the class has its place in Scrapy's settings; `gives`: the processor time a
    page with it, divided by that without it, as measured (docs/decisions/0089-pages-of-real-size.md tells how)."""

    module: str  # in this package
    name: str
    setting: Literal["lean", "fast"]
    kind: Literal["extension", "stats", "handler"]
    gives: str
    stands_for: str


PARTS = (
    FastPart(
        "signals", "LeanSignals", "lean", "extension",
        "0.99, 0.91",
        "`SignalManager.send_catch_log` and `send_catch_log_async`",
    ),
    FastPart(
        "tweaks", "LeanStats", "lean", "stats",
        "a stat in a sixteenth of the time, of one or two dozen a page",
        "`MemoryStatsCollector.__getattribute__`",
    ),
    FastPart(
        "unpacking", "FastUnpacking", "lean", "extension",
        "unpacking a page by gzip: 0.27 with isal, 0.53 without; zstd 0.76, br 0.89",
        "`HttpCompressionMiddleware._decode`, where a body is one sound stream",
    ),
    FastPart(
        "link_extractor", "FastLinkExtraction", "lean", "extension",
        "a page's links: 0.15",
        "`LxmlLinkExtractor.extract_links` of Scrapy, where the page's HTML is usual, while a spider is open",
    ),
    FastPart(
        "safe_urls", "FastSafeUrls", "lean", "extension",
        "a request's URL made safe: 0.03; its parts: 0.05",
        "w3lib's `safe_url_string` where `Request` asks for it, for URLs that need no change, and Python's `urlparse` "
        "where `urlparse_cached` does, while a spider is open",
    ),
    FastPart(
        "frozen_start", "FrozenStart", "lean", "extension",
        "0.91",
        "nothing: what exists when the spider opens is not looked through for garbage, where UBI_FAST is set",
    ),
    FastPart(
        "stopped_timers", "StoppedTimers", "lean", "extension",
        "memory: some 10,000 timers less",
        "nothing: Twisted looks at its timers more often",
    ),
    FastPart(
        "one_task", "OneTask", "lean", "extension",
        "0.78",
        "functions of engine, downloader, scraper, middleware managers and spider middlewares (`compared.STOOD_FOR`)",
    ),
    FastPart(
        "second_core", "SecondCore", "lean", "extension",
        "the loop's thread 0.64, on pages of 190 kB; the whole process 1.03",
        "nothing: large pages are unpacked and parsed in a second thread, while there is a core to spare",
    ),
    FastPart(
        "http.handler", "UbiDownloadHandler", "fast", "handler",
        "0.82",
        "Scrapy's download handler for http and https, on Twisted",
    ),
)  # fmt: skip


def install(settings: BaseSettings) -> None:
    """Put the parts in place that these settings turn on."""
    for part in PARTS:
        if not early(settings, part.setting):
            continue
        try:
            cls = getattr(import_module(f"{__name__}.{part.module}"), part.name)
        except (ImportError, AttributeError) as error:  # a name that this version of Scrapy lacks
            logger.info(
                "UBI_%s: %s is left out, Scrapy %s goes its own way (slower, same items): %s",
                part.setting.upper(), part.name, scrapy.__version__, error,
            )  # fmt: skip
        else:
            _place(settings, part, cls)


def _place(settings: BaseSettings, part: FastPart, cls: Any) -> None:
    if part.kind == "extension":
        place_component(settings, "EXTENSIONS", cls, 0)
    elif part.kind == "handler":
        import_module(f"{__name__}.{part.module}").place_handler(settings)
    # A collector of the user's has its own purpose.
    elif settings["STATS_CLASS"] in (MemoryStatsCollector, global_object_name(MemoryStatsCollector)):
        settings.set("STATS_CLASS", global_object_name(cls), max(_ADDON, settings.getpriority("STATS_CLASS") or 0))
