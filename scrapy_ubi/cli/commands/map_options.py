"""The options of `scrapy ubi map`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from scrapy_ubi.cli.commands.number_arguments import seconds, whole
from scrapy_ubi.cli.mapping.url_list import MOST_URLS
from scrapy_ubi.urls.listings.entries import start_of

MAP = """\
Lists the URLs of a site, a line each, with a tab and the time of the last change where that is known: from the sitemaps
that robots.txt names, or those at the usual places, and from the feeds of the site. Only these lists and the home page
are fetched; no page that they name is. robots.txt is obeyed, and the site is left alone for as long as it took to
answer.

URLs of the hosts of the given URLs are listed (with and without www.), each once; others are counted. What could not be
read is said at the end, on standard error.

Exit status: 0 when all lists were read, 1 when there is nothing or a list could not be read, 130 after Ctrl-C.
"""
EXAMPLES = (
    "examples:\n  scrapy ubi map https://site.example/\n"
    "  scrapy ubi map https://site.example/ --since 2026-11-01 -o urls.txt\n"
    "  scrapy ubi map https://site.example/ --links --json"
)


def add_map_subcommand(sub: Callable[[str, str, str, str], argparse.ArgumentParser]) -> None:
    """Add it; `sub` makes a sub-parser of a name, a short and a long description, and examples."""
    mapped = sub("map", "list the URLs of a site, by its sitemaps and feeds", MAP, EXAMPLES)
    mapped.add_argument("urls", metavar="URL", nargs="+", help="a site")
    mapped.add_argument("--links", action="store_true", help="list the links of the home page as well")
    mapped.add_argument(
        "--hosts", metavar="HOST", action="append",
        help="list URLs of this host (*.site.example: all below, *: any) in place of the URLs' own; may be given "
        "several times",
    )  # fmt: skip
    mapped.add_argument("--since", metavar="DATE", type=date, help="leave out what has not changed since: 2026-11-01")
    mapped.add_argument(
        "--max-urls", metavar="N", type=whole(1, MOST_URLS), default=MOST_URLS,
        help=f"end after so many URLs (default: {MOST_URLS})",
    )  # fmt: skip
    mapped.add_argument("--delay", metavar="S", type=seconds, help="seconds between two requests to a host")
    output = mapped.add_mutually_exclusive_group()
    output.add_argument("-o", "--output", metavar="FILE", help="write to a new FILE: .jsonl has JSON lines")
    output.add_argument("-O", "--overwrite-output", metavar="FILE", help="the same, overwriting")


def date(text: str) -> float:
    """The beginning of a date, or a time, as `2026-11-01` or `2026-11-01T12:00:00Z`: unix seconds."""
    if (when := start_of(text)) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no date such as 2026-11-01")
    return when
