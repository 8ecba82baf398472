"""The tools: their names, their parameters, and the function behind a command that answers each.

Rules of this module:

* Nothing is answered here: a tool is a row of `readings` or `verbs`, or a command, with fewer and smaller parameters.
* What is said of a tool is written here, and holds nothing that was read anywhere.
* Tools that change something, or fetch something, are `changes`: a server gives them only where it was started so.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from scrapy.settings import BaseSettings, get_settings_priority

from scrapy_ubi.agent.report.queries import SORTS
from scrapy_ubi.cli.commands import search
from scrapy_ubi.cli.monitor.document import Document
from scrapy_ubi.settings.live_rows import LIVE
from scrapy_ubi.web import kept_text
from scrapy_ubi.web.parameters import Field, choice, flag, number, settings, text, texts
from scrapy_ubi.web.problem import bad
from scrapy_ubi.web.readings import MOST_NAME, READINGS, Answerer, of_command
from scrapy_ubi.web.tools.answers import FROM_WEB, PAGE_TEXT
from scrapy_ubi.web.verbs import VERBS

MOST_SEEDS = 100
MOST_LISTED = 1_000  # URLs of a map
MAP_TAKES = 120.0  # s at most
MOST_PIECE = 50_000  # characters of a page's text
MOST_LENGTH = 1_000_000_000
MOST_SAID = 500  # characters of what a command says
_CMDLINE = get_settings_priority("cmdline")


class Parameter(NamedTuple):
    """One parameter: how it is read, and as JSON Schema what a model is told of it."""

    field: Field
    schema: Mapping[str, Any]


class Tool(NamedTuple):
    """One tool. `help`: what a model is told of it; `notice`: what its answers are marked with."""

    help: str
    parameters: Mapping[str, Parameter]
    answer: Answerer
    notice: str = FROM_WEB
    changes: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its parameters."""
        needed = [name for name, one in self.parameters.items() if one.field.needed]
        properties = {name: dict(one.schema) for name, one in self.parameters.items()}
        return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}

    @property
    def fields(self) -> Mapping[str, Field]:
        """How its parameters are read."""
        return {name: one.field for name, one in self.parameters.items()}


def _text(help: str, most: int = MOST_NAME, *, needed: bool = False) -> Parameter:
    return Parameter(Field(text(most), needed=needed), {"type": "string", "maxLength": most, "description": help})


def _number(help: str, least: int, most: int, default: int) -> Parameter:
    schema = {"type": "integer", "minimum": least, "maximum": most, "default": default, "description": help}
    return Parameter(Field(number(least, most), default), schema)


def _choice(help: str, *words: str) -> Parameter:
    schema = {"type": "string", "enum": [*words], "default": words[0], "description": help}
    return Parameter(Field(choice(*words), words[0]), schema)


def _flag(help: str) -> Parameter:
    return Parameter(Field(flag, False), {"type": "boolean", "default": False, "description": help})


def _fixed(answer: Answerer, **values: Any) -> Answerer:
    """An answerer that answers with these options."""

    def run(settings: BaseSettings, opts: argparse.Namespace) -> Document:
        for name, value in values.items():
            setattr(opts, name, value)
        return answer(settings, opts)

    return run


def _page(value: Any) -> str:
    url: str = text()(value)
    if not url.lower().startswith(("http://", "https://")):
        raise ValueError("a URL that begins with http:// or https:// is wanted")
    return url


def _pages(value: Any) -> list[str]:
    return [_page(one) for one in texts(MOST_SEEDS)(value)]


def _search(settings: BaseSettings, opts: argparse.Namespace) -> Document:
    opts.words, opts.index, opts.run = opts.words.split(), None, None
    return of_command(search.run)(settings, opts)


_UNDER_WAY: set[subprocess.Popen[str]] = set()


def _map(settings: BaseSettings, opts: argparse.Namespace) -> Document:
    """`scrapy ubi map` in a process of its own, as it has a reactor."""
    given = [f"{name}={settings[name]}" for name in settings if settings.getpriority(name) == _CMDLINE]
    options = ["--json", "--max-urls", str(opts.limit), *(["--links"] if opts.links else [])]
    options += [f"--since={opts.since}"] if opts.since else []
    options += [part for one in given for part in ("-s", one)]
    with subprocess.Popen(
        [sys.executable, "-m", "scrapy", "ubi", "map", *options, "--", opts.url],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace",
    ) as mapping:  # fmt: skip
        _UNDER_WAY.add(mapping)
        try:
            urls, told = mapping.communicate(timeout=MAP_TAKES)
        except subprocess.TimeoutExpired:
            raise bad(f"The site's lists took longer than {MAP_TAKES:g} s: ask for fewer URLs (limit).") from None
        finally:
            mapping.kill()
            _UNDER_WAY.discard(mapping)
    said = " ".join(told.split())[-MOST_SAID:]
    if mapping.returncode and not urls:
        raise bad(said.removeprefix("scrapy ubi: "))
    return {"urls": [json.loads(line) for line in urls.splitlines()], "said": said}


