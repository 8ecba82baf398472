"""The functions of Scrapy that the lean way stands for, or calls by private names, each as it was compared with.

A version of Scrapy, or somebody's patch, in which one of them reads otherwise is one that was not compared:
`changed` names it, and the lean way is not taken (a middleware is asked as Scrapy asks it). Before a digest here is
changed, compare what `path`, `spider_output`, `spider_chain`, `pieces` and `calls` do.
"""

from __future__ import annotations

import hashlib
import inspect
import linecache
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from scrapy.core.downloader import Downloader
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.core.engine import ExecutionEngine
from scrapy.core.scraper import Scraper
from scrapy.core.spidermw import SpiderMiddlewareManager
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware
from scrapy.downloadermiddlewares.stats import DownloaderStats
from scrapy.http.cookies import CookieJar
from scrapy.linkextractors.lxmlhtml import LxmlLinkExtractor, LxmlParserLinkExtractor
from scrapy.spidermiddlewares.depth import DepthMiddleware
from scrapy.spidermiddlewares.referer import DefaultReferrerPolicy, RefererMiddleware
from scrapy.spidermiddlewares.start import StartSpiderMiddleware
from scrapy.spidermiddlewares.urllength import UrlLengthMiddleware

from scrapy_ubi.adapter.scrapy_private.versions import MetaCopy

STOOD_FOR: dict[type, dict[str, str]] = {
    ExecutionEngine: {
        "_start_scheduled_request": "92e88b0d07c0",
        "_download": "c058b362cce4",
        "_handle_downloader_output": "5457d73c802c",
        "_remove_request": "82e86f875167",
    },
    Downloader: {
        "fetch": "302384ee47a9",
        "_enqueue_request": "1a02e3882d82",
        "_process_queue": "872b81a4bbb4",
        "_wait_for_download": "35ca6793c879",
        "_download": "a05f219045c8",
    },
    DownloaderMiddlewareManager: {
        "download_async": "00e854e1a38e",
        "_handle_mw_method": "0efff254fbd8",
        "_process_request": "f2b83efff7fc",
        "_process_response": "d94bf8a9c519",
    },
    Scraper: {
        "enqueue_scrape": "13797600d476",
        "_scrape_next": "054e33b47d7b",
        "_wait_for_processing": "8e937afcd76d",
        "_scrape": "72f0901d7c0d",
        "call_spider_async": "eed6f753b240",
        "handle_spider_output_async": "194d54885f02",
        "_process_spidermw_output_async": "94488bf929eb",
    },
    SpiderMiddlewareManager: {
        "_add_middleware": "0a6100c03365",
        "_process_spider_input": "c3b9984ad4d1",
        "_evaluate_iterable": "f785959dca94",
        "_process_spider_exception": "83a17552806c",
        "_process_spider_output": "9ec4b7fcb708",
        "_process_callback_output": "ca84c4beb322",
        "scrape_response_async": "aef51d7ee01e",
    },
    MetaRefreshMiddleware: {"process_response": "85eb375a65e7"},
    DownloaderStats: {"process_request": "88494cbb091a", "process_response": "2fc34ad0b696"},
    CookiesMiddleware: {
        "process_request": "ccfda536bf99",
        "process_response": "9c3cfa98b7d1",
        "_get_request_cookies": "f30214e4f786",
        "_process_cookies": "504581a9707a",
        "_debug_cookie": "860227ef480e",
        "_debug_set_cookie": "5a9ead8f6a8c",
    },
    CookieJar: {"add_cookie_header": "bc72bb445d2a", "make_cookies": "666aaa2b5859"},
    LxmlLinkExtractor: {
        "_link_allowed": "b3053c8a9fa7",
        "_process_links": "2d725c644cc6",
        "_extract_links": "0a2cbecce95b",
        "extract_links": "7355c9e085bc",
    },
    LxmlParserLinkExtractor: {
        "_iter_links": "5cb23e5ae636",
        "_extract_links": "9bc8d1676583",
        "_process_links": "d5d12d80937d",
        "_deduplicate_if_needed": "588ffb40d7ad",
    },
}
_LOOKS = {"_get_processed": "0464d177b2cc", "get_processed_item": "3edf44947d95"}  # of spider middlewares
_LOOKS_AT_REQUESTS = _LOOKS | {"process_spider_output": "77a6848a8d52"}
STOOD_FOR |= {
    DepthMiddleware: _LOOKS
    | {
        "process_spider_output": "9436c8c1c355",
        "get_processed_request": "13cccfdd4827",
        "_init_depth": "d464d2db1411",
    },
    RefererMiddleware: _LOOKS_AT_REQUESTS | {"get_processed_request": "ba5d5afcbeaf", "policy": "be2823a4f06e"},
    UrlLengthMiddleware: _LOOKS_AT_REQUESTS | {"get_processed_request": "b2141dbe9d86"},
    StartSpiderMiddleware: _LOOKS_AT_REQUESTS | {"get_processed_request": "45841bf740e0"},
    DefaultReferrerPolicy: {
        "referrer": "e532aefbe4e9",
        "stripped_referrer": "ffe373448048",
        "strip_url": "d4de402c7162",
        "tls_protected": "6d56c95dbaee",
    },
}
if MetaCopy is not None:
    STOOD_FOR[MetaCopy] = _LOOKS_AT_REQUESTS | {"get_processed_request": "e5e7e7b4f5df"}
