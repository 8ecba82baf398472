"""Presets: values of many settings by one name, UBI_PRESET, for the kinds of crawls there are.

Rules of this module:

* What the project, a spider or the command line sets wins, and so does what another add-on sets.
* A preset holds names of this package and of Scrapy. Those of Scrapy are set by the add-on (`place_preset`), before
  anything reads them; those of this package are found where settings are read, by commands as well (`given`).
* No preset says whose Redis, directory or bot it is, names a host, or needs what is not installed with the package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.ground.untrusted.meant_names import ask_meant
from scrapy_ubi.settings.declare import Setting

NAME = "UBI_PRESET"

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "one_site": {  # few hosts, all of which are to be fetched to the end
        "UBI_HOST_CONCURRENCY": "auto(8)",
        "UBI_MAX_RETRY_AFTER": 3600,
        "UBI_HOST_PAUSE": 300,
        "UBI_HOST_TRIES": 10,
        "UBI_ROBOTS_GIVE_UP": 3600,
    },
    "broad": {  # so many hosts that one which is slow, endless or broken is not worth the wait
        "UBI_CONCURRENCY": "auto(500)",
        "UBI_FAST": True,
        "UBI_DELAY_FACTOR": 5,
        "UBI_MAX_DELAY": 30,
        "UBI_POLITE_BY_IP": True,
        "UBI_HOST_LIMITS": "pages=10000",
        "UBI_MAX_LOAD_SECONDS": 60,
        "UBI_MAX_BODY": 2_000_000,
        "UBI_MEMORY_MB": 1024,
        "ROBOTSTXT_OBEY": True,
        "COOKIES_ENABLED": False,
        "DOWNLOAD_TIMEOUT": 30,
        "RETRY_TIMES": 1,
    },
    "archive": {  # every page as it came, whole, in WARC files
        "UBI_STORES": ["items", "warc(size=1e9)"],
        "UBI_MAX_BODY": 0,
        "UBI_DELAY_FACTOR": 2,
        "UBI_HOST_TRIES": 10,
        "UBI_REPLICATION": 2,
        "ROBOTSTXT_OBEY": True,
        "RETRY_TIMES": 5,
    },
    "service": {  # a crawl without an end, without people beside it
        "UBI_SERVE": True,
        "UBI_STORES": ["items"],
        "UBI_REDIS_WAIT": 300,
        "UBI_REPLICATION": 2,
        "UBI_ERROR_BURST": 50,
        "UBI_MAX_LOAD_SECONDS": 300,
    },
    "development": {  # a few pages, seen soon, by one who stops and starts it all the time
        "UBI_START_WAIT": 0,
        "UBI_FAILURE_TIMEOUT": 6,
        "UBI_LEAVE_TIMEOUT": 5,
        "UBI_REDIS_WAIT": 1,
        "UBI_CRAWL_LIMITS": "pages=1000",
        "UBI_ROBOTS_GIVE_UP": 10,
    },
}


def read_preset(row: Setting, value: object) -> str:
    """The name of a preset. Raises UbiSettingError, with the nearest name."""
    if not isinstance(value, str) or value not in PRESETS:
        remedy = ask_meant(str(value), PRESETS) or f"give {row.bounds}"
        raise UbiSettingError(row.setting, f"is {value!r:.200}, which is no preset", remedy)
    return value


def values_of(settings: Mapping[Any, Any]) -> Mapping[str, Any]:
    """What the preset of these settings holds; nothing where none is named, or one that does not exist."""
    name = settings.get(NAME)
    return PRESETS.get(name, {}) if isinstance(name, str) else {}


def given(settings: Mapping[Any, Any], name: str) -> Any:
    """What these settings say of this name, or their preset where they do not name it; None where neither does."""
    return settings.get(name) if name in settings else values_of(settings).get(name)
