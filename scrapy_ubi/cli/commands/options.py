"""The options of `scrapy ubi`: a sub-parser for each sub-command, each with its own --help.

Scrapy's own parser comes first and keeps what it does not know, so unknown options reach the command as arguments; it
refuses them there.
"""

from __future__ import annotations

import argparse
import re
from typing import Any

from scrapy_ubi.cli.commands.botkey_options import add_botkey_subcommand
from scrapy_ubi.cli.commands.compare_options import add_compare_subcommand
from scrapy_ubi.cli.commands.crawl_options import add_crawl_subcommand
from scrapy_ubi.cli.commands.frontier_options import add_directories, add_frontier_subcommands
from scrapy_ubi.cli.commands.help_text import filled
from scrapy_ubi.cli.commands.map_options import add_map_subcommand
from scrapy_ubi.cli.commands.mcp_options import add_mcp_subcommand
from scrapy_ubi.cli.commands.number_arguments import seconds, whole
from scrapy_ubi.cli.commands.run_options import add_run_subcommand
from scrapy_ubi.cli.commands.seed_options import add_seed_subcommand
from scrapy_ubi.cli.commands.steer_options import add_steering_subcommands
from scrapy_ubi.cli.commands.web_options import add_web_subcommand

_LETTERS = whole(1, 10_000)  # asked for at once; a letter may have a megabyte
_ITEMS = whole(1, 10_000)
_REPLICAS, _COPIES = whole(1, 100_000), whole(0, 8)

STATUS = """\
Shows the crawl at one look: one row for each agent, and the sum.

  agent      its identifier
  state      joining, crawling, waiting (nothing to fetch now), paused (`scrapy ubi pause`), blocked (Redis is full, or
             its disk, or its items are not taken), fenced (cut off from Redis, fetches nothing), leaving, left,
             finished; dead (the others declared it so), silent (no news for 15 s), unreadable
  pages      responses fetched
  pages/s    in the last 10 s
  hosts      hosts it owns
  queue      URLs that wait to be fetched
  inbox      entries that wait in Redis for it, of a letter or several each
  forwarded  URLs it sent to other agents
"""
AGENTS = """\
Shows who the agents are.

  agent      its identifier
  state      as in `scrapy ubi status`
  capacity   how much of the web it takes, relative to the others
  replicas   its points on the ring
  machine    where it runs, and
  pid        as which process
  up         how long it has run
  seen       how long ago it published its figures
  view       the view it believes in, 8 of 16 digits: the same for all when they agree
  dead       its dead letters: mail that it set aside
"""
INBOX = """\
Shows the letters that wait for an agent, the oldest first: when they came, from whom, on which lane and with which
number, and of each letter the hosts (with the number of records) and the first URLs with their depth.
"""
OWNER = """\
Shows which agent owns the host of a URL, and who comes next. The agents are those of the crawl; with --agents no
Redis is needed.
"""
REPORT = """\
Shows the measures of the crawl as a whole, while it runs or after its end: pages, unique pages, overlap,
communication overhead, balance, pages a second of each agent, URLs forwarded and suppressed, failed URLs by reason.
"""
ITEMS = """\
Shows the items that came last, of all agents, one JSON object a line, from the stream in Redis (store `stream`). With
--follow: those that come from now on, each once, until Ctrl-C. What is waited for stands on standard error.

  id    the item's identity: the same however often its page is fetched
  run   the run of the crawl
  at    its place in the stream, for --from
  item  the item

While somebody follows, agents keep for him what he has not read; where the stream is full, they wait.
"""
DRAIN = """\
Asks an agent to leave, as Ctrl-C in its terminal would: it fetches nothing new, ends its loads, hands its hosts over to
the others, and closes with the reason 'drained'. Waits until it has left.
"""
VERSION = """\
Shows the versions of scrapy-ubi, Scrapy, Python and the libraries they use, the reactor of the project, and of each
extra (pip install 'scrapy-ubi[NAME]') whether it is installed. No Redis is needed.
"""
DOCTOR = """\
Looks whether all is there that agents of this project need, a line for each check: versions, extras, the add-on, the
settings and plug-ins of the project, the directory, its disk, open files, Redis (round trip, memory, rights), clocks,
and whether the agents of the crawl are alike. It changes nothing.

  ok         as it should be
  look       costs items, time or peace; the line says what to do
  wrong      refuses a start, or stops a crawl; the line says what to do
  unknown    cannot be seen from here

Exit status: 1 where something is wrong, else 0.
"""
EXAMPLES = {
    "doctor": "examples:\n  scrapy ubi doctor\n  scrapy ubi doctor myspider --json",
    "version": "examples:\n  scrapy ubi version\n  scrapy ubi version --json",
    "status": "examples:\n  scrapy ubi status\n  scrapy ubi status --watch\n  scrapy ubi status --json",
    "agents": "examples:\n  scrapy ubi agents\n  scrapy ubi agents --crawl mybot:news --redis-url redis://redis.lan/0",
    "inbox": "examples:\n  scrapy ubi inbox a1\n  scrapy ubi inbox a1 --limit 1 --full\n  scrapy ubi inbox a1 --dead",
    "owner": (
        "examples:\n  scrapy ubi owner http://example.com/page\n"
        "  scrapy ubi owner http://example.com/page --agents a,b,c=2 --replicas 200"
    ),
    "items": (
        "examples:\n  scrapy ubi items\n  scrapy ubi items --follow --until-end > items.jsonl\n"
        "  scrapy ubi items --follow --from 1795250421089-0 | jq -c .item"
    ),
    "drain": "examples:\n  scrapy ubi drain a1\n  scrapy ubi drain a1 --no-wait",
    "report": "examples:\n  scrapy ubi report\n  scrapy ubi report --html report.html\n  scrapy ubi report --json",
}


