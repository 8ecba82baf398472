"""Scrapy's own settings of politeness, beside ours: respected, or named in a sentence; never silently passed over.

What becomes of them (docs/how-to/be-polite.md):

* A host's delay is at least that of the download slot its last page went through: so DOWNLOAD_DELAY, the `delay` of
  DOWNLOAD_SLOTS and what AutoThrottle makes of it count, from the end of a load as all delays here do, and a page waits
  for them in its queue, not in a place of the downloader. A slot itself counts from the start of a load, so it never
  adds to that; but for its random part, which is 0 here unless somebody asks for it.
* How many loads of a host may be open at once is the matter of UBI_HOST_CONCURRENCY alone. Scrapy's slots let as many
  through (`let_through`); where its settings ask for more than that, or for less, a sentence says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from scrapy_ubi.adapter.process.own_concurrency_limit import found_by_agent
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.settings.loads_at_once import LoadsByHost

PER_HOST = ("CONCURRENT_REQUESTS_PER_DOMAIN", "CONCURRENT_REQUESTS_PER_IP")  # loads at once
_REMEDY = "give each slot a dict, with a 'delay' of 0 or more seconds"


def check(settings: BaseSettings) -> None:
    """Raise `UbiSettingError` where DOWNLOAD_SLOTS does not hold, which Scrapy itself would find out at the first page;
    and where Scrapy's slots would let no load through, and it would stand still without a word."""
    by_domain, by_ip = PER_HOST
    name = by_ip if _is_given(settings, by_ip) and settings.getint(by_ip) else by_domain
    if _is_given(settings, name) and settings.getint(name) <= 0:
        raise UbiSettingError(name, f"is {settings.getint(name)}, which lets no request through", "give 1 or more")
    for name, slot in settings.getdict("DOWNLOAD_SLOTS").items():
        if not isinstance(name, str) or not isinstance(slot, Mapping):
            raise UbiSettingError("DOWNLOAD_SLOTS", f"has {name!r}: {slot!r}", _REMEDY)
        delay = slot.get("delay", 0.0)
        if isinstance(delay, bool) or not isinstance(delay, int | float) or not 0 <= delay < math.inf:
            raise UbiSettingError("DOWNLOAD_SLOTS", f"has a delay of {delay!r} for {name!r}", _REMEDY)
        number = slot.get("concurrency", 1)
        if isinstance(number, bool) or not isinstance(number, int | float) or number < 1:
            raise UbiSettingError(
                "DOWNLOAD_SLOTS", f"has a concurrency of {number!r} for {name!r}", "give each slot 1 or more"
            )


def remarks(settings: BaseSettings) -> Iterator[str]:
    """A sentence for each thing that is not done as these settings, which hold, say."""
    wanted = UbiSettings.from_scrapy(settings)
    yield from _remarks_on_loads(settings, wanted.host_concurrency)
    if settings.getint("CONCURRENT_REQUESTS_PER_IP") > 0 and not wanted.polite_by_ip:
        yield "CONCURRENT_REQUESTS_PER_IP is set, but hosts on one address share a delay only by UBI_POLITE_BY_IP."
    delay = settings.getfloat("DOWNLOAD_DELAY")
    if delay and wanted.host_shards.fast:
        yield (
            f"DOWNLOAD_DELAY is {delay:g} s, which Scrapy waits at each agent between two loads of a host, of a fast "
            "one of UBI_HOST_SHARDS as well: set UBI_HOST_DELAY in its place."
        )
    if wanted.host_delay < delay:
        yield (
            f"UBI_HOST_DELAY is {wanted.host_delay:g} s and DOWNLOAD_DELAY {delay:g} s: the longer one counts. "
            "Set DOWNLOAD_DELAY to 0 to be faster."
        )


def _remarks_on_loads(settings: BaseSettings, loads: LoadsByHost) -> Iterator[str]:
    """How many loads at once are wanted, by Scrapy's settings and by ours."""
    for name in PER_HOST:
        if _is_given(settings, name) and settings.getint(name) > 1 and loads.most == 1:
            yield (
                f"{name} is {settings.getint(name)}, but a host is loaded from one page at a time, by all agents. "
                f"UBI_HOST_CONCURRENCY = {settings.getint(name)} allows more, in the whole cluster."
            )
    for name, slot in settings.getdict("DOWNLOAD_SLOTS").items():
        number = slot.get("concurrency")
        if isinstance(number, int) and number > 1 and loads.for_host(name).most == 1:
            yield (
                f"DOWNLOAD_SLOTS wants {number} loads at once from {name}: a host is loaded from one page at a time. "
                f"UBI_HOST_CONCURRENCY = {{{name!r}: {number}}} allows more, in the whole cluster."
            )
        elif isinstance(number, int) and 0 < number < loads.for_host(name).most:
            yield f"DOWNLOAD_SLOTS lets {number} loads at once from {name} through, fewer than UBI_HOST_CONCURRENCY."
    if found_by_agent(settings) is None and 0 < settings.getint("CONCURRENT_REQUESTS") < loads.most:
        yield (
            f"UBI_HOST_CONCURRENCY is up to {loads.most}, but CONCURRENT_REQUESTS lets an agent load "
            f"{settings.getint('CONCURRENT_REQUESTS')} pages at once: raise it as well."
        )


def let_through(settings: BaseSettings, priority: int) -> None:
    """Let Scrapy's slots hold back no load that UBI_HOST_CONCURRENCY and UBI_HOST_SHARDS allow. Nothing where these do
    not hold."""
    if not (settings.get("UBI_HOST_CONCURRENCY") or settings.get("UBI_HOST_SHARDS")):
        return
    try:
        most = _most_at_once(UbiSettings.from_scrapy(settings))
    except UbiSettingError:
        return
    for name in PER_HOST if most > 1 else ():
        if (name == PER_HOST[0] or _is_given(settings, name)) and 0 < settings.getint(name) < most:
            settings.set(name, most, max(priority, settings.getpriority(name) or 0))


def _most_at_once(wanted: UbiSettings) -> int:
    """How many loads of one host an agent may have open: an agent may own all shards of one."""
    loads, cut = wanted.host_concurrency, wanted.host_shards.numbers
    return max([loads.most, *(number * loads.for_host(host).most for host, number in cut.items())])


def _is_given(settings: BaseSettings, name: str) -> bool:
    return (settings.getpriority(name) or 0) > SETTINGS_PRIORITIES["addon"]
