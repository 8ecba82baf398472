"""The options of `scrapy ubi`: a sub-parser for each sub-command, each with its own --help.

Scrapy's own parser comes first and keeps what it does not know, so unknown options reach the command as arguments; it
refuses them there.

Descriptions are written as paragraphs and, indented by two, lists of a name and what it means; further lines of a
meaning stand below its beginning. They are shown in lines that fit the terminal.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Callable
from functools import partial
from typing import Any

from scrapy_ubi.adapter.requests.outside import MOST_PRIORITY, PRIORITY
from scrapy_ubi.cli.commands.crawl_options import add_crawl_subcommand
from scrapy_ubi.cli.commands.frontier_options import add_directories, add_frontier_subcommands
from scrapy_ubi.cli.commands.number_arguments import seconds, whole
from scrapy_ubi.cli.commands.run_options import add_run_subcommand
from scrapy_ubi.cli.commands.server_options import add_mcp_subcommand, add_web_subcommand
from scrapy_ubi.cli.mapping.url_list import MOST_URLS
from scrapy_ubi.cli.monitor.text_table import room
from scrapy_ubi.urls.listings.entries import start_of
from scrapy_ubi.urls.scope import KINDS

Subcommand = Callable[..., argparse.ArgumentParser]  # of its name, a short and a long description, examples
_NAMED = re.compile(r"(  \S(?:\S| (?! ))*  +)\S")  # the beginning of a row of a list, up to the meaning

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
_LETTERS = whole(1, 10_000)  # asked for at once; a letter may have a megabyte
_ITEMS = whole(1, 10_000)
_REPLICAS, _COPIES = whole(1, 100_000), whole(0, 8)
_PRIORITY = whole(-MOST_PRIORITY, MOST_PRIORITY)
PAGES = 200  # that a comparison has

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
SEED = """\
Gives URLs to a crawl that runs, from any machine that reaches its Redis. They wait there until the agent that owns
their host has them on its disk, and are fetched before the links of their host. The crawl does not end meanwhile; one
that is over refuses them. One that no agent is at work in finds them at its next start.

