"""Pages in the files of the store `index`, as an agent keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scrapy import Request
from scrapy.http import HtmlResponse, Response
from scrapy.settings import Settings

from scrapy_ubi.outputs.index.index_store import IndexStore
from scrapy_ubi.outputs.part_writer import Bundle
from scrapy_ubi.outputs.stores import Page
from tests.outputs.kept import Kept

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