def add_subcommands(parser: argparse.ArgumentParser) -> None:
    """Give Scrapy's parser of `scrapy ubi` its sub-commands; the chosen one is `opts.what`."""
    what = parser.add_subparsers(dest="what", metavar="<sub-command>", prog="scrapy ubi", title="Sub-commands")
    _watch(_sub(what, "status", "the crawl at one look: agents, pages, queues, inboxes", STATUS))
    _sub(what, "agents", "who the agents are and where they run", AGENTS)
    inbox = _sub(what, "inbox", "what waits in an agent's inbox", INBOX)
    inbox.add_argument("agent", metavar="AGENT", help="the agent's identifier")
    inbox.add_argument("--limit", metavar="N", type=_LETTERS, default=10, help="letters shown, at most (default: 10)")
    inbox.add_argument("--full", action="store_true", help="show every URL and done mark of the letters, uncut")
    inbox.add_argument("--dead", action="store_true", help="show what the agent set aside instead, the newest first")
    _offline(_sub(what, "owner", "who owns a URL's host, and who comes next", OWNER))
    report = _sub(what, "report", "the measures of the whole crawl", REPORT)
    add_directories(report)
    report.add_argument("--html", metavar="FILE", help="write a page to FILE that stands alone, with charts over time")
    _drain(_sub(what, "drain", "ask an agent to hand over and leave", DRAIN))
    _items(_sub(what, "items", "the items of all agents, as they come", ITEMS))
    _sub(what, "version", "what is installed here", VERSION)
    doctor = _sub(what, "doctor", "is all there that agents of this project need?", DOCTOR)
    doctor.add_argument("spider", metavar="SPIDER", nargs="?", help="look at this spider's custom_settings as well")
    add_run_subcommand(lambda name, short, long, examples: _sub(what, name, short, long, examples))
    add_compare_subcommand(lambda name, short, long, examples: _sub(what, name, short, long, examples))
    add_crawl_subcommand(lambda name, short, long, examples: _sub(what, name, short, long, examples))
    add_map_subcommand(lambda name, short, long, examples: _sub(what, name, short, long, examples))
    add_seed_subcommand(lambda name, short, long, examples: _sub(what, name, short, long, examples))
    add_steering_subcommands(lambda name, short, long, examples: _sub(what, name, short, long, examples))
    add_frontier_subcommands(lambda name, short, long, examples: _sub(what, name, short, long, examples))
    add_botkey_subcommand(lambda name, short, long, examples: _sub(what, name, short, long, examples))
    add_mcp_subcommand(lambda name, short, long, examples: _sub(what, name, short, long, examples))
    add_web_subcommand(lambda name, short, long, examples: _sub(what, name, short, long, examples))


