"""Where the agents of `scrapy ubi run` write items: `-o` and `-O`, as feeds of one part for each agent.

Rules of this module:

* Several processes cannot write one feed: the agent's name goes into the file's name, `items-<agent>.jsonl`. One agent
  alone writes the file that is named.
* An agent that is started again appends to its part, also with `-O`: what it has written counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings
from scrapy.utils.conf import feed_process_params_from_cli

AGENT = "%(ubi_agent)s"


@dataclass(frozen=True, slots=True)
class Feed:
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


def feeds_of(settings: BaseSettings, output: list[str], overwrite: list[str], several: bool) -> Sequence[Feed]:
    """The feeds of these options. Raises UsageError, also for standard output, which belongs to no single agent."""
    if not output and not overwrite:
        return []
    asked = feed_process_params_from_cli(settings, output, overwrite_output=overwrite)
    own = settings.getdict("FEEDS")
    feeds = []
    for uri, options in asked.items():
        if uri in own:
            continue  # the agents have it from the project
        if uri == "stdout:":
            raise UsageError("Items of agents cannot go to standard output, use -o FILE", print_help=False)
        feeds.append(Feed(_of_agents(uri) if several else uri, options["format"], bool(options.get("overwrite"))))
    return feeds


def _of_agents(uri: str) -> str:
    """The URI with the agent's name before the ending of the file's name."""
    if AGENT in uri:
        return uri
    name = PurePath(uri).name
    ending = PurePath(name).suffix
    return f"{uri.removesuffix(ending)}-{AGENT}{ending}"
