"""Where UBI_FAST has its place in Scrapy's settings: our download handler, for the schemes the user has none for.

It is on by default, and then whatever the project sets that is of Scrapy's handler alone keeps that one: one line of
the log (INFO) says what. Where the user has turned it on, these lines are warnings.
"""

from __future__ import annotations

import logging
import sys
from types import FunctionType, ModuleType

from scrapy.core.downloader import contextfactory
from scrapy.core.downloader.handlers import http11
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.python import global_object_name

from scrapy_ubi.fast.http.handler import UbiDownloadHandler

logger = logging.getLogger(__name__)

SCHEMES = ("http", "https")

_ADDON = SETTINGS_PRIORITIES["addon"]
# Settings of Scrapy's handler for https that mean something to Twisted only.
_OF_TWISTED = ("DOWNLOADER_CLIENTCONTEXTFACTORY", "DOWNLOADER_CLIENT_TLS_METHOD")
# Whose classes Scrapy's modules import.
_IMPORTED = sys.stdlib_module_names | {"scrapy", "twisted", "zope", "OpenSSL", "service_identity", "typing_extensions"}
# Whose functions Python itself puts into a class: of a TypedDict (its annotations, from 3.14 on), a Protocol, a named
# tuple, a dataclass, an enumeration. No other module of the standard library: a patch may be made by its decorators.
_MAKERS = frozenset({"typing", "typing_extensions", "annotationlib", "collections", "dataclasses", "reprlib", "enum"})
_SCRAPYS = (HTTP11DownloadHandler, global_object_name(HTTP11DownloadHandler))


def place_handler(settings: BaseSettings) -> None:
    """Put the handler in place; nothing with a loop that it does not fit."""
    if UbiDownloadHandler in (settings["DOWNLOAD_HANDLERS"] or {}).values():
        return  # this add-on's second call
    asked = bool(settings.getpriority("UBI_FAST"))
    kept = _kept(settings, asked)
    for scheme in SCHEMES:
        if scheme in kept:
            level = logging.WARNING if asked else logging.INFO
            logger.log(level, "UBI_FAST does not change how %s:// is fetched: %s.", scheme, kept[scheme])
    if ours := [scheme for scheme in SCHEMES if scheme not in kept]:
        # Each scheme has a priority of its own, and without a reactor Scrapy gives its handlers that of a project.
        handlers = {**settings.getdict("DOWNLOAD_HANDLERS"), **dict.fromkeys(ours, UbiDownloadHandler)}
        priority = max(_ADDON, settings.getpriority("DOWNLOAD_HANDLERS") or 0)
        settings.set("DOWNLOAD_HANDLERS", BaseSettings(handlers, "project"), priority)
        logger.info("UBI_FAST: scrapy_ubi's own handler fetches %s", " and ".join(ours))


def _kept(settings: BaseSettings, asked: bool) -> dict[str, str]:
    """The schemes that stay with the user's handler, or with Scrapy's, each with the reason. `asked`: the user has
    turned UBI_FAST on."""
    if loop := settings.get("ASYNCIO_EVENT_LOOP"):
        return dict.fromkeys(
            SCHEMES,
            f"ASYNCIO_EVENT_LOOP is {loop!r}, and only asyncio's own loop gives a request to the network at the moment "
            "at which the right to fetch was compared",
        )
    if not asked:
        if not settings.getbool("TWISTED_REACTOR_ENABLED"):
            return dict.fromkeys(SCHEMES, "TWISTED_REACTOR_ENABLED is off")
        if settings.get("DOWNLOAD_BIND_ADDRESS"):
            return dict.fromkeys(SCHEMES, "DOWNLOAD_BIND_ADDRESS is set")
        if name := _patched():
            return dict.fromkeys(SCHEMES, f"{name} is not Scrapy's own")
    theirs = settings.getdict("DOWNLOAD_HANDLERS")
    kept = {scheme: "DOWNLOAD_HANDLERS names a handler for it" for scheme in SCHEMES if scheme in theirs}
    if settings.getbool("TWISTED_REACTOR_ENABLED"):  # without, Scrapy itself changes them
        base = settings.getdict("DOWNLOAD_HANDLERS_BASE")
        for scheme in SCHEMES:
            if base.get(scheme) not in _SCRAPYS:
                kept.setdefault(scheme, "DOWNLOAD_HANDLERS_BASE names another handler for it than Scrapy's")
    for name in _OF_TWISTED:
        if (settings.getpriority(name) or 0) > SETTINGS_PRIORITIES["default"]:
            kept.setdefault("https", f"{name} is set, which only Scrapy's handler knows")
    return kept


def _patched() -> str:
    """The first class or method of Scrapy's handler that somebody has put another in the place of; "" for none."""
    for module in (http11, contextfactory):
        for name, found in list(vars(module).items()):
            if not isinstance(found, type):
                continue
            if found.__module__ != module.__name__:
                if found.__module__.partition(".")[0] not in _IMPORTED:
                    return f"{module.__name__}.{name}"
                continue
            for method, value in vars(found).items():
                function = getattr(value, "__func__", value)
                if isinstance(function, FunctionType) and not _is_made_for(module, function):
                    return f"{name}.{method}"
    return ""


def _is_made_for(module: ModuleType, function: FunctionType) -> bool:
    """Whether a function of a class of this module is written there, or is one of those that Python adds."""
    if function.__globals__ is vars(module):
        return True
    name = str(function.__globals__.get("__name__"))
    return name in _MAKERS or name.startswith("namedtuple_")
