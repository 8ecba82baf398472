"""The table of all that makes Scrapy faster: what each part gives, and what of Scrapy's it stands for.

`gives` is the processor time a page with the part, divided by that without it, as measured (docs/how-to/fast.md tells
how). `module` and `name`: the class, which is imported when the part is put in place and no earlier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class FastPart:
    """One part. `setting`: which setting turns it on; `kind`: where its class has its place in Scrapy's settings."""

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
