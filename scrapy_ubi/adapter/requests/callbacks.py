"""Callbacks and errbacks: which methods of a spider may be one, as text, and back; where one that is no such method is
written.

Rules of this module:

* A method of the spider, static and class methods among them, travels by its name, and a `functools.partial` of one
  with its arguments: these travel exactly or the callback is lost, as it would be called with others. Another agent,
  and a restart, have copies of them.
* All others (a lambda, a closure, another object's method) have no name, and are lost.
* A name becomes a method by a table that was made of the spider's class; nothing is looked up by it elsewhere.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from scrapy import Spider
from scrapy.http.request import NO_CALLBACK

from scrapy_ubi.adapter.requests.check import LOST_NAME, NO_CALLBACK_NAME
from scrapy_ubi.adapter.requests.item_classes import Untravelled
from scrapy_ubi.adapter.requests.untravelled import CodecError, Loss
from scrapy_ubi.adapter.requests.values import ItemClasses, pack, unpack
from scrapy_ubi.adapter.scrapy_private.spider_callbacks import parse_is_default

# Methods of a spider that are no callbacks, whatever they accept.
_NOT_CALLBACKS = frozenset({"start", "start_requests", "closed", "close", "log", "update_settings", "from_crawler"})


def callback_names(spider_class: type[Spider]) -> dict[str, Any]:
    """Name -> what the class has of every method of the spider that may be a callback.

    Methods, static and class methods of the user's classes, their bases (and of Scrapy's ready-made spiders), defined
    as functions that take a response; nothing of `Spider` itself but `parse` and `_parse`, nothing with a name between
    double underscores.
    """
    own = {name for cls in spider_class.__mro__ if cls not in Spider.__mro__ for name in vars(cls)}
    names = {}
    for name in sorted((own | {"parse", "_parse"}) - _NOT_CALLBACKS):
        found = inspect.getattr_static(spider_class, name, None)
        bound = not isinstance(found, staticmethod)  # to the spider, or its class
        function = found.__func__ if isinstance(found, staticmethod | classmethod) else found
        if not name.startswith("__") and inspect.isfunction(function) and _takes(function, 1 + bound):
            names[name] = found
    return names


def _takes(function: Callable[..., Any], arguments: int) -> bool:
    kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return inspect.Parameter.VAR_POSITIONAL in kinds or sum(kind in positional for kind in kinds) >= arguments


def shown(function: Any) -> str:
    """What a callable is called, and the file and line at which it is written, as far as that can be found."""
    name = getattr(function, "__qualname__", None) or type(function).__name__
    code = _code(function)
    return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code is not None else str(name)


def _code(function: Any) -> Any:
    """The code of the function behind a callable; None where there is none in Python."""
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    if not hasattr(function, "__code__"):  # an object that can be called
        function = getattr(type(function), "__call__", None)  # noqa: B004 - its code is wanted
    return getattr(function, "__code__", None)


def errback_lost(failure: Any) -> Any:
    """Stands for an errback that could not travel: the error goes on as if there were none (`dequeue` names it)."""
    return failure


Function = Callable[..., Any]


class CallbackTexts:
    """Those of one spider. `items`: the classes that arguments may be of."""

    def __init__(self, spider: Spider, items: ItemClasses) -> None:
        self._items = items
        # Bound through the class: what an attribute of the object hides is no method of it.
        self.names: dict[str, Function] = {
            name: found.__get__(spider, type(spider)) for name, found in callback_names(type(spider)).items()
        }
        self._functions = {function: name for name, function in self.names.items()}
        self._parse_is_default = parse_is_default(type(spider))

    def name(self, function: Function | None, kind: str = "callback") -> str | None:
        """The name of a callback or errback (`kind`), None for the default one, `LOST_NAME` where it has none."""
        if function is None:
            return None
        if function is NO_CALLBACK:
            return NO_CALLBACK_NAME
        name = self._method_name(function)
        if name is None:
            return LOST_NAME
        return None if kind == "callback" and name == "parse" and self._parse_is_default else name

    def _method_name(self, function: Function) -> str | None:
        """The name of a method of this very spider object, None for anything else."""
        return self._functions.get(function) if inspect.isroutine(function) else None

    def pack(self, function: Function, kind: str, losses: list[Loss]) -> str | dict[str, Any] | None:
        """What stands in a text for it; what cannot travel is added to the losses."""
        if function is errback_lost:
            return LOST_NAME
        if type(function) is functools.partial:
            return self._pack_partial(function, kind, losses)
        if (name := self.name(function, kind)) == LOST_NAME:
            losses.append(Loss(kind, f"its {kind} {shown(function)} (no method of the spider)"))
        return name

    def _pack_partial(self, function: functools.partial[Any], kind: str, losses: list[Loss]) -> str | dict[str, Any]:
        if (name := self._method_name(function.func)) is None:
            losses.append(Loss(kind, f"its {kind} {shown(function)} (a partial of no method of the spider)"))
            return LOST_NAME
        try:
            said = {"args": pack(list(function.args), self._items), "kwargs": pack(function.keywords, self._items)}
        except Untravelled as untravelled:
            losses.append(Loss(kind, f"its {kind} {shown(function)} (a partial with a {untravelled.kind})"))
            return LOST_NAME
        return {"method": name, **{key: value for key, value in said.items() if value}}

    def unpack(self, said: str | dict[str, Any] | None, kind: str, url: str) -> Function | None:
        """The callback or errback of a request for this URL that a text says so. Raises `CodecError`."""
        if said is None:
            return None
        if isinstance(said, dict):
            method = self._method(said["method"], kind, url)
            arguments: list[Any] = unpack(said.get("args", []), self._items)
            keywords: dict[str, Any] = unpack(said.get("kwargs", {}), self._items)
            return functools.partial(method, *arguments, **keywords)
        if said == NO_CALLBACK_NAME:
            return NO_CALLBACK
        if said == LOST_NAME and kind == "errback":
            return errback_lost
        return self._method(said, kind, url)

    def _method(self, name: str, kind: str, url: str) -> Function:
        if name not in self.names:
            raise CodecError(kind, f"The {kind} {name} of {url} could not travel to this agent, or is none (any more)")
        return self.names[name]
