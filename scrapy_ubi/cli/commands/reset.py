"""`scrapy ubi reset`: forget a crawl, or all old ones, in Redis and on this machine.

Rules of this module:

* Nothing is deleted while an agent of the crawl lives, or runs in one of the directories: these are locked before
  anybody is asked, and until all is deleted.
* Deleted are the keys of this crawl, and of the directories what an agent has put there: a JOBDIR may hold more.
* Old crawls (`--finished`, `--older-than`) are those of this project; outside of a project, all in that Redis.
* The directories go first: what is left when this is interrupted is what the next start would delete anyway.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands import directories
from scrapy_ubi.cli.commands.crawl_choice import given_crawl, of_project, only_crawl
from scrapy_ubi.cli.commands.crawls import age
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.commands.redis_connection import RedisConnection, UbiNotFound, connect, listed
from scrapy_ubi.cli.commands.stopped_agents import Stock, held
from scrapy_ubi.cli.monitor.status import CrawlStatus, find_crawls, read_status
from scrapy_ubi.cli.monitor.text_table import count
from scrapy_ubi.errors import UbiDirectoryError, UbiError
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.transport.redis_keys import RedisKeys
from scrapy_ubi.transport.wire_text import encode

PIECE = 500  # keys deleted at once


class UbiNotReset(UbiError):
    """The crawl cannot be forgotten as it is; the sentence says why and what to do."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be deleted. `status` and `keys` are of Redis (None, 0: none is used)."""

    crawl: str
    to: RedisConnection | None
    status: CrawlStatus | None
    keys: int
    stocks: list[tuple[directories.FoundDirectory, Stock | str]]


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Look, ask, delete. Raises UbiError, UsageError."""
    if opts.finished or opts.older_than is not None:
        return _sweep(settings, opts)
    given = directories.named(opts.dir)  # each once, as its lock is taken once
    with ExitStack() as stack:
        known = opts.redis_url or settings.get("UBI_REDIS_URL")
        to = stack.enter_context(connect(settings, opts)) if known else None
        crawl = _crawl(given_crawl(settings, opts), given, to, settings)
        plan = _plan(stack, settings, to, crawl, given or directories.find_directories(settings, crawl)[0])
        if not plan.keys and not plan.stocks:
            raise UbiNotFound(f"There is nothing of a crawl '{plain(crawl, 64)}', in Redis or in a directory here.")
        document = _document(plan)
        if not opts.yes and not _confirmed(_shown(plan), "it"):
            return QueryReport([], {**document, "deleted": False}, "Nothing was deleted.")
        _forget(plan)
    return QueryReport([f"Crawl {plain(crawl, 64)} is forgotten."], {**document, "deleted": True})


def _sweep(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Forget all old crawls. Raises UbiError, UsageError."""
    if opts.crawl or opts.dir:
        raise UsageError("--finished and --older-than choose crawls: leave --crawl and --dir out.", print_help=False)
    with ExitStack() as stack:
        to = stack.enter_context(connect(settings, opts))
        with to.explained():
            found = [read_status(to.client, name) for name in of_project(settings, find_crawls(to.client))]
        old = [one.crawl for one in found if _is_old(one, opts)]
        plans = [_plan(stack, settings, to, crawl, directories.find_directories(settings, crawl)[0]) for crawl in old]
        documents = [_document(plan) for plan in plans]
        if not plans:
            return QueryReport([f"None of {count(len(found))} crawls is old."], {"crawls": [], "deleted": False})
        if not opts.yes and not _confirmed([line for plan in plans for line in _shown(plan)], "them"):
            return QueryReport([], {"crawls": documents, "deleted": False}, "Nothing was deleted.")
        for plan in plans:
            _forget(plan)
    lines = [f"Crawl {plain(crawl, 64)} is forgotten." for crawl in old]
    return QueryReport(lines, {"crawls": documents, "deleted": True})


def _is_old(of: CrawlStatus, opts: argparse.Namespace) -> bool:
    """Whether a crawl is one that was asked for. One whose age is not known is none where that is asked for."""
    if of.state == "running" or (opts.finished and not of.finished):
        return False
    seen = age(of)
    return opts.older_than is None or (math.isfinite(seen) and seen > float(opts.older_than))


def _plan(
    stack: ExitStack,
    settings: BaseSettings,
    to: RedisConnection | None,
    crawl: str,
    places: list[directories.FoundDirectory],
) -> _Plan:
    """What is to be deleted of a crawl; its directories are locked until `stack` ends. Raises UbiError."""
    status = _still(to, crawl)
    for place in places:
        stack.enter_context(directories.locked(place.path))
    keys = sum(1 for _ in find_keys(to, crawl)) if to is not None else 0
    return _Plan(crawl, to, status, keys, [(place, _stock(place, settings)) for place in places])


