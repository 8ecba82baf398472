"""The name that a crawl has where none is set: of its bot, its spider and the spider's arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from scrapy_ubi.ground.untrusted.checks import NAME

# Crawl and agent names are parts of Redis keys and of directories: no braces (hash tags), slashes or spaces.
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_.:-]")
_CUT = 55  # characters of a name that is cut, beside "-" and 8 hex digits


def bot_name(settings: Mapping[Any, Any]) -> str:
    """Scrapy's BOT_NAME."""
    return str(settings.get("BOT_NAME") or "scrapybot")


def is_of_bot(crawl: str, bot: str) -> bool:
    """Whether a crawl has the name that a spider of this bot's project gives it by default."""
    return crawl.startswith(_NOT_IN_NAME.sub("_", f"{bot}:")[:_CUT])


def default_crawl(bot: str, spider: str, arguments: str = "") -> str:
    """`<bot>:<spider>`, and `:<arguments>` where the spider has any. Where that is no name: characters replaced, cut to
    a name's length, and 8 hex digits that tell it from others that look alike then.
    """
    wanted = ":".join(part for part in (bot, spider, arguments) if part)
    if NAME.fullmatch(wanted):
        return wanted
    mark = blake2b(wanted.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{_NOT_IN_NAME.sub('_', wanted)[:_CUT]}-{mark}"
