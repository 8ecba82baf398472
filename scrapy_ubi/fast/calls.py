"""Middlewares' methods, called in fewer steps (UBI_LEAN): what each is really to do for a page.

Rules of this module:

* Scrapy wraps the methods of its middlewares so as to warn of a `spider` argument. Who passes none calls what is
  wrapped. Methods that want that argument (of middlewares written long ago) are called as Scrapy calls them.
* MetaRefreshMiddleware reads the beginning of every page for a tag that one in thousands has. It is asked only where
  that tag's word, or a character reference that might stand for a letter of it, is there.
* A function of Scrapy's that reads otherwise than it did when this was written (`compared`) is called as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import FunctionType, MethodType
from typing import Any

from scrapy import Request
from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware
from scrapy.http import HtmlResponse, Response
from scrapy.middleware import MiddlewareManager
from scrapy.utils import decorators

from scrapy_ubi.fast.compared import WARNING, changed, digest

READ = 4096  # characters of a page that Scrapy looks through for a tag

Call = Callable[..., Any]


def lean_calls(manager: MiddlewareManager, methods: Iterable[Call | None]) -> dict[Call, Call]:
    """Method of a manager's middlewares -> what may be called in its place, with the same keyword arguments."""
    unwrapping = digest(decorators._warn_spider_arg) == WARNING
    asked = [method for method in methods if method is not None and method not in manager._mw_methods_requiring_spider]
    return {method: _lean(method, unwrapping) for method in asked}


def _lean(method: Call, unwrapping: bool) -> Call:
    if not isinstance(method, MethodType):
        return method
    function, middleware = method.__func__, method.__self__
    inner = _warned_of(function) if unwrapping else None
    bare = method if inner is None else MethodType(inner, middleware)
    reads_pages = type(middleware) is MetaRefreshMiddleware and function is MetaRefreshMiddleware.process_response
    return _where_the_word_is(bare) if reads_pages and not changed(middleware) else bare


def _warned_of(function: Call) -> Call | None:
    """What is within, where this is what Scrapy's decorator makes of a function that is no coroutine."""
    made_there = isinstance(function, FunctionType) and function.__globals__ is vars(decorators)
    if made_there and function.__code__.co_name == "sync_inner":
        return getattr(function, "__wrapped__", None)
    return None


def _where_the_word_is(process_response: Call) -> Call:
    def sparingly(request: Request, response: Response) -> Any:
        if isinstance(response, HtmlResponse):
            beginning = response.text[:READ].casefold()
            if "refresh" not in beginning and "&#" not in beginning:
                return response
        return process_response(request=request, response=response)

    return sparingly
