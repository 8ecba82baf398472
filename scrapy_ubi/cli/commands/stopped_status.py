"""The status of a crawl whose agents have stopped, from their directories on this machine: where no Redis is used, or
it knows nothing of the crawl any more.

Rules of this module:

* It has the form of a status from Redis, and no more than that is believed of what is kept.
* A host that lies in several directories is counted once: where most of it is done, and of copies that are equal the
  one that the ring gives it to.
* Directories on other machines are not seen.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from scrapy.settings import BaseSettings

from scrapy_ubi.adapter.process.agent_directory import held_since
from scrapy_ubi.agent.profile.profile import Profile, read_profile
from scrapy_ubi.cli.commands import directories
from scrapy_ubi.cli.commands.crawl_choice import UbiNoCrawl, choose_crawl, given_crawl
from scrapy_ubi.cli.commands.directories import FoundDirectory
from scrapy_ubi.cli.commands.redis_connection import UbiNotFound, connect, listed
from scrapy_ubi.cli.commands.stopped_agents import Stopped, opened
from scrapy_ubi.cli.monitor.status import AgentStatus, CrawlStatus
from scrapy_ubi.errors import UbiError
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.protocol.config import Counters
from scrapy_ubi.protocol.ring import Ring, RingCollision
from scrapy_ubi.settings import REPLICAS
from scrapy_ubi.urls.host_shards import FIRST, MARK

_OWN = tuple(asdict(Counters()))


class _Host(NamedTuple):
    """Where most of a host is done."""

    done: int
    waiting: int
    agent: str


def figures(settings: BaseSettings, opts: argparse.Namespace) -> CrawlStatus:
    """The status of the crawl that is meant, from wherever it can be had; where from is said on standard error when it
    is not Redis. Raises UbiError."""
    status, here = read_figures(settings, opts)
    if here:
        said = "These figures are from the directories of stopped agents here, not from Redis."
        print(f"scrapy ubi: {said}", file=sys.stderr)
    return status


def read_figures(settings: BaseSettings, opts: argparse.Namespace) -> tuple[CrawlStatus, bool]:
    """The status of the crawl that is meant, and whether it is from directories. Raises UbiError."""
    crawl = given_crawl(settings, opts)
    if named := getattr(opts, "dir", None):
        return status_of(settings, directories.named(named), crawl), True
    if not (opts.redis_url or settings.get("UBI_REDIS_URL")) and (status := stopped_status(settings, crawl)):
        return status, True
    with connect(settings, opts) as to:
        try:
            status = choose_crawl(settings, opts, to)
            return (status.starting() if _starts_here(settings, status) else status), False
        except UbiNoCrawl:
            if (status := stopped_status(settings, crawl)) is None:
                raise
            return status, True


def _starts_here(settings: BaseSettings, status: CrawlStatus) -> bool:
    """Whether Redis holds the end of the last run only, and an agent of the crawl has taken its directory on this
    machine since: it loads the project, or waits for its turn, and has said nothing yet."""
    if status.state != "finished":
        return False
    profiles = [one.profile for one in status.agents if one.profile is not None]
    ended = max((profile.updated for profile in profiles), default=math.inf)
    here = platform.node()
    said = [Path(profile.directory) for profile in profiles if profile.directory and profile.host_name == here]
    with suppress(UbiError):
        said += [place.path for place in directories.find_directories(settings, status.crawl)[0]]
    return any(held_since(path, ended) for path in said)


def stopped_status(settings: BaseSettings, crawl: str | None) -> CrawlStatus | None:
    """The status of that crawl (of the only one here, where None); None where no directory of it is here. Raises
    UbiNotFound where there are several crawls, UbiDirectoryError when a directory cannot be read or an agent runs in
    it."""
    places, _ = directories.find_directories(settings, crawl)
    return status_of(settings, places, crawl) if places else None


def status_of(settings: BaseSettings, places: Sequence[FoundDirectory], crawl: str | None) -> CrawlStatus:
    """The status of a crawl from these directories of its agents. Raises UbiNotFound where they are of several, or of
    another one than that `crawl`; UbiDirectoryError when one cannot be read or an agent runs in it."""
    crawls = sorted({place.crawl for place in places})
    if crawl is not None and crawls != [crawl]:
        raise UbiNotFound(f"These are directories of {listed(crawls)}, not of the crawl {plain(crawl, 64)}.")
    if len(crawls) > 1:
        raise UbiNotFound(f"Here are directories of {len(crawls)} crawls: {listed(crawls)}; name one with --crawl.")
    hosts: dict[str, _Host] = {}
    facts: list[Mapping[str, Any]] = []
    owner = _owner(places)
    for place in places:
        with opened(place, settings) as stopped:
            facts.append(stopped.facts)
            _count(place, stopped, hosts, owner)
    agents = [_agent(place, one, hosts) for place, one in zip(places, facts, strict=True)]
    run = str(facts[0].get("run", ""))
    over = any(one.get("finished") is True for one in facts)
    control = {"run": run} | ({"finished": f"{run} {places[0].agent}"} if over else {})
    agents.sort(key=lambda agent: agent.name)
    unreadable = sum(len(agent.trouble) for agent in agents)
    return CrawlStatus(crawls[0], tuple(agents), control, time.time(), unreadable)


def _owner(places: Sequence[FoundDirectory]) -> Callable[[str], str]:
    """Who has a host on the ring of these agents, at equal capacities; no agent where they cannot be on one."""
    try:
        return Ring.of({place.agent: REPLICAS for place in places}).owner
    except RingCollision:
        return lambda host: ""


def _count(place: FoundDirectory, stopped: Stopped, hosts: dict[str, _Host], owner: Callable[[str], str]) -> None:
    for state in stopped.states():
        one, known = _Host(state.done_count, state.waiting, place.agent), hosts.get(state.host)
        if known is None or one.done > known.done or (one.done == known.done and owner(state.host) == place.agent):
            hosts[state.host] = one


def _agent(place: FoundDirectory, facts: Mapping[str, Any], hosts: Mapping[str, _Host]) -> AgentStatus:
    state = "finished" if facts.get("finished") is True else "left"
    raw = json.dumps({**_kept(facts), "agent": place.agent, "state": state, "counters": _counters(place, facts, hosts)})
    profile = read_profile(place.agent, raw.encode())
    if not isinstance(profile, Profile):
        return AgentStatus(place.agent, "unreadable", trouble=(f"its directory {place.path}: {profile}",))
    return AgentStatus(place.agent, state, profile, keeps=state == "left")


def _kept(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What an agent keeps of its profile."""
    kept = {"spider": facts.get("spider", "")}
    for part in (facts.get("settings"), facts.get("origin")):
        if isinstance(part, Mapping):
            kept.update(part)
    return kept


def _counters(place: FoundDirectory, facts: Mapping[str, Any], hosts: Mapping[str, _Host]) -> dict[str, Any]:
    names = [name for name, one in hosts.items() if one.agent == place.agent]
    own = [hosts[name] for name in names]
    number = sum(MARK not in name or name.endswith(FIRST) for name in names)
    done, waiting = sum(one.done for one in own), sum(one.waiting for one in own)
    stock = {"unique": done, "queued": waiting, "known": done + waiting, "hosts": number}
    kept = facts.get("counters")
    if not isinstance(kept, Mapping):
        return stock
    protocol = kept.get("agent")
    counted = {name: protocol[name] for name in _OWN if name in protocol} if isinstance(protocol, Mapping) else {}
    return {**{name: value for name, value in kept.items() if name != "agent"}, **counted, **stock}
