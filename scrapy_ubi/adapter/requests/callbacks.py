"""Callbacks: which methods of a spider may be one, and where one that is no such method is written."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from scrapy import Spider

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
