"""Stand-ins for Scrapy's engine: what a scheduler asks it for, and what it hangs on it, for the test to call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from scrapy import Request


class FakeHooks:
    """Stands for `EngineHooks` where there is no engine: `removed` and `idle` are what the engine would call."""

    removed: Callable[[Request], None]
    idle: Callable[[bool], bool]

    def on_removed(self, removed: Callable[[Request], None]) -> None:
        self.removed = removed

    def at_idle(self, asked: Callable[[bool], bool]) -> None:
        self.idle = asked

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name in ("removed", "idle"):
            raise AttributeError(f"the scheduler has not begun: nothing is to be called as {name}")
        return lambda *given: None


def fake_engine(spider_middlewares: Sequence[Any], downloader_middlewares: Sequence[Any] = (), **more: Any) -> Any:
    """An engine that has these middlewares, and attributes `more`."""
    return SimpleNamespace(
        scraper=SimpleNamespace(spidermw=SimpleNamespace(middlewares=list(spider_middlewares))),
        downloader=SimpleNamespace(middleware=SimpleNamespace(middlewares=list(downloader_middlewares))),
        **more,
    )
