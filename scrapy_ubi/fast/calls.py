"""Middlewares' methods, called in fewer steps (UBI_LEAN): what each is really to do for a page.

Rules of this module:

* Scrapy wraps the methods of its middlewares so as to warn of a `spider` argument. Who passes none calls what is
  wrapped. Methods that want that argument (of middlewares written long ago) are called as Scrapy calls them.
* MetaRefreshMiddleware reads the beginning of every page for a tag that one in thousands has. It is asked only where
  that tag's word, or a character reference that might stand for a letter of it, is there.
* DownloaderStats writes each request as text to count its bytes; here they are counted. CookiesMiddleware is asked only
  where there is a cookie.
* A function of Scrapy's that reads otherwise than it did when this was written (`compared`) is called as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from types import FunctionType, MethodType
from typing import Any

from scrapy import Request
from scrapy.downloadermiddlewares import stats
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware
from scrapy.downloadermiddlewares.stats import DownloaderStats
from scrapy.http import Headers, HtmlResponse, Response
from scrapy.http.cookies import CookieJar
from scrapy.middleware import MiddlewareManager
from scrapy.utils import decorators
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.request import request_httprepr
from w3lib.http import headers_dict_to_raw

from scrapy_ubi.fast.compared import SIZES, WARNING, changed, digest

READ = 4096  # characters of a page that Scrapy looks through for a tag

Call = Callable[..., Any]

_is_name = re.compile(r"[^@:\[\]]+").fullmatch  # of a host, without a port


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
    make = _STAND_INS.get(function)
    usual = make is not None and type(middleware) in _STOOD_FOR and not changed(middleware)
    return make(middleware, bare) if make is not None and usual else bare


def _warned_of(function: Call) -> Call | None:
    """What is within, where this is what Scrapy's decorator makes of a function that is no coroutine."""
    made_there = isinstance(function, FunctionType) and function.__globals__ is vars(decorators)
    if made_there and function.__code__.co_name == "sync_inner":
        return getattr(function, "__wrapped__", None)
    return None


def _where_the_word_is(_: MetaRefreshMiddleware, process_response: Call) -> Call:
    def sparingly(request: Request, response: Response) -> Any:
        if isinstance(response, HtmlResponse):
            beginning = response.text[:READ].casefold()
            if "refresh" not in beginning and "&#" not in beginning:
                return response
        return process_response(request=request, response=response)

    return sparingly


def _are_sizes_usual() -> bool:
    """Whether what DownloaderStats counts is what was compared."""
    functions: tuple[Call, ...] = (
        request_httprepr,
        headers_dict_to_raw,
        stats.get_header_size,
        stats.get_status_size,
        Headers.to_string,
    )
    try:
        return tuple(map(digest, functions)) == SIZES and vars(stats)["request_httprepr"] is request_httprepr
    except (OSError, TypeError, KeyError):
        return False


def request_size(request: Request) -> int:
    """How long `request_httprepr` of a request is."""
    parts = urlparse_cached(request)
    _, netloc, path, params, query, _ = parts
    method = request.method
    if params or path.startswith("//") or not (request.url.isascii() and method.isascii()):
        return len(request_httprepr(request))
    name = netloc if _is_name(netloc) else parts.hostname or ""
    size = len(method) + len(path or "/") + len(name) + len(request.body) + len("  HTTP/1.1\r\nHost: \r\n\r\n")
    if query:
        size += 1 + len(query)
    headers = request.headers
    return size + lines_size(headers) if headers else size


def lines_size(headers: Headers) -> int:
    """Bytes of the lines of headers, with the end of each; of none: that of one."""
    size = 0
    for name, values in dict.items(headers):
        for value in values:
            size += len(name) + 4 + len(value)
    return size or 2


def _request_counted(middleware: DownloaderStats, process_request: Call) -> Call:
    if not _are_sizes_usual():
        return process_request

    def count(request: Request) -> None:
        add = middleware.stats.inc_value
        add("downloader/request_count")
        add(f"downloader/request_method_count/{request.method}")
        add("downloader/request_bytes", request_size(request))

    return count


def _response_counted(middleware: DownloaderStats, process_response: Call) -> Call:
    if not _are_sizes_usual():
        return process_response
    status_sizes: dict[int, int] = {}

    def count(request: Request, response: Response) -> Response:
        headers, status = response.headers, response.status
        if type(headers) is not Headers or type(status) is not int:
            return process_response(request=request, response=response)  # type: ignore[no-any-return]
        if status not in status_sizes:
            status_sizes[status] = stats.get_status_size(status)
        add = middleware.stats.inc_value
        add("downloader/response_count")
        add(f"downloader/response_status_count/{status}")
        size = len(response.body) + header_size(headers) + status_sizes[status] + 4
        add("downloader/response_bytes", size)
        return response

    return count


def header_size(headers: Headers) -> int:
    """As Scrapy's `get_header_size`."""
    size = -2
    for name, values in dict.items(headers):
        size += 2
        for value in values:
            size += 2 + len(name) + len(value)
    return size


def _where_cookies_are_sent(middleware: CookiesMiddleware, process_request: Call) -> Call:
    if changed(CookieJar()):
        return process_request

    def sparingly(request: Request) -> Any:
        meta = request.meta
        if not middleware.debug and not request.cookies and not meta.get("dont_merge_cookies"):
            jar = middleware.jars[meta.get("cookiejar")]
            if type(jar) is CookieJar and not jar._cookies:
                request.headers.pop("Cookie", None)
                jar.processed += 1
                return None
        return process_request(request=request)

    return sparingly


def _where_cookies_are_set(middleware: CookiesMiddleware, process_response: Call) -> Call:
    if changed(CookieJar()):
        return process_response

    def sparingly(request: Request, response: Response) -> Any:
        headers, meta = response.headers, request.meta
        if not middleware.debug and type(headers) is Headers and not meta.get("dont_merge_cookies"):
            jar = middleware.jars[meta.get("cookiejar")]
            has = dict.__contains__
            if type(jar) is CookieJar and not (has(headers, b"Set-Cookie") or has(headers, b"Set-Cookie2")):
                return response
        return process_response(request=request, response=response)

    return sparingly


_STAND_INS: dict[Any, Callable[[Any, Call], Call]] = {
    MetaRefreshMiddleware.process_response: _where_the_word_is,
    DownloaderStats.process_request: _request_counted,
    DownloaderStats.process_response: _response_counted,
    CookiesMiddleware.process_request: _where_cookies_are_sent,
    CookiesMiddleware.process_response: _where_cookies_are_set,
}
_STOOD_FOR = frozenset({MetaRefreshMiddleware, DownloaderStats, CookiesMiddleware})
