"""Observers of a project (UBI_OBSERVERS): made like Scrapy's components, and isolated.

Rules of this module:

* What does not hold is refused before anything is fetched: a name that leads nowhere, a class that is no
  `PageObserver`, a hook that is a coroutine function (it would not be awaited). One whose constructor raises
  `NotConfigured` is left out, as Scrapy does.
* An error of a hook is logged with its traceback, as one of a callback is, and counted; for the page it is as if the
  hook had done nothing.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable
from typing import Any

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.utils.misc import build_from_crawler, load_object

from scrapy_ubi.adapter.requests.observers import HOOKS, Isolate, PageObserver
from scrapy_ubi.agent.profile.idle_reason import MEMORY, OUTPUTS
from scrapy_ubi.errors import UbiSettingError

logger = logging.getLogger("scrapy_ubi")

SETTING = "UBI_OBSERVERS"


def make(entries: Iterable[object], crawler: Crawler) -> list[PageObserver]:
    """Make the observers of UBI_OBSERVERS, in their order. Raises UbiSettingError."""
    classes = [_loaded(entry) for entry in entries]
    made = []
    for cls in classes:
        try:
            made.append(build_from_crawler(cls, crawler))
        except NotConfigured as error:
            logger.info("%s is not used: %s", cls.__qualname__, error or "it is not configured")
    return made


def _loaded(entry: object) -> type[PageObserver]:
    try:
        cls = load_object(entry)  # type: ignore[arg-type]
    except Exception as error:  # importing runs the code of users
        raise UbiSettingError(
            SETTING,
            f"names {entry!r:.200}, which cannot be loaded ({error})",
            "give the dotted path of a class that can be imported",
        ) from error
    if not (isinstance(cls, type) and issubclass(cls, PageObserver)):
        raise UbiSettingError(
            SETTING, f"names {entry!r:.200}, which is no observer", "give a subclass of scrapy_ubi.PageObserver"
        )
    for hook in HOOKS:
        method = getattr(cls, hook)
        if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
            raise UbiSettingError(
                SETTING,
                f"names {entry!r:.200}, whose {hook} is a coroutine function, which is not awaited",
                f"write it as `def {hook}`; start a task for what has to wait",
            )
    return cls


def isolation(crawler: Crawler, count: Callable[[str], object]) -> Isolate:
    """Return what keeps errors of a hook away from the page. `count` adds one to a stat."""

    def isolate(hook: str, method: Callable[..., Any]) -> Callable[..., Any]:
        name = getattr(method, "__qualname__", hook)

        def isolated(*arguments: Any) -> Any:
            try:
                answer = method(*arguments)
            except Exception:
                count(f"ubi/observers/failed/{hook}")
                logger.exception("The observer %s has raised.", name, extra={"spider": crawler.spider})
                return ""
            if hook != "full" or not answer:
                return answer
            return answer if answer in (MEMORY, OUTPUTS) else OUTPUTS

        return isolated

    return isolate
