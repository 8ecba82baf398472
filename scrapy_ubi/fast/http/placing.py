"""Where UBI_FAST has its place in Scrapy's settings: our download handler, for the schemes the user has none for.

What the user has set wins, and a warning says so; one line of the log says at the start what was changed.
"""

from __future__ import annotations

import logging

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from scrapy_ubi.fast.http.handler import UbiDownloadHandler

logger = logging.getLogger(__name__)

SCHEMES = ("http", "https")

_ADDON = SETTINGS_PRIORITIES["addon"]
# Settings of Scrapy's handler for https that mean something to Twisted only.
_OF_TWISTED = ("DOWNLOADER_CLIENTCONTEXTFACTORY", "DOWNLOADER_CLIENT_TLS_METHOD")


def place_handler(settings: BaseSettings) -> None:
    """Put the handler in place; nothing with a loop that it does not fit."""
    if loop := settings.get("ASYNCIO_EVENT_LOOP"):
        logger.warning(
            "UBI_FAST does not change how pages are fetched: ASYNCIO_EVENT_LOOP is %r, and only asyncio's own loop "
            "gives a request to the network at the moment at which the right to fetch was compared. Remove it.",
            loop,
        )
        return
    theirs = settings.getdict("DOWNLOAD_HANDLERS")
    kept = _kept(settings, theirs)
    ours = [scheme for scheme in SCHEMES if scheme not in kept]
    if ours:
        # Each scheme has a priority of its own, and without a reactor Scrapy gives its handlers that of a project.
        handlers = BaseSettings({**theirs, **dict.fromkeys(ours, UbiDownloadHandler)}, "project")
        settings.set("DOWNLOAD_HANDLERS", handlers, max(_ADDON, settings.getpriority("DOWNLOAD_HANDLERS") or 0))
        logger.info("UBI_FAST: scrapy_ubi's own handler fetches %s", " and ".join(ours))


def _kept(settings: BaseSettings, theirs: dict[str, object]) -> list[str]:
    """The schemes that stay with the user's handler, or with Scrapy's, each with a warning."""
    kept = [scheme for scheme in SCHEMES if scheme in theirs and theirs[scheme] is not UbiDownloadHandler]
    for scheme in kept:
        logger.warning(
            "UBI_FAST does not change how %s:// is fetched: DOWNLOAD_HANDLERS names a handler for it. Remove that to "
            "have UBI_FAST's.",
            scheme,
        )
    for name in _OF_TWISTED:
        if "https" not in kept and (settings.getpriority(name) or 0) > SETTINGS_PRIORITIES["default"]:
            kept.append("https")
            logger.warning(
                "UBI_FAST does not change how https:// is fetched: %s is set, which only Scrapy's handler knows.", name
            )
    return kept