OURS = frozenset({"enqueue_scrape", "_handle_downloader_output"})  # by `EngineHooks`
DECORATORS = frozenset({"scrapy", "twisted"})  # whose decorators these functions have
WARNING = "1708aaa52118"  # the decorator `_warn_spider_arg`
# `request_httprepr`, w3lib's `headers_dict_to_raw`, `get_header_size`, `get_status_size`, `Headers.to_string`
SIZES = ("967d60d25546", "04b51fa1b039", "648c17365b7a", "3eb9dc8c63d9", "4a27ffdcfd56")


def digest(function: Callable[..., Any]) -> str:
    """A digest of a function's text. Raises OSError or TypeError for one that has none."""
    return hashlib.sha256(_text(function).encode()).hexdigest()[:12]


def _text(function: Callable[..., Any]) -> str:
    """What `inspect.getsource` gives of a function, without its tokenizer: some thirty are asked for at each start.

    A function ends before the first line that is indented no deeper than it, but for the end of its own head.
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    if not isinstance(code, CodeType):
        raise TypeError(f"{function!r} has no text")
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    if not lines:
        raise OSError(f"the text of {function!r} is gone")
    depth = _depth(lines[0])
    head = next((at for at, line in enumerate(lines) if line.lstrip().startswith(("def ", "async def "))), 0)
    after = (
        at
        for at in range(head + 1, len(lines))
        if lines[at].strip() and _depth(lines[at]) <= depth and not lines[at].lstrip().startswith(")")
    )
    return "".join(lines[: next(after, len(lines))]).rstrip() + "\n"


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_wrapped(function: Callable[..., Any]) -> bool:
    """Whether somebody has wrapped a function (a tracer, mostly): its text would be that of what is wrapped."""
    while (inner := getattr(function, "__wrapped__", None)) is not None:
        if type(function) is not FunctionType:
            return True
        if str(function.__globals__.get("__name__")).split(".")[0] not in DECORATORS:
            return True
        function = inner
    return False


def changed(part: object) -> str:
    """The first function of this part of a crawl that reads otherwise than it did, in words; "" when none does.

    Also one that somebody has wrapped counts, or replaced on the part itself, but for those that we wrap ourselves
    (`OURS`).
    """
    for name, known in STOOD_FOR[type(part)].items():
        words = f"{type(part).__name__}.{name}"
        if name in vars(part) and name not in OURS:
            return words
        function = getattr(type(part), name, None)
        try:
            if function is None or _is_wrapped(function) or digest(function) != known:
                return words
        except (OSError, TypeError):
            return words
    return ""
