"""What `scrapy ubi doctor` looks at in Redis: the server, the rights of its user, and the crawl that is there.

It writes no key. What this user may not ask is a finding, too.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import redis
from scrapy.settings import BaseSettings

from scrapy_ubi.agent.profile.profile import MOST_MAIL_SLOTS, Profile
from scrapy_ubi.cli.commands.redis_connection import RedisConnection, connect, listed
from scrapy_ubi.cli.monitor.status import CrawlStatus, read_status
from scrapy_ubi.cli.supervisor.embedded_valkey import valkey_program
from scrapy_ubi.errors import UbiError
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.transport.redis_keys import RedisKeys
from scrapy_ubi.transport.rights import (
    ask_known,
    ask_rights,
    ask_seed_rights,
    lacking,
    needed_commands,
    seed_commands,
)
from scrapy_ubi.transport.server_facts import evicts_by

PINGS = 20
SLOW = 0.1  # s of a round trip to Redis from which on time-outs should be looked at
CLOCKS_APART = 5.0  # s
LEAST_MEMORY = 64 << 20  # bytes that Redis may use

OK, LOOK, WRONG, UNKNOWN = "ok", "look", "wrong", "unknown"


class Finding(NamedTuple):
    """What one check has found: `state` is one of the four words above, `about` a short name of what was looked at."""

    state: str
    about: str
    text: str


def check_redis(settings: BaseSettings, opts: argparse.Namespace, crawl: str | None) -> Iterator[Finding]:
    if not (opts.redis_url or settings.get("UBI_REDIS_URL")):
        if valkey_program() is not None:
            text = "none is named: `scrapy crawl` is one agent alone, `scrapy ubi run` starts a Valkey for several"
            yield Finding(OK, "Redis", text)
        else:
            text = (
                "none is named, and no Valkey is installed: `scrapy crawl` is one agent alone. For several set "
                "UBI_REDIS_URL, or pip install 'scrapy-ubi[embedded]'."
            )
            yield Finding(LOOK, "Redis", text)
        return
    try:
        with connect(settings, opts) as to, to.explained():
            yield from _commands(to)
            yield from _server(to)
            if crawl is not None:
                yield from _rights(to, RedisKeys(crawl, _mail_slots(to.client, crawl, settings)))
                yield from _group(read_status(to.client, crawl))
    except UbiError as error:
        yield Finding(WRONG, "Redis", str(error))


def _mail_slots(client: redis.Redis, crawl: str, settings: BaseSettings) -> int:
    """Over how many slots the mail is spread at most, by what is set here and what the agents of the crawl say."""
    slots = [1]
    with suppress(ValueError, TypeError):  # of the settings it is said elsewhere, as of what may not be read
        slots.append(settings.getint("UBI_MAIL_SLOTS", 1))
    with suppress(redis.ResponseError):
        slots += [agent.mail_slots for agent in read_status(client, crawl).agents]
    return min(max(slots), MOST_MAIL_SLOTS)


def _commands(to: RedisConnection) -> Iterator[Finding]:
    """What this server does not know of what agents send: it may be another product, or have it switched off."""
    needed = needed_commands(to.at.kind)
    outside = [name for name in seed_commands() if name not in needed]
    for names, state, whose in ((needed, WRONG, "agents need"), (outside, LOOK, "URLs from outside (UBI_SERVE) need")):
        try:
            told = to.client.execute_command(*ask_known(names).args)  # type: ignore[no-untyped-call]
        except redis.ResponseError as error:
            yield Finding(UNKNOWN, "commands", f"this server does not say which it knows ({plain(str(error), 120)})")
            return
        lacks = [name for name, one in zip(names, told, strict=True) if not one]
        if lacks:
            text = f"this server does not know what {whose}: {', '.join(lacks)}."
            yield Finding(state, "commands", f"{text} Name one that does (docs/reference/redis-servers.md).")
        elif names is needed:
            yield Finding(OK, "commands", "this server knows all that agents need")


def _server(to: RedisConnection) -> Iterator[Finding]:
    took = []
    for _ in range(PINGS):
        begun = time.monotonic()
        to.client.ping()
        took.append(time.monotonic() - begun)
    middle, longest = statistics.median(took), max(took)
    spans = f"a round trip takes {middle * 1000:.1f} ms, the longest of {PINGS} took {longest * 1000:.1f} ms"
    if longest > SLOW:
        text = f"{spans}: see to the network, or raise UBI_FAILURE_TIMEOUT (docs/how-to/choose-timeouts.md)."
        yield Finding(LOOK, "Redis", text)
    else:
        yield Finding(OK, "Redis", f"{to.at.shown}: {spans}")
    said = _info(to.client)
    if not said:
        text = "this user may not send INFO: whether Redis throws mail away, or restarts, cannot be seen. Allow +info."
        yield Finding(LOOK, "Redis", text)
    else:
        yield from _memory(said)
    seconds, micros = to.client.time()
    apart = time.time() - (seconds + micros / 1e6)
    if abs(apart) > CLOCKS_APART:
        side = "ahead of" if apart > 0 else "behind"
        text = f"this machine's is {abs(apart):.0f} s {side} that of Redis: set it right (NTP). Ages shown are wrong."
        yield Finding(LOOK, "clock", text)
    else:
        yield Finding(OK, "clock", f"within {CLOCKS_APART:.0f} s of that of Redis")


def _info(client: redis.Redis) -> dict[str, Any]:
    with suppress(redis.ResponseError):
        said: dict[str, Any] = client.info("server", "memory", "persistence")
        return said
    return {}


def _memory(said: dict[str, Any]) -> Iterator[Finding]:
    name = f"Valkey {said['valkey_version']}" if "valkey_version" in said else f"Redis {said.get('redis_version', '?')}"
    yield Finding(OK, "server", f"{name}, {size_text(int(said.get('used_memory', 0)))} in use")
    limit, policy = int(said.get("maxmemory", 0)), str(said.get("maxmemory_policy", ""))
    text = f"maxmemory:{limit}\r\nmaxmemory_policy:{policy}\r\n"
    if evicts_by(text.encode()):
        yield Finding(
            LOOK,
            "eviction",
            f"when its memory is full this Redis throws letters and beats away (maxmemory-policy {policy}). They are "
            "sent again, but the crawl may all but stand still: CONFIG SET maxmemory-policy noeviction.",
        )
    elif 0 < limit < LEAST_MEMORY:
        text = (
            f"maxmemory is {size_text(limit)}: agents wait while it is full. Give it {size_text(LEAST_MEMORY)} or more."
        )
        yield Finding(LOOK, "memory", text)
    else:
        bound = size_text(limit) if limit else "as much as there is"
        yield Finding(OK, "memory", f"may use {bound}, throws nothing away ({policy or 'no policy said'})")
    aof, saves = bool(said.get("aof_enabled")), int(said.get("rdb_last_save_time", 0))
    kept = "appended to a file" if aof else "saved at times" if saves else "not said"
    yield Finding(OK, "its data", f"{kept}; no agent needs it after a restart, mail is sent again")


def _rights(to: RedisConnection, keys: RedisKeys) -> Iterator[Finding]:
    answers: list[object] = []
    refused: list[object] = []
    for command in (ask_rights(keys, "doctor", to.at.kind), ask_seed_rights(keys)):
        try:
            answers.append(to.client.execute_command(*command.args))  # type: ignore[no-untyped-call]
        except redis.ResponseError as error:
            refused.append(error)
    lacks = lacking(answers, refused)
    if lacks is not None:
        text = f"{lacks}. Allow them to this user (docs/how-to/secure-redis.md)."
        yield Finding(WRONG, "rights", text)
    elif refused:
        yield Finding(UNKNOWN, "rights", f"this server does not say what its users may ({plain(str(refused[0]), 120)})")
    else:
        yield Finding(OK, "rights", "this user may send all that agents need")


# -- the crawl ---------------------------------------------------------------------------------------------------------


def _group(status: CrawlStatus) -> Iterator[Finding]:
    about = f"crawl {plain(status.crawl, 64)}"
    if not status.exists:
        yield Finding(OK, "crawl", f"{about} has not begun in this Redis")
        return
    living = {one.name: one.profile for one in status.members if one.profile is not None}
    yield Finding(OK, "crawl", f"{about}: {status.state}, agents: {listed(living) or 'none'}")
    for what, value in _ALIKE.items():
        values: dict[str, list[str]] = {}
        for name, profile in living.items():
            values.setdefault(value(profile), []).append(name)
        if len(values) > 1:
            parts = "; ".join(f"{plain(said or 'none', 64)}: {listed(names)}" for said, names in sorted(values.items()))
            yield Finding(LOOK, "agents", f"have different {what} ({parts}): start them alike.")
    ahead = [one.name for one in status.members if one.age is not None and one.age < -CLOCKS_APART]
    if ahead:
        yield Finding(
            LOOK, "clock", f"of these agents' machines is ahead of that of Redis: {listed(ahead)}. Set it right."
        )
    odd = [one.name for one in status.agents if one.trouble]
    if odd:
        yield Finding(LOOK, "agents", f"cannot be read in Redis: {listed(odd)} (`scrapy ubi status` says what).")


def _arguments(arguments: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(arguments.items()))


_ALIKE: dict[str, Callable[[Profile], str]] = {
    "versions of scrapy-ubi": lambda profile: profile.version,
    "spiders": lambda profile: profile.spider_class,
    "code of the spider": lambda profile: profile.code,
    "arguments of the spider": lambda profile: _arguments(profile.arguments),
    "UBI_PARTITION": lambda profile: profile.named_by or profile.partition,
    "UBI_NORMALISE": lambda profile: profile.normaliser,
    "UBI_MAIL_SLOTS": lambda profile: str(profile.mail_slots),
    "UBI_REPLICATION": lambda profile: str(profile.replication),
    "live settings": lambda profile: profile.live,
}


def size_text(number: int) -> str:
    """So many bytes, for people."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number / 1024:.0f} kB"
