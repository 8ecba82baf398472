"""The options of the sub-commands that look into frontiers (hosts, url, failed, requeue), and of crawls and reset."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

from scrapy_ubi.agent.report.host_answers import MOST_ROWS, place
from scrapy_ubi.agent.report.queries import SORTS
from scrapy_ubi.cli.commands.number_arguments import seconds, whole, within
from scrapy_ubi.settings.readers import MOST_CHANGED

_ROWS = whole(1, MOST_ROWS)
_DAMPING = within(0, 0.999, float, "number")
_TOLERANCE = within(1e-15, 1, float, "number")

HOSTS = """\
Shows the hosts of the crawl, from its living agents or from the directories of stopped ones.

  host        the host (or registered domain) that is fetched one page at a time; the shards of one that is cut
              (UBI_HOST_SHARDS) are added up, or shown as host#0, host#1, ... with --shards
  agent       its owner
  state       busy (a page is being fetched), waiting, held (not yet handed over to this agent), resting (its URLs are
              on disk, and its turn is yet to come), idle (nothing waits), excluded (it does not answer),
              postponed (left alone for another reason, which follows), rate (it waits for that one of UBI_RATES),
              ended (given up, or at a limit)
  queued      URLs that wait
  done        URLs fetched, or failed permanently
  failed      URLs failed permanently, and kept
  next        how long until it may be fetched again
  needs       in its place with --sort slowest: how long what waits takes
  last error  why the last of them failed
  learned     what was learned of it (UBI_NORMALISE = "learned"; UBI_BROWSER = "auto")
"""
HOST = """\
Shows one host of the crawl, at its owner and at those that keep a copy: what waits in the order in which it will be
fetched, what failed last, the delay between two pages, and what is noted of it, by section: robots (its robots.txt),
health (how it answers), delay (who wants which), until (not to be fetched before), end (why it is given up), ...
"""
URL = """\
Shows where a URL is: unknown, filtered (by which filter), on its way to its owner, queued (how deep, and behind how
many), in flight, done or failed (why); and which agent owns its host, and which would come next.
"""
FAILED = """\
Shows the requests that failed permanently, the newest first: when, at which agent, for which reason.

Reasons: http/404 (a status that the spider does not handle), robots (robots.txt forbids it), redirects (too many),
exception/<class> (of a download), callback/<class> (of the spider), ignored/<class>, codec/<what> (a request that could
not be made again), limit/<limit> (of its host), load/too_long, robots/unreachable, host/dead, host/busy, host/failing
(given up), other. --reason http stands for all of http/404, http/500, ...
"""
REQUEUE = """\
Has failed requests fetched again, once, by the owners of their hosts. They are chosen by reason, host, URL (all that
are given have to hold), or --all. What is taken in again is no longer a failure.

--outputs-of AGENT: the disk of this agent is lost, and what UBI_STORES kept there. Pages whose outputs were there, as
the other agents know, are fetched again; `scrapy ubi collect` takes each page once.
"""
RESET = """\
Forgets a crawl: its keys in Redis, and the directories of its agents on this machine. Shows what will be deleted, and
asks. Refuses while an agent lives. Directories on other machines stay: give the command there, too.

--finished and --older-than forget all crawls of this project that are old (outside of a project: all in that Redis).
"""
CRAWLS = """\
Lists the crawls in this Redis, of whatever project: those that run first, then those that were seen last.

  crawl      its name; --crawl lists those whose names begin so
  state      running, finished, or stopped (no agent works, and the end was not reached)
  agents     how many work, of how many
  pages      responses fetched
  last seen  how long ago an agent published its figures
  arguments  what its spiders were started with (scrapy crawl -a), secrets masked

Old ones are cleared by `scrapy ubi reset`.
"""
COLLECT = """\
Makes one file of what all agents of a crawl have kept (UBI_STORES): each page once, in an order that does not depend on
who has fetched it.

  items  the items, as JSON lines; OUT.parquet is a directory of Parquet files, whole when _SUCCESS is in it: store
         `items`
  links  the links, as LARM's links.log has them: store `larm`
  graph  pages and arcs, numbered: OUT.urls.gz and OUT.arcs.gz, with --hosts the graph of hosts, too: store `graph`
  index  titles and texts, as NDJSON for the bulk interface of OpenSearch; OUT.db is a database for
         `scrapy ubi search`, OUT.tantivy an index of tantivy: store `index`
  markdown  pages as Markdown: a tree of files that mirrors the sites, or with OUT.jsonl JSON lines, with --chunks N in
         pieces of N characters: store `markdown`
  warc   the responses, as WARC, with a CDXJ beside it: store `warc`; in the order of the agents' files
  duplicates  groups of pages that are copies of each other, as JSON lines: store `duplicates`

