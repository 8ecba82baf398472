"""Which versions of Scrapy this package was tried with, and what stands for names that one of them lacks.

Rules of this module:

* `make scrapy-versions` tries each of `TRIED`. An older one than the first is refused at the start; a later one than
  the last is used, and the log says so.
* What an older version lacks is written here once, as Scrapy's later versions have it.

| name | since | here, before |
| --- | --- | --- |
| `scrapy.pipelines.media.FileException` | 2.18 | the one of `scrapy.pipelines.files` |
| `scrapy.spidermiddlewares.metacopy` | 2.18 | none: copied meta is not warned of |
| `scrapy.extensions.feedexport.apply_uri_params` | 2.18 | the operator `%`, as Scrapy did then |
| `scrapy.signals.robots_parsed` | 2.18 | a signal that nothing is connected to |
| `RobotParser.crawl_delay` | 2.18 | that of the parser within (`rp`) |
| `DOWNLOAD_DELAY_JITTER`, `Slot.jitter` | 2.19 | `RANDOMIZE_DOWNLOAD_DELAY`, `Slot.randomize_delay` |
| `TWISTED_DNS_RESOLVER` | 2.19 | `DNS_RESOLVER` |
| `ExecutionEngine.scheduler` | 2.19 | that of the engine's slot (`engines`) |
"""

from __future__ import annotations

from typing import Any

import scrapy
from scrapy import signals
from scrapy.core.downloader import Slot
from scrapy.extensions import feedexport
from scrapy.pipelines import media
from scrapy.robotstxt import RobotParser
from scrapy.settings import BaseSettings, default_settings
from scrapy.spidermiddlewares.base import BaseSpiderMiddleware

TRIED = ((2, 17), (2, 18), (2, 19))

FileException: type[Exception]
if hasattr(media, "FileException"):
    FileException = media.FileException
else:  # only then: `files` brings itemadapter, and that brings pydantic where it is installed (0.4 s)
    from scrapy.pipelines import files

    FileException = files.FileException

MetaCopy: type[BaseSpiderMiddleware] | None
try:
    from scrapy.spidermiddlewares.metacopy import MetaCopyDetectionMiddleware
except ImportError:
    MetaCopy = None
else:
    MetaCopy = MetaCopyDetectionMiddleware

robots_parsed: object = getattr(signals, "robots_parsed", object())

# Settings that name the reactor's resolver: the one that this version asks for first.
RESOLVERS = tuple(name for name in ("TWISTED_DNS_RESOLVER", "DNS_RESOLVER") if hasattr(default_settings, name))

_JITTER = "DOWNLOAD_DELAY_JITTER"


def remark() -> str:
    """A sentence for the log about a version that is newer than all that were tried; "" for the others."""
    if scrapy.version_info[:2] <= TRIED[-1]:
        return ""
    tried = ", ".join(".".join(map(str, version)) for version in TRIED)
    return f"Scrapy {scrapy.__version__} is newer than those that scrapy_ubi was tried with ({tried})."


def without_jitter(settings: BaseSettings, priority: int) -> None:
    """Let the slots of the downloader add nothing at random to a delay."""
    name = _JITTER if hasattr(default_settings, _JITTER) else "RANDOMIZE_DOWNLOAD_DELAY"
    settings.set(name, 0, priority)


def jitter_of(slot: Slot) -> float:
    """By which part of its delay a slot of the downloader may wait longer, or less long."""
    jitter: float | None = getattr(slot, "jitter", None)
    return jitter if jitter is not None else 0.5 * bool(slot.randomize_delay)


def crawl_delay(parser: RobotParser, agent: str) -> float | None:
    """The delay (s) between two requests that a robots.txt asks this agent for; None where it asks for none, or the
    parser does not know."""
    for known in (parser, getattr(parser, "rp", None)):
        for name in ("crawl_delay", "get_crawl_delay"):
            asked: Any = getattr(known, name, None)
            if asked is not None:
                return asked(agent)  # type: ignore[no-any-return]
    return None


def feed_uri(template: str, params: dict[str, Any]) -> str:
    """The URI of a feed, with these in place of the parameters that its template names."""
    apply: Any = getattr(feedexport, "apply_uri_params", None)
    return str(apply(template, params)) if apply is not None else template % params
