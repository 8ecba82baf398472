"""Values of live settings, read: as those of settings.py, with more care, for they may come from outside."""

from __future__ import annotations

from typing import cast

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings import read_value
from scrapy_ubi.settings.crawl_caps import CrawlCaps
from scrapy_ubi.settings.declare import Setting
from scrapy_ubi.settings.host_limits import HostLimitsTable, names_file
from scrapy_ubi.settings.values import MaxBody
from scrapy_ubi.urls.filters.chain import check_live


def read_live(row: Setting, value: object) -> object:
    """The checked value of a setting of a running crawl. It may come from outside: nothing is loaded, and no file is
    read, because it says so. Raises `UbiSettingError`."""
    if not isinstance(value, bool | int | float | str | list):
        raise UbiSettingError(row.setting, f"is a {type(value).__name__}", f"give {row.bounds}")
    if row.kind == "host_limits" and isinstance(value, str) and names_file(value):
        raise UbiSettingError(row.setting, f"is {value[:100]!r}", "write the limits: a running crawl reads no file")
    read = read_value(row, value)
    if row.kind == "filters":
        check_live(cast("tuple[object, ...]", read))
    return read


def as_said(read: object) -> object:
    """A value that `read_live` has read, as an entry says it: as JSON."""
    if isinstance(read, MaxBody):
        return str(read) if read.of_all else read.size
    if isinstance(read, HostLimitsTable):
        return read.as_json()
    if isinstance(read, CrawlCaps):
        return str(read)
    return list(read) if isinstance(read, tuple) else read
