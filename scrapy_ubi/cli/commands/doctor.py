"""`scrapy ubi doctor [SPIDER]`: is all there that agents of this project need? One line for each check.

Rules of this module:

* It only looks: no key is written, no directory made, no lock held for longer than a moment, no agent started.
* A check that cannot be made is a line of its own (`unknown`), and the others are made.
* `wrong` is what refuses a start, or stops a crawl; `look` is what costs items, time or peace. Each says the remedy.
* Settings are those of the project and `-s`; with SPIDER its `custom_settings` as well.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import redis
from scrapy.settings import BaseSettings
from scrapy.utils.project import inside_project

from scrapy_ubi.adapter.process import start_remarks
from scrapy_ubi.adapter.process.agent_directory import AgentLock, holder
from scrapy_ubi.adapter.scrapy_private import versions
from scrapy_ubi.addon.turn_on import refusal
from scrapy_ubi.agent.profile.profile import MOST_MAIL_SLOTS, Profile
from scrapy_ubi.cli.commands import directories
from scrapy_ubi.cli.commands.addon_remark import addon_remark
from scrapy_ubi.cli.commands.project_spiders import with_spider
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.commands.redis_connection import RedisConnection, connect, listed
from scrapy_ubi.cli.commands.version import LIBRARIES, extras, installed
from scrapy_ubi.cli.monitor.status import CrawlStatus, read_status
from scrapy_ubi.cli.monitor.text_table import folded, room
from scrapy_ubi.cli.supervisor.embedded_valkey import valkey_program
from scrapy_ubi.errors import UbiError
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.settings import UbiSettings
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

OK, LOOK, WRONG, UNKNOWN = "ok", "look", "wrong", "unknown"

PINGS = 20
SLOW = 0.1  # s of a round trip to Redis from which on time-outs should be looked at
CLOCKS_APART = 5.0  # s
LEAST_DISK = 1 << 30  # bytes
LEAST_MEMORY = 64 << 20  # bytes that Redis may use
FILES_BESIDE = 200  # files and sockets that a process has open beside its downloads


class Finding(NamedTuple):
    """What one check has found: `state` is one of the four words above, `about` a short name of what was looked at."""

    state: str
    about: str
    text: str


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Make all checks. Raises UbiError for a spider that is not there."""
    seen = with_spider(settings, opts.spider) if opts.spider is not None else settings.copy()
    crawl = opts.crawl or seen.get("UBI_CRAWL")
    found = [*_software(), *_project(seen, opts.spider or "spider")]
    wanted = _read(seen, opts.spider or "spider")
    if isinstance(wanted, UbiSettings):
        crawl = crawl or (wanted.crawl if opts.spider else None)
        found += [*_plugins(seen, wanted), *_machine(seen, wanted, crawl)]
    else:
        found.append(Finding(WRONG, "settings", wanted))
    found += _redis(seen, opts, crawl)
    wrong = sum(one.state == WRONG for one in found)
    look = sum(one.state == LOOK for one in found)
    lines = [line for one in found for line in _line(one)]
    if not wrong:
        lines += ["", "Nothing is wrong." if not look else f"Nothing is wrong; {_things(look)} to look at."]
    document = {"wrong": wrong, "look": look, "checks": [one._asdict() for one in found]}
    return QueryReport(lines, document, f"{_things(wrong)} to be mended first." if wrong else "")


def _things(number: int) -> str:
    return "1 thing" if number == 1 else f"{number} things"


def _line(finding: Finding) -> list[str]:
    head = f"{finding.state:<8}{finding.about:<11} "
    first, *rest = folded(finding.text, room() - len(head)) or [""]
    return [head + first, *(" " * len(head) + line for line in rest)]


def _read(settings: BaseSettings, spider: str) -> UbiSettings | str:
    try:
        return UbiSettings.from_scrapy(settings, spider)
    except UbiError as error:
        return str(error)


# -- what is installed -------------------------------------------------------------------------------------------------


def _software() -> Iterator[Finding]:
    names = ", ".join(f"{name} {found}" for name in LIBRARIES if (found := installed(name)) is not None)
    yield Finding(OK, "installed", f"Python {platform.python_version()}, {names}")
    if remark := versions.remark():
        yield Finding(LOOK, "Scrapy", remark)
    there = [name for name, parts in extras().items() if parts and all(parts.values())]
    yield Finding(OK, "extras", ", ".join(there) or "none: pip install 'scrapy-ubi[embedded]' brings a Valkey")


