"""Where the items of `scrapy ubi run` go: `-o` and `-O`.

Rules of this module:

* Several processes cannot write one feed. JSON lines in a file of this machine are kept by each agent (the store
  `items`), and collected into the file at the end: each page's items once, also after crashes.
* Of any other feed each agent writes a part: its name goes into the file's name, `items-<agent>.csv`. One agent alone
  writes the file that is named. An agent that is started again appends to its part, also with `-O`.
* The items of `scrapy ubi crawl` are plain data, so it makes one file of any format out of these lines.
* A file that `-o` names must not exist, where it is collected: it is made new, and holds all of the crawl.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings
from scrapy.utils.conf import feed_process_params_from_cli

from scrapy_ubi.cli.commands import output_places
from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.outputs import stores
from scrapy_ubi.settings import UbiSettings

AGENT = "%(ubi_agent)s"
LINES = ("jsonl", "jsonlines", "jl")  # Scrapy's names of the format that is collected
STORE = "items"


@dataclass(frozen=True, slots=True)
class AgentFeed:
    """A feed of all agents. `uri` as Scrapy takes it, with the agent's place in it."""

    uri: str
    format: str
    overwrite: bool

    def arguments(self, again: bool) -> list[str]:
        """For the command line of an agent."""
        return ["-O" if self.overwrite and not again else "-o", f"{self.uri}:{self.format}"]

    def part(self, agent: str, crawl: str) -> str:
        """The file of an agent; with what only Scrapy knows (a time) left as it is."""
        return self.uri.replace(AGENT, agent).replace("%(ubi_crawl)s", crawl)


@dataclass(frozen=True, slots=True)
class ItemFiles:
    """What the options ask for: feeds of the agents, and files that are collected at the end; `formats`: the format of
    each of these that is not to have JSON lines."""

    feeds: Sequence[AgentFeed] = ()
    collected: Sequence[str] = ()
    formats: Mapping[str, str] = field(default_factory=dict)


def item_files(
    settings: BaseSettings, output: list[str], overwrite: list[str], several: bool, one_file: bool = False
) -> ItemFiles:
    """The files of these options. `one_file`: whatever the format, a file of this machine is collected. Raises
    UsageError, also for standard output, which belongs to no single agent; UbiError where a place cannot be used."""
    if not output and not overwrite:
        return ItemFiles()
    asked = feed_process_params_from_cli(settings, output, overwrite_output=overwrite)
    own = settings.getdict("FEEDS")
    feeds, collected, formats = [], [], {}
    for uri, options in asked.items():
        if uri in own:
            continue  # the agents have it from the project
        if uri == "stdout:":
            raise UsageError("Items of agents cannot go to standard output, use -o FILE", print_help=False)
        output_places.check(uri, settings)
        if (one_file or options["format"] in LINES) and "://" not in uri and "%(" not in uri:
            collected.append(_new(uri, may_exist=bool(overwrite)))
            if options["format"] not in LINES:
                formats[uri] = options["format"]
        else:
            feeds.append(AgentFeed(_of_agents(uri) if several else uri, options["format"], bool(overwrite)))
    return ItemFiles(feeds, collected, formats)


def stores_setting(wanted: UbiSettings, seen: BaseSettings) -> str | None:
    """UBI_STORES with the items' store beside those of these settings; None where it is among them. Raises
    UbiSettingError."""
    if any(store.name == STORE for store in stores.make(wanted.stores, seen)):
        return None
    return ", ".join([*map(str, wanted.stores), STORE])


def _new(path: str, may_exist: bool) -> str:
    # An empty file may be written over: a crawl that came to nothing leaves one.
    if os.path.exists(path) and not may_exist and not (os.path.isfile(path) and not os.path.getsize(path)):
        raise UbiDirectoryError(
            f"{path} is there already, and the agents' items are collected into a new file: give it another name, or "
            "write over it by -O."
        )
    return path


def _of_agents(uri: str) -> str:
    """The URI with the agent's name before the ending of the file's name."""
    if AGENT in uri:
        return uri
    ending = PurePath(PurePath(uri).name).suffix
    return f"{uri.removesuffix(ending)}-{AGENT}{ending}"
