"""What became of a page, in one short word for counting: why it failed permanently, or that it did not."""

from __future__ import annotations

from typing import Any

from scrapy import Request, Spider
from scrapy.exceptions import IgnoreRequest
from scrapy.settings import BaseSettings

FORBIDDEN = "Forbidden by robots.txt"  # as Scrapy says it
UNREACHABLE = "robots.txt cannot be read"
UNWANTED = "The site does not want it used for"  # and the purpose

# Scrapy tells these apart by their text only.
_IGNORED = {FORBIDDEN: "robots", UNREACHABLE: "robots/unreachable", "max redirections reached": "redirects"}


class PrivateHost(IgnoreRequest):
    """Links do not lead to this host: its address is private (`reach`)."""


class TooLong(IgnoreRequest):
    """The load of a page took longer than UBI_MAX_LOAD_SECONDS."""


class NotArchived(IgnoreRequest):
    """A replay (UBI_REPLAY) has no answer to this request in its files."""


def reason_of(error: BaseException) -> str:
    """`robots`, `robots/unreachable`, `usage/<purpose>`, `redirects`, `load/too_long`,
    `link/private`, `replay/missing`, `ignored/<class>` or `exception/<class>`.
    """
    if isinstance(error, TooLong):
        return "load/too_long"
    if isinstance(error, PrivateHost):
        return "link/private"
    if isinstance(error, NotArchived):
        return "replay/missing"
    if isinstance(error, IgnoreRequest):
        if str(error).startswith(UNWANTED):
            return f"usage/{str(error).removeprefix(UNWANTED).strip()}"
        return _IGNORED.get(str(error), f"ignored/{type(error).__name__}")
    return "robots/unreachable" if str(error) == UNREACHABLE else f"exception/{type(error).__name__}"


def status_reason(status: int, request: Request, spider: Spider, settings: BaseSettings) -> str | None:
    """`http/<status>` for an error status that neither request, spider nor settings say they handle; else None.

    The same places in the same order as Scrapy's HttpErrorMiddleware.
    """
    meta = request.meta
    if status < 400 or meta.get("handle_httpstatus_all"):
        return None
    handled: Any
    if "handle_httpstatus_list" in meta:
        handled = meta["handle_httpstatus_list"]
    elif settings.getbool("HTTPERROR_ALLOW_ALL"):
        return None
    else:
        own = [int(code) for code in settings.getlist("HTTPERROR_ALLOWED_CODES")]
        handled = getattr(spider, "handle_httpstatus_list", own)
    return None if status in handled else f"http/{status}"