# -- the project -------------------------------------------------------------------------------------------------------


def _project(settings: BaseSettings, spider: str) -> Iterator[Finding]:
    if not inside_project():
        yield Finding(UNKNOWN, "project", "There is no Scrapy project here: change into one to have it looked at.")
        return
    if remark := addon_remark(settings):
        yield Finding(WRONG, "add-on", remark)
    elif not settings.getbool("UBI_ENABLED", True):
        yield Finding(LOOK, "add-on", "UBI_ENABLED is off: crawls are those of plain Scrapy. Turn it on for agents.")
    else:
        yield Finding(OK, "add-on", "scrapy_ubi.Addon is on")
    if sentence := refusal(settings):
        yield Finding(WRONG, "settings", sentence)


def _plugins(settings: BaseSettings, wanted: UbiSettings) -> Iterator[Finding]:
    said = [*start_remarks.settings_remarks(settings, wanted), *start_remarks.plugin_remarks(settings, wanted)]
    for sentence in said:
        yield Finding(LOOK, "settings", sentence)
    if not said:
        yield Finding(OK, "settings", "all are read, none of this project's is passed over")


# -- this machine ------------------------------------------------------------------------------------------------------


def _machine(settings: BaseSettings, wanted: UbiSettings, crawl: str | None) -> Iterator[Finding]:
    path = wanted.dir.absolute()
    place = next(one for one in (path, *path.parents) if one.exists())
    if not os.access(place, os.W_OK | os.X_OK):
        yield Finding(WRONG, "directory", f"{place} cannot be written by this user: give UBI_DIR another place.")
    else:
        free = shutil.disk_usage(place).free
        if free < LEAST_DISK:
            text = f"{_bytes(free)} are free at {place}: an agent whose disk is full waits. Make room, or set UBI_DIR."
            yield Finding(LOOK, "disk", text)
        else:
            yield Finding(OK, "disk", f"{_bytes(free)} are free at {place}")
    yield from _agents_here(settings, crawl)
    yield from _open_files(settings)


def _agents_here(settings: BaseSettings, crawl: str | None) -> Iterator[Finding]:
    try:
        found, _ = directories.find_directories(settings, crawl)
    except UbiError as error:
        yield Finding(WRONG, "directory", str(error))
        return
    running = []
    for one in found:
        try:
            AgentLock(one.path).release()
        except BlockingIOError:
            running.append(f"{one.agent} (process {holder(one.path)})")
        except OSError as error:
            text = f"{one.path} cannot be used ({error.strerror or error}): see to its rights, or set UBI_DIR."
            yield Finding(WRONG, "directory", text)
    stopped = len(found) - len(running)
    parts = [f"running: {listed(running)}"] if running else []
    parts += [f"stopped, and go on at the next start: {stopped}"] if stopped else []
    whose = "of this project" if crawl is None else f"of crawl {plain(crawl, 64)}"
    yield Finding(OK, "agents", f"{whose} here: {'; '.join(parts) or 'none'}")


def _open_files(settings: BaseSettings) -> Iterator[Finding]:
    try:
        from scrapy_ubi.adapter.process.open_files import may_open
    except ImportError:
        yield Finding(UNKNOWN, "open files", "this system does not say how many files a process may open")
        return
    may, needs = may_open(), settings.getint("CONCURRENT_REQUESTS") + FILES_BESIDE
    if may < needs:
        text = (
            f"a process may open {may} files, and CONCURRENT_REQUESTS asks for {needs}: raise it (ulimit -n {needs})."
        )
        yield Finding(LOOK, "open files", text)
    else:
        yield Finding(OK, "open files", f"a process may open {may}")


# -- Redis -------------------------------------------------------------------------------------------------------------


def _redis(settings: BaseSettings, opts: argparse.Namespace, crawl: str | None) -> Iterator[Finding]:
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
    yield Finding(OK, "server", f"{name}, {_bytes(int(said.get('used_memory', 0)))} in use")
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
        text = f"maxmemory is {_bytes(limit)}: agents wait while it is full. Give it {_bytes(LEAST_MEMORY)} or more."
        yield Finding(LOOK, "memory", text)
    else:
        bound = _bytes(limit) if limit else "as much as there is"
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


def _bytes(number: int) -> str:
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number / 1024:.0f} kB"
