"""Scrapy's own settings of politeness, beside ours: respected, or named in a sentence; never silently passed over.

What becomes of them (docs/how-to/be-polite.md):

* A host's delay is at least that of the download slot its last page went through: so DOWNLOAD_DELAY, the `delay` of
  DOWNLOAD_SLOTS and what AutoThrottle makes of it count, from the end of a load as all delays here do, and a page waits
  for them in its queue, not in a place of the downloader. A slot itself counts from the start of a load, so it never
  adds to that; but for its random part, which is 0 here unless somebody asks for it.
* More than one load of a host at once is not done, whatever the settings say: a sentence says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings import UbiSettings

_REMEDY = "give each slot a dict, with a 'delay' of 0 or more seconds"


def check(settings: BaseSettings) -> None:
    """Raise `UbiSettingError` where DOWNLOAD_SLOTS does not hold: Scrapy itself would find out at the first page."""
    for name, slot in settings.getdict("DOWNLOAD_SLOTS").items():
        if not isinstance(name, str) or not isinstance(slot, Mapping):
            raise UbiSettingError("DOWNLOAD_SLOTS", f"has {name!r}: {slot!r}", _REMEDY)
        delay = slot.get("delay", 0.0)
        if isinstance(delay, bool) or not isinstance(delay, int | float) or not 0 <= delay < math.inf:
            raise UbiSettingError("DOWNLOAD_SLOTS", f"has a delay of {delay!r} for {name!r}", _REMEDY)


def remarks(settings: BaseSettings) -> Iterator[str]:
    """A sentence for each thing that is not done as these settings, which hold, say."""
    wanted = UbiSettings.from_scrapy(settings)
    for name in ("CONCURRENT_REQUESTS_PER_DOMAIN", "CONCURRENT_REQUESTS_PER_IP"):
        if _is_given(settings, name) and settings.getint(name) > 1:
            yield f"{name} is {settings.getint(name)}, but a host is loaded from one page at a time, by all agents."
    if settings.getint("CONCURRENT_REQUESTS_PER_IP") > 0 and not wanted.polite_by_ip:
        yield "CONCURRENT_REQUESTS_PER_IP is set, but hosts on one address share a delay only by UBI_POLITE_BY_IP."
    for name, slot in settings.getdict("DOWNLOAD_SLOTS").items():
        if isinstance(number := slot.get("concurrency"), int) and number > 1:
            yield f"DOWNLOAD_SLOTS wants {number} loads at once from {name}: a host is loaded from one page at a time."
    delay = settings.getfloat("DOWNLOAD_DELAY")
    if wanted.host_delay < delay:
        yield (
            f"UBI_HOST_DELAY is {wanted.host_delay:g} s and DOWNLOAD_DELAY {delay:g} s: the longer one counts. "
            "Set DOWNLOAD_DELAY to 0 to be faster."
        )


def _is_given(settings: BaseSettings, name: str) -> bool:
    return (settings.getpriority(name) or 0) > SETTINGS_PRIORITIES["addon"]
