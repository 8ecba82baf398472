"""Where the items of `scrapy ubi run` and `scrapy ubi crawl` go: `-o` and `-O`; whether they can be written there, as
far as that can be known before a crawl; and the one file of them at its end.

Rules of this module:

* Several processes cannot write one feed. JSON lines in a file of this machine are kept by each agent (the store
  `items`), and collected into the file at the end: each page's items once, also after crashes.
* Of any other feed each agent writes a part: its name goes into the file's name, `items-<agent>.csv`. One agent alone
  writes the file that is named. An agent that is started again appends to its part, also with `-O`.
* The items of `scrapy ubi crawl` are plain data, so it makes one file of any format out of these lines.
* A file that `-o` names must not exist, where it is collected: it is made new, and holds all of the crawl.
* Looking whether a place can be written leaves nothing written. What cannot be judged (a bucket, another machine)
  passes.
* What collects, and brings all stores, is imported at the end of a crawl only.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path, PurePath
from tempfile import TemporaryFile
from urllib.parse import unquote, urlsplit

from scrapy import version_info
from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings
from scrapy.utils.conf import feed_process_params_from_cli
from scrapy.utils.misc import load_object

from scrapy_ubi.errors import UbiDirectoryError, UbiError
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.outputs import stores
from scrapy_ubi.outputs.whole_file import whole_file
from scrapy_ubi.settings import UbiSettings

# What Scrapy's own storages import, by scheme, and how it is installed.
# Before 2.19 Scrapy does with botocore, which boto3 brings along.
NEEDS: Mapping[str, tuple[str, str]] = {
    "s3": ("boto3" if version_info >= (2, 19) else "botocore", "boto3"),
    "gs": ("google.cloud.storage", "google-cloud-storage"),
}
LONGEST_NAME = 250  # bytes of a file's name: 255, with what it ends in while it is written
LONGEST = 200  # characters of a place that are shown

AGENT = "%(ubi_agent)s"
LINES = ("jsonl", "jsonlines", "jl")  # Scrapy's names of the format that is collected
STORE = "items"


class UbiUnusableOutput(UbiError):
    """Items cannot be written to the place that was named."""


def check_place(uri: str, settings: BaseSettings) -> None:
    """Raise UbiUnusableOutput, UbiDirectoryError with one sentence where items cannot be written there."""
    if "://" in uri:
        scheme = uri.partition("://")[0].lower()
        if scheme != "file":
            _check_scheme(uri, scheme, settings)
            return
        uri = unquote(urlsplit(uri).path)
    check_file(uri)


def _check_scheme(uri: str, scheme: str, settings: BaseSettings) -> None:
    known = settings.get_component_priority_dict_with_base("FEED_STORAGES")
    if scheme not in known:
        raise UbiUnusableOutput(
            f"{plain(uri, LONGEST)} has the scheme {plain(scheme, 40)}://, which Scrapy cannot write to: use one of "
            f"{', '.join(sorted(name for name in known if name))}, or a file."
        )
    module, name = NEEDS.get(scheme, ("", ""))
    if module and not _is_there(module):
        raise UbiUnusableOutput(f"{plain(uri, LONGEST)} needs {name}, which is not installed: pip install {name}.")


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # nor what it is in
        return False


def check_file(path: str) -> None:
    """Raise UbiDirectoryError where this file cannot be written, nor made with the directories that lead to it. What
    only Scrapy knows of its name (a time) is not asked for."""
    whole = Path(path)
    known = whole
    while "%(" in str(known):
        known = known.parent
    named, shown = known == whole, plain(path, LONGEST)
    for part in known.parts:
        if len(os.fsencode(part)) > LONGEST_NAME:
            raise UbiDirectoryError(f"{shown} cannot be made: {plain(part, 40)} is too long a name for a file.")
    if named and known.is_dir():
        raise UbiDirectoryError(f"{shown} is a directory: name a file in it.")
    if named and known.exists():
        if not os.access(known, os.W_OK):
            raise UbiDirectoryError(f"{shown} cannot be written (Permission denied): name another file.")
        return
    there = known.absolute() if not named else known.absolute().parent
    while not os.path.lexists(there) and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise UbiDirectoryError(f"{shown} cannot be made, as {plain(str(there), LONGEST)} is no directory.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UbiDirectoryError(
            f"{shown} cannot be made, as nothing can be written in {plain(str(there), LONGEST)} (Permission denied)."
        )
    try:
        with TemporaryFile(dir=there):  # full disks, /proc and the like refuse what their rights allow
            pass
    except OSError as error:
        raise UbiDirectoryError(
            f"{shown} cannot be made, as nothing can be written in {plain(str(there), LONGEST)} ({error.strerror})."
        ) from error


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
        check_place(uri, settings)
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


# -- at the end


def collect_items(files: ItemFiles, settings: BaseSettings, crawl: str, run: str) -> list[str]:
    """Write the files of what all agents have kept; a sentence for each. `settings`: as an agent has them; `run`: that
    of the crawl, '' where it is not known. Raises UbiError."""
    from scrapy_ubi.cli.commands import collect
    from scrapy_ubi.outputs.collector import UbiNothingCollected

    said: list[str] = []
    for path in files.collected:
        asked = argparse.Namespace(
            kind="items", output=path, dir=[], run=run or None, crawl=crawl, json=False, latest=False
        )
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)  # as Scrapy's feeds do
        except OSError as error:
            raise UbiDirectoryError(f"{path} cannot be written ({error.strerror or error}).") from error
        try:
            said += collect.run(settings, asked).lines
        except UbiNothingCollected:
            Path(path).write_bytes(b"")
            said.append(f"{path}: there are no items.")
        if kind := files.formats.get(path):
            try:
                write_as(kind, path, settings)
            except OSError as error:
                raise UbiDirectoryError(f"{path} cannot be written ({error.strerror or error}).") from error
    return said


def write_as(kind: str, path: str, settings: BaseSettings) -> None:
    """Write JSON lines in another format, over themselves. Raises OSError."""
    exporters = settings.get_component_priority_dict_with_base("FEED_EXPORTERS")
    fields = settings.getdictorlist("FEED_EXPORT_FIELDS") or None
    with whole_file(path) as beside, open(path, encoding="utf-8") as lines, beside.open("wb") as file:
        encoding = settings.get("FEED_EXPORT_ENCODING") or "utf-8"
        exporter = load_object(exporters[kind])(file, fields_to_export=fields, encoding=encoding)
        exporter.start_exporting()
        for line in lines:
            exporter.export_item(json.loads(line))
        exporter.finish_exporting()
