"""Which classes a request's text may name: those of the spider's project, and a few of other packages.

Rules of this module:

* The project is the top-level packages of the spider's class, of its bases and of SPIDER_MODULES. Known are the items
  (pydantic models and dict classes, too), enumerations, named tuples and requests that its modules define or mention.
* A class is found in modules that are imported already; nothing is imported because a text names it. What the project
  imports later is known from then on.
* Of other packages those of a fixed table are known, where the project or a download handler has imported them.
"""

from __future__ import annotations

import http
import sys
from collections.abc import Iterator
from types import ModuleType

from scrapy import Request, Spider
from scrapy.http import FormRequest, JsonRequest, XmlRpcRequest
from scrapy.settings import BaseSettings

from scrapy_ubi.adapter.requests.item_classes import (
    class_name,
    is_dict_class,
    is_enumeration,
    is_item_class,
    is_model_class,
    is_named_tuple,
)

LONGEST = 300  # characters of a name that is looked up

# Requests of other packages that say all in their meta: the class adds nothing but ways to write it.
FOREIGN_REQUESTS = ("scrapy_splash.request.SplashRequest", "scrapy_splash.request.SplashFormRequest")

# Scrapy's classes of requests.
SCRAPY_REQUESTS = (Request, FormRequest, JsonRequest, XmlRpcRequest)

_NO_PROJECT = frozenset({"scrapy", "scrapy_ubi", "builtins"})


class KnownClasses:
    """The classes that one spider's requests may name, by dotted path."""

    def __init__(self, spider_class: type[Spider], settings: BaseSettings) -> None:
        own = [cls.__module__ for cls in spider_class.__mro__ if cls not in Spider.__mro__]
        self._packages = {_package(name) for name in [*own, *settings.getlist("SPIDER_MODULES")]} - _NO_PROJECT
        self._classes: dict[str, type] = {class_name(http.HTTPStatus): http.HTTPStatus}
        for module in self._modules():
            self._classes.update((class_name(cls), cls) for cls in vars(module).values() if _may_be_named(cls))

    def get(self, name: str, /) -> type | None:
        """The class of this name, None where it is unknown."""
        return self._classes.get(name) or self._imported_since(name)

    def _modules(self) -> Iterator[ModuleType]:
        for name, module in list(sys.modules.items()):
            if _package(name) in self._packages and isinstance(module, ModuleType):
                yield module

    def _imported_since(self, name: str) -> type | None:
        """A class of a module that was not there before."""
        if len(name) > LONGEST or not (_package(name) in self._packages or name in FOREIGN_REQUESTS):
            return None
        found = _find(name)
        if not (isinstance(found, type) and _may_be_named(found) and class_name(found) == name):
            return None
        self._classes[name] = found
        return found


def is_request_class(value: object) -> bool:
    """Whether `value` is a class of requests."""
    return isinstance(value, type) and issubclass(value, Request)


def is_state_name(name: object) -> bool:
    """Whether a request may hold something of this name of its own, besides what Scrapy's classes have."""
    if type(name) is not str or not name.isidentifier() or len(name) > LONGEST:
        return False
    return not any(hasattr(base, name) for base in SCRAPY_REQUESTS)


def _may_be_named(value: object) -> bool:
    kinds = (is_item_class, is_model_class, is_dict_class, is_enumeration, is_named_tuple, is_request_class)
    return any(is_one(value) for is_one in kinds)


def _package(name: str) -> str:
    return name.partition(".")[0]


def _find(path: str) -> object:
    """What has this dotted path in the modules that are imported; nothing is called to find it."""
    parts = path.split(".")
    for number in range(len(parts) - 1, 0, -1):
        found: object = sys.modules.get(".".join(parts[:number]))
        if found is not None:
            for part in parts[number:]:
                found = getattr(found, "__dict__", {}).get(part)
            return found
    return None
