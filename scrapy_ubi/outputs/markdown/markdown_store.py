"""The store of pages as Markdown: a line of JSON a page.

Rules of this module:

* Kept are pages of status 2xx that are HTML, plain text or Markdown, with `documents=yes` PDF and documents of Office,
  and do not say `noindex`; others are counted (`ubi/store/markdown/left_out`).
* A page becomes Markdown in the writer's thread, a document in the child of `outputs/documents`. What cannot be read is
  kept with its URL and the reason, and counted (`ubi/store/markdown/refused/<reason>`).
"""

from __future__ import annotations

import json
from typing import Any, ClassVar, NamedTuple

from scrapy.http import Response, TextResponse
from scrapy.settings import BaseSettings

from scrapy_ubi.outputs.documents.text_child import check_pypdf, document_kind
from scrapy_ubi.outputs.index.index_record import told_time
from scrapy_ubi.outputs.markdown.page_facts import PageFacts
from scrapy_ubi.outputs.markdown.page_markdown import PageMarkdown, check_installed, markdown_of, tidy
from scrapy_ubi.outputs.page_text import has_text
from scrapy_ubi.outputs.part_writer import Part
from scrapy_ubi.outputs.stores import Page, Store, choice, obeys
from scrapy_ubi.outputs.visit_names import read_visit_name
from scrapy_ubi.policy.politeness.page_robots import NOINDEX
from scrapy_ubi.urls.filters.filter_text import FilterError

ENDING = "jsonl"
CONTENTS = ("main", "page")


class _MarkdownPayload(NamedTuple):
    page: Page
    response: Response
    kind: str  # of a document; '' of a page


class MarkdownStore(Store):
    """`markdown(content=page, documents=yes, noindex=keep)`: pages as Markdown."""

    name: ClassVar[str] = "markdown"
    wants_pages: ClassVar[bool] = True
    counts_left_out: ClassVar[bool] = True

    def __init__(self, arguments: dict[str, tuple[str, ...]], settings: BaseSettings) -> None:
        content = arguments.pop("content", CONTENTS[:1])[-1:]
        if content not in (("main",), ("page",)):
            raise FilterError(f"has content={content[-1] if content else ''!r:.100}", "give main or page")
        self._whole = content == ("page",)
        self.wants_documents = choice(arguments, "documents", default=False)
        self.obeyed = obeys(arguments, NOINDEX)
        super().__init__(arguments, settings)
        check_installed()
        if self.wants_documents:
            check_pypdf()

    def page(self, page: Page) -> _MarkdownPayload | None:
        """A page that came whole enough to be read; None for others."""
        response = page.response
        if page.kind == "again" or response is None or not 200 <= response.status < 300:
            return None
        if self.obeyed in page.robots:
            return None
        if has_text(response):
            return _MarkdownPayload(page, response, "")
        kind = document_kind(response) if self.wants_documents else ""
        return _MarkdownPayload(page, response, kind) if kind else None

    def write(self, payload: _MarkdownPayload, part: Part) -> None:
        """In the writer's thread."""
        page, response, kind = payload
        cut = ""
        if kind:
            found, cut = self._document(response, kind)
        else:
            assert isinstance(response, TextResponse), "it has text"
            found = markdown_of(response, whole=self._whole)
        if found.refused:
            self.refuse(response.url, found.refused)
        facts = found.facts
        record: dict[str, Any] = {
            "id": read_visit_name(page.name).page,
            "url": response.url,
            "canonical": facts.canonical,
            "title": facts.title,
            "language": facts.language,
            "date": facts.date,
            "time": told_time(page.came or page.ended),
            "status": response.status,
            "depth": page.depth,
            "kind": kind or "page",
            "markdown": found.markdown,
        }
        record |= {key: said for key, said in (("cut", cut), ("refused", found.refused)) if said}
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        part.append(ENDING, f"{line}\n".encode("utf-8", "replace"))

    def _document(self, response: Response, kind: str) -> tuple[PageMarkdown, str]:
        assert self.documents is not None, "the agent's stores have one"
        read = self.documents.read(response, kind)
        facts = PageFacts(read.title, read.language, read.date)
        return PageMarkdown(facts, "", tidy(read.text), read.refused), read.cut
