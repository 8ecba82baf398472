#!/usr/bin/env python3
"""The demo web's answers: a forward proxy on loopback that is at the same time the origin of every host of the graph.

    python example_project/demo/web.py serve --port 8900    # then: http_proxy=http://127.0.0.1:8900 scrapy crawl ...
    python example_project/demo/web.py reachable            # the truth: every URL a complete crawl asks for
    python example_project/demo/web.py stats --port 8900    # what was asked so far, as JSON

Requests in absolute form (`GET http://alder.example/ HTTP/1.1`, what a client sends to its proxy) name their host
there, requests in origin form in their Host header. Besides its documents (graph.py) every host has

    /robots.txt         forbids /private/
    /echo               answers any method with JSON: method, path, content type, body, agent
    /cookies            the cookies the request carried, as JSON
    /cookies/set?a=1    sets them, and redirects to /cookies

Asked directly (origin form), /-/stats, /-/log, /-/count, /-/visits and /-/reset report on the whole web and forget.
A page that is *flaky* answers its first request with 503. Every answer takes `latency` seconds, give or take a half,
drawn by path. No DNS is needed and no packet leaves the machine. For tests and demos: no TLS, no chunked requests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import blake2b
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

if __package__ in (None, ""):  # run by path
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from demo.graph import Document, Graph, digest
from demo.record import TRY_AGAIN, Record
from demo.wire import Answer, Asked, Connection

HTML, JSON = "text/html; charset=utf-8", "application/json"


class Web:
    """The graph, its log, and the answers. One event loop; nothing here waits."""

    def __init__(self, graph: Graph, latency: float = 0.0) -> None:
        """`latency`: mean seconds an answer takes."""
        self.graph = graph
        self.latency = latency
        self.record = Record()
        self._tries: Counter[tuple[str, str]] = Counter()

    def reset(self) -> None:
        """Forget the log, and which flaky pages have failed already."""
        self.record = Record()
        self._tries.clear()

    def delay(self, asked: Asked) -> float:
        """Seconds until this request is answered: 0.5 to 1.5 of the latency, always the same for one URL."""
        if not self.latency:
            return 0.0
        draw = blake2b(f"{asked.host}{asked.path}".encode(), digest_size=2).digest()
        return self.latency * (0.5 + int.from_bytes(draw) / 65_535)

    def answer(self, asked: Asked) -> Answer:
        if asked.host not in self.graph.index:
            return Answer(HTTPStatus.BAD_GATEWAY, f"no host {asked.host!r} in the demo web\n".encode())
        special = _SPECIAL.get(asked.path)
        if special is not None:
            return special(asked)
        document = self.graph.find(asked.host, asked.path)
        if document is None:
            return Answer(HTTPStatus.NOT_FOUND, b"no such page\n")
        if asked.method not in ("GET", "HEAD"):
            return Answer(HTTPStatus.METHOD_NOT_ALLOWED, b"GET it\n", headers=(("Allow", "GET, HEAD"),))
        return self._document(document, asked)

    def _document(self, document: Document, asked: Asked) -> Answer:
        if document.kind == "redirect":
            where = self.graph.url(self.graph.target(document))
            return Answer(HTTPStatus.FOUND, b"over there\n", headers=(("Location", where),), kind="redirect")
        if document.kind == "missing":
            return Answer(HTTPStatus.NOT_FOUND, b"gone\n", kind="missing")
        if self.graph.flaky(document) and asked.method == "GET":
            self._tries[asked.host, asked.path] += 1
            if self._tries[asked.host, asked.path] == 1:
                return Answer(TRY_AGAIN, b"not now\n", kind=document.kind)
        return Answer(HTTPStatus.OK, self.graph.html(document).encode(), HTML, kind=document.kind)

    def report(self, asked: Asked) -> Answer:
        """The paths below /-/, for whoever asks this server directly."""
        if asked.path == "/-/reset":
            self.reset()
        views: dict[str, Callable[[], Any]] = {
            "/-/stats": self.record.stats,
            "/-/log": self.record.rows,
            "/-/visits": lambda: dict(sorted(self.record.visits().items())),
            "/-/count": lambda: len(self.record.log),
            "/-/fetched": lambda: len(self.record.fetched),
            "/-/reset": lambda: "forgotten",
        }
        view = views.get(asked.path)
        if view is None:
            return Answer(HTTPStatus.NOT_FOUND, f"ask for one of {', '.join(views)}\n".encode())
        return Answer(HTTPStatus.OK, json.dumps(view()).encode() + b"\n", JSON)


def _json(asked: Asked, kind: str, value: object, headers: Iterable[tuple[str, str]] = ()) -> Answer:
    return Answer(HTTPStatus.OK, json.dumps(value).encode() + b"\n", JSON, tuple(headers), kind)


def _robots(asked: Asked) -> Answer:
    return Answer(HTTPStatus.OK, Graph.robots().encode(), kind="robots")


def _echo(asked: Asked) -> Answer:
    value = {
        "method": asked.method,
        "path": asked.path,
        "query": asked.query,
        "type": asked.headers.get("content-type", ""),
        "body": asked.body.decode("utf-8", "replace"),
        "agent": asked.headers.get("user-agent", ""),
        "cookies": _cookies_of(asked),
    }
    return _json(asked, "form", value)


def _cookies(asked: Asked) -> Answer:
    return _json(asked, "cookies", _cookies_of(asked))


def _set_cookies(asked: Asked) -> Answer:
    headers = [("Set-Cookie", f"{name}={value}; Path=/") for name, value in parse_qsl(asked.query)]
    return Answer(HTTPStatus.FOUND, headers=(("Location", f"http://{asked.host}/cookies"), *headers), kind="cookies")


_SPECIAL: dict[str, Callable[[Asked], Answer]] = {
    "/robots.txt": _robots,
    "/echo": _echo,
    "/cookies": _cookies,
    "/cookies/set": _set_cookies,
}


def _cookies_of(asked: Asked) -> dict[str, str]:
    pairs = (part.strip().partition("=") for part in asked.headers.get("cookie", "").split(";"))
    return {name: value for name, _, value in pairs if name}


async def serve(web: Web, port: int = 0, ready: Callable[[int], None] | None = None) -> None:
    """Serve on loopback until cancelled; `ready` is told the port."""
    server = await asyncio.get_running_loop().create_server(lambda: Connection(web), "127.0.0.1", port, backlog=1024)
    try:
        if ready is not None:
            ready(server.sockets[0].getsockname()[1])
        await server.serve_forever()
    finally:
        server.close()


def ask(port: int, what: str) -> Any:
    """stats, log, visits, count, fetched or reset of the demo web at this port. Raises OSError when it is not there."""
    # A proxy named in the environment (quite likely: this very server) must not be used here.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}/-/{what}", timeout=30) as response:
        return json.load(response)


async def _serve_until_stopped(web: Web, port: int) -> None:
    task = asyncio.ensure_future(serve(web, port, lambda p: _say_ready(web, p)))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        pass


def _say_ready(web: Web, port: int) -> None:
    sizes = web.graph.sizes
    print(f"serving {sum(sizes)} pages of {len(sizes)} hosts: http_proxy=http://127.0.0.1:{port}", flush=True)


def add_graph_options(parser: argparse.ArgumentParser, hosts: int = 60, pages: int = 1500) -> None:
    """The options that make a web what it is; equal options, equal web."""
    parser.add_argument("--hosts", type=int, default=hosts, metavar="N", help="host names (default: %(default)s)")
    parser.add_argument("--pages", type=int, default=pages, metavar="N", help="pages in all (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="another seed, another web (default: 1)")


def graph_of(options: argparse.Namespace, parser: argparse.ArgumentParser) -> Graph:
    """The graph that these options ask for; ends with a sentence where there is none."""
    try:
        return Graph(options.seed, options.hosts, options.pages)
    except ValueError as error:
        parser.error(str(error))


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="A little web of many hosts, behind a proxy on loopback.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("serve", "serve it until Ctrl-C"),
        ("reachable", "print what a complete crawl must ask for"),
        ("stats", "print what a running one has been asked for"),
    ):
        command = commands.add_parser(name, help=text)
        if name != "reachable":
            command.add_argument("--port", type=int, default=8900, metavar="P", help="default: 8900")
        if name != "stats":
            add_graph_options(command)
        if name == "serve":
            command.add_argument("--latency", type=float, default=20, metavar="MS", help="mean, default: 20 ms")
        if name == "reachable":
            command.add_argument("--ignore-robots", action="store_true", help="private pages count as well")
            command.add_argument("--list", action="store_true", help="print the URLs, not their number")
            command.add_argument("seeds", nargs="*", metavar="URL", help="default: the first host's home")
    return parser


def _print_stats(port: int) -> int:
    try:
        stats = ask(port, "stats")
    except (OSError, HTTPException, ValueError):  # nobody there, or somebody else
        print(f"no demo web answers on port {port}: start it, or name its --port", file=sys.stderr)
        return 1
    print(json.dumps(stats, indent=1))
    return 0


def _serve(web: Web, port: int) -> int:
    try:
        asyncio.run(_serve_until_stopped(web, port))
    except (OSError, OverflowError) as error:  # the latter: no port has that number
        print(f"the demo web cannot be served on port {port}: {error}", file=sys.stderr)
        return 1
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = _options()
    options = parser.parse_args(arguments)
    if options.command == "stats":
        return _print_stats(options.port)
    graph = graph_of(options, parser)
    if options.command == "serve":
        return _serve(Web(graph, options.latency / 1000), options.port)
    truth = graph.reachable(options.seeds or [graph.home(0)], obey_robots=not options.ignore_robots)
    if options.list:
        print("\n".join(sorted(truth)))
    else:
        print(json.dumps({"reachable": len(truth), "digest": digest(truth)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
