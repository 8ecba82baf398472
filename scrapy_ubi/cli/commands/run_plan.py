"""What `scrapy ubi run` starts: which crawl, which agents with which directories, and their command lines.

Rules of this module:

* It starts nothing and writes nothing. What does not hold is an error before any agent is started.
* Settings are read as an agent reads them: the project's, `-s`, and the spider's `custom_settings`.
* Agents whose directories are here are started again under their identifiers. Others are named by the machine and a
  number, so that agents of several machines have different names.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings, get_settings_priority
from scrapy.utils.conf import arglist_to_dict
from scrapy.utils.project import inside_project

from scrapy_ubi.adapter.process.agent_directory import AgentLock, holder, host_name
from scrapy_ubi.adapter.process.arguments import arguments_of
from scrapy_ubi.cli.commands import directories
from scrapy_ubi.cli.commands.directories import FoundDirectory
from scrapy_ubi.cli.commands.project import addon_remark, with_spider
from scrapy_ubi.cli.commands.redis_connection import UbiNotFound, listed
from scrapy_ubi.cli.commands.run_items import ItemFiles, item_files, stores_setting
from scrapy_ubi.cli.supervisor.agents import AgentPlace
from scrapy_ubi.errors import UbiError, UbiRefused, UbiSettingError
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.settings import UbiSettings, early

LOGS = "logs"  # beside the agents' directories


@dataclass(frozen=True, slots=True)
class RunPlan:
    """`redis_url`: None for an embedded Valkey; `left_out`: agents whose directories are here and that are not started;
    `common`: arguments of all agents; `seen`: the settings as an agent has them."""

    spider: str
    crawl: str
    root: Path
    redis_url: str | None
    start_wait: float | None
    places: Sequence[AgentPlace]
    left_out: Sequence[str]
    common: Sequence[str]
    files: ItemFiles
    seen: BaseSettings

    @property
    def logs(self) -> Path:
        """Where the agents' logs are."""
        return self.root / LOGS

    def arguments(self, place: AgentPlace, again: bool, embedded: str | None, fresh: bool) -> list[str]:
        """Scrapy's command line for an agent. `again`: it has run before, under this supervisor; `embedded`: the URL of
        the embedded Valkey, None for a Redis of the user's (whose URL may hold a password, and stays where it is);
        `fresh`: that Valkey has lost nothing since the first agent began."""
        settings = {
            "UBI_CRAWL": self.crawl,
            "UBI_AGENT_ID": place.name,
            "UBI_DIR": str(place.directory),
            "LOG_FILE": "",  # to standard error, which is the agent's log file
        }
        if embedded is not None:
            settings["UBI_REDIS_URL"] = embedded
        if self.start_wait is not None and fresh:
            settings["UBI_START_WAIT"] = f"{self.start_wait:g}"
        arguments = ["crawl", self.spider, *self.common]
        for name, value in settings.items():
            arguments += ["-s", f"{name}={value}"]
        for feed in self.files.feeds:
            arguments += feed.arguments(again)
        return arguments


def cores() -> int:
    """The processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1


def make_plan(settings: BaseSettings, opts: argparse.Namespace) -> RunPlan:
    """The plan that options and settings ask for. Raises UbiError, UsageError."""
    try:
        arguments = arglist_to_dict(opts.spargs)
    except ValueError:
        raise UsageError("Invalid -a value, use -a NAME=VALUE", print_help=False) from None
    for name, value in (("UBI_CRAWL", opts.crawl), ("UBI_REDIS_URL", opts.redis_url)):
        if value:
            settings.set(name, value, "cmdline")
    number = opts.agents or cores()
    one_file = getattr(opts, "one_file", False)
    files = item_files(settings, opts.output or [], opts.overwrite_output or [], number > 1, one_file)
    wanted, seen = _as_agents_read(settings, opts.spider, arguments_of((), arguments).short)
    found, _ = directories.find_directories(seen, wanted.crawl)
    _refuse_running(found, wanted.crawl)
    root = wanted.dir.absolute()
    places = [AgentPlace(one.agent, one.path.absolute(), _log(root, one.agent)) for one in found]
    names = getattr(opts, "names", None)
    places += new_places(root, {place.name for place in places}, number - len(places), names)
    common = [part for name, value in arguments.items() for part in ("-a", f"{name}={value}")]
    if files.collected and (stores := stores_setting(wanted, seen)) is not None:
        settings.set("UBI_STORES", stores, "cmdline")
    # An embedded Valkey is new, and is used by these agents only: it cannot have forgotten any.
    start_wait = 0.0 if wanted.redis_url is None and wanted.start_wait is None else None
    return RunPlan(
        opts.spider,
        wanted.crawl,
        root,
        wanted.redis_url,
        start_wait,
        places[:number],
        [place.name for place in places[number:]],
        [*common, *_given(settings)],
        files,
        seen,
    )


def _as_agents_read(settings: BaseSettings, spider: str, mark: str) -> tuple[UbiSettings, BaseSettings]:
    """The settings of an agent of this spider, checked, and the same as Scrapy has them."""
    if not inside_project():
        raise UbiNotFound("There is no Scrapy project here: change into one, `scrapy ubi run` starts its spiders.")
    seen = with_spider(settings, spider)
    if remark := addon_remark(seen):
        raise UbiRefused(remark)
    if not early(seen, "enabled"):
        raise UbiSettingError("UBI_ENABLED", "is off", "each agent would crawl all by itself, so turn it on")
    return UbiSettings.from_scrapy(seen, spider, arguments=mark), seen


def _refuse_running(found: Iterable[FoundDirectory], crawl: str) -> None:
    """Raise UbiRefused where an agent of this crawl runs here."""
    running = []
    for one in found:
        try:
            AgentLock(one.path).release()
        except BlockingIOError:
            running.append(holder(one.path))
        except OSError as error:
            raise UbiError(f"The directory {one.path} cannot be used ({error.strerror or error}).") from error
    if running:
        raise UbiRefused(
            f"Agents of the crawl {plain(crawl, 64)} run on this machine already (process {listed(running)}): end them "
            "first, or give this crawl another name by --crawl."
        )


def new_places(root: Path, taken: set[str], number: int, given: Iterable[str] | None = None) -> list[AgentPlace]:
    """So many agents that have no directory yet; with the names that are given, as far as these go."""
    own = (f"{host_name().partition('.')[0]}-{count}" for count in itertools.count(1))
    names = itertools.chain(given or (), own)
    free = (name for name in names if name not in taken and not (root / name).exists())
    return [AgentPlace(name, root / name, _log(root, name)) for name in itertools.islice(free, max(0, number))]


def _log(root: Path, name: str) -> Path:
    return root / LOGS / f"{name}.log"


def _given(settings: BaseSettings) -> list[str]:
    """What the command line sets, for the command lines of agents."""
    return [part for name, text in command_line_settings(settings).items() for part in ("-s", f"{name}={text}")]


def command_line_settings(settings: BaseSettings) -> dict[str, str]:
    """The settings that the command line has set, as it would name them again; but for LOG_FILE, of this process."""
    least = get_settings_priority("cmdline")
    names = [name for name in settings if isinstance(name, str) and (settings.getpriority(name) or 0) >= least]
    return {name: _as_text(settings[name]) for name in sorted(names) if name != "LOG_FILE"}


def _as_text(value: object) -> str:
    """A value of a setting as Scrapy reads it of a command line: JSON where it has parts."""
    if isinstance(value, BaseSettings):
        value = value.copy_to_dict()
    return json.dumps(value) if isinstance(value, dict) else str(value)
