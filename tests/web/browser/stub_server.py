"""A server that answers for a made-up crawl, as docs/reference/web-api.md says.

By hand: `python -m tests.web.browser.stub_server --port 8321 --agents 3` serves one, with the token `secret`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from scrapy_ubi.web.page import write_page
from scrapy_ubi.web.security import page_policy
from tests.web.browser.made_up import Answer, MadeUp

EVENTS_EVERY = 0.5  # s
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def application(crawl: MadeUp) -> web.Application:
    """The server of `crawl`."""

    def reads(make: Callable[[Any], Answer]) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            return web.json_response(make(request.query))

        return answer

    async def events(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        while True:
            await response.write(b"event: crawl\ndata: " + json.dumps(crawl.crawl()).encode() + b"\n\n")
            await asyncio.sleep(EVENTS_EVERY)

    async def change(request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {crawl.token}":
            error = {"status": 401, "kind": "token", "message": "This needs the token."}
            return web.json_response({"error": error}, status=401)
        return web.json_response(crawl.change(request.match_info["verb"], await request.json()))

    async def document(request: web.Request) -> web.StreamResponse:
        nonce = secrets.token_urlsafe(16)
        headers = {"Content-Security-Policy": page_policy(nonce)}
        return web.Response(text=write_page(nonce), content_type="text/html", headers=headers)

    app = web.Application()
    app.router.add_get("/", document)
    app.router.add_get("/api/events", events)
    for name, make in _answers(crawl).items():
        app.router.add_get(f"/api/{name}", reads(make))
    app.router.add_post("/api/{verb}", change)
    return app


def _answers(crawl: MadeUp) -> dict[str, Callable[[Any], Answer]]:
    """By path, what makes the answer of a query."""
    return {
        "about": lambda query: crawl.about(),
        "crawl": lambda query: crawl.crawl(),
        "history": lambda query: crawl.history(),
        "ring": lambda query: crawl.ring(),
        "hosts": crawl.host_list,
        "host": lambda query: crawl.host(query["host"]),
        "failed": crawl.failed,
        "url": lambda query: crawl.url(query["url"]),
        "owner": lambda query: crawl.owner(query["url"]),
        "inbox": lambda query: crawl.inbox(query["agent"]),
        "dead": lambda query: crawl.dead(query["agent"]),
        "outputs": lambda query: crawl.outputs(),
        "items": lambda query: crawl.items(),
        "seeds": lambda query: {"crawl": crawl.name, "waiting": 0, "answers": crawl.answers},
        "settings": lambda query: crawl.settings(),
    }


def main() -> None:
    """Serve a crawl that the command line describes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8321)
    parser.add_argument("--agents", type=int, default=4)
    parser.add_argument("--hosts", type=int, default=4_200)
    parser.add_argument("--hostile", action="store_true")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--age", type=float, default=5_400.0)
    chosen = parser.parse_args()
    crawl = MadeUp(chosen.agents, chosen.hosts, chosen.hostile, long=chosen.long, age=chosen.age)
    web.run_app(application(crawl), host="127.0.0.1", port=chosen.port)


if __name__ == "__main__":
    main()
