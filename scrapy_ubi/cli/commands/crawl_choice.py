"""Which crawl a command means.

Rules of this module:

* `--crawl` wins over UBI_CRAWL. Where neither names one, meant is the only crawl of this project; outside of a project,
  the only one in that Redis.
* A crawl is of this project when its name is one that the project's spiders give by default. Another one, such as a
  spider's `custom_settings` name, is meant where it is the only one of all, but not to be deleted or waited for.
* `--crawl` may be the beginning of a name, where only one crawl begins so.
"""

from __future__ import annotations

import argparse

import redis
from scrapy.settings import BaseSettings
from scrapy.utils.project import inside_project

from scrapy_ubi.cli.commands.redis_connection import RedisConnection, UbiNotFound, listed, nearest, setting
from scrapy_ubi.cli.monitor.status import CrawlStatus, find_crawls, read_status
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.settings import bot_name, is_of_bot


class UbiNoCrawl(UbiNotFound):
    """There is no such crawl; it may not have begun yet."""


def choose_crawl(settings: BaseSettings, opts: argparse.Namespace, to: RedisConnection) -> CrawlStatus:
    """The status of the crawl that is meant. Raises UbiNoCrawl, UbiNotFound, UbiSettingError and UbiUnavailable."""
    name = given_crawl(settings, opts)
    with to.explained():
        if name is None:
            name = only_crawl(settings, to, strict=getattr(opts, "watch", False))
        status = read_status(to.client, name)
        if status.exists:
            return status
        crawls = find_crawls(to.client)
        longer = [crawl for crawl in crawls if opts.crawl and crawl.startswith(name)]
        if len(longer) != 1:
            if status.odd_keys:  # something is there, and it cannot be read
                raise redis.ResponseError(f"WRONGTYPE {', '.join(status.odd_keys)}")
            raise UbiNoCrawl(_no_crawl(name, crawls, to))
        return read_status(to.client, longer[0])


def given_crawl(settings: BaseSettings, opts: argparse.Namespace) -> str | None:
    """The crawl that `--crawl` or UBI_CRAWL names, None when neither does. Raises UbiNotFound, UbiSettingError."""
    try:
        value = setting({"UBI_CRAWL": opts.crawl} if opts.crawl else settings, "crawl")
    except UbiSettingError as error:
        if not opts.crawl:
            raise
        raise UbiNotFound(str(error).replace("UBI_CRAWL", "--crawl", 1)) from None
    return None if value is None else str(value)


def only_crawl(settings: BaseSettings, to: RedisConnection, strict: bool = True) -> str:
    """The only crawl of this project in a Redis; where it has none, unless `strict`, the only one of all. Raises
    UbiNoCrawl, UbiNotFound, UbiUnavailable."""
    with to.explained():
        crawls = find_crawls(to.client)
    ours = of_project(settings, crawls)
    if not ours and not strict and len(crawls) == 1:
        return crawls[0]
    if len(ours) == 1:
        return ours[0]
    if not crawls:
        raise UbiNoCrawl(f"There is no crawl in {to.at.shown}: start one, or name another Redis ({to.given_by}).")
    if not ours:
        raise UbiNoCrawl(
            f"There is no crawl of this project ({plain(bot_name(settings), 64)}) in {to.at.shown}: start one, or name "
            f"one with --crawl; there are {listed(crawls)}."
        )
    whose = "of this project " if inside_project() else ""
    raise UbiNotFound(f"There are {len(ours)} crawls {whose}in {to.at.shown}: {listed(ours)}; name one with --crawl.")


def of_project(settings: BaseSettings, crawls: list[str]) -> list[str]:
    """Those of these crawls that are this project's; all of them outside of a project."""
    if not inside_project():
        return crawls
    return [crawl for crawl in crawls if is_of_bot(crawl, bot_name(settings))]


def _no_crawl(name: str, crawls: list[str], to: RedisConnection) -> str:
    if not crawls:
        return f"There is no crawl '{plain(name, 64)}' in {to.at.shown}, nor any other."
    return f"There is no crawl '{plain(name, 64)}' in {to.at.shown}; {nearest(name, crawls)}"
