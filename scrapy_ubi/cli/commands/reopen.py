"""A finished crawl that has work again, since failed requests were requeued in the directories of its agents.

The next start goes on with a crawl only when neither its directory nor Redis says that this run is over (node/joining).
"""

from __future__ import annotations

import argparse
from collections.abc import Collection

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands.redis_connection import connect, listed
from scrapy_ubi.cli.monitor.status import read_status
from scrapy_ubi.errors import UbiError
from scrapy_ubi.transport.redis_keys import RedisKeys


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
