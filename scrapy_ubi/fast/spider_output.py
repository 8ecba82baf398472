"""What a page yields, taken in fewer steps (UBI_LEAN): callbacks called, and their output passed through plain
generators.

Scrapy passes the output of every callback through two dozen asynchronous generators. Rules of this module:

* A callback that is no asynchronous generator is taken by plain generators: each spider middleware by its
  `process_spider_output`. That of a user's may be a stub beside the asynchronous one, which is what Scrapy calls: where
  one of them is neither Scrapy's nor ours, and for callbacks that are asynchronous generators, Scrapy's way is taken.
* Errors are treated as by `SpiderMiddlewareManager`: those below see them first, what they give instead comes last.
* The pieces that come out of it are for `pieces` to take.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from scrapy import Request
from scrapy.core.scraper import Scraper
from scrapy.http import Response
from scrapy.utils.defer import _process_pending_io

from scrapy_ubi.fast.calls import lean_calls
from scrapy_ubi.fast.pieces import LeanPieces, failure
from scrapy_ubi.fast.spider_chain import Layer, chain_of

PLAIN = "process_spider_output"
KNOWN = ("scrapy.", "scrapy_ubi.")  # modules where it does what the asynchronous one beside it does


class LeanOutput:
    """Takes the output of callbacks for one scraper. `is_lean`: whether `take` may be asked to."""

    def __init__(self, scraper: Scraper, outermost: type | None) -> None:
        self._scraper, self._manager = scraper, scraper.spidermw
        self._layers = self._plain_layers()
        last = next(iter(self._manager.middlewares), None)  # the first in their order is the last that sees output
        self.is_lean = self._layers is not None and outermost in (type(last), None)
        self._pieces = LeanPieces(scraper)

    def _plain_layers(self) -> list[tuple[int, Layer]] | None:
        """`process_spider_output` of all middlewares, from the spider outwards, with their numbers; None where one may
        not be called."""
        middlewares = self._manager.middlewares[::-1]
        methods = [getattr(one, name, None) for one in middlewares for name in (PLAIN, f"{PLAIN}_async")]
        if not all(method is None or method.__module__.startswith(KNOWN) for method in methods):
            return None
        plain = [getattr(one, PLAIN, None) for one in middlewares]
        calls = lean_calls(self._manager, plain)
        return chain_of(middlewares, [method and calls.get(method, method) for method in plain])

    async def take_output(self, response: Response, request: Request) -> None:
        """Call the callback of a response and take what it yields. As `Scraper._scrape`."""
        recovered: tuple[list[Any], list[Any]] = ([], [])
        try:
            found = await self._called(response, request, *recovered)
        except Exception:  # noqa: BLE001 - of the spider or a middleware
            self._scraper.handle_spider_error(failure(), request, response)
            return
        if not self._pieces.is_lean or isinstance(found, AsyncIterator):
            await self._scraper.handle_spider_output_async(found, request, response)
        elif not await self._pieces.take_pieces(found, request, response):
            return
        for instead in (*recovered[0], *recovered[1]):
            await self._scraper.handle_spider_output_async(instead, request, response)

    async def _called(
        self, response: Response, request: Request, of_layers: list[Any], of_callback: list[Any]
    ) -> Iterator[Any] | AsyncIterator[Any]:
        """The output of the callback, as it leaves the outermost middleware; what is to stand for errors is put into
        the lists. As `SpiderMiddlewareManager.scrape_response_async`."""
        manager = self._manager
        try:
            output = await manager._process_spider_input(self._scraper.call_spider_async, response, request)
            if isinstance(output, AsyncIterator):
                return await manager._process_callback_output(response, output)
            return self._through(response, output, of_layers, of_callback)
        except Exception as error:  # noqa: BLE001 - middlewares decide what becomes of it
            await _process_pending_io()
            return manager._process_spider_exception(response, error)

    def _through(
        self, response: Response, output: Iterable[Any], of_layers: list[Any], of_callback: list[Any]
    ) -> Iterator[Any]:
        """As `SpiderMiddlewareManager._process_callback_output`."""
        assert self._layers is not None
        passed = self._watched(response, output, 0, of_callback)
        for number, layer in self._layers:
            passed = self._watched(response, self._call(layer, response, passed), number, of_layers)
        return passed

    def _call(self, layer: Layer, response: Response, output: Iterable[Any]) -> Iterable[Any]:
        if layer in self._manager._mw_methods_requiring_spider:
            return layer(response=response, result=output, spider=self._manager._spider)
        return layer(response=response, result=output)

    def _watched(self, response: Response, output: Iterable[Any], number: int, recovered: list[Any]) -> Iterator[Any]:
        """As `SpiderMiddlewareManager._evaluate_iterable`."""
        try:
            yield from output
        except Exception as error:
            if getattr(error, "_spidermw_unhandled", False):
                raise
            recovered.append(self._manager._process_spider_exception(response, error, number))
