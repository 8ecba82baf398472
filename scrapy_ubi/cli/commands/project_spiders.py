"""The spiders of the project that a command is given in, by name."""

from __future__ import annotations

from scrapy.settings import BaseSettings
from scrapy.spiderloader import get_spider_loader

from scrapy_ubi.cli.commands.redis_connection import UbiNotFound, nearest
from scrapy_ubi.ground.untrusted.terminal_text import plain


def with_spider(settings: BaseSettings, name: str) -> BaseSettings:
    """Return a copy of the settings as an agent of that spider has them, but for add-ons. Raises UbiNotFound."""
    seen = settings.copy()
    loader = get_spider_loader(seen)
    try:
        cls = loader.load(name)
    except KeyError:
        raise unknown_spider(name, sorted(loader.list())) from None
    cls.update_settings(seen)
    return seen


def unknown_spider(name: str, names: list[str]) -> UbiNotFound:
    """Return the error of a spider that is not among those of the project."""
    hint = nearest(name, names) if names else "it has no spiders."
    return UbiNotFound(f"There is no spider '{plain(name, 64)}' in this project; {hint}")
