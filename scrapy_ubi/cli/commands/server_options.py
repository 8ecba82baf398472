"""`scrapy ubi web` and `scrapy ubi mcp`: their options, and the way to the servers.

Rules of this module: a server is named by its dotted path, and imported when it is asked for: the room `web` stands
above this one. aiohttp, which the page needs, is there with Scrapy 2.19 or by `pip install 'scrapy-ubi[web]'`; the SDK
of the tools by `pip install 'scrapy-ubi[mcp]'`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.util import find_spec

from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from scrapy_ubi.cli.commands.frontier_options import add_directories
from scrapy_ubi.cli.commands.number_arguments import whole
from scrapy_ubi.errors import UbiError

PAGE_SERVER = "scrapy_ubi.web.server.run"
WITHOUT_AIOHTTP = "aiohttp is not installed, which serves the page: pip install 'scrapy-ubi[web]'."
TOOL_SERVER = "scrapy_ubi.web.tools.mcp_server.run"
WITHOUT_SDK = "The SDK of the Model Context Protocol is not installed, or older than 2: pip install 'scrapy-ubi[mcp]'."
PORT = 8080

WEB = """\
Serves a page that shows the crawl in a browser, and its API (JSON, as --json of the other commands). It is a process of
its own: it reads Redis and asks the agents when somebody looks.

Without --token-file the crawl can be looked at only. With it, changes (pause, drain, requeue, seed, set) are made by
who gives the token; a file that is not there is made, with a random token, for you alone.

Other machines reach it only with --host, and then the token is needed for everything. The way is not encrypted: use a
tunnel (ssh -L 8080:127.0.0.1:8080 HOST) or a proxy with TLS.
"""
WEB_EXAMPLES = (
    "examples:\n  scrapy ubi web\n  scrapy ubi web --token-file token --port 8081\n"
    "  scrapy ubi web --host 0.0.0.0 --token-file token --name crawl.lan"
)
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
MCP_EXAMPLES = (
    "examples:\n  scrapy ubi mcp\n  scrapy ubi mcp --crawl mybot:news --allow-changes\n"
    "  scrapy ubi mcp --dir .ubi/site.example:2f0a91c7/vm-1"
)
_PORT = whole(0, 65_535)


class UbiNoWeb(UbiError):
    """The library of the server is missing."""


class UbiNoSdk(UbiError):
    """The library of the server is missing."""


def add_web_subcommand(sub: Callable[[str, str, str, str], argparse.ArgumentParser]) -> None:
    """Add it; `sub` makes a sub-parser of a name, a short and a long description, and examples."""
    web = sub("web", "a page that shows the crawl in a browser", WEB, WEB_EXAMPLES)
    web.add_argument("--host", metavar="HOST", default="127.0.0.1", help="listen there (default: 127.0.0.1)")
    web.add_argument(
        "--port", metavar="N", type=_PORT, default=PORT, help=f"on this port; 0: any that is free (default: {PORT})"
    )
    web.add_argument("--token-file", metavar="FILE", help="let changes be made with the token in this file")
    web.add_argument(
        "--name",
        metavar="NAME",
        action="append",
        default=[],
        help="a name by which browsers reach it, as behind a proxy; may be given several times",
    )
    web.add_argument(
        "--notices",
        metavar="HOST",
        action="append",
        default=[],
        help="let this host say, by IndexNow, what is to be fetched (*.site.example: all below); may be given several "
        "times",
    )
    web.add_argument(
        "--topic",
        metavar="URL",
        action="append",
        default=[],
        help="subscribe to this feed by WebSub; what is new in it is fetched; may be given several times",
    )
    web.add_argument("--public", metavar="URL", help="where hubs reach this server: https://crawl.example")


def add_mcp_subcommand(sub: Callable[[str, str, str, str], argparse.ArgumentParser]) -> None:
    """Add it; `sub` makes a sub-parser of a name, a short and a long description, and examples."""
    mcp = sub("mcp", "tools for models: look at a crawl, search its pages", MCP, MCP_EXAMPLES)
    add_directories(mcp)
    mcp.add_argument("--allow-changes", action="store_true", help="tools may also seed, map, pause, resume and set")


def run_web(settings: BaseSettings, opts: argparse.Namespace) -> int:
    """Serve until Ctrl-C; the exit status. Raises UbiError."""
    if find_spec("aiohttp") is None:
        raise UbiNoWeb(WITHOUT_AIOHTTP)
    served: int = load_object(PAGE_SERVER)(settings, opts)
    return served


def run_mcp(settings: BaseSettings, opts: argparse.Namespace) -> int:
    """Serve until standard input ends; the exit status. Raises UbiError."""
    if find_spec("mcp") is None or find_spec("mcp_types") is None:  # the second came with 2
        raise UbiNoSdk(WITHOUT_SDK)
    served: int = load_object(TOOL_SERVER)(settings, opts)
    return served