def end_what_is_under_way() -> None:
    """End the processes that tools have started."""
    for one in [*_UNDER_WAY]:
        one.kill()


_LIMIT = "how many are given, at most"
_HOST = _text("of this host only; without it the whole crawl")
_SETTING = {"type": ["string", "number", "boolean", "array"], "items": {"type": "string"}}

TOOLS: Mapping[str, Tool] = {
    "status": Tool(
        "The crawl at one look: its state, its agents, pages, queues, and why nothing is fetched.",
        {},
        READINGS["status"].answer,
    ),
    "report": Tool(
        "Measures of the whole crawl: totals, speed, and how many pages failed, by reason and host.",
        {},
        READINGS["report"].answer,
    ),
    "hosts": Tool(
        "Hosts of the crawl: how many URLs wait, are done and failed of each, its state and its last error.",
        {
            "sort": _choice("the order", *SORTS),
            "search": _text("only hosts whose names have this in them"),
            "limit": _number(_LIMIT, 1, 200, 20),
            "after": _text("the next page: `after` of the answer before", 2 * MOST_NAME),
        },
        _fixed(READINGS["hosts"].answer, copies=False, shards=False, complete=False),
    ),
    "failures": Tool(
        "Pages that failed permanently, the newest first, with the reason of each and the count of each reason.",
        {
            "reason": _text("of this reason, or of those that begin with it and a slash: http, http/404, robots"),
            "host": _text("of this host"),
            "url": _text("of this URL", 8_192),
            "limit": _number(_LIMIT, 1, 200, 20),
        },
        READINGS["failed"].answer,
    ),
    "url": Tool(
        "What became of a URL: unknown, filtered, queued, in flight, done or failed, and at which agent.",
        {"url": _text("the URL", 8_192, needed=True)},
        READINGS["url"].answer,
    ),
    "search": Tool(
        "Pages of the crawl that have all these words, the best first, with a passage of each. `text` gives the whole "
        "of a page.",
        {
            "words": _text('words; "a phrase", begin*, -without', 1_000, needed=True),
            "limit": _number(_LIMIT, 1, 50, 10),
        },
        _search,
        PAGE_TEXT,
    ),
    "items": Tool(
        "The items that the crawl gave last, each as its line of JSON, cut to 2,000 characters.",
        {"limit": _number(_LIMIT, 1, 100, 10)},
        READINGS["items"].answer,
        PAGE_TEXT,
    ),
    "text": Tool(
        "The text of one page that was fetched, as Markdown where the crawl keeps that. A long one comes in pieces: "
        "ask again with `start` = `next`.",
        {
            "url": _text("the page's URL, as `search` and `items` have it", 8_192, needed=True),
            "start": _number("from this character on", 0, MOST_LENGTH, 0),
            "limit": _number("how many characters are given, at most", 1, MOST_PIECE, 20_000),
        },
        kept_text.run,
        PAGE_TEXT,
    ),
    "seed": Tool(
        "Gives the crawl URLs to fetch, and says what becomes of each.",
        {
            "urls": Parameter(
                Field(_pages, needed=True),
                {
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "maxItems": MOST_SEEDS,
                    "description": "absolute http or https URLs",
                },
            ),
            "force": _flag("fetch them even if they are known"),
        },
        _fixed(VERBS["seeds"].answer, priority=None, wait=True),
        changes=True,
    ),
    "map": Tool(
        "Lists the URLs of a site by its sitemaps and feeds, with the times of their last changes. It fetches these "
        "lists and the home page, and no other page.",
        {
            "url": Parameter(Field(_page, needed=True), {"type": "string", "description": "the site's home page"}),
            "links": _flag("list the links of the home page as well"),
            "since": _text("leave out what has not changed since then: 2026-11-01", 40),
            "limit": _number(_LIMIT, 1, MOST_LISTED, 200),
        },
        _map,
        changes=True,
    ),
    "pause": Tool(
        "Pauses the crawl, or one host of it, until `resume`.", {"host": _HOST},
        _fixed(VERBS["pause"].answer, wait=True), changes=True,
    ),
    "resume": Tool(
        "Lets a paused crawl, or a paused host of it, go on.", {"host": _HOST},
        _fixed(VERBS["resume"].answer, wait=True), changes=True,
    ),
    "set": Tool(
        f"Changes settings of the running crawl, or of one host of it. There are {', '.join(sorted(LIVE))}.",
        {
            "values": Parameter(
                Field(settings, needed=True),
                {
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": _SETTING,
                    "description": 'values by the names of settings: {"UBI_HOST_DELAY": 2}',
                },
            ),
            "host": _HOST,
        },
        _fixed(VERBS["set"].answer, wait=True),
        changes=True,
    ),
}  # fmt: skip
