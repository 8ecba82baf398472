"""Requests that name the host they are for: those to an API gateway, whose URLs all have the gateway's.

Rules of this module:

* `meta["ubi_host"]` is the spider's own word. Else the function that UBI_PARTITION names is asked; what it answers is
  put into the meta (`ASKED`), so that it travels, and another agent need not ask to see where the request belongs. It
  is asked again for each request: spiders copy the meta of one request into the next.
* What is named has to be a host name, with a port where it has one. A request that names anything else, or of which the
  function raises, is dropped where it is found, with a reason (`BadHost`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from scrapy import Request

from scrapy_ubi.adapter.requests.check import ASKED, HOST, parse_object
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls.host_keys import named_key

Namer = Callable[[Request], object]


class BadHost(ValueError):
    """A request names a host that is none; the text says which."""


class HostNames:
    """The hosts that requests name under one agent's settings. Raises UbiSettingError where the function of
    UBI_PARTITION cannot be loaded."""

    def __init__(self, settings: UbiSettings) -> None:
        self._partition = settings.partition
        self._rules = settings.host_rules
        self._shards = settings.host_shards
        self.asks = bool(settings.named_by)
        self._function = _load(settings.named_by) if self.asks else _names_nothing
        self.of_url = settings.host_of()

    def key(self, request: Request, host: str, normal: str) -> str:
        """The partition key of a request, which by its URL, with that normal form, would belong to `host`. Raises
        BadHost."""
        name = self._name(request)
        return host if name is None else self._key(name, normal)

    def key_said(self, text: str, url: str, normal: str) -> str | None:
        """The partition key of a request with this text, as far as that says one; None where it does not."""
        try:
            meta = parse_object(text).get("meta")
            name = (meta.get(HOST) or (meta.get(ASKED) if self.asks else None)) if isinstance(meta, dict) else None
            return self.of_url(url) if name is None else self._key(name, normal)
        except ValueError:
            return None

    def of_request(self, request: Request) -> str | None:
        """The partition key of what bypasses the scheduler; what it names wrongly counts for nothing."""
        host = self.of_url(request.url)
        if host is None or not (self.asks or HOST in request.meta):
            return host
        try:
            return self.key(request, host, request.url)
        except BadHost:
            return host

    def _name(self, request: Request) -> object:
        """What the request, or the function, names as its host; None where neither does."""
        meta = request.meta
        if (name := meta.get(HOST)) is not None or not self.asks:
            return name
        try:
            name = self._function(request)
        except Exception as error:  # whatever the project's own code raises
            raise BadHost(f"UBI_PARTITION raised {error!r:.200}") from error
        if name is None:
            meta.pop(ASKED, None)
        else:
            meta[ASKED] = name
        return name

    def _key(self, name: object, normal: str) -> str:
        key = named_key(name, self._partition, self._rules)
        if key is None:
            raise BadHost(f"{name!r:.100} is no host name")
        return self._shards.key(key, normal)


def _names_nothing(request: Request) -> object:
    return None


def _load(path: str) -> Namer:
    """The function of a dotted path. Raises UbiSettingError."""
    module, _, name = path.rpartition(".")
    try:
        found: object = getattr(importlib.import_module(module), name)
    except Exception as error:  # importing runs the code of the project
        raise UbiSettingError(
            "UBI_PARTITION",
            f"names {path!r}, which cannot be loaded ({error})",
            "give 'host', 'domain' or the dotted path of a function that can be imported",
        ) from error
    if not callable(found):
        raise UbiSettingError("UBI_PARTITION", f"names {path!r}, which is no function", "give that of a function")
    return found
