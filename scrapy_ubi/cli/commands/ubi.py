"""`scrapy ubi status | agents | inbox AGENT | owner URL | report | drain AGENT | crawls | hosts | host HOST | url URL |
failed | requeue | seed URL | reset | set | unset | settings | pause | resume | finish | collect | quality | rank |
search | wacz`: a crawl, seen from outside; `scrapy ubi web` for a browser, `mcp` for models; `version`: what is
installed; `botkey`: the key that requests are signed with. `scrapy ubi run SPIDER`: its agents, on this machine.
`scrapy ubi crawl URL`: the same without a project. `scrapy ubi map URL`: what a site lists.

The commands only read, but for `run`, `crawl`, `drain`, `requeue`, `seed`, `reset`, and those that change a running
crawl; `collect`, `quality`, `rank` and `wacz` write the files that they are told, and `search` its index. Errors are
one sentence on standard error and exit status 1 (2 for a wrong command line); a traceback is a fault of this program.

Scrapy imports this module for each of its commands, also in projects that do not use this package: so the rest is
imported when `scrapy ubi` is what runs.
"""

from __future__ import annotations

import argparse

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from scrapy.utils.conf import arglist_to_dict


class Command(ScrapyCommand):
    """The command as Scrapy sees it."""

    requires_project = False
    requires_crawler_process = False

    def syntax(self) -> str:
        """The usage line behind the command's name."""
        return "<sub-command> [options]"

    def short_desc(self) -> str:
        """The line in Scrapy's list of commands."""
        return "Crawl a site; run agents of a spider; look at a crawl: agents, hosts, failures; drain, collect, search"

    def long_desc(self) -> str:
        """The text above the options."""
        return (
            "Crawl a site without a project, run agents of a spider on this machine, or look at a crawl from any "
            "machine that reaches its Redis. "
            "'scrapy ubi <sub-command> --help' tells more about each."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Scrapy's global options, and the sub-commands."""
        super().add_options(parser)
        from scrapy_ubi.cli.commands.options import add_subcommands

        add_subcommands(parser)

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Settings from the command line, in front of and behind the sub-command."""
        super().process_options(args, opts)
        if opts.what is None:
            raise UsageError
        if args:
            raise UsageError(f"scrapy ubi {opts.what} does not know {' '.join(map(repr, args))}", print_help=False)
        assert self.settings is not None
        try:
            self.settings.setdict(arglist_to_dict(opts.set_here), priority="cmdline")
        except ValueError:
            raise UsageError("Invalid -s value, use -s NAME=VALUE", print_help=False) from None

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Answer, or say in one sentence why not."""
        assert self.settings is not None
        from scrapy_ubi.cli.commands.answering import answer

        self.exitcode = answer(self.settings, opts)
