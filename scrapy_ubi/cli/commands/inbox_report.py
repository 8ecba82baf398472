"""`scrapy ubi inbox AGENT`: what waits for an agent, or what it has set aside."""

from __future__ import annotations

import argparse

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands.crawl_choice import choose_crawl
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.commands.redis_connection import connect, need_agent
from scrapy_ubi.cli.monitor import document, render_letters
from scrapy_ubi.cli.monitor.inbox_text import read_dead, read_inbox
from scrapy_ubi.transport.redis_keys import RedisKeys


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Look and show. Raises UbiError."""
    with connect(settings, opts) as to:
        status = choose_crawl(settings, opts, to)
        agent = need_agent(status, opts.agent)
        crawl, name = status.crawl, opts.agent
        keys = RedisKeys(crawl, agent.mail_slots)
        with to.explained():
            box = (read_dead if opts.dead else read_inbox)(to.client, keys, name, opts.limit)
    if opts.dead:
        return QueryReport(render_letters.dead(name, box, status.now), document.dead(crawl, name, box))
    return QueryReport(render_letters.inbox(name, box, status.now, opts.full), document.inbox(crawl, name, box))