def _sub(what: Any, name: str, short: str, long: str, examples: str = "") -> argparse.ArgumentParser:
    sub: argparse.ArgumentParser = what.add_parser(
        name,
        help=short,
        description=filled(long),
        epilog=examples or EXAMPLES[name],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("--json", action="store_true", help="print JSON instead of text")
    sub.add_argument("--crawl", metavar="NAME", help="the crawl (default: UBI_CRAWL, or this project's only one)")
    sub.add_argument("--redis-url", metavar="URL", help="where the crawl's Redis is (default: UBI_REDIS_URL)")
    # Scrapy's -s stands before the sub-command; people write it behind as well.
    sub.add_argument("-s", dest="set_here", metavar="NAME=VALUE", action="append", default=[], help="a setting")
    return sub


def _watch(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--watch", action="store_true", help="draw it again every second, from its beginning to its end")


def _offline(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("url", metavar="URL", help="an absolute http or https URL")
    group = sub.add_argument_group("without Redis")
    group.add_argument("--agents", metavar="A,B=2,...", type=_agents, help="identifiers, with capacities other than 1")
    points = "points of an agent on the ring (default: 200)"
    group.add_argument("--replicas", metavar="N", type=_REPLICAS, default=200, help=points)
    group.add_argument("--partition", choices=("host", "domain"), default="host", help="UBI_PARTITION (default: host)")
    group.add_argument(
        "--replication", metavar="N", type=_COPIES, default=1, help="UBI_REPLICATION: copies kept (default: 1)"
    )


def _drain(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("agent", metavar="AGENT", help="the agent's identifier")
    sub.add_argument("--no-wait", action="store_true", help="only ask; do not wait until it has left")
    sub.add_argument(
        "--timeout", metavar="S", type=seconds, default=300.0, help="wait so many seconds at most (default: 300)"
    )
    sub.add_argument("--force", action="store_true", help="also the last agent, or one that seems to have crashed")


def _items(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--follow", action="store_true", help="print items as they come, until Ctrl-C")
    sub.add_argument(
        "--from", dest="begin", metavar="PLACE", type=_place, default="now",
        help="with --follow: now (default), start (all that the stream still has), or behind this `at`",
    )  # fmt: skip
    sub.add_argument("--until-end", action="store_true", help="with --follow: end with the crawl")
    sub.add_argument("--limit", metavar="N", type=_ITEMS, default=20, help="items shown without --follow (default: 20)")


def _place(text: str) -> str:
    if text not in ("now", "start") and not re.fullmatch(r"[0-9]{1,19}-[0-9]{1,19}", text):
        raise argparse.ArgumentTypeError(f"{text!r:.60} is neither now, start nor a place such as 1795250421089-0")
    return text


def _agents(text: str) -> dict[str, float]:
    """`a,b=2`: capacity by identifier."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, capacity = part.strip().partition("=")
        if name in found:
            raise argparse.ArgumentTypeError(f"{name!r} is named twice")
        try:
            found[name] = float(capacity or 1)
        except ValueError:
            raise argparse.ArgumentTypeError(f"the capacity of {name!r} is {capacity!r}, not a number") from None
        if not name or not 0 < found[name] <= 1000:
            raise argparse.ArgumentTypeError(f"{part!r} is no identifier, or no capacity above 0 and of at most 1000")
    return found
