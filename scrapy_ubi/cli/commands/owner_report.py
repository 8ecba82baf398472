"""`scrapy ubi owner URL`: who owns a URL's host, among the agents of the crawl or among those that are named."""

from __future__ import annotations

import argparse

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands.crawl_choice import choose_crawl
from scrapy_ubi.cli.commands.locate import as_requested
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.commands.redis_connection import UbiNotFound, connect, setting
from scrapy_ubi.cli.monitor import document, render_status
from scrapy_ubi.cli.monitor.status import CrawlStatus
from scrapy_ubi.cli.monitor.url_owner import GroupSettings, group_of, ownership
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.protocol.ring import RingCollision
from scrapy_ubi.settings import MOST_REPLICAS, replicas_for
from scrapy_ubi.urls.host_rules import name_of


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Say it. Raises UbiError."""
    if opts.agents:
        return _owner(opts, _group_given(settings, opts))
    with connect(settings, opts) as to:
        status = choose_crawl(settings, opts, to)
    return _owner(opts, _group_now(settings, status), status)


def _owner(opts: argparse.Namespace, group: GroupSettings, status: CrawlStatus | None = None) -> QueryReport:
    try:
        answer = ownership(as_requested(opts.url), group)
    except RingCollision as collision:
        raise UbiNotFound(f"Two of these agents cannot be on one ring: {collision}.") from None
    if answer is None:
        raise UbiNotFound(f"'{plain(opts.url, 200)}' is not an absolute http or https URL, so no agent owns it.")
    lines = render_status.owner(answer)
    if status is not None and status.views > 1:
        lines += ["", f"The agents have {status.views} different views now; they will agree on this in a moment."]
    return QueryReport(lines, document.owner(answer))


def _group_given(settings: BaseSettings, opts: argparse.Namespace) -> GroupSettings:
    rules = setting(settings, "host_rules")
    replicas = {name: replicas_for(opts.replicas, capacity) for name, capacity in opts.agents.items()}
    for name, number in replicas.items():
        if number > MOST_REPLICAS:
            problem = f"times the capacity of '{plain(name, 64)}' is {number}"
            raise UbiSettingError("--replicas", problem, f"an agent has at most {MOST_REPLICAS}, make one smaller")
    shards = setting(settings, "host_shards").name
    named = {"rules_name": name_of(rules), "shards": shards}
    return GroupSettings(replicas, opts.partition, opts.replication, rules=rules, **named)


def _group_now(settings: BaseSettings, status: CrawlStatus) -> GroupSettings:
    group = group_of(status, setting(settings, "host_rules"), setting(settings, "partition"))
    if not group.replicas:
        raise UbiNotFound(f"No agent of crawl {plain(status.crawl, 64)} is alive; name some with --agents a,b,c.")
    return group
