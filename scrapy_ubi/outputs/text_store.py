"""A store of what can be read: HTML, plain text, Markdown, and with `documents=yes` PDF and documents of Office.

Rules of this module:

* Kept are pages of status 2xx that do not say `noindex`; others are counted (`ubi/store/<store>/left_out`).
* A page is read in the writer's thread, a document in the child of `outputs/documents`.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from scrapy.http import Response
from scrapy.settings import BaseSettings

from scrapy_ubi.outputs.documents.text_child import DocumentMarkdown, check_pypdf, document_kind
from scrapy_ubi.outputs.page_text import has_text
from scrapy_ubi.outputs.stores import Page, Store, choice, obeys
from scrapy_ubi.policy.politeness.page_robots import NOINDEX


class Readable(NamedTuple):
    """A page that came whole enough to be read; `kind` of a document, '' of a page."""

    page: Page
    response: Response
    kind: str


class TextStore(Store):
    """Chooses what can be read, and reads documents: subclass it, and write what is kept of a `Readable`."""

    wants_pages: ClassVar[bool] = True
    counts_left_out: ClassVar[bool] = True

    def __init__(self, arguments: dict[str, tuple[str, ...]], settings: BaseSettings) -> None:
        self.wants_documents = choice(arguments, "documents", default=False)
        self.obeyed = obeys(arguments, NOINDEX)
        super().__init__(arguments, settings)
        if self.wants_documents:
            check_pypdf()

    def page(self, page: Page) -> Readable | None:
        """Return what is read of a page later; None where nothing can be."""
        response = page.response
        if page.kind == "again" or response is None or not 200 <= response.status < 300:
            return None
        if self.obeyed in page.robots:
            return None
        if has_text(response):
            return Readable(page, response, "")
        kind = document_kind(response) if self.wants_documents else ""
        return Readable(page, response, kind) if kind else None

    def read_document(self, found: Readable) -> DocumentMarkdown:
        """Read a document, in the writer's thread."""
        assert self.documents is not None, "the agent's stores have one"
        return self.documents.read(found.response, found.kind)
