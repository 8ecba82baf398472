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
from collections.abc import Iterator

from scrapy.settings import BaseSettings
from scrapy.utils.project import inside_project

from scrapy_ubi.adapter.process import start_remarks
from scrapy_ubi.adapter.process.agent_directory import AgentLock, holder
from scrapy_ubi.adapter.scrapy_private import versions
from scrapy_ubi.addon.turn_on import refusal
from scrapy_ubi.cli.commands import directories
from scrapy_ubi.cli.commands.project import addon_remark, with_spider
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.commands.redis_checks import LOOK, OK, UNKNOWN, WRONG, Finding, check_redis, size_text
from scrapy_ubi.cli.commands.redis_connection import listed
from scrapy_ubi.cli.commands.version import LIBRARIES, extras, installed
from scrapy_ubi.cli.monitor.text_table import folded, room
from scrapy_ubi.errors import UbiError
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.settings import UbiSettings

LEAST_DISK = 1 << 30  # bytes
FILES_BESIDE = 200  # files and sockets that a process has open beside its downloads


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
    found += check_redis(seen, opts, crawl)
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
            text = (
                f"{size_text(free)} are free at {place}: an agent whose disk is full waits. Make room, or set UBI_DIR."
            )
            yield Finding(LOOK, "disk", text)
        else:
            yield Finding(OK, "disk", f"{size_text(free)} are free at {place}")
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
    parts += [f"stopped, and used again at the next start: {stopped}"] if stopped else []
    whose = "of this project" if crawl is None else f"of crawl {plain(crawl, 64)}"
    yield Finding(OK, "agents", f"{whose} here: {'; '.join(parts) or 'none'}")


def _open_files(settings: BaseSettings) -> Iterator[Finding]:
    try:
        from scrapy_ubi.ground.open_files import may_open
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
