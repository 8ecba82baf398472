"""Scrapy's own spider middlewares, those side by side as one (UBI_LEAN): one loop over what a page yields.

Each of them is a generator around the one before it, and looks at every request. Rules of this module:

* Joined are the exact classes of `_JOINED` that read as they were compared (`compared`), as far as they are neighbours:
  each request goes through their `get_processed_request`, in their order. They let items pass, and drop None.
* None of them handles exceptions, so what is raised in one of them is for those outside of all: the same ones.
* StartSpiderMiddleware does nothing to what a page yields, and has no turn.
* The Referer by Scrapy's default policy is the same for all links of a page, but for those that leave TLS: it is made
  once. Another policy, of the settings, a header or a request, is asked as Scrapy asks it.
* The stat of the greatest depth is told once a page, where no other is kept and none is too deep.

| private name | used for |
| --- | --- |
| `Request._headers` | whether a request has headers already |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from scrapy import Request
from scrapy.http import Headers, Response
from scrapy.spidermiddlewares.depth import DepthMiddleware
from scrapy.spidermiddlewares.referer import DefaultReferrerPolicy, RefererMiddleware, ReferrerPolicy
from scrapy.spidermiddlewares.start import StartSpiderMiddleware
from scrapy.spidermiddlewares.urllength import UrlLengthMiddleware
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_ubi.adapter.scrapy_private.versions import MetaCopy
from scrapy_ubi.fast.compared import changed
from scrapy_ubi.fast.safe_urls import ASCII_IS_ASCII
from scrapy_ubi.fast.tweaks import LeanStats

Layer = Callable[..., Iterable[Any]]
Step = Callable[[Request, Response], Request | None]

_JOINED = {DepthMiddleware, RefererMiddleware, UrlLengthMiddleware, MetaCopy} - {None}
_TLS = "https://"


def chain_of(middlewares: Iterable[Any], layers: Iterable[Layer | None]) -> list[tuple[int, Layer]]:
    """What the output of a page passes, from the spider outwards, with the number of middlewares that are within or
    are it. `layers`: what each middleware does, None for nothing."""
    chain: list[tuple[int, Layer]] = []
    neighbours: list[Any] = []
    for number, (middleware, layer) in enumerate(zip(middlewares, layers, strict=True), 1):
        if type(middleware) in _JOINED and not changed(middleware):
            if neighbours:
                chain.pop()
            neighbours.append(middleware)
            chain.append((number, Joined(neighbours) if len(neighbours) > 1 else _as_it_is(layer)))
            continue
        if layer is not None or hasattr(middleware, "process_spider_exception"):
            neighbours = []
        if layer is not None and (type(middleware) is not StartSpiderMiddleware or changed(middleware)):
            chain.append((number, layer))
    return chain


def _as_it_is(layer: Layer | None) -> Layer:
    assert layer is not None, "each of them looks at output"
    return layer


class Joined:
    """Some neighbours, called as the `process_spider_output` of one middleware."""

    def __init__(self, middlewares: Iterable[Any]) -> None:
        self._middlewares = tuple(middlewares)
        self._depth = next((one for one in self._middlewares if type(one) is DepthMiddleware), None)
        self._policies = {one: _usual_policy(one) for one in self._middlewares}

    def __call__(self, *, response: Response, result: Iterable[Any]) -> Iterator[Any]:
        if self._depth is not None:
            self._depth._init_depth(response)
        steps = [self._step(middleware, response) for middleware in self._middlewares]
        for found in result:
            passed = found
            if isinstance(found, Request):
                for step in steps:
                    passed = step(passed, response)
                    if passed is None:
                        break
            if passed is not None:
                yield passed

    def _step(self, middleware: Any, response: Response) -> Step:
        """What a middleware does to the requests of this page."""
        asked: Step = middleware.get_processed_request
        if type(middleware) is DepthMiddleware:
            return _depth(middleware, asked) if _tells_only_the_deepest(middleware) else asked
        policy = self._policies[middleware]
        if policy is None or "Referrer-Policy" in response.headers:
            return asked
        return _referer(policy, asked)


def _tells_only_the_deepest(middleware: DepthMiddleware) -> bool:
    """Whether all that it does to a page's requests is to say their depth, to lower their priority by it, and to keep
    the stat of the deepest."""
    usual = type(middleware.stats) in (LeanStats, MemoryStatsCollector)
    return usual and not middleware.maxdepth and not middleware.verbose_stats


def _depth(middleware: DepthMiddleware, asked: Step) -> Step:
    """As `DepthMiddleware.get_processed_request`, for one page; it is `asked` where a request says more."""
    told: int | None = None

    def say(request: Request, response: Response) -> Request | None:
        nonlocal told
        meta = request.meta
        if "depth_reset" in meta:
            return asked(request, response)
        depth = meta["depth"] = response.meta["depth"] + 1
        if middleware.prio:
            request.priority -= depth * middleware.prio
        if depth != told:
            told = depth
            middleware.stats.max_value("request_depth_max", depth)
        return request

    return say


def _usual_policy(middleware: Any) -> ReferrerPolicy | None:
    """The policy of a middleware that says where requests come from, if it is Scrapy's default."""
    if type(middleware) is not RefererMiddleware or middleware.default_policy is not DefaultReferrerPolicy:
        return None
    policy = DefaultReferrerPolicy()
    return None if changed(policy) else policy


def _referer(policy: ReferrerPolicy, asked: Step) -> Step:
    """Says where the requests of one page come from, by this policy; those with another one are `asked`."""
    protected: bool | None = None
    referrer: str | None = None
    header: list[bytes] = []  # the same in ASCII

    def say(request: Request, response: Response) -> Request | None:
        nonlocal protected, referrer
        if "referrer_policy" in request.meta:
            return asked(request, response)
        if protected is None:
            protected, referrer = policy.tls_protected(response.url), policy.stripped_referrer(response.url)
            if referrer is not None and referrer.isascii():
                header.append(referrer.encode())
        if referrer is not None and (
            not protected or request.url.startswith(_TLS) or policy.tls_protected(request.url)
        ):
            if header and request._headers is None and request.encoding in ASCII_IS_ASCII:
                headers = request._headers = Headers(encoding=request.encoding)
                dict.__setitem__(headers, b"Referer", header[:])  # in its normal form already
            else:
                request.headers.setdefault("Referer", referrer)
        return request

    return say