def _forget(plan: _Plan) -> None:
    _still(plan.to, plan.crawl)
    for place, _ in plan.stocks:
        directories.empty(place.path)
    delete_keys(plan.to, plan.crawl)


def _crawl(
    named: str | None, given: list[directories.FoundDirectory], to: RedisConnection | None, settings: BaseSettings
) -> str:
    """The crawl that is meant. Raises UbiNotFound, UbiNotReset."""
    others = sorted({place.crawl for place in given} - ({named} if named is not None else set()))
    if named is not None and others:
        paths = listed(str(place.path) for place in given if place.crawl != named)
        raise UbiNotReset(f"{paths} belongs to crawl {listed(others)}, not to {named}: name one crawl at a time.")
    if named is not None:
        return named
    if not others:
        found = directories.find_directories(settings, None)[0] if to is None else []
        others = sorted({place.crawl for place in found})
    if len(others) > 1:
        raise UbiNotReset(f"These are directories of {len(others)} crawls: {listed(others)}; name one with --crawl.")
    if others:
        return others[0]
    if to is None:
        raise UbiNotFound(
            "UBI_REDIS_URL is not set, and no agent's directory is here: name one with --dir, or a Redis with "
            "--redis-url."
        )
    return only_crawl(settings, to)


def _stock(place: directories.FoundDirectory, settings: BaseSettings) -> Stock | str:
    """What lies in a locked directory, or why that cannot be said."""
    try:
        with held(place, settings) as stopped:
            return stopped.stock()
    except UbiDirectoryError as error:
        return str(error)


def _still(to: RedisConnection | None, crawl: str) -> CrawlStatus | None:
    """What Redis shows of the crawl. Raises UbiNotReset while an agent lives."""
    if to is None:
        return None
    with to.explained():
        status = read_status(to.client, crawl)
    alive = [agent.name for agent in status.agents if agent.working]
    if alive:
        raise UbiNotReset(
            f"Agents of crawl {plain(crawl, 64)} live: {listed(alive)}. Stop them first (Ctrl-C at each); one that "
            "crashed counts as living for 15 s."
        )
    return status


def find_keys(to: RedisConnection, crawl: str) -> Iterator[bytes]:
    """Yield every key of the crawl in Redis."""
    keys = RedisKeys(crawl)
    with to.explained():
        for key in (*keys.shared, *keys.outside):
            if to.client.exists(key):
                yield key.encode()
        for pattern in (keys.pattern, keys.mail_pattern):
            found = (encode(key) if isinstance(key, str) else key for key in to.client.scan_iter(pattern, count=1000))
            yield from (key for key in found if keys.owner(key) is not None or keys.is_mail(key))


def delete_keys(to: RedisConnection | None, crawl: str) -> None:
    """Delete every key of the crawl in Redis, where there is one."""
    if to is None:
        return
    by_slot: dict[bytes, list[bytes]] = {}
    for key in find_keys(to, crawl):
        by_slot.setdefault(key.partition(b"}")[0], []).append(key)
    with to.explained():
        for found in by_slot.values():
            for start in range(0, len(found), PIECE):
                to.client.delete(*found[start : start + PIECE])


def _document(plan: _Plan) -> dict[str, object]:
    return {
        "crawl": plan.crawl,
        "redis": plan.to.at.shown if plan.to is not None else None,
        "keys": plan.keys,
        "directories": [
            {
                "dir": str(place.path),
                "agent": place.agent,
                "done": found.done if isinstance(found, Stock) else None,
                "waiting": found.waiting if isinstance(found, Stock) else None,
                "unreadable": found if isinstance(found, str) else None,
            }
            for place, found in plan.stocks
        ],
    }


def _shown(plan: _Plan) -> list[str]:
    """What will be deleted, for who is asked."""
    lines = [f"Of crawl {plain(plan.crawl, 64)} this will be deleted permanently:"]
    if plan.to is not None:
        lines.append(f"  in {plan.to.at.shown}: {count(plan.keys)} {'key' if plan.keys == 1 else 'keys'}")
    for place, found in plan.stocks:
        what = (
            f"{count(found.done)} URLs done, {count(found.waiting)} waiting"
            if isinstance(found, Stock)
            else f"cannot be read: {found}"
        )
        lines.append(f"  {place.path} of agent {place.agent}: {what}")
    if not plan.stocks:
        lines.append("  no directory of its agents is here")
    silent = [agent.name for agent in plan.status.agents if agent.state == "silent"] if plan.status else []
    if silent:
        lines.append(f"If one of these still runs somewhere, stop it first: {listed(silent)}.")
    return [plain(line) for line in lines]


def _confirmed(lines: list[str], what: str) -> bool:
    for line in lines:
        print(line, file=sys.stderr)
    print(f"Forget {what}? [y/N] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        print(file=sys.stderr)
    return answer.strip().lower() in ("y", "yes")
