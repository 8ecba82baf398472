"""The project that a command is given in: its spiders, by name, and whether it has turned the add-on on.

Scrapy's template ends with `ADDONS = {}`: written above that line, ours is overwritten, and the project runs as plain
Scrapy without a word.
"""

from __future__ import annotations

from scrapy.settings import BaseSettings
from scrapy.spiderloader import get_spider_loader
from scrapy.utils.misc import load_object
from scrapy.utils.project import inside_project

from scrapy_ubi.cli.commands.redis_connection import UbiNotFound, nearest
from scrapy_ubi.ground.untrusted.terminal_text import plain

_NAMES = ("scrapy_ubi.Addon", "scrapy_ubi.addon.Addon")
REMARK = (
    "The add-on is not on in this project: ADDONS in its settings does not name scrapy_ubi.Addon, and `scrapy crawl` "
    "runs plain Scrapy, unless a spider's custom_settings turn it on. Replace the line ADDONS = {} of settings.py by "
    'ADDONS = {"scrapy_ubi.Addon": 500}.'
)


def addon_remark(settings: BaseSettings) -> str:
    """A sentence to be said where the add-on is not on; empty where it is, and outside of a project."""
    return REMARK if inside_project() and not _is_on(settings) else ""


def _is_on(settings: BaseSettings) -> bool:
    addons = settings.getdict("ADDONS")
    return any(priority is not None and _is_ours(addon) for addon, priority in addons.items())


def _is_ours(addon: object) -> bool:
    """Whether this is the add-on, or derived from it."""
    if addon in _NAMES:
        return True
    try:
        cls = load_object(addon) if isinstance(addon, str) else addon
    except Exception:  # noqa: BLE001 - the user's module is run: whatever it raises, Scrapy says when it crawls
        return False
    return any(f"{base.__module__}.{base.__qualname__}" in _NAMES for base in getattr(cls, "__mro__", ()))


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
