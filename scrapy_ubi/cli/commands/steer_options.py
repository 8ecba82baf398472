"""The options of the sub-commands that change a running crawl: set, unset, settings, pause, resume, finish."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from scrapy_ubi.cli.commands.number_arguments import seconds

SET = """\
Changes settings of a running crawl, at all its agents, those that are away or start later among them, until they are
taken back (`scrapy ubi unset`) or the crawl is reset. `scrapy ubi settings` shows which settings can be changed so.
With --host: of this host only. Waits until all agents have heard it, which takes a second or two.
"""
UNSET = """\
Takes back what `scrapy ubi set` has said: the settings are again as settings.py has them. With --host: what was said of
this host.
"""
SETTINGS = """\
Shows the settings that can be changed while the crawl runs, with their values.

  setting  its name; pause and finish stand here, too
  host     the host it was given for; empty: the whole crawl
  value    its value
  since    how long ago it was given
  by       who has given it; settings.py: it is the value of this project

Below: the agents that have not heard of all of it yet, and what agents refuse, and why.
"""
PAUSE = """\
Pauses a crawl, or with --host a host of it: no page is requested from now on, loads under way end. It stays paused
through restarts of agents and of Redis until `scrapy ubi resume`.
"""
RESUME = """\
Lets a paused crawl go on, or with --host a paused host.
"""
FINISH = """\
Asks a crawl that waits for seeds to end when it is empty. Any other crawl ends then anyway.
"""
EXAMPLES = {
    "set": (
        "examples:\n  scrapy ubi set UBI_HOST_DELAY=2\n  scrapy ubi set UBI_HOST_LIMITS=pages=500 --host shop.example\n"
        '  scrapy ubi set \'UBI_FILTERS=["length(500)", "scope(domains=site.example)"]\''
    ),
    "unset": "examples:\n  scrapy ubi unset UBI_HOST_DELAY\n  scrapy ubi unset --all",
    "settings": "examples:\n  scrapy ubi settings --changed\n  scrapy ubi settings --json",
    "pause": "examples:\n  scrapy ubi pause\n  scrapy ubi pause --host shop.example",
    "resume": "examples:\n  scrapy ubi resume\n  scrapy ubi resume --host shop.example",
    "finish": "examples:\n  scrapy ubi finish",
}

AddSub = Callable[[str, str, str, str], argparse.ArgumentParser]


def add_steering_subcommands(add: AddSub) -> None:
    """Add them by `add(name, short, long, examples)`."""
    put = add("set", "change settings of a running crawl", SET, EXAMPLES["set"])
    put.add_argument("values", metavar="NAME=VALUE", nargs="+", help="a setting and its value; a list as JSON")
    take = add("unset", "take such changes back", UNSET, EXAMPLES["unset"])
    take.add_argument("names", metavar="NAME", nargs="*", help="the settings")
    take.add_argument("--all", action="store_true", help="all that were given")
    show = add("settings", "the settings of a running crawl", SETTINGS, EXAMPLES["settings"])
    show.add_argument("--changed", action="store_true", help="only those that were given while it runs")
    pause = add("pause", "request no page until resume", PAUSE, EXAMPLES["pause"])
    resume = add("resume", "let a paused crawl, or host, go on", RESUME, EXAMPLES["resume"])
    finish = add("finish", "end a waiting crawl when it is empty", FINISH, EXAMPLES["finish"])
    for sub in (put, take, pause, resume):
        sub.add_argument("--host", metavar="HOST", help="only of this host")
    for sub in (put, take, pause, resume, finish):
        sub.add_argument("--no-wait", action="store_true", help="do not wait until the agents have heard it")
        sub.add_argument(
            "--timeout", metavar="S", type=seconds, default=10.0, help="wait so many seconds at most (default: 10)"
        )
