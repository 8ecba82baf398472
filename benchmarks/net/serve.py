"""The testbed's servers, in processes of their own: the web on all addresses of 127.0.0.0/8, and the DNS.

    python benchmarks/net/serve.py DIRECTORY --port 443 --dns 127.0.0.2:53 [--hosts 3000] [--pages 300000] [--seed 1]

DIRECTORY gets the certificates. It says "ready" when it listens; each line that it reads is answered with one line of
counts (JSON); it ends when its input ends, after `--seconds` at the latest, and its processes with it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import certificates
import dns_server
import web_server
from counters import Counters
from page_bodies import bodies
from page_links import PageLinks
from population import ZONE, Population


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--dns", required=True, metavar="ADDRESS:PORT")
    add_population(parser)
    parser.add_argument("--processes", type=int, default=1, help="of the web (%(default)s)")
    parser.add_argument("--seconds", type=float, default=3600.0, help="live no longer than that (%(default)s)")
    return parser.parse_args()


def add_population(parser: argparse.ArgumentParser) -> None:
    """The options that make the hosts and their pages."""
    parser.add_argument("--hosts", type=int, default=3000, help="(%(default)s)")
    parser.add_argument("--pages", type=int, default=300_000, help="of all hosts (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="(%(default)s)")
    parser.add_argument("--scale", type=float, default=1.0, help="all pages so many times as large (%(default)s)")
    parser.add_argument("--healthy", action="store_true", help="all hosts answer, all names exist")
    parser.add_argument("--plain", action="store_true", help="http:// instead of https://")


def child(name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> int:
    """Have `work` done in a process that is forked off; it ends with its parent."""
    parent = os.getpid()
    if pid := os.fork():
        return pid
    try:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))

        async def watched() -> None:
            task = asyncio.ensure_future(work())
            while not task.done() and os.getppid() == parent:
                await asyncio.wait([task], timeout=1.0)
            if task.done():
                task.result()

        asyncio.run(watched())
    except Exception as error:  # noqa: BLE001 - it has no one else to tell
        print(f"{name}: {error!r}", file=sys.stderr, flush=True)
    os._exit(1)


def main() -> None:
    args = options()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    population = Population(args.seed, args.hosts, args.pages, args.healthy)
    scheme, usual = ("http", 80) if args.plain else ("https", 443)
    links = PageLinks(
        args.seed, population, bodies(args.seed, args.scale), scheme, None if args.port == usual else args.port
    )
    certificates.write(args.directory, ZONE.decode())
    tls = None if args.plain else certificates.server_context(args.directory)
    counters = Counters(args.processes + 1, population.ends[-1])
    sockets = [web_server.listener(args.port) for _ in range(args.processes)]
    address, _, port = args.dns.rpartition(":")
    children = [child("dns", lambda: dns_server.serve(population, counters.of(args.processes), address, int(port)))]
    for number, sock in enumerate(sockets):
        web = web_server.Web(population, links, tls, counters, number)
        children.append(child("web", lambda web=web, sock=sock: web_server.serve(web, sock)))
    for sock in sockets:
        sock.close()
    try:
        watch(children, counters, time.monotonic() + args.seconds)
    finally:
        for pid in children:
            os.kill(pid, signal.SIGTERM)


def watch(children: list[int], counters: Counters, end: float) -> None:
    """Answer lines with counts until there are no more."""
    print(json.dumps({"ready": children}), flush=True)
    while (left := end - time.monotonic()) > 0:
        if not select.select([sys.stdin], [], [], min(left, 1.0))[0]:
            continue
        if not sys.stdin.readline():
            return
        print(json.dumps(counters.sums()), flush=True)


if __name__ == "__main__":
    main()
