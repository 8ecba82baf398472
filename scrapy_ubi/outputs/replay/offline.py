"""Where a replay has its place in Scrapy's settings: a handler that answers from files, and an agent that waits for
none.

Rules of this module:

* What the user has set does not win here: with their handler, proxy delay or Redis a replay would send something, or
  wait for hosts that are not asked.
* What reads files is loaded where there are some to replay: each agent imports this module.
* The agent is alone. Its crawl and its directory are others than those of the crawl that wrote the files
  (`UbiSettings.from_scrapy`): what is known there is not known here.
"""

from __future__ import annotations

from typing import Any

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings import UbiSettings

# No file, and no request within the process.
SCHEMES = ("http", "https", "ftp", "s3", "gs")

OFFLINE: dict[str, Any] = {
    "UBI_REDIS_URL": None,
    "UBI_FAST": False,
    "UBI_PRIVATE_HOSTS": "allow",  # judged by addresses, which would be looked up
    "UBI_HOST_DELAY": 0,
    "UBI_MAX_DELAY": 0,
    "UBI_MAX_RETRY_AFTER": 0,
    "UBI_MAX_LOAD_SECONDS": 0,
    "UBI_ROBOTS_GIVE_UP": 0,
    "UBI_HOST_FAILURES": 0,
    "DOWNLOAD_DELAY": 0,
    "DOWNLOAD_SLOTS": {},
    "AUTOTHROTTLE_ENABLED": False,
    "RETRY_ENABLED": False,  # the answer would be the same
    "HTTPCACHE_ENABLED": False,
}


def place_replay(settings: BaseSettings) -> None:
    """Put the handler in place, where UBI_REPLAY names files."""
    if not settings.get("UBI_REPLAY"):
        return
    from scrapy_ubi.outputs.replay.archive_handler import ReplayHandler

    for name, value in OFFLINE.items():
        settings.set(name, value, _over(settings, name))
    theirs = settings.getdict("DOWNLOAD_HANDLERS")
    schemes = {*SCHEMES, *theirs} - {"file", "data"}
    handlers = BaseSettings({**theirs, **dict.fromkeys(schemes, ReplayHandler)}, "project")
    settings.set("DOWNLOAD_HANDLERS", handlers, _over(settings, "DOWNLOAD_HANDLERS"))


def check(settings: UbiSettings) -> None:
    """Raises UbiSettingError where there is nothing to replay."""
    if not settings.replay:
        return
    from scrapy_ubi.outputs.warc.foreign import files_of

    _, empty = files_of(settings.replay)
    if empty:
        raise UbiSettingError(
            "UBI_REPLAY", f"names {empty[0]!r}, which is no file", "give paths or globs of WARC files"
        )


def _over(settings: BaseSettings, name: str) -> int:
    return max(SETTINGS_PRIORITIES["project"], settings.getpriority(name) or 0)
