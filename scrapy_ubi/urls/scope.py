"""Where a crawl that begins at a page may lead: to its host, its domain, or what lies below it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from scrapy_ubi.ground.untrusted.checks import is_list, is_text
from scrapy_ubi.urls.partition import partition_key

KINDS = ("host", "domain", "prefix")
_USUAL = {"http": 80, "https": 443}  # ports
MOST_PLACES, LONGEST_PLACE = 8, 2000


class Scope(NamedTuple):
    """A kind of scope, and the places that are in it. A host counts with and without `www.`, an address with any
    scheme, at its usual port or with the port of the page."""

    kind: str
    places: tuple[str, ...]

    def holds(self, url: str) -> bool:
        """Whether this URL is in it."""
        place = _place(self.kind, url, whole=True)
        if self.kind == "prefix":
            return place.startswith(self.places)
        return place in self.places

    def as_list(self) -> list[str]:
        """The scope as it travels in meta."""
        return [self.kind, *self.places]


def scope_at(kind: str, urls: Iterable[str]) -> Scope:
    """The scope of this kind of a page with these URLs: before and after a redirect, say."""
    return Scope(kind, tuple(dict.fromkeys(filter(None, (_place(kind, url) for url in urls))))[:MOST_PLACES])


def read_scope(value: object) -> Scope | str | None:
    """A scope as it travels, or its kind alone where the page is not known yet; None for anything else."""
    if isinstance(value, str):
        return value if value in KINDS else None
    if not is_list(value, MOST_PLACES + 1, lambda one: is_text(one, LONGEST_PLACE)) or not value:
        return None
    return Scope(value[0], tuple(value[1:])) if value[0] in KINDS else None


def _place(kind: str, url: str, whole: bool = False) -> str:
    """The place of a URL; `whole`: of a prefix with all of its path, else up to its last slash. Empty for no URL."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").removeprefix("www.")
        port = f":{parts.port}" if parts.port not in (None, _USUAL.get(parts.scheme)) else ""
    except ValueError:
        return ""
    if not host:
        return ""
    if kind == "domain":
        return partition_key(url, "domain") or ""
    if kind == "host":
        return f"{host}{port}"
    path = parts.path or "/"
    return f"{host}{port}{path if whole else path[: path.rindex('/') + 1] if '/' in path else '/'}"
