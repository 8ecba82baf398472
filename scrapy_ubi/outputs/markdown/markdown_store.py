"""The store of pages as Markdown: a line of JSON a page.

Rules of this module:

* What is kept, and who reads it: `outputs/text_store.py`. What cannot be read is kept with its URL and the reason, and
  counted (`ubi/store/markdown/refused/<reason>`).
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

from scrapy.http import TextResponse
from scrapy.settings import BaseSettings

from scrapy_ubi.outputs.index.index_record import told_time
from scrapy_ubi.outputs.markdown.page_facts import PageFacts
from scrapy_ubi.outputs.markdown.page_markdown import PageMarkdown, check_installed, markdown_of, tidy
from scrapy_ubi.outputs.part_writer import Part
from scrapy_ubi.outputs.text_store import Readable, TextStore
from scrapy_ubi.outputs.visit_names import read_visit_name
from scrapy_ubi.urls.filters.filter_text import FilterError

ENDING = "jsonl"
CONTENTS = ("main", "page")


class MarkdownStore(TextStore):
    """`markdown(content=page, documents=yes, noindex=keep)`: pages as Markdown."""

    name: ClassVar[str] = "markdown"

    def __init__(self, arguments: dict[str, tuple[str, ...]], settings: BaseSettings) -> None:
        content = arguments.pop("content", CONTENTS[:1])[-1:]
        if content not in (("main",), ("page",)):
            raise FilterError(f"has content={content[-1] if content else ''!r:.100}", "give main or page")
        self._whole = content == ("page",)
        super().__init__(arguments, settings)
        check_installed()

    def write(self, payload: Readable, part: Part) -> None:
        """In the writer's thread."""
        page, response, kind = payload
        cut = ""
        if kind:
            found, cut = self._document(payload)
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

    def _document(self, found: Readable) -> tuple[PageMarkdown, str]:
        read = self.read_document(found)
        facts = PageFacts(read.title, read.language, read.date)
        return PageMarkdown(facts, "", tidy(read.text), read.refused), read.cut
