"""`scrapy ubi web`: the server as a process of its own, beside the crawl."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from urllib.parse import urlsplit

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands.crawl_choice import given_crawl
from scrapy_ubi.web.index_now import IndexNow
from scrapy_ubi.web.problem import Problem
from scrapy_ubi.web.reader import CrawlReader
from scrapy_ubi.web.security import Access, check_bound, read_token
from scrapy_ubi.web.web_app import LAST, UbiNotServed, WebApp, listening
from scrapy_ubi.web.web_sub import WebSub


def run(settings: BaseSettings, opts: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM; the exit status. Raises UbiError."""
    token, made = read_token(opts.token_file) if opts.token_file else ("", False)
    names = [*opts.name, *([urlsplit(opts.public).hostname or ""] if opts.public else [])]
    access = Access(opts.host, token, frozenset(name.lower() for name in names))
    check_bound(access)
    if opts.topic and not (opts.public and opts.notices):
        raise UbiNotServed("--topic wants --public, where hubs find this server, and --notices, whose links count.")
    reader = CrawlReader(settings, given_crawl(settings, opts), opts.redis_url)
    try:
        asyncio.run(_serve(reader, access, opts, made))
    finally:
        reader.close()
    return 0


async def _serve(reader: CrawlReader, access: Access, opts: argparse.Namespace, made: bool) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    hosts = frozenset(host.lower() for host in opts.notices)
    hubs = WebSub(opts.topic, opts.public, hosts) if opts.topic else None
    app = WebApp(reader, access, IndexNow(hosts) if hosts else None, hubs)
    async with listening(app, access.host, opts.port) as url:
        trouble = ""
        try:
            await app.live.document()
        except Problem as problem:  # it may begin, or come back
            trouble = problem.message
        _say(url, access, opts, made, reader, trouble)
        subscribing = asyncio.create_task(hubs.keep()) if hubs is not None else None
        await stop.wait()
        if subscribing is not None and hubs is not None:
            subscribing.cancel()
            await hubs.leave(LAST)  # before the server ends, as hubs ask it whether that was meant


def _say(url: str, access: Access, opts: argparse.Namespace, made: bool, reader: CrawlReader, trouble: str) -> None:
    if opts.json:
        document = {"url": url, "crawl": reader.crawl, "source": reader.source, "changes": bool(access.token)}
        print(json.dumps({**document, "trouble": trouble or None}), flush=True)
        return
    print(f"{f'Crawl {reader.crawl}' if reader.crawl else 'The crawl'} is at {url} (Ctrl-C ends this).", flush=True)
    if made:
        print(f"The token for changes is new, in {opts.token_file}.", flush=True)
    elif not access.token:
        print("It can be looked at, not changed: give a --token-file for that.", flush=True)
    if trouble:
        print(f"{trouble} It is shown as soon as it can be read.", flush=True)
