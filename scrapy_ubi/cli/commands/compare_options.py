"""The options of `scrapy ubi compare`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from scrapy_ubi.cli.commands.number_arguments import whole

PAGES = 200

COMPARE = """\
Runs a spider of this project by plain Scrapy and by agents, and says whether the items are the same. The project needs
no line of scrapy-ubi, and no Redis.

The site is asked once: what it answers to plain Scrapy is kept in a file, and given again to a second crawl of plain
Scrapy and to the agents. The second crawl tells what varies by itself, such as a time in an item. Nothing that the
first crawl has not asked for is asked of the site.

FEEDS and JOBDIR of the project are off. Its pipelines run in all three crawls: let them write to a database for tests.
Where the project remembers from one crawl to the next what it has seen, let --before make it forget.

Exit status: 0 when the items and the requests are the same, 1 when they are not, nothing could be proved, or a crawl
has failed.
"""
EXAMPLES = (
    "examples:\n  scrapy ubi compare myspider\n  scrapy ubi compare myspider --pages 1000 --agents 4 --kill\n"
    "  scrapy ubi compare myspider -a section=news --keep comparison\n"
    "  scrapy ubi compare myspider --before 'rm -f items.db'"
)


def add_compare_subcommand(sub: Callable[[str, str, str, str], argparse.ArgumentParser]) -> None:
    """Add it; `sub` makes a sub-parser of a name, a short and a long description, and examples."""
    compare = sub("compare", "prove on your own spider that agents give the same items", COMPARE, EXAMPLES)
    compare.add_argument("spider", metavar="SPIDER", help="the spider's name")
    compare.add_argument(
        "--pages",
        metavar="N",
        type=whole(0, 10_000_000),
        default=PAGES,
        help=f"end the first crawl after so many pages (default: {PAGES}; 0: let it come to its end)",
    )
    compare.add_argument("--agents", metavar="N", type=whole(1, 64), default=2, help="so many agents (default: 2)")
    compare.add_argument("--kill", action="store_true", help="kill -9 one of the agents in the middle of its crawl")
    compare.add_argument(
        "--show", metavar="N", type=whole(0, 10_000), default=5, help="show so many differences of a kind (default: 5)"
    )
    compare.add_argument(
        "--before", metavar="COMMAND", help="run this by the shell before each crawl, to empty what the project keeps"
    )
    compare.add_argument("--keep", metavar="DIR", help="keep recording, items and logs in this new directory")
    compare.add_argument(
        "-a", dest="spargs", metavar="NAME=VALUE", action="append", default=[], help="an argument of the spider"
    )
