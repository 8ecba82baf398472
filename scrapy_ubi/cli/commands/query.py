"""What agents know of their frontiers, living or stopped: the answers to one question, from wherever they can be had.

Living agents are asked through Redis. Where `--dir` names directories, or no agent lives, the directories of stopped
agents are opened instead, one after the other, and the same question is put to what lies in them.

A finished crawl has work again when failed requests were requeued in such directories. The next start goes on with it
only when neither its directory nor Redis says that this run is over (agent/group/join).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from scrapy.settings import BaseSettings

from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.agent.report.queries import Question
from scrapy_ubi.cli.commands import directories, stopped_agents
from scrapy_ubi.cli.commands.crawl_choice import choose_crawl, given_crawl
from scrapy_ubi.cli.commands.directories import FoundDirectory
from scrapy_ubi.cli.commands.query_live import Answers, ask, living
from scrapy_ubi.cli.commands.redis_connection import (
    RedisConnection,
    UbiNotFound,
    connect,
    listed,
    nearest,
    need_agent,
    setting,
)
from scrapy_ubi.cli.monitor.answers import Answer
from scrapy_ubi.cli.monitor.document import Document
from scrapy_ubi.cli.monitor.status import CrawlStatus, read_status
from scrapy_ubi.cli.monitor.url_owner import GroupSettings, group_of
from scrapy_ubi.errors import UbiDirectoryError, UbiError
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.settings import FINGERPRINTER, REPLICAS
from scrapy_ubi.settings.url_readers import PARTITIONS
from scrapy_ubi.transport.redis_keys import RedisKeys
from scrapy_ubi.urls.host_rules import name_of
from scrapy_ubi.urls.host_shards import read_name
from scrapy_ubi.urls.normaliser import is_composition


def goes_on(settings: BaseSettings, opts: argparse.Namespace, crawl: str, runs: Collection[str]) -> bool:
    """Whether Redis says that one of these runs is not over: then requests were requeued on another machine."""
    if not (opts.redis_url or settings.get("UBI_REDIS_URL")):
        return False
    try:
        with connect(settings, opts) as to, to.explained():
            status = read_status(to.client, crawl)
    except UbiError:
        return False  # what is done about it depends on this alone, and `reopen` complains
    return bool(status.run) and status.run in runs and not status.finished


def reopen(settings: BaseSettings, opts: argparse.Namespace, crawl: str, runs: Collection[str]) -> str:
    """Take back what Redis says of the end of these runs. A sentence about what stands in the way of going on with
    them, '' when nothing does.
    """
    if not (opts.redis_url or settings.get("UBI_REDIS_URL")):
        return ""
    try:
        with connect(settings, opts) as to, to.explained():
            status = read_status(to.client, crawl)
            if status.finished and status.run in runs:
                to.client.hdel(RedisKeys(crawl).control, "finished")
    except UbiError as error:
        return f"They are queued, but whether Redis takes the crawl for finished could not be seen: {error}"
    past = sorted(set(runs) & set(status.control.get("past", "").split()))
    if past:
        return (
            f"They are queued in directories of an earlier run of this crawl ({listed(past)}), and another one has "
            "begun since: an agent that starts in such a directory throws them away."
        )
    return ""


class QueryReport(NamedTuple):
    """What a command prints: lines for people, a document for programs; and what was wrong nevertheless, if so."""

    lines: list[str]
    document: Document
    complaint: str = ""


@dataclass(frozen=True, slots=True)
class Gathered:
    """The answers to a question. `group`: those among whom hosts are shared out; `lives`: whether agents answered, or
    directories of stopped ones."""

    crawl: str
    group: GroupSettings
    lives: bool
    answers: Answers

    @property
    def whose(self) -> str:
        """Who has answered, in a headline."""
        number = len(self.answers.by_agent)
        agents = "1 agent" if number == 1 else f"{number} agents"
        return f"crawl {plain(self.crawl, 64)}, {agents}{'' if self.lives else ' (stopped)'}"

    def rows(self) -> list[Answer]:
        """The rows of all agents, each with its agent."""
        return [
            {"agent": agent, **row} for agent, answer in self.answers.by_agent.items() for row in answer.get("rows", ())
        ]

    def total(self, name: str) -> int:
        """A count of the answers, summed up."""
        return sum(int(answer[name]) for answer in self.answers.by_agent.values())

    def document(self) -> Document:
        """What every document begins with."""
        return {"crawl": self.crawl, "lives": self.lives, "missing": dict(self.answers.missing)}


Asker = Callable[[GroupSettings], Question]


def gather(settings: BaseSettings, opts: argparse.Namespace, question: Asker) -> Gathered:
    """The answers to a question, which may depend on the group. Raises UbiError."""
    if opts.dir:
        return _of_directories(settings, opts, question, _given(opts))
    if not (opts.redis_url or settings.get("UBI_REDIS_URL")):
        return _of_directories(settings, opts, question, _found(settings, given_crawl(settings, opts)))
    with connect(settings, opts) as to:
        try:
            status = choose_crawl(settings, opts, to)
        except UbiNotFound as error:
            return _of_directories(settings, opts, question, _found(settings, given_crawl(settings, opts), str(error)))
        if opts.agent:
            need_agent(status, opts.agent)
        if not living(status):
            none_lives = f"No agent of crawl {plain(status.crawl, 64)} lives."
            return _of_directories(settings, opts, question, _found(settings, status.crawl, none_lives), status)
        return _of_the_living(settings, to, status, opts, question)


def _of_the_living(
    settings: BaseSettings, to: RedisConnection, status: CrawlStatus, opts: argparse.Namespace, question: Asker
) -> Gathered:
    group = group_of(status, setting(settings, "host_rules"), setting(settings, "partition"))
    return Gathered(status.crawl, group, True, ask(to, status, question(group), opts.timeout))


def _given(opts: argparse.Namespace) -> list[FoundDirectory]:
    """The directories that `--dir` names; of one crawl only, where `--crawl` names it. Raises UbiError."""
    places = directories.named(opts.dir)
    meant = [place for place in places if not opts.crawl or place.crawl == opts.crawl]
    if not meant:
        hint = nearest(opts.crawl, sorted({place.crawl for place in places}))
        raise UbiNotFound(f"None of these directories is of crawl '{plain(opts.crawl, 64)}'; {hint}")
    return meant


def _found(settings: BaseSettings, crawl: str | None, instead: str = "") -> list[FoundDirectory]:
    """The directories here of a crawl's agents. Raises UbiNotFound when there are none; `instead` says why they are
    looked for."""
    found, looked = directories.find_directories(settings, crawl)
    if not found and instead:
        raise UbiNotFound(
            f"{instead} No directory of its agents is here either (looked at {looked}): name one with --dir, or start "
            "an agent."
        )
    if not found:
        raise UbiNotFound(
            f"UBI_REDIS_URL is not set, and no agent's directory is here (looked at {looked}): name one with --dir, or "
            "a Redis with --redis-url."
        )
    return found


def _of_directories(
    settings: BaseSettings,
    opts: argparse.Namespace,
    question: Asker,
    places: list[FoundDirectory],
    status: CrawlStatus | None = None,
) -> Gathered:
    """Put the question to each directory in turn. One that cannot be read is missing, unless it is the only one."""
    crawls = sorted({place.crawl for place in places})
    if len(crawls) > 1:
        raise UbiNotFound(f"These are directories of {len(crawls)} crawls: {listed(crawls)}; name one with --crawl.")
    if opts.agent:
        places = [place for place in places if place.agent == opts.agent]
        if not places:
            raise UbiNotFound(f"None of these directories is of agent '{plain(opts.agent, 64)}'.")
    _refuse_copies(places)
    facts, missing = _facts(settings, places)
    group = _group(settings, places, status, facts)
    asked = question(group)
    keys = RequestKeys(group.settings)
    found: dict[str, Answer] = {}
    for place in places:
        if place.agent in facts:
            with stopped_agents.opened(place, settings) as directory:
                found[place.agent] = directory.ask(asked, keys)
    trouble = ""
    if asked.ask == "requeue":
        runs = {str(one.get("run", "")) for one in facts.values()}
        requeued = any(answer["requeued"] for answer in found.values())
        if requeued or goes_on(settings, opts, crawls[0], runs):
            for place in places:
                if place.agent in facts:
                    with stopped_agents.opened(place, settings) as directory:
                        directory.reopen()
        trouble = reopen(settings, opts, crawls[0], runs) if requeued else ""
    return Gathered(crawls[0], group, False, Answers(found, missing, trouble))


def _refuse_copies(places: list[FoundDirectory]) -> None:
    """One of two directories of one agent is a copy, and it cannot be told which. Raises UbiDirectoryError."""
    first: dict[str, Path] = {}
    for place in places:
        if (path := first.setdefault(place.agent, place.path)) != place.path:
            raise UbiDirectoryError(
                f"{path} and {place.path} are both of agent '{plain(place.agent, 64)}', so one is a copy: name with "
                "--dir those that are meant."
            )


def _facts(settings: BaseSettings, places: list[FoundDirectory]) -> tuple[dict[str, Mapping[str, Any]], dict[str, str]]:
    """What is kept of the crawl in each directory, by agent; and why not, where it cannot be read. Raises
    UbiDirectoryError when it is the only one."""
    facts: dict[str, Mapping[str, Any]] = {}
    missing: dict[str, str] = {}
    for place in places:
        try:
            with stopped_agents.opened(place, settings) as directory:
                facts[place.agent] = directory.facts
        except UbiDirectoryError as error:
            if len(places) == 1:
                raise
            missing[place.agent] = str(error)
    return facts, missing


def _group(
    settings: BaseSettings,
    places: list[FoundDirectory],
    status: CrawlStatus | None,
    facts: Mapping[str, Mapping[str, Any]],
) -> GroupSettings:
    """Those who shared the crawl out, as Redis shows them; else the agents of these directories, by the settings kept
    there, else by the project's."""
    if (
        status is not None
        and (group := group_of(status, setting(settings, "host_rules"), setting(settings, "partition"))).replicas
    ):
        return group
    written = [one["settings"] for one in facts.values() if isinstance(one.get("settings"), dict)]
    kept: Mapping[str, Any] = written[0] if written else {}
    said = {name: kept.get(name, setting(settings, name)) for name in ("partition", "replication")}
    try:
        replicas = int(kept.get("replicas", REPLICAS))
        normalise = str(kept.get("normaliser", setting(settings, "normalise")))
        if not is_composition(normalise):
            return GroupSettings({})
        of_agents = {place.agent: replicas for place in places}
        rules = setting(settings, "host_rules")
        rules_name = str(kept.get("host_rules", name_of(rules)))
        fingerprinter = str(kept.get("fingerprinter", FINGERPRINTER))
        by = (str(said["partition"]), int(said["replication"]))
        shards = str(kept.get("host_shards", setting(settings, "host_shards").name))
        read_name(shards)
        own_namer = "" if (own := str(setting(settings, "partition"))) in PARTITIONS else own
        named_by = str(kept.get("named_by", own_namer))
        return GroupSettings(of_agents, *by, normalise, rules_name, rules, fingerprinter, shards, named_by, own_namer)
    except (TypeError, ValueError):  # the settings kept are not what an agent writes
        return GroupSettings({})
