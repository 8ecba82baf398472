"""`scrapy ubi mcp`: its options, and the way to the server.

Rules of this module: as those of `web_options`; the SDK is there by `pip install 'scrapy-ubi[mcp]'`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.util import find_spec

from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from scrapy_ubi.cli.commands.frontier_options import add_directories
from scrapy_ubi.errors import UbiError

SERVER = "scrapy_ubi.web.tools.mcp_server.run"
WITHOUT = "The SDK of the Model Context Protocol is not installed, or older than 2: pip install 'scrapy-ubi[mcp]'."

MCP = """\
Gives a model tools to look at a crawl, over the Model Context Protocol on standard input and output. A client, such as
an editor or an assistant, starts it by its configuration.

  status, report   the crawl at one look, and its measures
  hosts, failures  queues and errors of hosts, pages that failed
  url              what became of a URL
  search, text     pages that have some words (store `index`), the text of one page (stores `markdown`, `index`)
  items            the items that came last

With --allow-changes also: seed (give URLs to fetch), map (list a site's URLs), pause, resume, set.

What tools answer is bounded, and says what was cut. What comes from the web is marked as data. A page may still mislead
a model: allow changes only where you see what it does.
"""
EXAMPLES = (
    "examples:\n  scrapy ubi mcp\n  scrapy ubi mcp --crawl mybot:news --allow-changes\n"
    "  scrapy ubi mcp --dir .ubi/site.example:2f0a91c7/vm-1"
)


class UbiNoSdk(UbiError):
    """The library of the server is missing."""


def add_mcp_subcommand(sub: Callable[[str, str, str, str], argparse.ArgumentParser]) -> None:
    """Add it; `sub` makes a sub-parser of a name, a short and a long description, and examples."""
    mcp = sub("mcp", "tools for models: look at a crawl, search its pages", MCP, EXAMPLES)
    add_directories(mcp)
    mcp.add_argument("--allow-changes", action="store_true", help="tools may also seed, map, pause, resume and set")


def run(settings: BaseSettings, opts: argparse.Namespace) -> int:
    """Serve until standard input ends; the exit status. Raises UbiError."""
    if find_spec("mcp") is None or find_spec("mcp_types") is None:  # the second came with 2
        raise UbiNoSdk(WITHOUT)
    served: int = load_object(SERVER)(settings, opts)
    return served