A file has a URL a line; a line that begins with { is a request in JSON: {"url": ..., "method": ..., "callback": ...};
it may have "limits", "scope" and "label" of its own, which win over the options.
Empty lines, and those that begin with #, are passed over. A line that is no URL is refused, with its number.

With --wait, what became of each is printed: OK (taken), KNOWN (fetched before, or queued), or REFUSED and why.
"""
MAP = """\
Lists the URLs of a site, a line each, with a tab and the time of the last change where that is known: from the sitemaps
that robots.txt names, or those at the usual places, and from the feeds of the site. Only these lists and the home page
are fetched; no page that they name is. robots.txt is obeyed, and the site is left alone for as long as it took to
answer.

URLs of the hosts of the given URLs are listed (with and without www.), each once; others are counted. What could not be
read is said at the end, on standard error.

Exit status: 0 when all lists were read, 1 when there is nothing or a list could not be read, 130 after Ctrl-C.
"""
BOTKEY = """\
Shows the public part of the key with which requests are signed (UBI_BOT_KEY, Web Bot Auth), as the document that is to
be served at /.well-known/http-message-signatures-directory, and the headers that its answer is to have. With --make
the key is made first.

The headers sign the document for one host, that of UBI_BOT_AGENT or --host, and hold for --days. No Redis is needed.
"""
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
    "seed": (
        "examples:\n  scrapy ubi seed https://site.example/new\n  scrapy ubi seed -f urls.txt --wait\n"
        "  producer | scrapy ubi seed -f - --priority 5000\n  scrapy ubi seed --force https://site.example/"
    ),
    "map": (
        "examples:\n  scrapy ubi map https://site.example/\n"
        "  scrapy ubi map https://site.example/ --since 2026-11-01 -o urls.txt\n"
        "  scrapy ubi map https://site.example/ --links --json"
    ),
    "botkey": (
        "examples:\n  scrapy ubi botkey --make bot.pem\n  scrapy ubi botkey\n"
        "  scrapy ubi botkey bot.pem --host bot.example --days 30 -o directory.json"
    ),
    "compare": (
        "examples:\n  scrapy ubi compare myspider\n  scrapy ubi compare myspider --pages 1000 --agents 4 --kill\n"
        "  scrapy ubi compare myspider -a section=news --keep comparison\n"
        "  scrapy ubi compare myspider --before 'rm -f items.db'"
    ),
}


def add_subcommands(parser: argparse.ArgumentParser) -> None:
    """Give Scrapy's parser of `scrapy ubi` its sub-commands; the chosen one is `opts.what`."""
    what = parser.add_subparsers(dest="what", metavar="<sub-command>", prog="scrapy ubi", title="Sub-commands")
    sub: Subcommand = partial(_sub, what)
    _watch(sub("status", "the crawl at one look: agents, pages, queues, inboxes", STATUS))
    sub("agents", "who the agents are and where they run", AGENTS)
    inbox = sub("inbox", "what waits in an agent's inbox", INBOX)
    inbox.add_argument("agent", metavar="AGENT", help="the agent's identifier")
    inbox.add_argument("--limit", metavar="N", type=_LETTERS, default=10, help="letters shown, at most (default: 10)")
    inbox.add_argument("--full", action="store_true", help="show every URL and done mark of the letters, uncut")
    inbox.add_argument("--dead", action="store_true", help="show what the agent set aside instead, the newest first")
    _offline(sub("owner", "who owns a URL's host, and who comes next", OWNER))
    report = sub("report", "the measures of the whole crawl", REPORT)
    add_directories(report)
    report.add_argument("--html", metavar="FILE", help="write a page to FILE that stands alone, with charts over time")
    _drain(sub("drain", "ask an agent to hand over and leave", DRAIN))
    _items(sub("items", "the items of all agents, as they come", ITEMS))
    sub("version", "what is installed here", VERSION)
    doctor = sub("doctor", "is all there that agents of this project need?", DOCTOR)
    doctor.add_argument("spider", metavar="SPIDER", nargs="?", help="look at this spider's custom_settings as well")
    add_run_subcommand(sub)
    _compare(sub("compare", "prove on your own spider that agents give the same items", COMPARE))
    add_crawl_subcommand(sub)
    _map(sub("map", "list the URLs of a site, by its sitemaps and feeds", MAP))
    _seed(sub("seed", "give URLs to a crawl", SEED))
    _steer(sub)
    add_frontier_subcommands(sub)
    _botkey(sub("botkey", "the key that requests are signed with: make it, show its public part", BOTKEY))
    add_mcp_subcommand(sub)
    add_web_subcommand(sub)


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


def filled(text: str) -> str:
    """The text with new line breaks."""
    return "\n".join(line for part in _parts(text) for line in _broken(part))


def _parts(text: str) -> list[list[str]]:
    """Lines that belong together: those of a paragraph, those of a row of a list, or an empty one."""
    parts: list[list[str]] = []
    for line in text.splitlines():
        if parts and _goes_on(parts[-1][0], line):
            parts[-1].append(line)
        else:
            parts.append([line])
    return parts


def _goes_on(first: str, line: str) -> bool:
    """Whether a line belongs to the part that begins with `first`."""
    if not line.strip() or not first.strip() or _NAMED.match(line):
        return False
    return line.startswith(" ") or not first.startswith(" ")


def _broken(part: list[str]) -> list[str]:
    named = _NAMED.match(part[0])
    first = named[1] if named else ""
    words = " ".join([part[0][len(first) :].strip(), *map(str.strip, part[1:])])
    filled = textwrap.wrap(words, room() - 2, initial_indent=first, subsequent_indent=" " * len(first))
    return filled or [""]


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


def _seed(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("url", metavar="URL", nargs="*", help="an absolute http or https URL")
    sub.add_argument("-f", "--file", metavar="FILE", help="read them there; -: standard input")
    sub.add_argument(
        "--priority",
        metavar="N",
        type=_PRIORITY,
        help=f"higher comes first (default: {PRIORITY})",
    )
    sub.add_argument("--limits", metavar="LIMITS", help="of their hosts: 'pages=500, bytes=2GB' (UBI_HOST_LIMITS)")
    sub.add_argument("--scope", choices=KINDS, help="links keep to this part of the web")
    sub.add_argument("--label", metavar="TEXT", help="meta['ubi_label'] of all their pages; JSON: fields of items")
    sub.add_argument("--force", action="store_true", help="fetch them even if they are known")
    sub.add_argument("--wait", action="store_true", help="wait until each is answered, and print the answers")
    sub.add_argument(
        "--timeout", metavar="S", type=seconds, default=60.0, help="wait so many seconds at most (default: 60)"
    )


def _map(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("urls", metavar="URL", nargs="+", help="a site")
    sub.add_argument("--links", action="store_true", help="list the links of the home page as well")
    sub.add_argument(
        "--hosts", metavar="HOST", action="append",
        help="list URLs of this host (*.site.example: all below, *: any) in place of the URLs' own; may be given "
        "several times",
    )  # fmt: skip
    sub.add_argument("--since", metavar="DATE", type=_date, help="leave out what has not changed since: 2026-11-01")
    sub.add_argument(
        "--max-urls", metavar="N", type=whole(1, MOST_URLS), default=MOST_URLS,
        help=f"end after so many URLs (default: {MOST_URLS})",
    )  # fmt: skip
    sub.add_argument("--delay", metavar="S", type=seconds, help="seconds between two requests to a host")
    output = sub.add_mutually_exclusive_group()
    output.add_argument("-o", "--output", metavar="FILE", help="write to a new FILE: .jsonl has JSON lines")
    output.add_argument("-O", "--overwrite-output", metavar="FILE", help="the same, overwriting")


def _steer(sub: Subcommand) -> None:
    """Add those that change a running crawl."""
    put = sub("set", "change settings of a running crawl", SET)
    put.add_argument("values", metavar="NAME=VALUE", nargs="+", help="a setting and its value; a list as JSON")
    take = sub("unset", "take such changes back", UNSET)
    take.add_argument("names", metavar="NAME", nargs="*", help="the settings")
    take.add_argument("--all", action="store_true", help="all that were given")
    show = sub("settings", "the settings of a running crawl", SETTINGS)
    show.add_argument("--changed", action="store_true", help="only those that were given while it runs")
    pause = sub("pause", "request no page until resume", PAUSE)
    resume = sub("resume", "let a paused crawl, or host, go on", RESUME)
    finish = sub("finish", "end a waiting crawl when it is empty", FINISH)
    for one in (put, take, pause, resume):
        one.add_argument("--host", metavar="HOST", help="only of this host")
    for one in (put, take, pause, resume, finish):
        one.add_argument("--no-wait", action="store_true", help="do not wait until the agents have heard it")
        one.add_argument(
            "--timeout", metavar="S", type=seconds, default=10.0, help="wait so many seconds at most (default: 10)"
        )


def _botkey(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("key", metavar="FILE", nargs="?", help="the key's file (default: UBI_BOT_KEY)")
    sub.add_argument("--make", action="store_true", help="make a new key, in a file that is not there yet")
    sub.add_argument("--host", metavar="HOST", help="where the document is served (default: that of UBI_BOT_AGENT)")
    sub.add_argument(
        "--days", metavar="N", type=whole(1, 366), default=30, help="the headers hold for so many days (default: 30)"
    )
    sub.add_argument("-o", "--output", metavar="FILE", help="write the document there, as it is to be served")


def _compare(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("spider", metavar="SPIDER", help="the spider's name")
    sub.add_argument(
        "--pages",
        metavar="N",
        type=whole(0, 10_000_000),
        default=PAGES,
        help=f"end the first crawl after so many pages (default: {PAGES}; 0: let it come to its end)",
    )
    sub.add_argument("--agents", metavar="N", type=whole(1, 64), default=2, help="so many agents (default: 2)")
    sub.add_argument("--kill", action="store_true", help="kill -9 one of the agents in the middle of its crawl")
    sub.add_argument(
        "--show", metavar="N", type=whole(0, 10_000), default=5, help="show so many differences of a kind (default: 5)"
    )
    sub.add_argument(
        "--before", metavar="COMMAND", help="run this by the shell before each crawl, to empty what the project keeps"
    )
    sub.add_argument("--keep", metavar="DIR", help="keep recording, items and logs in this new directory")
    sub.add_argument(
        "-a", dest="spargs", metavar="NAME=VALUE", action="append", default=[], help="an argument of the spider"
    )


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


def _date(text: str) -> float:
    """The beginning of a date, or a time, as `2026-11-01` or `2026-11-01T12:00:00Z`: unix seconds."""
    if (when := start_of(text)) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no date such as 2026-11-01")
    return when
