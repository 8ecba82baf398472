"""Requests by Scrapy's handler and by ours, of servers whose answers are bytes: what each made of them, side by side.

A process of its own, with Twisted's asyncio reactor: `outcomes(cases)` starts it. A case is a dict of `served` (bytes
that answer each request, then the connection ends), and what else `scrapy.Request` takes; `path` follows the address.
With `times` the request is made so often, one after the other; `served` is then a list for each connection, and
`secure` says whether all that goes by TLS.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

LIMIT = 5.0  # seconds for a request
Case = dict[str, Any]


def outcomes(cases: list[Case], **settings: Any) -> list[tuple[Any, Any]]:
    """What Scrapy's handler and ours made of each case."""
    text = json.dumps([settings, cases], default=lambda data: {"bytes": data.decode("latin-1")})
    command = [sys.executable, "-m", "tests.fast.http.beside_scrapys"]
    ended = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60 + len(cases), check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return [tuple(each) for each in json.loads(ended.stdout.splitlines()[-1])]


async def _outcomes(handler: Any, case: Case) -> list[dict[str, Any]]:
    """What came of a sequence of requests, each after the one before."""
    from scrapy import Request

    from tests.fast.http.raw import Server, tls

    arguments = dict(case)
    served, times, secure = arguments.pop("served"), arguments.pop("times"), arguments.pop("secure", False)
    told: list[dict[str, Any]] = []
    async with Server(*served, tls=tls() if secure else None) as server:
        for _ in range(times):
            request = Request(server.url, meta={"download_timeout": LIMIT}, dont_filter=True, **arguments)
            try:
                response = await handler.download_request(request)
            except Exception as error:  # noqa: BLE001 - compared by its name
                told.append({"error": type(error).__name__})
            else:
                certificate = response.certificate is not None
                told.append({"status": response.status, "body": response.body, "certificate": certificate})
            for _ in range(20):  # turns of the loop: what the server has closed is closed for both
                await asyncio.sleep(0.002)
        return [*told, {"connections": server.opened, "requests": len(server.requests)}]


async def _outcome(handler: Any, case: Case) -> Any:
    from scrapy import Request

    from tests.fast.http.raw import Server

    if "times" in case:
        return await _outcomes(handler, case)
    arguments = dict(case)
    served, path = arguments.pop("served"), arguments.pop("path", "")
    async with Server([served]) as server:
        url = arguments.pop("url", "http://127.0.0.1:{port}/").format(port=server.port) + path
        meta = {"download_timeout": LIMIT, **arguments.pop("meta", {})}
        if "proxy" in meta:
            meta["proxy"] = meta["proxy"].format(port=server.port)
        told: dict[str, Any] = {}
        try:
            response = await handler.download_request(Request(url, meta=meta, **arguments))
        except Exception as error:  # noqa: BLE001 - compared by its name
            told["error"] = type(error).__name__
        else:
            told |= {
                "class": type(response).__name__,
                "url": response.url.replace(f":{server.port}", ":PORT"),
                "status": response.status,
                "headers": [[name, values] for name, values in dict.items(response.headers)],
                "body": response.body,
                "flags": response.flags,
                "protocol": response.protocol,
                "address": str(response.ip_address),
            }
        asked = [data.replace(b":%d" % server.port, b":PORT") for _, data in server.requests]
        return {**told, "asked": asked}


async def _both(cases: list[Case], settings: dict[str, Any]) -> list[Any]:
    from scrapy import Spider
    from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
    from scrapy.crawler import Crawler

    from scrapy_ubi.fast.http.handler import UbiDownloadHandler

    crawler = Crawler(Spider, settings)
    crawler.spider = Spider("beside")
    handlers = HTTP11DownloadHandler(crawler), UbiDownloadHandler(crawler)
    many = asyncio.Semaphore(16)

    async def pair(case: Case) -> list[Any]:
        async with many:
            return [await _outcome(handler, case) for handler in handlers]

    try:
        return await asyncio.gather(*map(pair, cases))
    finally:
        for handler in handlers:
            await handler.close()


def main() -> None:
    from scrapy.utils.defer import deferred_from_coro
    from scrapy.utils.reactor import install_reactor

    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    from twisted.internet import reactor

    def as_bytes(value: dict[str, Any]) -> Any:
        return value["bytes"].encode("latin-1") if list(value) == ["bytes"] else value

    settings, cases = json.loads(sys.stdin.read(), object_hook=as_bytes)
    found: list[Any] = []

    def ended(result: Any) -> None:
        found.append(result)
        reactor.stop()

    reactor.callWhenRunning(lambda: deferred_from_coro(_both(cases, settings)).addBoth(ended))
    reactor.run()
    assert isinstance(found[0], list), found[0]
    print("\n" + json.dumps(found[0], default=lambda data: data.decode("latin-1")))


if __name__ == "__main__":
    main()
