"""The store of the search index: title and text of each page, in files that a database is made of when it is asked.

Rules of this module:

* Kept are pages of status 2xx that are HTML or plain text, and with `documents=yes` PDF and documents of Office,
  and do not say `noindex`; others are counted (`ubi/store/index/left_out`).
* Text is read off a page in the writer's thread, off a document in a child (`outputs/documents`). The crawl makes no
  index: `scrapy ubi search` and `scrapy ubi collect index` do, of these files. So the files are under the same promise
  as those of any store.
* The files are the same for every form of index (`fts5`, `tantivy`, `ndjson`).
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from scrapy.http import Response
from scrapy.settings import BaseSettings

from scrapy_ubi.outputs.documents.text_child import check_pypdf, document_kind
from scrapy_ubi.outputs.index.index_record import IndexRecord, packed, told_time
from scrapy_ubi.outputs.page_text import MOST_TEXT, PageText, clean, has_text, text_of
from scrapy_ubi.outputs.part_writer import Part
from scrapy_ubi.outputs.stores import Page, Store, choice, obeys
from scrapy_ubi.outputs.visit_names import read_visit_name
from scrapy_ubi.policy.politeness.page_robots import NOINDEX
from scrapy_ubi.urls.filters.filter_text import FilterError

ENDING = "ndjson"
FORMS = ("fts5", "tantivy", "ndjson")


class _IndexPayload(NamedTuple):
    page: Page
    response: Response
    kind: str  # of a document; '' of a page


class IndexStore(Store):
    """`index(fts5, documents=yes, noindex=obey)`: what is searched of each page."""

    name: ClassVar[str] = "index"
    wants_pages: ClassVar[bool] = True
    counts_left_out: ClassVar[bool] = True

    def __init__(self, arguments: dict[str, tuple[str, ...]], settings: BaseSettings) -> None:
        forms = arguments.pop("", FORMS[:1])
        if len(forms) != 1 or forms[0] not in FORMS:
            raise FilterError(f"has the form {', '.join(forms)!r:.100}", f"give one of {', '.join(FORMS)}")
        self.form = forms[0]
        self.wants_documents = choice(arguments, "documents", default=False)
        self.obeyed = obeys(arguments, NOINDEX)
        super().__init__(arguments, settings)
        if self.wants_documents:
            check_pypdf()

    def page(self, page: Page) -> _IndexPayload | None:
        """A page that came whole enough to be read; None for others."""
        response = page.response
        if page.kind == "again" or response is None or not 200 <= response.status < 300:
            return None
        if self.obeyed in page.robots:
            return None
        if has_text(response):
            return _IndexPayload(page, response, "")
        kind = document_kind(response) if self.wants_documents else ""
        return _IndexPayload(page, response, kind) if kind else None

    def write(self, payload: _IndexPayload, part: Part) -> None:
        """In the writer's thread."""
        page, response, kind = payload
        title, text, language, unread = self._document(response, kind) if kind else text_of(response)
        if unread:
            self.leave_unread(response.url)
        when = told_time(page.came or page.ended)
        name = read_visit_name(page.name).page
        record = IndexRecord(
            name, response.url, title, text, language, response.status, when, page.digest.hex()
        )  # fmt: skip
        part.append(ENDING, packed(record))

    def _document(self, response: Response, kind: str) -> PageText:
        assert self.documents is not None, "the agent's stores have one"
        read = self.documents.read(response, kind)
        if read.refused:
            self.refuse(response.url, read.refused)
        return PageText(clean(read.title), clean(read.text)[:MOST_TEXT], read.language)
