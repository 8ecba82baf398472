"""The options of `scrapy ubi botkey`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from scrapy_ubi.cli.commands.number_arguments import whole

BOTKEY = """\
Shows the public part of the key with which requests are signed (UBI_BOT_KEY, Web Bot Auth), as the document that is to
be served at /.well-known/http-message-signatures-directory, and the headers that its answer is to have. With --make
the key is made first.

The headers sign the document for one host, that of UBI_BOT_AGENT or --host, and hold for --days. No Redis is needed.
"""
EXAMPLES = (
    "examples:\n  scrapy ubi botkey --make bot.pem\n  scrapy ubi botkey\n"
    "  scrapy ubi botkey bot.pem --host bot.example --days 30 -o directory.json"
)


def add_botkey_subcommand(sub: Callable[[str, str, str, str], argparse.ArgumentParser]) -> None:
    """Add it; `sub` makes a sub-parser of a name, a short and a long description, and examples."""
    botkey = sub("botkey", "the key that requests are signed with: make it, show its public part", BOTKEY, EXAMPLES)
    botkey.add_argument("key", metavar="FILE", nargs="?", help="the key's file (default: UBI_BOT_KEY)")
    botkey.add_argument("--make", action="store_true", help="make a new key, in a file that is not there yet")
    botkey.add_argument("--host", metavar="HOST", help="where the document is served (default: that of UBI_BOT_AGENT)")
    botkey.add_argument(
        "--days", metavar="N", type=whole(1, 366), default=30, help="the headers hold for so many days (default: 30)"
    )
    botkey.add_argument("-o", "--output", metavar="FILE", help="write the document there, as it is to be served")
