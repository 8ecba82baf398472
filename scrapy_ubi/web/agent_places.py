"""Where the agents of a crawl have their directories, as far as this process can read them.

Rules of this module:

* Looked for is where commands look (`cli.commands.directories`), and where agents of this machine say that theirs are:
  each may have a UBI_DIR of its own. What Redis says of that is believed only where the directory itself says that it
  is this agent's of this crawl.
* Who is not found is named, with the reason: what it has written is not seen here.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands import directories
from scrapy_ubi.cli.monitor.status import AgentStatus, CrawlStatus
from scrapy_ubi.errors import UbiDirectoryError

MOST_MISSING = 200  # agents that are named
MOST_SAID = 3  # directories that are named


class AgentPlaces(NamedTuple):
    """The directories that can be read, where they were looked for, and why those of other agents cannot."""

    by_agent: dict[str, list[Path]]
    looked: str
    missing: dict[str, str]

    @property
    def paths(self) -> list[Path]:
        """All of them, each once."""
        return [*dict.fromkeys(path for paths in self.by_agent.values() for path in paths)]


def find_agents(settings: BaseSettings, status: CrawlStatus, named: Sequence[str] = ()) -> AgentPlaces:
    """The directories of the agents of this crawl; where some are `named`, those. Raises UbiDirectoryError where they
    cannot be read."""
    if named:
        places, looked = directories.named(named), ", ".join(named)
    else:
        places, looked = directories.find_directories(settings, status.crawl)
    found: dict[str, list[Path]] = {}
    for place in places:
        found.setdefault(place.agent, []).append(place.path.resolve())
    missing: dict[str, str] = {}
    said: list[str] = []  # where agents say that they are
    for agent in status.agents:
        if agent.name in found or agent.profile is None:
            continue
        try:
            found[agent.name] = [path := _said(agent, status.crawl)]
            said.append(str(path))
        except UbiDirectoryError as error:
            if len(missing) < MOST_MISSING:
                missing[agent.name] = str(error)
    rest = [f"{len(said) - MOST_SAID} more"] if len(said) > MOST_SAID else []
    return AgentPlaces(found, ", ".join([looked, *said[:MOST_SAID], *rest]), missing)


def _said(agent: AgentStatus, crawl: str) -> Path:
    """The directory that an agent says it has. Raises UbiDirectoryError where it cannot be read here."""
    profile = agent.profile
    assert profile is not None
    if profile.host_name != platform.node():
        raise UbiDirectoryError(f"It runs on the machine {profile.host_name or '?'}: collect its outputs there.")
    if not profile.directory:
        raise UbiDirectoryError("It does not say where its directory is: start this server with its UBI_DIR.")
    path = Path(profile.directory)
    place = directories.read(path)
    if (place.agent, place.crawl) != (agent.name, crawl):
        raise UbiDirectoryError(f"{path} is the directory of agent {place.agent} of crawl {place.crawl} now.")
    return path
