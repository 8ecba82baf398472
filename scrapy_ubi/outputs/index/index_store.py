"""The store of the search index: title and text of each page, in files that a database is made of when it is asked.

Rules of this module:

* What is kept, and who reads it: `outputs/text_store.py`. The crawl makes no index: `scrapy ubi search` and
  `scrapy ubi collect index` do, of these files. So the files are under the same promise as those of any store.
* The files are the same for every form of index (`fts5`, `tantivy`, `ndjson`).
"""

from __future__ import annotations

from typing import ClassVar

from scrapy.settings import BaseSettings

from scrapy_ubi.outputs.index.index_record import IndexRecord, packed, told_time
from scrapy_ubi.outputs.page_text import MOST_TEXT, PageText, clean, text_of
from scrapy_ubi.outputs.part_writer import Part
from scrapy_ubi.outputs.text_store import Readable, TextStore
from scrapy_ubi.outputs.visit_names import read_visit_name
from scrapy_ubi.urls.filters.filter_text import FilterError

ENDING = "ndjson"
FORMS = ("fts5", "tantivy", "ndjson")


class IndexStore(TextStore):
    """`index(fts5, documents=yes, noindex=obey)`: what is searched of each page."""

    name: ClassVar[str] = "index"

    def __init__(self, arguments: dict[str, tuple[str, ...]], settings: BaseSettings) -> None:
        forms = arguments.pop("", FORMS[:1])
        if len(forms) != 1 or forms[0] not in FORMS:
            raise FilterError(f"has the form {', '.join(forms)!r:.100}", f"give one of {', '.join(FORMS)}")
        self.form = forms[0]
        super().__init__(arguments, settings)

    def write(self, payload: Readable, part: Part) -> None:
        """In the writer's thread."""
        page, response, kind = payload
        title, text, language, unread = self._document(payload) if kind else text_of(response)
        if unread:
            self.leave_unread(response.url)
        when = told_time(page.came or page.ended)
        name = read_visit_name(page.name).page
        record = IndexRecord(
            name, response.url, title, text, language, response.status, when, page.digest.hex()
        )  # fmt: skip
        part.append(ENDING, packed(record))

    def _document(self, found: Readable) -> PageText:
        read = self.read_document(found)
        if read.refused:
            self.refuse(found.response.url, read.refused)
        return PageText(clean(read.title), clean(read.text)[:MOST_TEXT], read.language)
