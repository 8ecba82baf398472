"""Pages in the files of the store `index`, as an agent keeps them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from scrapy import Request
from scrapy.http import HtmlResponse, Response
from scrapy.settings import Settings

from scrapy_ubi.cli.commands import collect, search
from scrapy_ubi.cli.commands.options import add_subcommands
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.outputs.index.index_store import IndexStore
from scrapy_ubi.outputs.part_writer import Bundle
from scrapy_ubi.outputs.stores import Page
from tests.outputs.kept import Kept

BODIES = [
    ("01", "<title>Hashing</title><p>by consistent rings"),
    ("02", "<p>hashing is said once here, and much else"),
    ("03", "<p>rings of Saturn"),
]
HTML = {"Content-Type": "text/html; charset=utf-8"}


def html(body: str, url: str = "http://a.example/", status: int = 200) -> HtmlResponse:
    return HtmlResponse(url, status=status, body=body.encode(), encoding="utf-8", headers=HTML)


def page(name: str, response: Response | None, kind: str = "ok", attempt: int = 0) -> Page:
    url = response.url if response is not None else "http://a.example/"
    return Page(name, attempt, kind, Request(url), url, response=response, came=1e9)


class KeptPages(Kept):
    """An agent with the store `index`."""

    def __init__(self, directory: Path, rows: Any = None, agent: str = "a", size: float = 1e9) -> None:
        super().__init__(directory, rows, agent)
        self.index = IndexStore({"size": (str(size),)}, Settings())

    def keep(self, name: str, body: str, kind: str = "ok", attempt: int = 0) -> None:
        kept = page(name, html(body, f"http://a.example/{name}"), kind, attempt)
        payload = self.index.page(kept)
        if payload is not None:
            self.writer.put([Bundle(self.index, name, attempt, kind, payload, len(body))])


def pages_of(directory: Path, *texts: tuple[str, str], agent: str = "a") -> Path:
    """A directory with these pages: name and HTML."""
    kept = KeptPages(directory, agent=agent)
    for name, body in texts:
        kept.keep(name, body)
    kept.flush()
    kept.close()
    return directory


def two_attempts(directory: Path) -> None:
    """Two agents' directories, a and b: b has fetched the page again."""
    for agent, body, attempt in (("a", "<p>old word", 0), ("b", "<p>new word", 1)):
        kept = KeptPages(directory / agent, agent=agent)
        kept.keep("01", body, attempt=attempt)
        kept.flush()
        kept.close()


class IndexCommands:
    """`scrapy ubi search` and `collect index` in this process, with these settings."""

    def __init__(self, **settings: Any) -> None:
        self._settings = Settings(settings)

    def __call__(self, *arguments: str) -> QueryReport:
        parser = argparse.ArgumentParser()
        add_subcommands(parser)
        opts = parser.parse_args(list(arguments))
        return (search.run if opts.what == "search" else collect.run)(self._settings, opts)

    def names(self, *arguments: str) -> list[str]:
        """The pages that are found."""
        return [result["name"] for result in self("search", *arguments).document["results"]]
