"""Meta of known plug-ins that does not travel as it is. No plug-in is imported here, nor need it be installed.

Rules of this module:

* A codec of this module loses nothing, or raises: what a page is to do in the browser is done, or the page fails.
* A class of a plug-in is looked up among the modules that are imported, never imported because of data.
* What is of no use to the request that it is copied into is left out (`is_left_out`): a page of the browser where the
  next request is not loaded by the browser, or that is closed. An open page that the next request is to be loaded in
  is none of these: it is a loss.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from scrapy_ubi.adapter.requests.item_classes import Untravelled, class_name, is_item_class

PAGE = "playwright_page"
LONGEST = 300  # characters of a dotted path


def _imported(path: str) -> Any:
    """The class of this dotted path where its module is imported. Raises ValueError."""
    module, _, name = path.rpartition(".")
    found = vars(sys.modules[module]).get(name) if sys.modules.get(module) is not None else None
    if not isinstance(found, type):
        raise ValueError(f"{path} is not imported here")
    return found


class PageMethods:
    """scrapy-playwright's `playwright_page_methods`: a list or a tuple of PageMethod, or a dict with such values."""

    PATH = "scrapy_playwright.page.PageMethod"
    FIELDS = ("method", "args", "kwargs")

    def encode(self, value: Any) -> Any:
        if type(value) is dict:
            return {key: self._fields(one) for key, one in value.items()}
        if type(value) not in (list, tuple):
            raise Untravelled(type(value).__name__)
        return type(value)(self._fields(one) for one in value)

    def decode(self, data: Any) -> Any:
        cls = _imported(self.PATH)
        if type(data) is dict:
            return {key: self._method(cls, one) for key, one in data.items()}
        if type(data) not in (list, tuple):
            raise ValueError("neither a list nor a dict of PageMethods")
        return type(data)(self._method(cls, one) for one in data)

    def _fields(self, one: Any) -> dict[str, Any]:
        """What a PageMethod does; not what came of it (`result`)."""
        if class_name(type(one)) != self.PATH or not {*self.FIELDS, "result"}.issuperset(vars(one)):
            raise Untravelled(type(one).__name__)
        if not isinstance(one.method, str):
            raise Untravelled("function")
        return {name: getattr(one, name) for name in self.FIELDS}

    def _method(self, cls: Any, fields: Any) -> Any:
        if type(fields) is not dict or {*fields} != {*self.FIELDS}:
            raise ValueError("not the fields of a PageMethod")
        method, args, kwargs = (fields[name] for name in self.FIELDS)
        if type(method) is not str or type(args) is not tuple or type(kwargs) is not dict:
            raise ValueError("not the fields of a PageMethod")
        if not all(type(key) is str for key in kwargs):
            raise ValueError("arguments of a PageMethod without names")
        return cls(method, *args, **kwargs)


class PoetClasses:
    """scrapy-poet's `inject`: a list of classes that the callback is given instances of, each by its dotted path."""

    PACKAGES = ("web_poet", "zyte_common_items")  # whose classes a callback may ask for

    def encode(self, value: Any) -> Any:
        if type(value) not in (list, tuple):
            raise Untravelled(type(value).__name__)
        try:
            if any(self._class(class_name(cls)) is not cls for cls in value):
                raise ValueError
        except (ValueError, AttributeError):  # AttributeError: Annotated[...] is no class
            raise Untravelled("class") from None
        return type(value)(class_name(cls) for cls in value)

    def decode(self, data: Any) -> Any:
        if type(data) not in (list, tuple) or not all(isinstance(path, str) and len(path) <= LONGEST for path in data):
            raise ValueError("no list of classes")
        return type(data)(self._class(path) for path in data)

    def _class(self, path: str) -> type:
        """A class that callbacks ask for: a page object, an item, one of web-poet's own. Raises ValueError."""
        cls = _imported(path)
        injectable = isinstance(cls, type) and issubclass(cls, _imported("web_poet.pages.Injectable"))
        if injectable or is_item_class(cls) or path.partition(".")[0] in self.PACKAGES:
            return cls  # type: ignore[no-any-return]
        raise ValueError(f"{path!r} is no class of page objects or items")


BUILT_IN: Mapping[str, Any] = {"playwright_page_methods": PageMethods(), "inject": PoetClasses()}


def _page_is_of_no_use(page: Any, meta: Mapping[str, Any]) -> bool:
    """Whether the browser would not load this request in that page, one of playwright's."""
    if not type(page).__module__.startswith("playwright."):
        return False
    return not meta.get("playwright") or bool(page.is_closed())


_LEFT_OUT: Mapping[str, Callable[[Any, Mapping[str, Any]], bool]] = {PAGE: _page_is_of_no_use}
LOOKED_AT = frozenset(_LEFT_OUT)  # keys of which `is_left_out` may be true


def is_left_out(key: str, value: object, meta: Mapping[str, Any]) -> bool:
    """Whether a request with this meta is the same without this value."""
    judge = _LEFT_OUT.get(key)
    return judge is not None and judge(value, meta)