The agents' directories are those of the crawl on this machine, or those named with --dir, which may be copies from
other machines. Beside a running crawl, what is sealed is collected. Of several runs of a crawl it is the last one;
--run names another.
"""
QUALITY = """\
Shows how good the pages were that were fetched first: the average indegree of the first so many pages (how many pages
link to each), as the crawl has fetched them, beside two other orders of the same pages: breadth first without regard to
hosts, and the best order, by indegree. This is Figure 2 of UbiCrawler's paper for a crawl of your own.

Read are the records of the store `graph` (UBI_STORES), as by collect.
"""
RANK = """\
Computes PageRank over a graph that `scrapy ubi collect graph` has written, and writes a score for each URL, which the
next crawl adds to its priority (UBI_SCORE = ['file(...)']): 0 for a page of average rank, 10 more for each doubling.

Pages that were linked to and not fetched count as pages from which a reader begins again anywhere. --hosts ranks the
hosts in place of the pages, by the arcs between them; the next crawl has no use for that file, as it orders the pages
of each host.
"""
SEARCH = """\
Searches the pages of a crawl (store `index`): all words must be on a page. The best come first, by BM25; words in a
title count most.

  "some words"  a phrase
  word*         the beginning of a word
  -word         not on the page; put -- in front of the words then

The first search of a crawl makes the index, a later one adds what agents have written since; it works beside a running
crawl.
"""
WACZ = """\
Writes a WACZ file (1.1.1), which ReplayWeb.page opens: WARC files, their index and a list of pages. With WARC files
given, of those; otherwise of what all agents have kept (UBI_STORES, store `warc`), each page once, as collect has it.
"""
EXAMPLES = {
    "search": "examples:\n  scrapy ubi search consistent hashing\n"
    "  scrapy ubi search '\"link graph\"' --limit 3 --json\n"
    "  scrapy ubi search --dir a1 --dir a2 -- crawl* -robots\n  scrapy ubi search hashing --index pages.db",
    "quality": "examples:\n  scrapy ubi quality\n  scrapy ubi quality -o quality.svg\n"
    "  scrapy ubi quality --dir a1 --dir a2 --json",
    "rank": "examples:\n  scrapy ubi collect graph -o web\n  scrapy ubi rank --graph web -o scores.gz\n"
    "  scrapy ubi rank --graph web -o hosts.tsv --hosts --damping 0.9 --json",
    "wacz": "examples:\n  scrapy ubi wacz -o crawl.wacz\n  scrapy ubi wacz 'parts/*.warc.gz' -o crawl.wacz --force",
    "collect": "examples:\n  scrapy ubi collect items -o items.jsonl\n"
    "  scrapy ubi collect items --dir a1 --dir a2 -o items.jsonl\n  scrapy ubi collect items -o - | jq .title\n"
    "  scrapy ubi collect graph -o web --hosts\n"
    "  scrapy ubi collect markdown -o pages\n  scrapy ubi collect duplicates --near 3 -o duplicates.jsonl",
    "crawls": "examples:\n  scrapy ubi crawls\n  scrapy ubi crawls --json",
    "hosts": "examples:\n  scrapy ubi hosts\n  scrapy ubi hosts --sort failed --limit 50\n"
    "  scrapy ubi hosts --dir .ubi/mybot:news --json",
    "host": "examples:\n  scrapy ubi host shop.example\n  scrapy ubi host shop.example --limit 100 --json",
    "url": "examples:\n  scrapy ubi url http://example.com/page\n  scrapy ubi url http://example.com/page --agent a1",
    "failed": "examples:\n  scrapy ubi failed\n  scrapy ubi failed --reason http/503 --host shop.example.com\n"
    "  scrapy ubi failed --limit 1000 --json > failed.json",
    "requeue": "examples:\n  scrapy ubi requeue --reason http/503\n  scrapy ubi requeue --host shop.example.com\n"
    "  scrapy ubi requeue --url http://example.com/page\n  scrapy ubi requeue --all\n"
    "  scrapy ubi requeue --outputs-of a3",
    "reset": "examples:\n  scrapy ubi reset --crawl mybot:news\n  scrapy ubi reset --dir .ubi/mybot:news --yes\n"
    "  scrapy ubi reset --finished --older-than 7d",
}

Sub = Callable[[str, str, str, str], argparse.ArgumentParser]


def add_frontier_subcommands(sub: Sub) -> None:
    """Add them; `sub` makes a sub-parser of a name, a short and a long description, and examples."""
    for add in (
        _add_crawls,
        _add_hosts,
        _add_host,
        _add_url,
        _add_failed,
        _add_requeue,
        _add_collect,
        _add_quality,
        _add_rank,
        _add_search,
        _add_wacz,
        _add_reset,
    ):
        add(sub)


def _add_crawls(sub: Sub) -> None:
    sub("crawls", "the crawls in this Redis, and how old they are", CRAWLS, EXAMPLES["crawls"])


def _add_hosts(sub: Sub) -> None:
    hosts = _look(sub("hosts", "the hosts: queues, states, failures", HOSTS, EXAMPLES["hosts"]))
    hosts.add_argument("--sort", choices=SORTS, default="queued", help="in which order (default: queued, most first)")
    _limit(hosts, "hosts")
    hosts.add_argument("--copies", action="store_true", help="also the copies that successors keep")
    hosts.add_argument("--shards", action="store_true", help="each shard of a host (UBI_HOST_SHARDS) by itself")
    hosts.add_argument("--complete", action="store_true", help="only hosts of which nothing is left to fetch, and why")
    hosts.add_argument("--search", metavar="TEXT", help="only hosts whose names have this in them")
    hosts.add_argument("--after", metavar="PLACE", type=_place, help="the next page: `after` of the JSON before")


def _add_host(sub: Sub) -> None:
    host = _look(sub("host", "one host: its queue, its delay, its failures", HOST, EXAMPLES["host"]))
    host.add_argument("host", metavar="HOST", help="its name, as `scrapy ubi hosts` shows it, or a URL of it")
    _limit(host, "waiting URLs")


def _add_url(sub: Sub) -> None:
    url = _look(sub("url", "where a URL is, and what became of it", URL, EXAMPLES["url"]))
    url.add_argument("url", metavar="URL", help="an absolute http or https URL")


def _add_failed(sub: Sub) -> None:
    failed = _look(sub("failed", "the requests that failed permanently", FAILED, EXAMPLES["failed"]))
    _choice(failed)
    _limit(failed, "requests")


def _add_requeue(sub: Sub) -> None:
    requeue = _look(sub("requeue", "have failed requests fetched again", REQUEUE, EXAMPLES["requeue"]))
    _choice(requeue)
    requeue.add_argument("--all", action="store_true", help="every failed request")
    requeue.add_argument(
        "--outputs-of", metavar="AGENT", help="pages whose outputs this agent has, in place of failed requests"
    )


def _add_collect(sub: Sub) -> None:
    collect = sub(
        "collect",
        "what all agents have kept: items, links, WARC, graph, index, duplicates, Markdown",
        COLLECT,
        EXAMPLES["collect"],
    )
    kinds = ("items", "links", "warc", "graph", "index", "duplicates", "markdown")
    collect.add_argument("kind", choices=kinds, help="what is collected")
    collect.add_argument("-o", "--output", metavar="OUT", required=True, help="the file to write; -: standard output")
    collect.add_argument("--hosts", action="store_true", help="graph: the graph of hosts, too")
    collect.add_argument(
        "--latest", action="store_true", help="items, links: of pages that were visited again, the last visit alone"
    )
    collect.add_argument(
        "--chunks", metavar="N", type=whole(100, 10**7), help="markdown: in pieces of at most N characters"
    )
    collect.add_argument("--crawled-only", action="store_true", help="graph: only pages that were fetched")
    collect.add_argument(
        "--near",
        metavar="K",
        type=whole(0, MOST_CHANGED),
        help="duplicates: pages of which about K words of a hundred differ count, too; 0: exact ones only (default: as "
        "UBI_DUPLICATES says, else 3)",
    )
    _outputs(collect)


def _add_quality(sub: Sub) -> None:
    quality = sub("quality", "how good the pages fetched first were", QUALITY, EXAMPLES["quality"])
    quality.add_argument("-o", "--output", metavar="FILE", help="draw the curves there (SVG)")
    _outputs(quality)


def _add_rank(sub: Sub) -> None:
    rank = sub("rank", "PageRank of a collected graph, as scores for the next crawl", RANK, EXAMPLES["rank"])
    rank.add_argument("--graph", metavar="NAME", required=True, help="the graph: what its files' names begin with")
    rank.add_argument("-o", "--output", metavar="OUT", required=True, help="the file to write; OUT.gz is packed")
    rank.add_argument("--hosts", action="store_true", help="rank hosts in place of pages")
    rank.add_argument(
        "--damping",
        metavar="D",
        type=_DAMPING,
        default=0.85,
        help="how often an arc is followed (default: 0.85)",
    )
    rank.add_argument(
        "--tolerance", metavar="T", type=_TOLERANCE, default=1e-6,
        help="end when all ranks, which add up to 1, change by less than this (default: 1e-06)",
    )  # fmt: skip
    rank.add_argument("--iterations", metavar="N", type=_ROWS, default=200, help="iterations, at most (default: 200)")


def _add_search(sub: Sub) -> None:
    search = sub("search", "the pages that have some words, the best first", SEARCH, EXAMPLES["search"])
    search.add_argument("words", metavar="WORDS", nargs="+", help="what is searched for")
    _limit(search, "pages")
    search.add_argument(
        "--index", metavar="FILE", help="search in what `collect index -o FILE.db` has made (or FILE.tantivy)"
    )
    _outputs(search)


def _add_wacz(sub: Sub) -> None:
    wacz = sub("wacz", "WARC files, or those of all agents, as one WACZ file", WACZ, EXAMPLES["wacz"])
    wacz.add_argument("warc", metavar="WARC", nargs="*", help="WARC files, or globs (default: what the agents kept)")
    wacz.add_argument("-o", "--output", metavar="OUT", required=True, help="the file to write")
    wacz.add_argument("--force", action="store_true", help="replace a file of that name")
    _outputs(wacz)


def _add_reset(sub: Sub) -> None:
    reset = sub("reset", "forget a crawl", RESET, EXAMPLES["reset"])
    add_directories(reset)
    reset.add_argument("--finished", action="store_true", help="all crawls of this project that are finished")
    reset.add_argument(
        "--older-than",
        metavar="SPAN",
        type=span,
        help="all crawls of this project that do not run and were last seen so long ago: 90min, 12h, 30d",
    )
    reset.add_argument("--yes", action="store_true", help="do not ask")


def _place(text: str) -> str:
    try:
        place(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no place in the order of hosts") from None
    return text


def _look(sub: argparse.ArgumentParser) -> argparse.ArgumentParser:
    add_directories(sub)
    sub.add_argument("--agent", metavar="AGENT", help="ask this agent only")
    sub.add_argument(
        "--timeout", metavar="S", type=seconds, default=10.0, help="wait so many seconds for answers (default: 10)"
    )
    return sub


def _outputs(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--run", metavar="RUN", help="another run of the crawl than the last one")
    sub.add_argument(
        "--dir", metavar="DIR", action="append", default=[],
        help="the directory of an agent; may be given several times (default: those of the crawl found here)",
    )  # fmt: skip


def add_directories(sub: argparse.ArgumentParser) -> None:
    """Let directories of stopped agents be named."""
    sub.add_argument(
        "--dir",
        metavar="DIR",
        action="append",
        default=[],
        help="the directory of a stopped agent; may be given several times (default: those of the crawl found here)",
    )


def _choice(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--reason", metavar="R", help="failed for this reason, or one that begins with it and a slash")
    sub.add_argument("--host", metavar="HOST", help="of this host")
    sub.add_argument("--url", metavar="URL", help="of this URL")


def _limit(sub: argparse.ArgumentParser, what: str) -> None:
    sub.add_argument("--limit", metavar="N", type=_ROWS, default=20, help=f"{what} shown, at most (default: 20)")


def span(text: str) -> float:
    """Seconds."""
    found = re.fullmatch(r"(\d{1,9})(s|min|h|d)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of s, min, h or d, such as 12h or 30d")
    return int(found[1]) * {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}[found[2]]
