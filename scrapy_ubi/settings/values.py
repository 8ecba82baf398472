"""Values of settings that are more than a number or a text."""

from __future__ import annotations

from typing import Literal, NamedTuple


class MaxBody(NamedTuple):
    """How many bytes of a page are kept, 0: all; and whether of everything that callbacks get, or of HTML only."""

    size: int = 0
    of_all: bool = False

    def __str__(self) -> str:
        return f"all({self.size})" if self.of_all else str(self.size)


WHOLE = MaxBody()


class RecrawlUse(NamedTuple):
    """By which rule pages are visited again ("": each page is visited once); how often at most, None: without end; and
    whether the callback is `always` called, also for a page that is as at its last visit."""

    rule: str = ""
    rounds: int | None = None
    always: bool = False

    def __bool__(self) -> bool:
        return bool(self.rule)


NO_RECRAWL = RecrawlUse()


class Duplicates(NamedTuple):
    """Which pages count as duplicates, those where `near` words of a hundred differ (0: copies only), and what is done
    with them."""

    near: int = 0
    action: Literal["mark", "unfollow", "skip"] = "mark"


class SitemapUse(NamedTuple):
    """What is done with sitemaps: nothing, or their pages are crawled `first`, before links, or they `only`. `most`:
    so many URLs are taken of those of a host, 0: all; `since`: only what was changed since that time, as written, ""
    for all, or is of no known time."""

    mode: Literal["no", "first", "only"] = "no"
    most: int = 0
    since: str = ""

    def __bool__(self) -> bool:
        return self.mode != "no"

    def __str__(self) -> str:
        since = f"since={self.since}" if self.since else ""
        arguments = ", ".join(filter(None, (str(self.most or ""), since)))
        return f"{self.mode}({arguments})" if arguments else self.mode


NO_SITEMAPS = SitemapUse()
