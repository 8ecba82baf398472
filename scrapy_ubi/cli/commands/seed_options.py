"""The options of `scrapy ubi seed`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from scrapy_ubi.adapter.requests.outside import MOST_PRIORITY, PRIORITY
from scrapy_ubi.cli.commands.number_arguments import seconds, whole
from scrapy_ubi.urls.scope import KINDS

_PRIORITY = whole(-MOST_PRIORITY, MOST_PRIORITY)

SEED = """\
Gives URLs to a crawl that runs, from any machine that reaches its Redis. They wait there until the agent that owns
their host has them on its disk, and are fetched before the links of their host. The crawl does not end meanwhile; one
that is over refuses them. One that no agent is at work in finds them at its next start.

A file has a URL a line; a line that begins with { is a request in JSON: {"url": ..., "method": ..., "callback": ...};
it may have "limits", "scope" and "label" of its own, which win over the options.
Empty lines, and those that begin with #, are passed over. A line that is no URL is refused, with its number.

With --wait, what became of each is printed: OK (taken), KNOWN (fetched before, or queued), or REFUSED and why.
"""
EXAMPLES = (
    "examples:\n  scrapy ubi seed https://site.example/new\n  scrapy ubi seed -f urls.txt --wait\n"
    "  producer | scrapy ubi seed -f - --priority 5000\n  scrapy ubi seed --force https://site.example/"
)


def add_seed_subcommand(sub: Callable[[str, str, str, str], argparse.ArgumentParser]) -> None:
    """Add it; `sub` makes a sub-parser of a name, a short and a long description, and examples."""
    seed = sub("seed", "give URLs to a crawl", SEED, EXAMPLES)
    seed.add_argument("url", metavar="URL", nargs="*", help="an absolute http or https URL")
    seed.add_argument("-f", "--file", metavar="FILE", help="read them there; -: standard input")
    seed.add_argument(
        "--priority",
        metavar="N",
        type=_PRIORITY,
        help=f"higher comes first (default: {PRIORITY})",
    )
    seed.add_argument("--limits", metavar="LIMITS", help="of their hosts: 'pages=500, bytes=2GB' (UBI_HOST_LIMITS)")
    seed.add_argument("--scope", choices=KINDS, help="links keep to this part of the web")
    seed.add_argument("--label", metavar="TEXT", help="meta['ubi_label'] of all their pages; JSON: fields of items")
    seed.add_argument("--force", action="store_true", help="fetch them even if they are known")
    seed.add_argument("--wait", action="store_true", help="wait until each is answered, and print the answers")
    seed.add_argument(
        "--timeout", metavar="S", type=seconds, default=60.0, help="wait so many seconds at most (default: 60)"
    )
