"""Values of settings about URLs and hosts, and rules of re-crawl, read: as `readers`, with the same rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.policy.recrawl import read_revisits
from scrapy_ubi.settings import host_limits
from scrapy_ubi.settings.crawl_caps import CrawlCaps, read_caps
from scrapy_ubi.settings.declare import Kind, Setting
from scrapy_ubi.settings.host_limits import HostLimitsTable
from scrapy_ubi.settings.readers import Reader, read_path
from scrapy_ubi.settings.values import RecrawlUse
from scrapy_ubi.urls import host_rules, host_shards, normaliser
from scrapy_ubi.urls.host_rules import HostRules
from scrapy_ubi.urls.host_shards import HostShards
from scrapy_ubi.urls.partition import Partition

PARTITIONS: tuple[Partition, ...] = ("host", "domain")
_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+")


def _read_steps(row: Setting, value: object) -> str:
    """A composition of the normal form, by its one name."""
    if not isinstance(value, str | list | tuple):
        raise UbiSettingError(row.setting, f"is {value!r}", f"give {row.bounds}")
    try:
        return normaliser.name_of(normaliser.parse_steps(value))
    except ValueError as error:
        known = ", ".join(normaliser.STEPS)
        raise UbiSettingError(
            row.setting, f"is {value!r}: {error}", f"give {row.bounds}; the steps are {known}"
        ) from None


def _read_rules(row: Setting, value: object) -> HostRules | None:
    """Rules for hosts, from a list or from a file."""
    with _refusing(row, value, f"write {host_rules.GRAMMAR}"):
        if isinstance(value, str | Path):
            return host_rules.read_properties(read_path(row, value).read_text(encoding="utf-8"))
        if isinstance(value, list | tuple) and all(isinstance(rule, str) for rule in value):
            return host_rules.read_rules(value)
    raise UbiSettingError(row.setting, f"is {value!r}", f"give {row.bounds}")


@contextmanager
def _refusing(row: Setting, value: object, remedy: str) -> Iterator[None]:
    """What is written, or stands in a file, may not hold, or not be read. Raises UbiSettingError for that."""
    where = f" in {str(value)!r:.200}" if isinstance(value, str | Path) else ""
    try:
        yield
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise UbiSettingError(row.setting, f"cannot be read{where} ({reason})", f"give {row.bounds}") from None
    except ValueError as error:
        raise UbiSettingError(row.setting, f"does not hold{where}: {error}", remedy) from None


def _read_partition(row: Setting, value: object) -> str:
    """How hosts are found: by a word, or by the dotted path of a function."""
    if isinstance(value, str) and (value in PARTITIONS or _DOTTED.fullmatch(value)):
        return value
    raise UbiSettingError(row.setting, f"is {value!r}", f"give {row.bounds}, as a text")


def _read_shards(row: Setting, value: object) -> HostShards:
    """Hosts that are cut into shards."""
    try:
        return host_shards.read_shards(value)
    except ValueError as error:
        raise UbiSettingError(row.setting, f"is {value!r:.200}: {error}", f"give {row.bounds}") from None


def _read_recrawl(row: Setting, value: object) -> RecrawlUse:
    """A rule, by its one text, with its rounds and when callbacks are called."""
    rule, rounds, always = read_revisits(value)
    return RecrawlUse(str(rule or ""), rounds, always)


def _read_host_limits(row: Setting, value: object) -> HostLimitsTable:
    """Limits by host, from what is written or from a file."""
    with _refusing(row, value, f"give {row.bounds}"):
        if isinstance(value, Path) or (isinstance(value, str) and host_limits.names_file(value)):
            return host_limits.read_file(read_path(row, value))
        return host_limits.read_table(value)


def _read_crawl_limits(row: Setting, value: object) -> CrawlCaps:
    """Limits of the crawl."""
    try:
        return value if isinstance(value, CrawlCaps) else read_caps(value)
    except ValueError as error:
        raise UbiSettingError(row.setting, f"does not hold: {error}", f"give {row.bounds}") from None


READERS: Mapping[Kind, Reader] = {
    "steps": _read_steps,
    "rules": _read_rules,
    "partition": _read_partition,
    "shards": _read_shards,
    "recrawl": _read_recrawl,
    "host_limits": _read_host_limits,
    "crawl_limits": _read_crawl_limits,
}
