"""A pytest plugin for Scrapy's own tests: every crawl is one of an agent, by the one line that a user writes.

Used by suite.py. Rules of this module:

* ADDONS is a default setting here, so a test's own settings stand over it, as a project's would. Nothing else of the
  package is put in place: scheduler, middlewares and the lean way come by the add-on.
* Each crawler has a directory of its own, which goes with the process: two crawls of one name in one process would be
  one crawl, and the second refused.
* The mock servers are on 127.0.0.1, so private hosts are allowed.
* A test that brings a scheduler of its own is one of that scheduler: its crawler has no add-on, which would refuse it.
  But for `MemoryScheduler`, which only spares test_engine_loop.py the disk: there ours takes its place.
* A start that is refused raises here. In a process of its own it ends that, which would be the one of all tests.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from itertools import count
from pathlib import Path

from scrapy.crawler import Crawler
from scrapy.settings import SETTINGS_PRIORITIES, default_settings

from scrapy_ubi.adapter.components import scheduler, scheduler_builder, spider_middleware
from scrapy_ubi.adapter.extraction import content_links

default_settings.ADDONS = {"scrapy_ubi.Addon": 500}
default_settings.UBI_PRIVATE_HOSTS = "allow"  # type: ignore[attr-defined]

_place = Path(tempfile.mkdtemp(prefix="ubi-suite-"))
atexit.register(shutil.rmtree, _place, ignore_errors=True)
_numbers = count()
_apply_settings = Crawler._apply_settings


def apply_settings(self: Crawler) -> None:
    """What Scrapy's does, with a directory for this crawler alone, unless it has a JOBDIR."""
    if getattr(self.settings["SCHEDULER"], "__name__", "") == "MemoryScheduler" and not self.settings.frozen:
        self.settings.delete("SCHEDULER", "cmdline")
        self.settings.set("SCHEDULER", default_settings.SCHEDULER, "default")
    if (self.settings.getpriority("SCHEDULER") or 0) > SETTINGS_PRIORITIES["default"] and not self.settings.frozen:
        self.settings.set("ADDONS", {}, "cmdline")
    if not self.settings.frozen and not self.settings.get("UBI_DIR") and not self.settings.get("JOBDIR"):
        self.settings.set("UBI_DIR", str(_place / str(next(_numbers))), "default")
    _apply_settings(self)


Crawler._apply_settings = apply_settings  # type: ignore[method-assign]


class Refused(RuntimeError):
    """The start is refused, with this sentence."""


for module in (content_links, scheduler, scheduler_builder, spider_middleware):
    module.process_ended = lambda sentence: Refused(str(sentence))  # type: ignore[attr-defined]
