"""The seeds of a crawl as they are in Redis: how many wait, and what became of the last ones."""

from __future__ import annotations

import argparse
from typing import Any, cast

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands.crawl_choice import choose_crawl
from scrapy_ubi.cli.commands.redis_connection import connect
from scrapy_ubi.cli.monitor.document import Document
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.transport.contract import MOST_SEED_URL
from scrapy_ubi.transport.redis_keys import RedisKeys

MOST_WHY = 300  # characters of a reason
MOST_NAME = 200  # characters of what its writer calls a seed


def run(settings: BaseSettings, opts: argparse.Namespace) -> Document:
    """The newest `limit` answers, the newest first. Raises UbiError."""
    with connect(settings, opts) as to:
        crawl = choose_crawl(settings, opts, to).crawl
        keys = RedisKeys(crawl)
        with to.explained():
            waiting = to.client.xlen(keys.seeds)
            rows = cast(list[Any], to.client.xrevrange(keys.seeded, count=opts.limit))
    return {"crawl": crawl, "waiting": waiting, "answers": [_answer(number, fields) for number, fields in rows]}


def _answer(number: bytes, fields: dict[bytes, bytes]) -> Document:
    millis = number.split(b"-")[0]
    return {
        "seed": plain(fields.get(b"seed", b""), 40),
        "time": int(millis) / 1000 if millis.isdigit() and len(millis) < 20 else 0.0,
        "said": plain(fields.get(b"said", b""), 16),
        "why": plain(fields.get(b"why", b""), MOST_WHY),
        "by": plain(fields.get(b"by", b""), 64),
        "url": plain(fields.get(b"url", b""), MOST_SEED_URL),  # none in the answers of agents of before
        "name": plain(fields.get(b"id", b""), MOST_NAME),
    }
